"""Figure 2: prediction error on three UCI data sets against epsilon."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from hubbub.analyses.posterior import LinearPosterior
from hubbub.arrays import Floats
from hubbub.experiments.datasets import BOUND, abalone, red_wine, white_wine
from hubbub.experiments.methods import METHODS, posterior_of
from hubbub.experiments.modes import Mode, noise_of
from hubbub.experiments.outcome import Claim, Outcome
from hubbub.experiments.runner import Cell, Row, seed_of
from hubbub.privacy import Budget
from hubbub.statistics import Box

EPSILONS = tuple(float(10**x) for x in (0, 0.25, 0.5, 0.75, 1, 1.5))
DELTA = 1e-4
LEVEL = 0.9
DATASETS: dict[str, tuple[Callable[[], Floats], int, int]] = {
    "red_wine": (red_wine, 1000, 500),
    "abalone": (abalone, 3000, 1000),
    "white_wine": (white_wine, 3000, 1000),
}
DEFAULT_REPEATS = 25
FEWEST_REPEATS = 10

Place = tuple[str, float]
Errors = dict[tuple[str, float, str], list[float]]


def cells(mode: Mode, seed: int, repeats: int) -> list[Cell]:
    """One cell per data set and split: every epsilon and method on the same training rows."""
    return [
        Cell(f"fig2 {mode} seed={seed} {name} split={split}", run_split, (name, split, mode, seed))
        for split in range(repeats)
        for name in DATASETS
    ]


@lru_cache(maxsize=3)
def _data(name: str) -> Floats:
    return DATASETS[name][0]()


def bounds_of(name: str) -> Box:
    """The bounds that the paper assumes for every column."""
    return Box((BOUND,) * (_data(name).shape[1] - 1), BOUND)


def split_of(name: str, split: int, seed: int) -> tuple[Floats, Floats]:
    """Training and test rows of one random split."""
    _, train_size, test_size = DATASETS[name]
    data = _data(name)
    order = np.random.default_rng(seed_of("fig2", seed, name, split)).permutation(data.shape[0])
    return data[order[:train_size]], data[order[train_size : train_size + test_size]]


def run_split(name: str, split: int, mode: Mode, seed: int) -> list[Row]:
    """Mean absolute errors of every method at every epsilon on one random split."""
    train, test = split_of(name, split, seed)
    bound = bounds_of(name)
    rows: list[Row] = []
    for epsilon in EPSILONS:
        noise = noise_of(mode, Budget(epsilon, DELTA), bound)
        for method in METHODS:
            posterior = posterior_of(method, train, bound, noise, f"fig2/{mode}/{seed}/{name}/{split}")
            rows.append(tested(posterior, test, {"dataset": name, "epsilon": epsilon, "method": method}))
    return rows


def tested(posterior: LinearPosterior, test: Floats, place: Row) -> Row:
    """A row for this place in the figure: mean absolute error, and how many held-out rows the intervals hold."""
    low, high = posterior.predictive_interval(test[:, :-1], LEVEL).T
    return {
        **place,
        "error": float(np.abs(posterior.predict(test[:, :-1])[0] - test[:, -1]).mean()),
        "coverage": float(np.mean((low < test[:, -1]) & (test[:, -1] < high))),
    }


def summarise(results: list[list[Row]], mode: Mode, repeats: int) -> Outcome:
    """Medians and quartiles over the splits, and the claims."""
    errors: Errors = {}
    covered: Errors = {}
    for row in (row for rows in results for row in rows):
        place = row["dataset"], row["epsilon"], row["method"]
        errors.setdefault(place, []).append(row["error"])
        covered.setdefault(place, []).append(row["coverage"])
    rows = []
    for (name, epsilon, method), found in errors.items():
        low, middle, high = (float(q) for q in np.percentile(found, [25, 50, 75]))
        rows.append(
            {
                "dataset": name,
                "epsilon": epsilon,
                "method": method,
                "median": middle,
                "q25": low,
                "q75": high,
                "coverage": float(np.mean(covered[name, epsilon, method])),
                "n": DATASETS[name][1],
                "repeats": repeats,
                "guarantee": noise_of(mode, Budget(epsilon, DELTA), bounds_of(name)).is_guarantee(method),
            }
        )
    rows.sort(key=lambda r: (list(DATASETS).index(str(r["dataset"])), r["epsilon"], METHODS.index(str(r["method"]))))
    return Outcome("fig2", mode, rows, claims(rows, errors), ABOUT)


def claims(rows: list[Row], errors: Errors) -> list[Claim]:
    """The paper's claims about this figure."""
    median = {(r["dataset"], r["epsilon"], r["method"]): r["median"] for r in rows}
    places = sorted({(r["dataset"], r["epsilon"]) for r in rows})
    return [
        indistinguishable(places, errors, "TA", "DDP"),
        indistinguishable(places, errors, "proj TA", "proj DDP"),
        _better(places, median, "proj DDP", "DDP", "the projection can clearly improve the results at a given budget"),
        _better(places, median, "proj DDP", "input perturbation", "the distributed method beats input perturbation"),
        *(_of_ours(places, median, rows) if any(row["method"] == "hubbub" for row in rows) else []),
    ]


