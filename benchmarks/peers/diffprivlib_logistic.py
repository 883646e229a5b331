"""diffprivlib's logistic regression on the splits of a file: `diffprivlib_logistic.py rows.npz SETTINGS`.

Runs in an environment of its own, and prints means over splits and draws of the noise, for each epsilon and C
of the settings (JSON), as one line of JSON.
"""

from __future__ import annotations

import itertools
import json
import sys
import warnings

import numpy as np
from diffprivlib.models import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score


def scores(file: dict[str, np.ndarray], split: int, draw: int, epsilon: float, C: float) -> tuple[float, float, float]:
    X, y, train, test = file["X"], file["y"], file["train"][split], file["test"][split]
    state = np.random.RandomState([split, draw, int(1000 * epsilon)])
    norm = float(file["norm"])
    model = LogisticRegression(epsilon=epsilon, data_norm=norm, C=C, max_iter=1000, random_state=state)
    probability = model.fit(X[train], y[train]).predict_proba(X[test])[:, 1]
    right = np.mean((probability > 0.5) == (y[test] > 0.5))
    surprise = log_loss(y[test], np.clip(probability, 1e-12, 1 - 1e-12), labels=[0, 1])
    return float(right), float(roc_auc_score(y[test], probability)), float(surprise)


def main() -> None:
    warnings.simplefilter("ignore")
    with np.load(sys.argv[1]) as content:
        file = {key: content[key] for key in content}
    settings = json.loads(sys.argv[2])
    rows = []
    for epsilon, C in itertools.product(settings["epsilon"], settings["C"]):
        each = itertools.product(range(len(file["train"])), range(settings["draws"]))
        found = np.mean([scores(file, split, draw, epsilon, C) for split, draw in each], axis=0).tolist()
        rows.append({"epsilon": epsilon, "C": C, **dict(zip(("accuracy", "auc", "log_loss"), found, strict=True))})
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
