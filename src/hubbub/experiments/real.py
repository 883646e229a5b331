"""Data sets that ship with packages: predictions, their intervals, and those of coefficients whose truth is known."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.arrays import Floats
from hubbub.engines import TrustedAggregator
from hubbub.errors import UntrustworthyWarning
from hubbub.estimators.linear_regression import PrivateLinearRegression
from hubbub.experiments.modes import Mode
from hubbub.experiments.others import HALF_NORMAL, LEVEL, least_squares, sizes
from hubbub.experiments.outcome import Claim, Outcome, claim_everywhere
from hubbub.experiments.real_sets import Half, RealSet, half, names_of, read
from hubbub.experiments.runner import Cell, Row, seed_of
from hubbub.privacy import Budget

EPSILONS = (0.5, 1.0, 3.0)
DELTA = 1e-5
NEAR = {0.5: 1.08, 1.0: 1.03, 3.0: 1.01}  # by epsilon: how near to least squares half of the sets should be
USEFUL = 1.02  # times the error of predicting the mean: no set should be worse
PREDICTIVE = (0.85, 0.95)
COEFFICIENTS = (0.88, 0.92)  # for the median over the sets ...
LEAST = 0.80  # ... and for the worst of them
DEFAULT_REPEATS = 10


def cells(mode: Mode, seed: int, repeats: int, sets: Half = "choosing") -> list[Cell]:
    """One cell per data set and split, on one half of the data sets."""
    return [
        Cell(f"real seed={seed} {name} split={split}", run_split, (name, split, seed))
        for name in names_of(sets)
        for split in range(repeats)
    ]


def run_split(name: str, split: int, seed: int) -> list[Row]:
    """For every epsilon what one random split and one simulated target show."""
    data, label = read(name), f"real/{seed}/{name}/{split}"
    rng = np.random.default_rng(seed_of(label))
    held_out = _split(data, rng)
    known = simulated_target(data, rng)
    shared = {"dataset": name, "n": held_out.train.shape[0], "d": data.X.shape[1]}
    return [
        {
            **shared,
            "epsilon": epsilon,
            **_predictions(data, held_out, epsilon, label),
            **_known(data, known, epsilon, label),
        }
        for epsilon in EPSILONS
    ]


@dataclass(frozen=True)
class HeldOut:
    """Training and test rows, the target last."""

    train: Floats
    test: Floats


def _split(data: RealSet, rng: np.random.Generator) -> HeldOut:
    rows = np.column_stack([data.X, data.y])
    train, test = sizes(rows.shape[0])
    order = rng.permutation(rows.shape[0])
    return HeldOut(rows[order[:train]], rows[order[train : train + test]])


def fitted(data: RealSet, X: Floats, y: Floats, epsilon: float, label: str) -> tuple[PrivateLinearRegression, bool]:
    """The default method on these rows with the set's public bounds, and whether it warned of its own result."""
    model = PrivateLinearRegression(
        Budget(epsilon, DELTA),
        x_bound=list(data.x_bounds),
        y_bound=data.y_bound,
        engine=TrustedAggregator(seed_of(label, epsilon)),
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UntrustworthyWarning)
        model.fit(X, y)
    return model, any(issubclass(warning.category, UntrustworthyWarning) for warning in caught)


def _predictions(data: RealSet, held_out: HeldOut, epsilon: float, label: str) -> Row:
    """Errors over those of least squares and of the mean, and the coverage of 90 % intervals, on test rows."""
    X, y = held_out.test[:, :-1], held_out.test[:, -1]
    model, warned = fitted(data, held_out.train[:, :-1], held_out.train[:, -1], epsilon, f"{label}/predictions")
    ours, plain = _error(model.predict(X), y), least_squares(held_out.train, X)
    return {
        "over_ols": ours / _error(plain[0], y),
        "over_mean": ours / _error(np.full(y.size, held_out.train[:, -1].mean()), y),
        "coverage": _share(model.predict_interval(X, LEVEL), y),
        "ols_coverage": _share(plain[1], y),
        "warned": warned,
    }


