"""The sampler's draws, number by number: moving code about must not move them, or published rows change with it."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from hubbub.analyses.linear.columns import Columns
from hubbub.analyses.linear.noise_aware import Prior, sample_posterior
from hubbub.analyses.linear.pilot import pilot
from hubbub.analyses.linear.released import Released, SecondLook
from hubbub.analyses.linear.residuals import EDGES
from hubbub.statistics import Ball, Distances, Gram


def study(
    d: int, n: int, noise: float, radius: float, doubt: float, *, intercept: bool = True, y: float = 2.0
) -> Released:
    """Sums of normal rows in a ball, with noise, from integers of a fixed seed."""
    rng = np.random.default_rng([d, n])
    X = np.column_stack([np.ones((n, int(intercept))), rng.standard_normal((n, d))])
    X *= np.minimum(1.0, radius / np.linalg.norm(X, axis=1, keepdims=True))
    p = X.shape[1]
    target = np.clip(X @ rng.uniform(-1, 1, p) + rng.standard_normal(n), -y, y)
    normal = rng.standard_normal((p, p))
    sums = Gram(
        X.T @ X + noise * (normal + normal.T) / 2,
        X.T @ target + noise / np.sqrt(2) * rng.standard_normal(p),
        float(target @ target + noise * rng.standard_normal()),
    )
    columns = Columns(np.linspace(-1, 1, d + 1), np.linspace(0.5, 2, d + 1), np.full(d + 1, doubt))
    return Released(sums, n, noise, Ball(radius, p, y=y, weight=1.0), columns, intercept)


def twice(d: int, n: int, noise: float, radius: float, doubt: float) -> Released:
    """The same with a second look, around what the first one gave, and counts of its residuals."""
    first = study(d, n, noise, radius, doubt)
    look, rng = pilot(first), np.random.default_rng([d, n, 2])
    X = np.column_stack([np.ones(n), rng.standard_normal((n, d))])
    X *= np.minimum(1.0, radius / np.linalg.norm(X, axis=1, keepdims=True))
    rest = np.clip(rng.standard_normal(n), -1.5, 1.5)
    sums = Gram(X.T @ X, X.T @ rest, float(rest @ rest))
    counts = Distances(EDGES).vectors(rng.standard_normal((n, 1))).sum(axis=0)
    return replace(first, second=SecondLook(sums, 0.7 * noise, look.around, look.unit, counts, 5.0))


CASES = {
    "two looks": (twice(4, 1000, 20.0, 2.0, 0.3), {"seed": 10}),
    "small": (study(2, 1000, 12.0, 2.0, 0.3), {"seed": 0}),
    "no intercept": (study(3, 500, 10.0, 1.5, 0.3, intercept=False), {"seed": 5}),
    "ten": (study(10, 2000, 20.0, 3.0, 0.4), {"seed": 1, "draws": 300}),
    "far from zero": (study(3, 400, 30.0, 1.8, 0.9), {"seed": 2}),
    "known trace": (study(3, 300, 20.0, 0.9, 0.9), {"seed": 3}),
    "few rows": (study(12, 20, 5.0, 3.0, 0.5), {"seed": 4, "draws": 200}),
    "thirty": (study(30, 3000, 20.0, 5.0, 0.3), {"seed": 6, "draws": 100}),
    "many columns": (study(66, 1500, 30.0, 6.0, 0.3), {"seed": 7, "draws": 100}),
    "own prior": (study(3, 600, 15.0, 1.8, 0.3), {"seed": 8, "prior": Prior(np.full(3, 0.5), np.full(3, 0.2))}),
    "models": (study(3, 600, 40.0, 1.8, 0.3), {"seed": 9, "models": [[1, 2], [0, 1, 2], [0, 2]]}),
}


PINNED = {
    "two looks": [
        2.4918904587,
        -0.9065121367293,
        3.382587915938,
        6.362536930891,
        -0.9818538045184,
        6.107185528941,
        0.9070847848448,
        1,
    ],
    "small": [
        -0.1669171016127,
        0.4048601784288,
        2.137935323932,
        4.317987797209,
        0.3846943470641,
        4.54862220277,
        0.9100858930723,
        1,
    ],
    "no intercept": [
        3.317295283496,
        -1.317915771946,
        0,
        6.604832508326,
        -1.250765563357,
        6.525881185352,
        0.8742469905687,
        1,
    ],
    "ten": [
        -3.348810610256,
        -0.2302891578963,
        -1.957794115199,
        8.648709471945,
        -0.2851269934268,
        9.035943705969,
        0.8511099858166,
        1,
    ],
    "far from zero": [
        -2.208476387376,
        0.492152521391,
        -1.603306074143,
        6.961962536772,
        0.3094372761937,
        5.567708222724,
        0.8284716119608,
        1,
    ],
    "known trace": [
        0.6585717740958,
        -0.7371803457413,
        2.680874022153,
        21.85034157916,
        -0.6119956014826,
        24.16187239599,
        0.8327560465629,
        1,
    ],
    "few rows": [
        0.2898682828629,
        -0.08078148079483,
        0.8286106347815,
        6.75249635943,
        -0.3086421926174,
        0.3713500775506,
        0.5545522108448,
        1,
    ],
    "thirty": [
        -3.21439047072,
        -0.1616145526639,
        -5.883630166372,
        21.11258269977,
        -0.2319944552466,
        20.41421401835,
        0.7874101633731,
        1,
    ],
    "many columns": [
        1.304963585033,
        0.179879636335,
        9.092384618876,
        53.91109063507,
        0.01903806087599,
        49.30913041749,
        0.4766151588124,
        1,
    ],
    "own prior": [
        -0.6089700780301,
        0.7565510317103,
        0.8714685592776,
        5.024808130772,
        0.5978746702283,
        4.485475720843,
        0.9060236970352,
        1,
    ],
    "models": [
        -0.2859160912989,
        0.795508551042,
        1.21130548688,
        4.271109930597,
        0.8314851416961,
        3.753088395114,
        0.7674248483653,
        0.5605953171183,
    ],
}
"""Of the code with which log S came to be sampled, and level and spread with it."""
PINNED_WITH = "2d5b9e79852f9dea"
"""What `linear_algebra` gave where that was done."""


def numbers(name: str) -> list[float]:
    """Means, one draw, the weights' effective share and the first model's probability."""
    data, how = CASES[name]
    draws = sample_posterior(data, how.get("prior"), **{key: how[key] for key in how if key != "prior"})
    beta, intercept, residual = draws.coefficients, draws.intercept, draws.residual_variance
    return [
        float(beta[:, 0].mean()), float(beta[:, -1].mean()), float(intercept.mean()), float(residual.mean()),
        float(beta[17, -1]), float(residual[-1]), draws.effective, float(draws.models[0]),
    ]  # fmt: skip


def linear_algebra() -> str:
    """Which bits this machine's linear algebra gives: processors and libraries round differently, and a chain takes
    another course after the first decision that turns out differently."""
    rng = np.random.default_rng(0)
    found = hashlib.sha256()
    for size in (3, 12, 40):
        square = rng.standard_normal((size, size))
        symmetric = square @ square.T + np.eye(size)
        values, vectors = np.linalg.eigh(symmetric)
        for each in (symmetric, values, vectors, np.linalg.cholesky(symmetric), np.linalg.inv(symmetric)):
            found.update(np.ascontiguousarray(each).tobytes())
    return found.hexdigest()[:16]


ALIKE = linear_algebra() == PINNED_WITH


@pytest.mark.skipif(not ALIKE, reason="draws are pinned for machines whose linear algebra gives the same bits")
@pytest.mark.parametrize("name", list(CASES))
def test_draws_are_the_numbers_they_were(name: str):
    """To 1e-9, which leaves room for another order of sums."""
    np.testing.assert_allclose(numbers(name), PINNED[name], rtol=1e-9, atol=1e-30)
