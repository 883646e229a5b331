"""The table of Wang 2018 (AdaSSP): mean squared errors at small budgets, ours beside the published ones."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from hubbub.arrays import Floats
from hubbub.engines import TrustedAggregator
from hubbub.errors import InvalidInput, UntrustworthyWarning
from hubbub.estimators.linear_regression import PosteriorKind, PrivateLinearRegression
from hubbub.experiments import datasets
from hubbub.experiments.baselines import ada_ssp
from hubbub.experiments.modes import Mode
from hubbub.experiments.outcome import Claim, Outcome, claim_everywhere
from hubbub.experiments.runner import Cell, Row, seed_of
from hubbub.privacy import Budget

EPSILONS = (0.1, 1.0)
DELTA = 1e-6
FOLDS = 10
DRAWS = 400  # from the default posterior: its mean is all that is used
POSTERIORS: dict[str, PosteriorKind] = {"default": "noise-aware", "shrinkage": "shrinkage"}
METHODS = ("trivial", "non-private", "AdaSSP", *POSTERIORS, "published")
PRIVATE = ("AdaSSP", *POSTERIORS)
DEFAULT_REPEATS = 3


@dataclass(frozen=True)
class Published:
    """A line of the paper's table: mean squared errors of a 10-fold cross-validation."""

    trivial: float
    non_private: float
    best: dict[float, float]
    """The better one of AdaSSP and AdaOPS, by epsilon."""


PUBLISHED = {
    "airfoil": Published(0.1033, 0.0533, {0.1: 0.0912, 1.0: 0.0588}),
    "concrete": Published(0.1274, 0.0445, {0.1: 0.1125, 1.0: 0.0637}),
    "energy": Published(0.2352, 0.0232, {0.1: 0.1477, 1.0: 0.0429}),
    "housing": Published(0.1120, 0.0394, {0.1: 0.0985, 1.0: 0.0680}),
    "protein": Published(0.1671, 0.1189, {0.1: 0.1259, 1.0: 0.1199}),
}
"""Y.-X. Wang, *Revisiting differentially private linear regression: optimal and adaptive prediction & estimation in
unbounded domain*, UAI 2018; delta = 1e-6."""


def cells(mode: Mode, seed: int, repeats: int, folder: Path) -> list[Cell]:
    """One cell per data set and folding: every epsilon and method on the same folds."""
    for name in PUBLISHED:
        rows(name, str(folder.absolute()))  # a file that is missing is said before any work
    return [
        Cell(
            f"adassp seed={seed} {name} folding={folding}",
            run_folding,
            (name, str(folder.absolute()), folding, seed),
        )
        for folding in range(repeats)
        for name in PUBLISHED
    ]


@lru_cache(maxsize=8)
def rows(name: str, folder: str) -> Floats:
    """The prepared rows of a data set, the target last; energy and housing stand in the folder."""
    if name == "protein":
        data = datasets.protein()
        data[:, -1] = np.log(data[:, -1] + 1)
        return prepared(data)
    if name in ("airfoil", "concrete"):
        return prepared(datasets.airfoil() if name == "airfoil" else datasets.concrete())
    data = _read(Path(folder) / f"{name}.txt")
    return prepared(data[:, :9] if name == "energy" else data)  # of energy's two targets the first


def _read(path: Path) -> Floats:
    try:
        return np.loadtxt(path)
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"data must be a folder with energy.txt and housing.txt, got data={path.parent}: {error}; "
            "put the UCI and StatLib files there, columns separated by blanks, without a header"
        ) from None


def prepared(data: Floats) -> Floats:
    """As in the paper: columns z-scored, rows then of length 1; the target centred and divided by its largest size.

    All of it uses the data and is not private: it sets up the comparison and is no part of a method.
    """
    X, y = data[:, :-1], data[:, -1] - data[:, -1].mean()
    scores = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    return np.column_stack([scores / np.linalg.norm(scores, axis=1, keepdims=True), y / np.abs(y).max()])


def run_folding(name: str, folder: str, folding: int, seed: int) -> list[Row]:
    """Cross-validated mean squared errors for one random folding and its noise."""
    data = rows(name, folder)
    order = np.random.default_rng(seed_of("adassp", seed, name, folding)).permutation(data.shape[0])
    squares = dict.fromkeys(((e, m) for e in EPSILONS for m in METHODS if m != "published"), 0.0)
    for fold, (train, test) in enumerate(folds(data, order)):
        for epsilon, method in squares:
            label = f"adassp/{seed}/{name}/{folding}/{fold}/{method}/{epsilon:g}"
            found = predict(method, train, test[:, :-1], Budget(epsilon, DELTA), seed_of(label))
            squares[epsilon, method] += float(np.sum((test[:, -1] - found) ** 2))
    return [
        {"dataset": name, "epsilon": epsilon, "method": method, "mse": total / data.shape[0]}
        for (epsilon, method), total in squares.items()
    ]


