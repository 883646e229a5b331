"""Generalised linear models: how often 90 % intervals hold the truth, and how far the estimates are from it."""

from __future__ import annotations

import numpy as np

from hubbub.arrays import Floats
from hubbub.engines import TrustedAggregator
from hubbub.estimators.glm import PrivateGLM
from hubbub.experiments.modes import Mode
from hubbub.experiments.outcome import Claim, Outcome
from hubbub.experiments.runner import Cell, Row, seed_of
from hubbub.privacy import Budget

FAMILIES = ("bernoulli", "poisson", "negative-binomial", "gamma")
SIZES = (1000, 3000, 10_000, 100_000)
DIMENSIONS = (3, 10)
EPSILONS = (0.5, 1.0, 3.0)
FEATURES = ("normal", "skewed", "binary")
DELTA, LEVEL, DRAWS = 1e-6, 0.9, 500
MEAN_COUNT, MOST_COUNT = 3.0, 30.0
DISPERSION = 0.5  # of negative binomial counts and of the gamma family
SIGNAL = 0.7  # deviation of the linear predictor that the features make
DEFAULT_REPEATS = 20
STUDIES_OF_THREE = 3  # times as many studies of three columns, since they hold fewer intervals
PART = 10  # studies in a cell

UNITS = {
    "normal": (50.0, 12.0, (0.0, 110.0)),
    "skewed": (2.0, 2.0, (0.0, 20.0)),
    "binary": (0.3, 0.21**0.5, (0.0, 1.0)),
}
"""Of each kind of columns: centre, deviation and public bounds, in units as people have them."""


def cells(mode: Mode, seed: int, repeats: int) -> list[Cell]:
    """Some cells per setting; more repeats go on from fewer."""
    return [
        Cell(f"glm seed={seed} {family} n={n} d={d} {x} {first} to {last}", run_part, (*setting, seed, first, last))
        for family in FAMILIES
        for n in SIZES
        for d in DIMENSIONS
        for x in FEATURES
        for setting in [(family, n, d, x)]
        for studies in [repeats * (STUDIES_OF_THREE if d == 3 else 1)]
        for first in range(0, studies, PART)
        for last in [min(first + PART, studies)]
    ]


def columns(kind: str, n: int, d: int, rng: np.random.Generator) -> Floats:
    """Columns of one kind, in units of their own."""
    if kind == "normal":
        return rng.normal(50.0, 12.0, (n, d))
    if kind == "skewed":
        return rng.exponential(2.0, (n, d))
    return (rng.random((n, d)) < 0.3).astype(np.float64)