def _error(predicted: Any, y: Floats) -> float:
    """Root mean squared error."""
    return float(np.sqrt(np.mean((predicted - y) ** 2)))


def _share(intervals: Floats, values: Floats) -> float:
    """How many of the values lie in their intervals."""
    return float(np.mean((intervals[:, 0] < values) & (values < intervals[:, 1])))


@dataclass(frozen=True)
class Fit:
    """Coefficients of least squares with an intercept, their standard errors, fitted values and residuals."""

    beta: Floats
    error: Floats
    fitted: Floats
    residuals: Floats


def ols(X: Floats, y: Floats) -> Fit:
    """Least squares on centred columns, which leaves the coefficients as they are and keeps the sums well scaled."""
    middle, scale = X.mean(axis=0), X.std(axis=0)
    Z = (X - middle) / scale
    inverse = np.linalg.inv(Z.T @ Z)
    beta = inverse @ (Z.T @ (y - y.mean()))
    predicted = y.mean() + Z @ beta
    residuals = y - predicted
    variance = residuals @ residuals / (X.shape[0] - X.shape[1] - 1)
    return Fit(beta / scale, np.sqrt(variance * np.diag(inverse)) / scale, predicted, residuals)


@dataclass(frozen=True)
class Known:
    """A target for all the real rows whose true coefficients are known."""

    y: Floats
    truth: Floats


def simulated_target(data: RealSet, rng: np.random.Generator) -> Known:
    """Least squares' own fit taken for the truth, and its residuals drawn again with replacement."""
    found = ols(data.X, data.y)
    return Known(found.fitted + rng.choice(found.residuals, size=data.y.size), found.beta)


def _known(data: RealSet, known: Known, epsilon: float, label: str) -> Row:
    """How many true coefficients lie in 90 % intervals, and how wide these are beside those of least squares."""
    model, warned = fitted(data, data.X, known.y, epsilon, f"{label}/coefficients")
    intervals = np.asarray(model.posterior_.interval(LEVEL))
    plain = ols(data.X, known.y)
    normal = plain.beta[:, None] + HALF_NORMAL * plain.error[:, None] * np.array([-1.0, 1.0])
    return {
        "inside": _share(intervals, known.truth),
        "ols_inside": _share(normal, known.truth),
        "widths": [float(ratio) for ratio in np.ptp(intervals, axis=1) / np.ptp(normal, axis=1)],
        "warned_known": warned,
    }


def summarise(results: list[list[Row]], mode: Mode, repeats: int) -> Outcome:
    """A row per data set and epsilon, and the claims."""
    found: dict[tuple[str, float], list[Row]] = {}
    for row in (row for part in results for row in part):
        found.setdefault((row["dataset"], row["epsilon"]), []).append(row)
    rows = [_line(part, repeats) for part in found.values()]
    return Outcome("real", mode, rows, claims(rows), ABOUT, half(rows[0]["dataset"]))


def _line(part: list[Row], repeats: int) -> Row:
    """Medians of the errors and widths, means of the coverage, over the splits of one data set at one epsilon."""
    low, middle, high = (float(q) for q in np.percentile([row["over_ols"] for row in part], [25, 50, 75]))
    means = {key: float(np.mean([row[key] for row in part])) for key in ("coverage", "ols_coverage")}
    return {
        **{key: part[0][key] for key in ("dataset", "epsilon", "n", "d")},
        "over_ols": middle,
        "q25": low,
        "q75": high,
        "over_mean": float(np.median([row["over_mean"] for row in part])),
        **means,
        "coefficients": float(np.mean([row["inside"] for row in part])),
        "ols_coefficients": float(np.mean([row["ols_inside"] for row in part])),
        "width": float(np.median([ratio for row in part for ratio in row["widths"]])),
        "warned": float(np.mean([(row["warned"], row["warned_known"]) for row in part])),
        "delta": DELTA,
        "repeats": repeats,
        "guarantee": True,
    }


