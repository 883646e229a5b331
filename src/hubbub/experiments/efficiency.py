"""The efficiency theorems: private estimates approach the non-private ones at the rate 1/n."""

from __future__ import annotations

import numpy as np

from hubbub.analyses.driver import run
from hubbub.analyses.linear.projected import PlainRegression, normal_posterior
from hubbub.arrays import Floats
from hubbub.engines import LocalEngine
from hubbub.experiments.baselines import exact_gram
from hubbub.experiments.given_noise import GivenNoise, numbered_columns
from hubbub.experiments.modes import Mode
from hubbub.experiments.outcome import Claim, Outcome
from hubbub.experiments.runner import Cell, Row, seed_of
from hubbub.privacy import Budget, gaussian_round, noise_multiplier
from hubbub.statistics import Box, Means

SIZES = (100, 316, 1000, 3162, 10_000, 31_623, 100_000, 316_228, 1_000_000)
BUDGET = Budget(3.0, 1e-4)
MEAN_DIMENSION, REGRESSION_DIMENSION = 3, 2
KINDS = ("mean", "regression")
LEMMA = tuple((d, sigma, factor) for d in (1, 3, 10, 50) for sigma in (0.5, 2.0) for factor in (1.2, 1.5, 2.0, 3.0))
LEMMA_DRAWS = 200_000
DEFAULT_REPEATS = 20


def cells(mode: Mode, seed: int, repeats: int) -> list[Cell]:
    """One cell per kind, size and repeat; one for Lemma 1."""
    found = [
        Cell(f"efficiency seed={seed} {kind} n={n} repeat={r}", distance, (kind, n, r, seed))
        for kind in KINDS
        for n in SIZES
        for r in range(repeats)
    ]
    return [*found, Cell(f"efficiency seed={seed} lemma1", lemma_1, (seed,))]


def distance(kind: str, n: int, repeat: int, seed: int) -> list[Row]:
    """L1 distance between the private and the non-private estimate on one data set."""
    label = seed_of("efficiency", seed, kind, n, repeat)
    rng = np.random.default_rng(label)
    engine = LocalEngine(computes=3, seed=label)
    multiplier = noise_multiplier(BUDGET)
    apart = _mean(rng, n, engine, multiplier) if kind == "mean" else _regression(rng, n, engine, multiplier)
    return [{"kind": kind, "n": n, "distance": float(np.abs(apart).sum())}]


def _mean(rng: np.random.Generator, n: int, engine: LocalEngine, multiplier: float) -> Floats:
    """Posterior means of a Gaussian mean; values truncated to |x_j| <= 1, prior N(0, 1)."""
    x = np.clip(rng.normal(0.2, 0.3, size=(n, MEAN_DIMENSION)), -1, 1)
    release = engine.private_sum(x, gaussian_round(Means((1.0,) * MEAN_DIMENSION), multiplier))
    return np.asarray((release.value - x.sum(axis=0)) / (n + 1))


def _regression(rng: np.random.Generator, n: int, engine: LocalEngine, multiplier: float) -> Floats:
    """Posterior means of regression coefficients, both from data inside the bounds."""
    x = rng.uniform(-1, 1, size=(n, REGRESSION_DIMENSION))
    y = np.clip(x @ np.full(REGRESSION_DIMENSION, 0.4) + rng.normal(0, 0.1, n), -1, 1)
    rows = np.column_stack([x, y])
    names, y_bound, x_bound = numbered_columns(Box((1.0,) * REGRESSION_DIMENSION, 1.0))
    fit = run(PlainRegression(names, "y", y_bound, x_bound), rows, engine, BUDGET, mechanism=GivenNoise((multiplier,)))
    return normal_posterior(fit.gram).mean - normal_posterior(exact_gram(rows)).mean


def lemma_1(seed: int) -> list[Row]:
    """Tail of the L1 norm of a normal vector beside the bound of Lemma 1."""
    rows: list[Row] = []
    for d, sigma, factor in LEMMA:
        rng = np.random.default_rng(seed_of("lemma", seed, d, sigma, factor))
        norms = np.abs(rng.normal(0, sigma, size=(LEMMA_DRAWS, d))).sum(axis=1)
        mean = np.sqrt(2 / np.pi) * d * sigma
        t = factor * mean
        bound = d * sigma**2 / (t - mean) ** 2 * (1 - 2 / np.pi)
        rows.append(
            {
                "kind": "lemma1",
                "d": d,
                "sigma": sigma,
                "t": float(t),
                "tail": float(np.mean(norms >= t)),
                "bound": float(bound),
            }
        )
    return rows


def summarise(results: list[list[Row]], mode: Mode, repeats: int) -> Outcome:
    """Medians over repeats, the fitted slopes, and the claims."""
    found: dict[tuple[str, int], list[float]] = {}
    for row in (row for part in results[:-1] for row in part):
        found.setdefault((row["kind"], row["n"]), []).append(row["distance"])
    rows: list[Row] = []
    for (kind, n), distances in found.items():
        low, middle, high = (float(q) for q in np.percentile(distances, [25, 50, 75]))
        rows.append({"kind": kind, "n": n, "median": middle, "q25": low, "q75": high, "repeats": repeats})
    claims = [_slope_claim(rows, kind) for kind in KINDS]
    tails = results[-1]
    broken = [row for row in tails if row["tail"] > min(1.0, row["bound"]) + 4 * np.sqrt(0.25 / LEMMA_DRAWS)]
    claims.append(
        Claim(
            "Lemma 1: the tail of the L1 norm of a normal vector obeys the bound",
            f"obeyed at {len(tails) - len(broken)} of {len(tails)} (d, sigma, t), {LEMMA_DRAWS} draws each",
            not broken,
        )
    )
    return Outcome("efficiency", mode, [*rows, *tails], claims, ABOUT)


def slope(rows: list[Row], kind: str) -> float:
    """Fitted exponent of the distance against n."""
    points = [(row["n"], row["median"]) for row in rows if row["kind"] == kind]
    n, middle = np.log(np.array(points)).T
    return float(np.polyfit(n, middle, 1)[0])


def _slope_claim(rows: list[Row], kind: str) -> Claim:
    theorem = {"mean": "a Gaussian mean", "regression": "linear regression"}[kind]
    fitted = slope(rows, kind)
    return Claim(
        f"the private estimate of {theorem} approaches the non-private one at the rate 1/n",
        f"log-log slope {fitted:.3f} over n = 10^2 .. 10^6 (expected -1)",
        abs(fitted + 1) <= 0.1,
    )


ABOUT = (
    f"L1 distance between the private and the non-private posterior mean on the same data, {BUDGET}, through the "
    f"local engine: a Gaussian mean in {MEAN_DIMENSION} dimensions and a regression with {REGRESSION_DIMENSION} "
    "features. Medians and quartiles over repeats. Lemma 1 is checked by simulation."
)