def study_of(family: str, n: int, d: int, kind: str, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """X, y and the true coefficients per standard deviation of their columns."""
    centre, scale, _ = UNITS[kind]
    X = columns(kind, n, d, rng)
    beta = SIGNAL * rng.standard_normal(d) / np.sqrt(d)
    eta = (X - centre) / scale @ beta
    if family != "bernoulli":
        mean = MEAN_COUNT * np.exp(np.minimum(eta, 10.0))
        if family != "poisson":
            mean = mean * rng.gamma(1 / DISPERSION, DISPERSION, n)
        return X, mean if family == "gamma" else rng.poisson(mean).astype(np.float64), beta
    return X, (rng.random(n) < 1 / (1 + np.exp(-eta - rng.normal(0, 0.7)))).astype(np.float64), beta


def maximum_likelihood(family: str, X: Floats, y: Floats) -> Floats:
    """Coefficients without privacy, of columns of about unit variance, by Newton's method with halved steps.

    Of negative binomial counts the true dispersion is given.
    """
    u = np.column_stack([np.ones(len(X)), X])
    b = np.zeros(u.shape[1])
    b[0] = 0.0 if family == "bernoulli" else np.log(y.mean())
    at = _likelihood(family, u, y, b)
    for _ in range(50):
        residual, weight = _derivatives(family, u @ b, y)
        step = np.linalg.solve((u * weight[:, None]).T @ u + 1e-9 * np.eye(len(b)), u.T @ residual)
        while (there := _likelihood(family, u, y, b + step)) < at and np.abs(step).max() > 1e-12:
            step = step / 2
        b, at = b + step, there
        if np.abs(step).max() < 1e-10:
            break
    return b[1:]


def _derivatives(family: str, eta: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Of each row's log likelihood, and minus the mean of the second one."""
    if family == "bernoulli":
        mean = 1 / (1 + np.exp(-eta))
        return y - mean, mean * (1 - mean)
    mean = np.exp(np.minimum(eta, 50.0))
    over = {"negative-binomial": 1 + DISPERSION * mean, "gamma": mean}.get(family, np.ones_like(mean))
    return (y - mean) / over, mean / over


def _likelihood(family: str, u: Floats, y: Floats, b: Floats) -> float:
    eta = np.minimum(u @ b, 50.0)
    if family == "bernoulli":
        return float(y @ eta - np.sum(np.logaddexp(0, eta)))
    if family == "negative-binomial":
        return float(y @ eta - np.sum((y + 1 / DISPERSION) * np.log1p(DISPERSION * np.exp(eta))))
    if family == "gamma":
        return float(-np.sum(eta + y * np.exp(-np.maximum(eta, -50.0))))
    return float(y @ eta - np.sum(np.exp(eta)))


def run_part(family: str, n: int, d: int, kind: str, seed: int, first: int, last: int) -> list[Row]:
    """How many intervals held the truth in some studies, and squared errors, by epsilon."""
    found = np.zeros((len(EPSILONS), 4))
    centre, scale, bound = UNITS[kind]
    for study in range(first, last):
        rng = np.random.default_rng(seed_of("glm", seed, family, n, d, kind, study))
        X, y, beta = study_of(family, n, d, kind, rng)
        least = maximum_likelihood(family, (X - centre) / scale, y)
        for i, epsilon in enumerate(EPSILONS):
            noise = seed_of("glm noise", seed, family, n, d, kind, study, epsilon)
            model = PrivateGLM(
                family, Budget(epsilon, DELTA), [bound] * d, None if family == "bernoulli" else MOST_COUNT,
                TrustedAggregator(noise), draws=DRAWS,
            ).fit(X, y)  # fmt: skip
            interval = model.posterior_.interval(LEVEL) * scale
            hits = (interval[:, 0] < beta) & (beta < interval[:, 1])
            errors = [np.sum((each - beta) ** 2) for each in (model.coef_ * scale, least)]
            found[i] += [hits.sum(), np.ptp(interval, axis=1).sum(), *errors]
    return [
        {
            "family": family, "n": n, "d": d, "x": kind, "epsilon": epsilon, "hits": hits, "width": width,
            "error": error, "least_error": least_error, "intervals": (last - first) * d,
        }
        for epsilon, (hits, width, error, least_error) in zip(EPSILONS, found.tolist(), strict=True)
    ]  # fmt: skip


def summarise(results: list[list[Row]], mode: Mode, repeats: int) -> Outcome:
    """All settings: coverage, width and root mean squared error per standard deviation of a column, and its ratio to
    that without privacy."""
    total: dict[tuple[object, ...], Floats] = {}
    fields = ("hits", "width", "error", "least_error", "intervals")
    for row in (row for part in results for row in part):
        key = tuple(row[field] for field in ("family", "n", "d", "x", "epsilon"))
        total[key] = total.get(key, np.zeros(5)) + [row[field] for field in fields]
    rows: list[Row] = [
        {
            **dict(zip(("family", "n", "d", "x", "epsilon"), key, strict=True)), "coverage": hits / count,
            "width": width / count, "error": float(np.sqrt(error / count)),
            "ratio": float(np.sqrt(error / least)), "intervals": int(count),
        }
        for key, (hits, width, error, least, count) in ((key, sums.tolist()) for key, sums in total.items())
    ]  # fmt: skip
    present = dict.fromkeys(str(row["family"]) for row in rows)
    claims = [claim for family in present for claim in (_coverage(rows, family), _error(rows, family))]
    return Outcome("glm", mode, rows, claims, ABOUT)


def _coverage(rows: list[Row], family: str) -> Claim:
    mine = [row for row in rows if row["family"] == family]
    found = np.array([row["coverage"] for row in mine])
    error = np.sqrt(0.09 / np.array([row["intervals"] for row in mine]))
    inside = (found >= 0.87) & (found <= 0.93)
    near = (found >= 0.87 - 2 * error) & (found <= 0.93 + 2 * error)
    low, middle, high = np.percentile(found, [0, 50, 100])
    measured = (
        f"median {middle:.1%}, from {low:.1%} to {high:.1%}; within 87..93 % in {int(inside.sum())} of {found.size} "
        f"settings, within two standard errors of that in {int(near.sum())}"
    )
    claim = f"(ours) {family}: 90 % intervals hold the truth between 87 and 93 % of the time"
    return Claim(claim, measured, bool(near.all()))


def _error(rows: list[Row], family: str) -> Claim:
    found = [row["ratio"] for row in rows if (row["family"], row["n"], row["epsilon"]) == (family, 10_000, 1.0)]
    claim = f"(ours) {family}: n = 10000, epsilon = 1: error at most 1.5 times that without privacy"
    if not found:
        return Claim(claim, "not run", False)
    return Claim(claim, f"{min(found):.2f} to {max(found):.2f} times", max(found) <= 1.5)


ABOUT = (
    "Share of true coefficients inside their 90 % credible intervals, and root mean squared error per standard "
    "deviation of a column, over simulated studies with a linear predictor of deviation 0.7; delta = 1e-6. Columns "
    "normal, skewed (exponential) or binary (30 % ones), in raw units with public bounds; yes-no outcomes, counts "
    "with a mean of about 3 or 4, such with the variance mu + mu^2/2, and positive numbers with the variance mu^2/2. "
    "The claims on coverage hold where every setting is within two standard errors of 87 to 93 %. The noise is a "
    "trusted aggregator's, which the secure sum reproduces."
)
