"""Logistic regression on real data: predictions beside those without privacy, and intervals whose truth is known."""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any

import numpy as np

from hubbub.arrays import Floats
from hubbub.engines import TrustedAggregator
from hubbub.errors import UntrustworthyWarning
from hubbub.estimators.logistic_regression import PrivateLogisticRegression
from hubbub.experiments.modes import Mode
from hubbub.experiments.others import LEVEL, sizes
from hubbub.experiments.outcome import Claim, Outcome, claim_everywhere
from hubbub.experiments.outcome_sets import SOURCES, OutcomeSet, read
from hubbub.experiments.runner import Cell, Row, seed_of
from hubbub.privacy import Budget

EPSILONS = (1.0, 3.0)
DELTA = 1e-5
PLAIN = 1e4  # C of scikit-learn for predictions ...
STEADY = 1.0  # ... and for the truth, which stays finite where classes can be told apart
LARGE = 1000  # rows from which on predictions should be near to those without privacy ...
NEAR = {1.0: 0.02, 3.0: 0.01}  # ... by this accuracy at most
COVERAGE, LEAST = (0.88, 0.92), 0.80  # of intervals: in the median over the sets, and on each of them
INTERVALS = 30  # coefficients at least that are looked at in a split, over studies with labels of their own
SCORES = ("accuracy", "auc", "log_loss")
DEFAULT_REPEATS = 5
DRAWS = 3  # of the noise on the published split, for each random split of the others

# Jälkö, Dikmen and Honkela (2017), abalone of more than nine rings: accuracy of DP-VI by epsilon (0.7667: not private)
PUBLISHED = {0.168: 0.7476, 0.211: 0.7476, 0.284: 0.7531, 0.433: 0.7543, 0.936: 0.7543}
PUBLISHED_DELTA, PUBLISHED_TRAIN, FIRST = 1e-3, 0.8, "abalone, first 80 %"


def cells(mode: Mode, seed: int, repeats: int) -> list[Cell]:
    """One cell per data set and split, and some draws of the noise for the published split."""
    return [
        cell
        for split in range(repeats)
        for cell in (
            *(Cell(f"outcomes seed={seed} {name} split={split}", run_split, (name, split, seed)) for name in SOURCES),
            *(
                Cell(f"outcomes seed={seed} published draw={draw}", run_published, (draw, seed))
                for draw in range(split * DRAWS, (split + 1) * DRAWS)
            ),
        )
    ]


def split_of(name: str, split: int, seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Which rows are for training and which for testing."""
    rows = len(read(name).y)
    train, test = sizes(rows)
    order = np.random.default_rng(seed_of("outcomes", seed, name, split)).permutation(rows)
    return order[:train], order[train : train + test]


def run_split(name: str, split: int, seed: int) -> list[Row]:
    """On one random split the scores of each method, and of the coefficients how many intervals hold."""
    data, label = read(name), f"outcomes/{seed}/{name}/{split}"
    train, test = split_of(name, split, seed)
    X, y, X_new, y_new = data.X[train], data.y[train], data.X[test], data.y[test]
    shared = {"dataset": name, "rows": len(data.y), "n": len(train), "d": data.X.shape[1], "delta": DELTA}
    plain = scores(logistic(X, y, PLAIN)[1](X_new), y_new)
    constant = scores(np.full(len(y_new), y.mean()), y_new)
    rows: list[Row] = []
    for epsilon in EPSILONS:
        model, warned = fitted(data, X, y, Budget(epsilon, DELTA), f"{label}/predictions")
        ours = scores(model.predict_proba(X_new)[:, 1], y_new) | coverage(data, epsilon, label)
        ours["warned"] += warned
        for method, found in (("non-private", plain), ("majority", constant), ("hubbub", ours)):
            rows.append({**shared, "epsilon": epsilon, "method": method, **found})
    return rows


def fitted(
    data: OutcomeSet, X: Floats, y: Floats, budget: Budget, label: str
) -> tuple[PrivateLogisticRegression, bool]:
    """The default method on these rows with the set's public bounds, and whether it warned of its own result."""
    engine = TrustedAggregator(seed_of(label, budget.epsilon))
    model = PrivateLogisticRegression(budget, list(data.x_bounds), engine, classes=[0, 1])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UntrustworthyWarning)
        model.fit(X, y)
    return model, any(issubclass(warning.category, UntrustworthyWarning) for warning in caught)