def _of_ours(places: list[Place], median: dict[tuple[str, float, str], float], rows: list[Row]) -> list[Claim]:
    better = "(ours) hubbub's default is at least as good as proj DDP"
    return [_better(places, median, "hubbub", "proj DDP", better), _near(median), _covers(rows)]


def _near(median: dict[tuple[str, float, str], float]) -> Claim:
    """What is asked of the default method at epsilon = 1."""
    most = {"red_wine": 1.05, "abalone": 1.05, "white_wine": 1.02}
    ratio = {name: median[name, 1.0, "hubbub"] / median[name, 1.0, "NP"] for name in most}
    text = ", ".join(f"{name} {value:.3f} (at most {most[name]})" for name, value in ratio.items())
    claim = "(ours) at epsilon = 1 hubbub's error is close to the non-private one"
    return Claim(claim, f"ratios {text}", all(ratio[name] <= most[name] for name in most))


def _covers(rows: list[Row]) -> Claim:
    found = [row["coverage"] for row in rows if row["method"] == "hubbub"]
    text = f"mean {np.mean(found):.1%}, from {min(found):.1%} to {max(found):.1%} over data sets and epsilons"
    claim = "(ours) hubbub's 90 % predictive intervals hold between 87 and 93 % of held-out rows"
    return Claim(claim, text, min(found) >= 0.87 and max(found) <= 0.93)


def indistinguishable(places: list[Place], errors: Errors, central: str, distributed: str) -> Claim:
    """No point at which a rank test tells the two apart, at 1 % over all points together."""
    from scipy.stats import mannwhitneyu

    repeats = len(errors[(*places[0], central)])
    if repeats < FEWEST_REPEATS:
        measured = f"{repeats} splits are too few to tell, {FEWEST_REPEATS} are needed"
        return Claim(f"{distributed} is indistinguishable from {central}", measured, False)
    p_values = [float(mannwhitneyu(errors[n, e, central], errors[n, e, distributed]).pvalue) for n, e in places]
    smallest = min(p_values) * len(places)  # Bonferroni
    measured = f"rank tests at {len(places)} points: smallest p-value {min(1.0, smallest):.2g} after correction"
    return Claim(f"{distributed} is indistinguishable from {central}", measured, smallest > 0.01)


def _better(
    places: list[Place], median: dict[tuple[str, float, str], float], one: str, other: str, claim: str
) -> Claim:
    """The median is lower at three quarters of the places at least."""
    wins = sum(median[name, epsilon, one] < median[name, epsilon, other] for name, epsilon in places)
    ratio = float(np.median([median[n, e, one] / median[n, e, other] for n, e in places]))
    measured = f"{one} below {other} at {wins} of {len(places)} points, median ratio {ratio:.2f}"
    return Claim(claim, measured, wins >= 0.75 * len(places))


ABOUT = (
    "Mean absolute error on held-out rows: red wine (1000 training rows, 500 test rows), abalone and white wine "
    "(3000, 1000). Columns centred and scaled to a range of length 10, bounds [-7.5, 7.5] assumed, delta = 1e-4. "
    "Medians and quartiles over random splits. DDP, proj DDP and hubbub go through the real secure sum (3 "
    "Computes, T = 0). All but hubbub use the paper's plug-in posterior with negative eigenvalues flipped."
)