def folds(data: Floats, order: np.ndarray[tuple[int], np.dtype[np.intp]]) -> Iterator[tuple[Floats, Floats]]:
    """Training and held-out rows, ten times, so that every row is held out once."""
    for held_out in np.array_split(order, FOLDS):
        kept = np.ones(data.shape[0], dtype=bool)
        kept[held_out] = False
        yield data[kept], data[held_out]


def predict(method: str, train: Floats, X: Floats, budget: Budget, seed: int) -> Floats:
    """Predictions for X, by posterior means where the method has a posterior."""
    features, y = train[:, :-1], train[:, -1]
    if method == "trivial":
        return np.zeros(X.shape[0])
    if method == "non-private":
        return np.asarray(X @ np.linalg.lstsq(features, y)[0])
    if method == "AdaSSP":
        return np.asarray(X @ ada_ssp(features, y, budget, np.random.default_rng(seed)))
    model = PrivateLinearRegression(
        budget,
        y_bound=1.0,
        x_norm=1.0,
        fit_intercept=False,
        posterior=POSTERIORS[method],
        draws=DRAWS,
        engine=TrustedAggregator(seed),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UntrustworthyWarning)  # few draws are enough for a mean, not for intervals
        return np.asarray(model.fit(features, y).predict(X))


def summarise(results: list[list[Row]], mode: Mode, repeats: int) -> Outcome:
    """Mean and deviation over the foldings, the published figures beside them, and the claims."""
    found: dict[tuple[str, float, str], list[float]] = {}
    for row in (row for part in results for row in part):
        found.setdefault((row["dataset"], row["epsilon"], row["method"]), []).append(row["mse"])
    table = [
        _line(name, epsilon, method, found[name, epsilon, method], repeats)
        for name in PUBLISHED
        for epsilon in EPSILONS
        for method in METHODS
        if (name, epsilon, method) in found
    ]
    for name, epsilon in dict.fromkeys((row["dataset"], row["epsilon"]) for row in table):
        best = PUBLISHED[name].best[epsilon]
        table.append(_line(name, epsilon, "published", [best], repeats) | {"repeats": None})
    table.sort(key=lambda r: (list(PUBLISHED).index(r["dataset"]), r["epsilon"], METHODS.index(r["method"])))
    return Outcome("adassp", mode, table, claims(table), ABOUT)


def _line(name: str, epsilon: float, method: str, errors: list[float], repeats: int) -> Row:
    published = {"trivial": PUBLISHED[name].trivial, "non-private": PUBLISHED[name].non_private}
    mean, deviation = float(np.mean(errors)), float(np.std(errors))
    return {
        "dataset": name,
        "epsilon": epsilon,
        "method": method,
        "mse": mean,
        "low": mean - deviation,
        "high": mean + deviation,
        "published": published.get(method),
        "delta": DELTA,
        "repeats": repeats,
        "guarantee": True if method in PRIVATE else None,
    }


def claims(table: list[Row]) -> list[Claim]:
    """What we say about the default method, held against the paper's table."""
    mse = {(row["dataset"], row["epsilon"], row["method"]): row["mse"] for row in table}
    names = list(dict.fromkeys(row["dataset"] for row in table))
    best = {name: mse[name, 1.0, "default"] / mse[name, 1.0, "published"] for name in names}
    trivial = {name: mse[name, 0.1, "default"] / mse[name, 0.1, "trivial"] for name in names}
    return [
        claim_everywhere(
            "(ours) at epsilon = 1 the default is no worse than the better published one of AdaSSP and AdaOPS",
            f"from {min(best.values()):.2f} to {max(best.values()):.2f} times its error; no worse on",
            "sets",
            {name: (ratio <= 1.0, f"{ratio:.3f}") for name, ratio in best.items()},
        ),
        claim_everywhere(
            "(ours) at epsilon = 0.1 the default is at most 1.02 times as bad as always predicting 0",
            f"from {min(trivial.values()):.2f} to {max(trivial.values()):.2f} times its error; at most 1.02 on",
            "sets",
            {name: (ratio <= 1.02, f"{ratio:.3f}") for name, ratio in trivial.items()},
        ),
    ]


ABOUT = (
    "The set-up of Wang 2018: columns z-scored, rows then scaled to unit length, the target centred and divided by its "
    "largest size, no intercept, delta = 1e-6, mean squared error by 10-fold cross-validation, here the mean over "
    "several random foldings with fresh noise. trivial predicts 0; published is the better one of the paper's AdaSSP "
    "and AdaOPS, the column of that name its trivial and non-private errors. AdaSSP is our simulation of the paper's "
    "algorithm, calibrated as published for adding or removing a row; default and shrinkage are hubbub's posteriors on "
    "the sums of a trusted aggregator, whose noise covers the replacement of a row. Predictions by posterior means."
)