def scores(probability: Floats, y: Floats) -> dict[str, float]:
    """Share of right classes, area under the curve, and mean surprise, of probabilities of a yes."""
    from sklearn.metrics import log_loss, roc_auc_score

    return {
        "accuracy": float(np.mean((probability > 0.5) == (y > 0.5))),
        "auc": float(roc_auc_score(y, probability)),
        "log_loss": float(log_loss(y, np.clip(probability, 1e-12, 1 - 1e-12), labels=[0, 1])),
    }


def logistic(X: Floats, y: Floats, C: float) -> tuple[Floats, Any]:
    """Without privacy, on standardised columns: the coefficients in raw units, and what gives probabilities."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=10_000)).fit(X, y)
    return model[1].coef_[0] / model[0].scale_, lambda rows: np.asarray(model.predict_proba(rows)[:, 1])


@lru_cache(maxsize=4)
def truth_of(name: str) -> tuple[Floats, Floats]:
    """True coefficients and probabilities for the rows of a set: of the fit to them."""
    data = read(name)
    coefficients, probability = logistic(data.X, data.y, STEADY)
    return coefficients, probability(data.X)


def coverage(data: OutcomeSet, epsilon: float, label: str) -> dict[str, int]:
    """Real columns with labels drawn anew: how many true coefficients lie in 90 % intervals, and of how many.

    And how many of these fits warned; `fits` counts that for predictions, too.
    """
    name = label.split("/")[2]
    truth, probability = truth_of(name)
    varies = np.ptp(data.X, axis=0) > 0  # of a level that no row has there is no coefficient
    inside, doubtful, studies = 0, 0, -(-INTERVALS // int(varies.sum()))
    for study in range(studies):
        y = np.random.default_rng(seed_of(label, "labels", study)).random(len(probability)) < probability
        budget, fit = Budget(epsilon, DELTA), f"{label}/coefficients/{study}"
        model, warned = fitted(data, data.X, y.astype(np.float64), budget, fit)
        doubtful += warned
        interval = model.posterior_.interval(LEVEL)
        inside += int(np.sum(((interval[:, 0] < truth) & (truth < interval[:, 1]))[varies]))
    return {"inside": inside, "intervals": studies * int(varies.sum()), "warned": doubtful, "fits": studies + 1}


def run_published(draw: int, seed: int) -> list[Row]:
    """The accuracy at the published epsilons on the published split, under one draw of the noise."""
    data = read("abalone")
    n = int(PUBLISHED_TRAIN * len(data.y))
    X, y, X_new, y_new = data.X[:n], data.y[:n], data.X[n:], data.y[n:]
    shared = {"dataset": FIRST, "rows": len(data.y), "n": n, "d": data.X.shape[1], "delta": PUBLISHED_DELTA}
    plain = scores(logistic(X, y, PLAIN)[1](X_new), y_new)
    rows: list[Row] = []
    for epsilon, accuracy in PUBLISHED.items():
        model, warned = fitted(data, X, y, Budget(epsilon, PUBLISHED_DELTA), f"outcomes/{seed}/published/{draw}")
        ours = scores(model.predict_proba(X_new)[:, 1], y_new) | {"warned": warned, "fits": 1}
        for method, found in (("non-private", plain), ("published", {"accuracy": accuracy}), ("hubbub", ours)):
            rows.append({**shared, "epsilon": epsilon, "method": method, **found})
    return rows


def summarise(results: list[list[Row]], mode: Mode, repeats: int) -> Outcome:
    """A row per data set, epsilon and method, and the claims."""
    found: dict[tuple[str, float, str], list[Row]] = {}
    for row in (row for part in results for row in part):
        found.setdefault((row["dataset"], row["epsilon"], row["method"]), []).append(row)
    rows = [_line(part) for part in found.values()]
    names = [*SOURCES, FIRST]
    rows.sort(key=lambda row: (names.index(row["dataset"]), row["epsilon"]))
    return Outcome("outcomes", mode, rows, claims(rows), ABOUT)


def _line(part: list[Row]) -> Row:
    """Means over the splits of one data set, medians over the draws of noise for the published split."""
    first = part[0]
    middle = np.median if first["dataset"] == FIRST else np.mean
    intervals = sum(row.get("intervals", 0) for row in part)
    return {
        **{key: first[key] for key in ("dataset", "epsilon", "method", "rows", "n", "d", "delta")},
        **{key: float(middle([row[key] for row in part])) if key in first else None for key in SCORES},
        "coverage": sum(row["inside"] for row in part) / intervals if intervals else None,
        "intervals": intervals or None,
        "warned": sum(row["warned"] for row in part) / sum(row["fits"] for row in part) if "fits" in first else None,
        "repeats": len(part),
        "guarantee": True if first["method"] == "hubbub" else None,
    }


def claims(rows: list[Row]) -> list[Claim]:
    """What we say about the default method, held against these data sets."""
    others = {(row["dataset"], row["epsilon"], row["method"]): row for row in rows}
    ours = [row for row in rows if row["method"] == "hubbub"]
    sets, first = ([row for row in ours if (row["dataset"] == FIRST) is split] for split in (False, True))

    def beside(part: list[Row], method: str) -> list[tuple[Row, Row]]:
        return [(row, others[row["dataset"], row["epsilon"], method]) for row in part]

    large = [row for row in sets if row["rows"] >= LARGE]
    return [
        _near(beside(large, "non-private")),
        _useful(beside(sets, "majority")),
        _coverage(sets),
        _published(beside(first, "published")),
    ]


def _near(pairs: list[tuple[Row, Row]]) -> Claim:
    losses = [(row, plain["accuracy"] - row["accuracy"]) for row, plain in pairs]
    return claim_everywhere(
        f"(ours) from {LARGE} rows on the accuracy is within 2 points (epsilon = 1) and 1 point (3) of that without "
        "privacy",
        f"at most {100 * max((loss for _, loss in losses), default=float('nan')):.1f} points less; within them at",
        "points",
        {_place(row): (loss <= NEAR[row["epsilon"]], f"{100 * loss:.1f} less") for row, loss in losses},
    )


def _useful(pairs: list[tuple[Row, Row]]) -> Claim:
    return claim_everywhere(
        "(ours) the log loss is below that of always predicting the share of yes",
        "below it at",
        "points",
        {
            _place(row): (row["log_loss"] < constant["log_loss"], f"{row['log_loss']:.3f} > {constant['log_loss']:.3f}")
            for row, constant in pairs
        },
    )


def _published(pairs: list[tuple[Row, Row]]) -> Claim:
    found = ", ".join(f"{row['accuracy']:.2%}" for row, _ in pairs) or "not run"
    return claim_everywhere(
        "(ours) on the published split of abalone at least as accurate as DP-VI is published to be",
        f"{found}; so at",
        "epsilons",
        {
            f"{row['epsilon']:g}": (row["accuracy"] >= theirs["accuracy"], f"{row['accuracy']:.2%}")
            for row, theirs in pairs
        },
    )


def _coverage(ours: list[Row]) -> Claim:
    low, high = COVERAGE
    shares = [row["coverage"] for row in ours] or [float("nan")]
    medians = {
        e: float(np.median([row["coverage"] for row in ours if row["epsilon"] == e]))
        for e in dict.fromkeys(row["epsilon"] for row in ours)
    }
    typical = {f"median at {e:g}": (low <= share <= high, f"{share:.1%}") for e, share in medians.items()}
    each = {_place(row): (row["coverage"] >= LEAST, f"{row['coverage']:.1%}") for row in ours}
    return claim_everywhere(
        "(ours) 90 % intervals hold 88 to 92 % of the true coefficients in the median over the sets, and at least 80 % "
        "on each of them",
        f"medians {', '.join(f'{share:.1%}' for share in medians.values())}, least {min(shares):.1%}; holds at",
        "medians and points",
        typical | each,
    )


def _place(row: Row) -> str:
    return f"{row['dataset']} at {row['epsilon']:g}"


ABOUT = (
    "PrivateLogisticRegression with default settings, noise of a trusted aggregator, on nine real data sets in raw "
    "units. Public bounds of every column are round numbers from its meaning, written with the ranges of the data in "
    "sight; categories are 0/1 columns from their documented levels (outcome_sets.py). delta = 1e-5; two thirds of the "
    "rows for training, the rest for testing. Means over random splits of accuracy, area under the curve and log loss "
    "on test rows; non-private is scikit-learn's logistic regression on standardised columns with C = 10000, majority "
    "predicts the training rows' share of yes, not privately. coverage: share of true coefficients in 90 % intervals, "
    "over columns and studies, where the labels of all rows are drawn from the probabilities of a non-private fit "
    "(C = 1, which stays finite where classes can be told apart) whose coefficients are then the truth. warned: share "
    "of fits that said of themselves that they must not be trusted. abalone, first 80 %: the split, delta = 1e-3 and "
    "epsilons of Jalko, Dikmen and Honkela (2017), whose accuracy of DP-VI stands beside the median of ours over draws "
    "of the noise."
)
