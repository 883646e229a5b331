"""What the law of the noise does to the prediction error: the three UCI sets of Figure 2, one law beside the other."""

from __future__ import annotations

import numpy as np

from hubbub.analyses.linear.projected import normal_posterior
from hubbub.analyses.posterior import LinearPosterior
from hubbub.arrays import Floats
from hubbub.engines import LocalEngine
from hubbub.estimators.linear_regression import PrivateLinearRegression
from hubbub.experiments.baselines import exact_gram
from hubbub.experiments.fig2 import (
    DATASETS,
    DELTA,
    EPSILONS,
    Errors,
    Place,
    bounds_of,
    indistinguishable,
    split_of,
    tested,
)
from hubbub.experiments.methods import COMPUTES
from hubbub.experiments.modes import Mode
from hubbub.experiments.outcome import Claim, Outcome
from hubbub.experiments.runner import Cell, Row, seed_of
from hubbub.privacy import Budget

BASELINE = "non-private"
DELTAS = {"gaussian": DELTA, "discrete-gaussian": DELTA, "discrete-laplace": 0.0}
"""The laws that are compared, and the delta of each one's budget. Only the Laplace law can do without."""
METHODS = (BASELINE, *DELTAS)
AT, PRICE = 1.0, 1.25  # an epsilon, and how many times the error pure differential privacy may cost there
DEFAULT_REPEATS = 25

Medians = dict[tuple[str, float, str], float]


def cells(mode: Mode, seed: int, repeats: int) -> list[Cell]:
    """One cell per data set and split, the splits of Figure 2: every epsilon and law on the same training rows."""
    return [
        Cell(f"mechanisms seed={seed} {name} split={split}", run_split, (name, split, seed))
        for split in range(repeats)
        for name in DATASETS
    ]


def run_split(name: str, split: int, seed: int) -> list[Row]:
    """Mean absolute errors and coverage for every law at every epsilon on one random split."""
    train, test = split_of(name, split, seed)
    exact = LinearPosterior.without_intercept(normal_posterior(exact_gram(train), repair="flip"), 1.0)
    rows: list[Row] = []
    for epsilon in EPSILONS:
        for method in METHODS:
            noise = seed_of("mechanisms", seed, name, split, method, epsilon)
            posterior = exact if method == BASELINE else _private(train, name, epsilon, method, noise)
            rows.append(tested(posterior, test, {"dataset": name, "epsilon": epsilon, "method": method}))
    return rows


def _private(train: Floats, name: str, epsilon: float, law: str, seed: int) -> LinearPosterior:
    """The default method with this law of noise, over the real secure sum."""
    bound = bounds_of(name)
    model = PrivateLinearRegression(
        Budget(epsilon, DELTAS[law]),
        x_bound=bound.x,
        y_bound=bound.y,
        engine=LocalEngine(computes=COMPUTES, seed=seed),
        mechanism=law,
    )
    return model.fit(train[:, :-1], train[:, -1]).posterior_


def summarise(results: list[list[Row]], mode: Mode, repeats: int) -> Outcome:
    """Medians and quartiles over the splits, and the claims."""
    errors: Errors = {}
    covered: Errors = {}
    for row in (row for rows in results for row in rows):
        place = row["dataset"], row["epsilon"], row["method"]
        errors.setdefault(place, []).append(row["error"])
        covered.setdefault(place, []).append(row["coverage"])
    rows: list[Row] = []
    for (name, epsilon, method), found in errors.items():
        low, middle, high = (float(q) for q in np.percentile(found, [25, 50, 75]))
        rows.append(
            {
                "dataset": name,
                "epsilon": epsilon,
                "delta": DELTAS.get(method),
                "method": method,
                "median": middle,
                "q25": low,
                "q75": high,
                "ratio": middle / float(np.median(errors[name, epsilon, BASELINE])),
                "coverage": float(np.mean(covered[name, epsilon, method])),
                "n": DATASETS[name][1],
                "repeats": repeats,
                "guarantee": None if method == BASELINE else True,
            }
        )
    rows.sort(key=lambda r: (list(DATASETS).index(str(r["dataset"])), r["epsilon"], METHODS.index(str(r["method"]))))
    return Outcome("mechanisms", mode, rows, claims(rows, errors), ABOUT)


def claims(rows: list[Row], errors: Errors) -> list[Claim]:
    """That exact noise costs nothing, and what it costs to do without a delta."""
    median = {(r["dataset"], r["epsilon"], r["method"]): r["median"] for r in rows}
    places = sorted({(r["dataset"], r["epsilon"]) for r in rows})
    same = indistinguishable(places, errors, "gaussian", "discrete-gaussian")
    return [Claim(f"(ours) {same.claim}", same.measured, same.holds), _price(median, places), _covers(rows)]


def _price(median: Medians, places: list[Place]) -> Claim:
    """The error of discrete Laplace noise over that of discrete Gaussian noise at the same epsilon."""
    ratio = {place: median[(*place, "discrete-laplace")] / median[(*place, "discrete-gaussian")] for place in places}
    first = {name: value for (name, epsilon), value in ratio.items() if epsilon == AT}
    at_first = ", ".join(f"{name} {value:.2f}" for name, value in first.items())
    measured = (
        f"at epsilon = {AT:g} {at_first}; over all {len(places)} points the median is "
        f"{np.median(list(ratio.values())):.2f} and the largest {max(ratio.values()):.2f}"
    )
    claim = f"(ours) pure differential privacy costs a factor of at most {PRICE:g} in error at epsilon = {AT:g}"
    return Claim(claim, measured, max(first.values()) <= PRICE)


def _covers(rows: list[Row]) -> Claim:
    laws = {law: [row["coverage"] for row in rows if row["method"] == law] for law in DELTAS}
    measured = ", ".join(f"{law} from {min(found):.1%} to {max(found):.1%}" for law, found in laws.items())
    everything = [value for found in laws.values() for value in found]
    claim = "(ours) 90 % predictive intervals hold between 87 and 93 % of held-out rows for each law of noise"
    return Claim(claim, measured, min(everything) >= 0.87 and max(everything) <= 0.93)


ABOUT = (
    "Mean absolute error on held-out rows of the three UCI sets, with the splits, bounds and epsilons of Figure 2, for "
    "hubbub's default method under three laws of noise: continuous Gaussian and discrete Gaussian noise with delta = "
    "1e-4, and discrete Laplace noise with delta = 0 (pure differential privacy). Medians and quartiles over random "
    "splits, through the real secure sum (3 Computes, T = 0). Non-private is least squares on the same rows with the "
    "paper's weak prior."
)
