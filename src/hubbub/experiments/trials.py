"""Simulated data for `hubbub up` and `hubbub audit`: settings as in study.toml, rows, and the truth behind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.arrays import Floats


@dataclass(frozen=True)
class Trial:
    """An analysis to try, with rows whose truth is known."""

    title: str
    settings: Mapping[str, Any]
    """The entries of [analysis], without its kind."""
    rows: Callable[[np.random.Generator, int], Floats]
    truth: str


def _linear(rng: np.random.Generator, n: int) -> Floats:
    X = rng.normal([50.0, 2.0, 75.0], [12.0, 0.7, 12.0], size=(n, 3))
    return np.column_stack([X, 20 + X @ [0.1, -2.0, 0.0] + rng.normal(size=n)])


def _claims(rng: np.random.Generator, n: int) -> Floats:
    X = np.column_stack([rng.normal(50.0, 12.0, n), rng.random(n) < 0.3])
    return np.column_stack([X, rng.random(n) < 1 / (1 + np.exp(2 - X @ [0.03, 0.5]))])


def _logistic(rng: np.random.Generator, n: int) -> Floats:
    X = rng.normal(size=(n, 2))
    return np.column_stack([X, rng.random(n) < 1 / (1 + np.exp(-(X @ [1.0, -1.0])))])


def _mixture(rng: np.random.Generator, n: int) -> Floats:
    centre = np.where(rng.random((n, 1)) < 0.3, [[2.0, 2.0]], [[-1.0, -1.0]])
    return np.asarray(centre + 0.5 * rng.normal(size=(n, 2)))


TRIALS = {
    "linear": Trial(
        "response by age, dose and weight",
        {
            "features": ["age", "dose", "weight"], "target": "response",
            "x_bound": "age=0:100,dose=0:5,weight=40:120", "y_bound": "0:40",
        },
        _linear, "age 0.1, dose -2, weight 0",
    ),
    "glm": Trial(
        "claims by age and whether people smoke",
        {"features": ["age", "smoker"], "target": "claim", "x_bound": "age=0:110,smoker=0:1"},
        _claims, "age 0.03, smoker 0.5, intercept -2",
    ),
    "bernoulli": Trial(
        "who smokes", {"column": "smokes"}, lambda rng, n: (rng.random((n, 1)) < 0.3).astype(float), "probability 0.3"
    ),
    "categorical": Trial(
        "blood groups", {"column": "group", "categories": 4},
        lambda rng, n: rng.choice(4, size=(n, 1), p=[0.4, 0.3, 0.2, 0.1]).astype(float),
        "probabilities 0.4, 0.3, 0.2, 0.1",
    ),
    "gaussian": Trial(
        "hours of sleep, less eight", {"column": "sleep", "bound": 6.0},
        lambda rng, n: rng.normal(-1.0, 1.5, size=(n, 1)), "mean -1, variance 2.25",
    ),
    "poisson": Trial(
        "visits to a doctor", {"column": "visits", "bound": 12.0},
        lambda rng, n: rng.poisson(2.5, size=(n, 1)).astype(float), "rate 2.5",
    ),
    "logistic": Trial(
        "recovery by two markers",
        {"features": ["first", "second"], "target": "recovered", "x_norm": 3.0, "steps": 10},
        _logistic, "first 1, second -1, intercept 0",
    ),
    "mixture": Trial(
        "two groups of patients", {"features": ["first", "second"], "components": 2, "x_norm": 5.0, "steps": 10},
        _mixture, "70 % around (-1, -1) and 30 % around (2, 2), both with variance 0.25",
    ),
}  # fmt: skip
