"""Bayesian logistic regression on abalone by private variational inference: accuracy against epsilon.

    python examples/logistic_abalone.py [figure.png]

The same model, data and settings as `hubbub experiment dpvi`, which repeats it over many splits; here one split, with
the private posterior beside the non-private one. Needs the extras `vi` and `experiments`.
"""

from __future__ import annotations

import sys

import numpy as np
from matplotlib.figure import Figure

from hubbub import Budget, LocalEngine, PrivateSVI, TrustedAggregator
from hubbub.experiments import dpvi

NAMES = ("sex", "length", "diameter", "height", "whole", "shucked", "viscera", "shell", "intercept")


def draws_of(epsilon: float | None, X: np.ndarray, y: np.ndarray) -> tuple[PrivateSVI, np.ndarray]:
    engine = LocalEngine(computes=3, tolerate=5) if epsilon else TrustedAggregator()
    budget, noise = (Budget(epsilon, dpvi.DELTA), None) if epsilon else (None, 0.0)
    clip = dpvi.CLIP if epsilon else dpvi.NO_CLIP
    fitted = PrivateSVI(dpvi.model(), budget=budget, clip=clip, engine=engine, noise_multiplier=noise, seed=0).fit(X, y)
    sample = fitted.sample(1000)
    return fitted, np.column_stack([sample["w"], sample["b"]])


def main(path: str) -> None:
    X, y = dpvi.data()
    order = np.random.default_rng(0).permutation(y.size)
    train, test = order[: dpvi.TRAIN], order[dpvi.TRAIN :]
    design = np.column_stack([X[test], np.ones(test.size)])
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    for offset, epsilon in enumerate((None, 10.0, 1.0)):
        fitted, draws = draws_of(epsilon, X[train], y[train])
        accuracy = np.mean(((1 / (1 + np.exp(-design @ draws.T))).mean(axis=1) > 0.5) == (y[test] > 0.5))
        label = f"epsilon {epsilon:g}" if epsilon else "non-private"
        print(f"{label}: accuracy {100 * accuracy:.1f} % on {test.size} held-out rows")
        low, middle, high = np.quantile(draws, [0.05, 0.5, 0.95], axis=0)
        at = np.arange(len(NAMES)) + 0.2 * (offset - 1)
        axes.errorbar(at, middle, yerr=[middle - low, high - middle], fmt="o", ms=4, label=label)
    print(fitted.privacy_)
    axes.set_xticks(range(len(NAMES)), NAMES, rotation=30)
    axes.set(ylabel="coefficient, 90 % interval", title="Is an abalone nine rings old or more?")
    axes.legend()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "logistic_abalone.png")
