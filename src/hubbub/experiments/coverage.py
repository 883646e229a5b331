"""Coverage: how often 90 % credible intervals hold the truth, over simulated studies."""

from __future__ import annotations

import numpy as np

from hubbub.arrays import Floats
from hubbub.engines import TrustedAggregator
from hubbub.estimators.linear_regression import PrivateLinearRegression
from hubbub.experiments.modes import Mode
from hubbub.experiments.outcome import Claim, Outcome
from hubbub.experiments.runner import Cell, Row, seed_of
from hubbub.privacy import Budget

SIZES = (300, 1000, 10_000, 100_000)
DIMENSIONS = (2, 10)
EPSILONS = (0.5, 1.0, 10.0)
FEATURES = ("normal", "skewed", "heavy-tailed")
DELTA, BOUND, LEVEL = 1e-5, 7.5, 0.9
POSTERIORS = ("plugin", "shrinkage", "noise-aware")
DRAWS = 500
DEFAULT_REPEATS = 100
STUDIES_OF_TWO = 3  # times as many studies of two columns, since they hold fewer intervals
PART = 50  # studies in a cell


def cells(mode: Mode, seed: int, repeats: int) -> list[Cell]:
    """Some cells per setting; two columns get more studies, so that all settings hold about as many intervals.

    More repeats go on from fewer.
    """
    return [
        Cell(f"coverage seed={seed} n={n} d={d} {x} {first} to {last}", run_part, (n, d, x, seed, first, last))
        for n in SIZES
        for d in DIMENSIONS
        for x in FEATURES
        for studies in [repeats * (STUDIES_OF_TWO if d == 2 else 1)]
        for first in range(0, studies, PART)
        for last in [min(first + PART, studies)]
    ]


def features(kind: str, n: int, d: int, rng: np.random.Generator) -> Floats:
    """Columns of mean 0 and variance 1."""
    if kind == "skewed":
        return rng.exponential(size=(n, d)) - 1
    if kind == "heavy-tailed":
        return np.asarray(rng.standard_t(4, size=(n, d)) / np.sqrt(2))
    return rng.standard_normal((n, d))


def run_part(n: int, d: int, kind: str, seed: int, first: int, last: int) -> list[Row]:
    """How many intervals held the truth in some studies, and their summed widths, by epsilon and posterior."""
    hits = np.zeros((len(EPSILONS), len(POSTERIORS)))
    widths = np.zeros_like(hits)
    for study in range(first, last):
        rng = np.random.default_rng(seed_of("coverage", seed, n, d, kind, study))
        X = features(kind, n, d, rng)
        beta = rng.standard_normal(d) / np.sqrt(d)
        y = X @ beta + rng.standard_normal(n)
        for i, epsilon in enumerate(EPSILONS):
            noise = seed_of("coverage noise", seed, n, d, kind, study, epsilon)
            for j, interval in enumerate(_intervals(X, y, epsilon, noise)):
                hits[i, j] += np.sum((interval[:, 0] < beta) & (beta < interval[:, 1]))
                widths[i, j] += np.ptp(interval, axis=1).sum()
    return [
        {
            "n": n, "d": d, "x": kind, "epsilon": epsilon, "posterior": name, "hits": float(hits[i, j]),
            "width": float(widths[i, j]), "intervals": (last - first) * d,
        }
        for i, epsilon in enumerate(EPSILONS)
        for j, name in enumerate(POSTERIORS)
    ]  # fmt: skip


def _intervals(X: Floats, y: Floats, epsilon: float, seed: int) -> list[Floats]:
    """Those of each posterior; the two of the default method from one release."""
    budget = Budget(epsilon, DELTA)
    paper = PrivateLinearRegression(budget, BOUND, BOUND, "projected", "plugin", TrustedAggregator(seed)).fit(X, y)
    ours = PrivateLinearRegression(budget, BOUND, BOUND, "auto", "shrinkage", TrustedAggregator(seed)).fit(X, y)
    sampled = ours.release_.posterior(draws=DRAWS)
    return [posterior.interval(LEVEL) for posterior in (paper.posterior_, ours.posterior_, sampled)]


def summarise(results: list[list[Row]], mode: Mode, repeats: int) -> Outcome:
    """All settings, and what they say about the posteriors."""
    total: dict[tuple[object, ...], list[float]] = {}
    for row in (row for part in results for row in part):
        key = tuple(row[field] for field in ("n", "d", "x", "epsilon", "posterior"))
        sums = total.setdefault(key, [0.0, 0.0, 0.0])
        for k, field in enumerate(("hits", "width", "intervals")):
            sums[k] += row[field]
    rows: list[Row] = [
        {**dict(zip(("n", "d", "x", "epsilon", "posterior"), key, strict=True)),
         "coverage": hits / count, "width": width / count, "intervals": int(count)}
        for key, (hits, width, count) in total.items()
    ]  # fmt: skip
    return Outcome("coverage", mode, rows, [_claim(rows, name, text) for name, text in CLAIMS.items()], ABOUT)


CLAIMS = {
    "plugin": "the paper's plug-in posterior, taken at its word: 90 % intervals hold the truth 90 % of the time",
    "shrinkage": "(ours) the quick closed form's 90 % intervals hold the truth between 87 and 93 % of the time",
    "noise-aware": "(ours) the default posterior's 90 % intervals hold the truth between 87 and 93 % of the time",
}


def _claim(rows: list[Row], name: str, claim: str) -> Claim:
    mine = [row for row in rows if row["posterior"] == name]
    found = np.array([row["coverage"] for row in mine])
    error = np.sqrt(0.09 / np.array([row["intervals"] for row in mine]))
    inside = int(np.sum((found >= 0.87) & (found <= 0.93)))
    near = int(np.sum((found >= 0.87 - 2 * error) & (found <= 0.93 + 2 * error)))
    low, middle, high = np.percentile(found, [0, 50, 100])
    measured = (
        f"median {middle:.1%}, from {low:.1%} to {high:.1%}; within 87..93 % in {inside} of {found.size} settings, "
        f"within two standard errors of that in {near}"
    )
    return Claim(claim, measured, inside == found.size)


ABOUT = (
    "Share of true coefficients inside their 90 % credible intervals, over simulated studies with beta ~ N(0, "
    "I/d), residual variance 1, bounds of 7.5 and delta = 1e-5; features normal, skewed (exponential) and "
    "heavy-tailed (t with 4 degrees of freedom), all of variance 1. The paper's plug-in posterior after "
    "projection beside the library's default (noise-aware, with an intercept) and its quick closed form (shrinkage), "
    "the last two from one release. The noise is a trusted aggregator's, which the secure sum reproduces."
)
