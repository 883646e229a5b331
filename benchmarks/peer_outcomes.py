"""hubbub's logistic regression beside diffprivlib's, on real data: `python benchmarks/peer_outcomes.py [--json]`.

The sets, splits and public bounds of `hubbub experiment outcomes`, whose finished cells in `--out` are used.
diffprivlib 0.6.6 does not import beside the scikit-learn that hubbub runs on, so it gets an environment of its own.

It is given what a careful user would give: numbers moved to [-1, 1] by the same public bounds, categories as 0/1
columns, and as `data_norm` the longest that such a row can be. Beside its default C = 1 stands the C that turned out
best on the test rows, since much noise asks for a stronger ridge. Its promise is another: pure epsilon, where ours has
delta = 1e-5. Both are for one row replaced by another.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from hubbub.experiments import catalogue
from hubbub.experiments.outcome import Claim, claim_everywhere
from hubbub.experiments.outcome_sets import SOURCES, OutcomeSet, read
from hubbub.experiments.outcomes import EPSILONS, SCORES, split_of
from peers import PROGRAMS, TIME_LIMIT, PeerFailed, environment

INSTALLS = (("diffprivlib==0.6.6", "scikit-learn==1.6.1"),)
PEER, IN_HINDSIGHT = "diffprivlib", "diffprivlib, best C"
DRAWS, CS = 5, (1.0, 0.1, 0.01)  # of its noise on each split; strengths of its ridge, its default first


def scaled(data: OutcomeSet) -> np.ndarray:
    """Numbers in [-1, 1] by their public bounds, categories as they are."""
    low, high = np.array(data.x_bounds).T
    category = np.array(["=" in name for name in data.names])
    return np.where(category, data.X, (data.X - (low + high) / 2) / ((high - low) / 2))


def theirs(python: Path, name: str, repeats: int, seed: int) -> list[dict[str, Any]]:
    """diffprivlib's scores on every split of a set."""
    data = read(name)
    splits = [split_of(name, split, seed) for split in range(repeats)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npz"
        train, test = (np.array([split[i] for split in splits]) for i in (0, 1))
        np.savez(path, X=scaled(data), y=data.y, norm=data.norm, train=train, test=test)
        settings = json.dumps({"draws": DRAWS, "epsilon": EPSILONS, "C": CS})
        command = [str(python), str(PROGRAMS / "diffprivlib_logistic.py"), str(path), settings]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT)
    if done.returncode != 0:
        raise PeerFailed(f"diffprivlib_logistic.py failed: {(done.stderr.strip() or 'no reason').splitlines()[-1]}")
    found = json.loads(done.stdout.splitlines()[-1])
    rows = [{"dataset": name, "method": PEER, **row} for row in found if row["C"] == CS[0]]
    best = [max((row for row in found if row["epsilon"] == e), key=lambda row: row["auc"]) for e in EPSILONS]
    return rows + [{"dataset": name, "method": IN_HINDSIGHT, **row} for row in best]


def claims(rows: list[dict[str, Any]]) -> list[Claim]:
    """What we say of the two: with its default ridge, and with the ridge that turned out best on the test rows."""
    auc = {(row["dataset"], row["epsilon"], row["method"]): row["auc"] for row in rows}
    return [
        claim_everywhere(
            f"(ours) the AUC is at least that of {method} on every set",
            "so at",
            "points",
            {
                f"{name} at {epsilon:g}": (ours >= auc[name, epsilon, method], f"{ours:.3f}")
                for (name, epsilon, mine), ours in auc.items()
                if mine == "hubbub"
            },
        )
        for method in (PEER, IN_HINDSIGHT)
    ]


def table(rows: list[dict[str, Any]]) -> str:
    """As Markdown."""
    head = ("data", "epsilon", "method", *SCORES)
    lines = [
        (row["dataset"], f"{row['epsilon']:g}", row["method"], *(f"{row[key]:.3f}" for key in SCORES)) for row in rows
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, ("---",) * len(head), *lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the experiment's cells")
    parser.add_argument("--repeats", type=int, default=None, help="random splits")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    parser.add_argument("--venv", type=Path, default=Path(".peers"), help="folder for the peer's environment")
    chosen = parser.parse_args()
    try:
        python = environment("diffprivlib", INSTALLS, chosen.venv.absolute())
        ours = catalogue.run("outcomes", catalogue.Settings(chosen.out, chosen.repeats, chosen.seed))
        repeats = ours.rows[0]["repeats"]
        rows = [row for row in ours.rows if row["dataset"] in SOURCES]
        rows += [row for name in SOURCES for row in theirs(python, name, repeats, chosen.seed)]
    except PeerFailed as failure:
        sys.exit(str(failure))
    rows.sort(key=lambda row: (list(SOURCES).index(row["dataset"]), row["epsilon"]))
    found = claims(rows)
    if chosen.json:
        print(json.dumps({"rows": rows, "claims": [claim.as_dict() for claim in found]}))
        return
    print(table(rows) + "\n")
    for claim in found:
        print(f"- {claim.claim}: {claim.measured} ({'holds' if claim.holds else 'does not hold'})")


if __name__ == "__main__":
    main()