def claims(rows: list[Row]) -> list[Claim]:
    """What we say about the default method, held against these data sets."""
    epsilons = sorted({row["epsilon"] for row in rows})
    return [_near(rows, epsilons), _useful(rows), _predictive(rows), _coefficients(rows, epsilons)]


def _median(rows: list[Row], epsilon: float, key: str) -> float:
    return float(np.median([row[key] for row in rows if row["epsilon"] == epsilon]))


def _near(rows: list[Row], epsilons: list[float]) -> Claim:
    medians = {epsilon: _median(rows, epsilon, "over_ols") for epsilon in epsilons}
    return claim_everywhere(
        "(ours) the error is at most 1.08, 1.03 and 1.01 times that of least squares at epsilon = 0.5, 1 and 3, in the "
        "median over the sets",
        f"{', '.join(f'{ratio:.3f}' for ratio in medians.values())}; within it at",
        "epsilons",
        {f"{epsilon:g}": (ratio <= NEAR[epsilon], f"{ratio:.3f}") for epsilon, ratio in medians.items()},
    )


def _useful(rows: list[Row]) -> Claim:
    return claim_everywhere(
        "(ours) no set is worse than 1.02 times the error of predicting the mean",
        f"at most {max(row['over_mean'] for row in rows):.2f} times it; not worse at",
        "points",
        {_place(row): (row["over_mean"] <= USEFUL, f"{row['over_mean']:.2f}") for row in rows},
    )


def _predictive(rows: list[Row]) -> Claim:
    low, high = PREDICTIVE
    held = [row for row in rows if low <= row["ols_coverage"] <= high]
    found = [row["coverage"] for row in held] or [float("nan")]
    return claim_everywhere(
        "(ours) 90 % predictive intervals hold between 85 and 95 % of held-out rows wherever those of least squares do",
        f"from {min(found):.0%} to {max(found):.0%}; within at",
        "points",
        {_place(row): (low <= row["coverage"] <= high, f"{row['coverage']:.1%}") for row in held},
    )


def _coefficients(rows: list[Row], epsilons: list[float]) -> Claim:
    low, high = COEFFICIENTS
    medians = {epsilon: _median(rows, epsilon, "coefficients") for epsilon in epsilons}
    typical = {f"median at {e:g}": (low <= share <= high, f"{share:.1%}") for e, share in medians.items()}
    each = {_place(row): (row["coefficients"] >= LEAST, f"{row['coefficients']:.1%}") for row in rows}
    return claim_everywhere(
        "(ours) 90 % intervals of coefficients hold 88 to 92 % of the true ones in the median over the sets, and at "
        "least 80 % on each of them",
        f"medians {', '.join(f'{share:.1%}' for share in medians.values())}, "
        f"least {min(row['coefficients'] for row in rows):.1%}; holds at",
        "medians and points",
        typical | each,
    )


def _place(row: Row) -> str:
    return f"{row['dataset']} at {row['epsilon']:g}"


ABOUT = (
    "The default method, through a trusted aggregator, on data sets that ship with packages of statistics. They were "
    "chosen by their documentation and column types before any model was fitted to one of them; constants of the "
    "method may be chosen on the half `choosing`, the half `reported` is set aside for the final method; the halves "
    "follow from the names (real_sets.py). Raw units; rows with missing values dropped; public bounds are the range "
    "of each column widened about its middle 1.5 times, (0, 1) for 0/1 columns. delta = 1e-5; two thirds of the rows "
    "for training (at most 10000), the rest for testing (at most 2000). over_ols and over_mean: root mean squared "
    "error over that of least squares and of the mean of the training rows, median over random splits. coverage: of "
    "90 % predictive intervals, for least squares those of a normal residual. coefficients: share of true "
    "coefficients inside 90 % intervals, over columns and repeats, where the target is simulated on all real rows: "
    "the fit of least squares, taken for the truth, plus its residuals drawn with replacement; width is the median "
    "ratio of these intervals to those of least squares. warned: share of fits that said of themselves that they must "
    "not be trusted."
)
