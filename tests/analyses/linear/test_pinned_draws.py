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
        2.492408256151,
        -0.9059785919409,
        3.374045188354,
        6.364842087199,
        -0.8515478963056,
        6.801179276858,
        0.8612706005242,
        1,
    ],
    "small": [
        -0.1588612594144,
        0.4070639281447,
        2.146109573519,
        4.310833741533,
        0.4461601384538,
        4.214953951373,
        0.9142090945824,
        1,
    ],
    "no intercept": [
        3.339085540258,
        -1.310740286736,
        0,
        6.539348327381,
        -1.318385048417,
        6.819263998523,
        0.878086295202,
        1,
    ],
    "ten": [
        -3.337401607555,
        -0.2315063643977,
        -1.935198252862,
        8.689633536231,
        -0.2509165590841,
        8.845188032037,
        0.9033311815868,
        1,
    ],
    "far from zero": [
        -2.200707902509,
        0.5023086772218,
        -1.622142566916,
        6.758689273647,
        0.5011581475618,
        6.786400526901,
        0.8081616789626,
        1,
    ],
    "known trace": [
        0.4980963421585,
        -0.6758417319147,
        2.476730373394,
        22.54716977646,
        -0.4130122780138,
        14.7181305152,
        0.7818103577308,
        1,
    ],
    "few rows": [
        0.4429081866467,
        -0.1575462675209,
        1.175644904618,
        8.597646658927,
        -0.3330703699539,
        4.25488095983,
        0.5454091560218,
        1,
    ],
    "thirty": [
        -3.221985613978,
        -0.1622312500511,
        -5.885728391074,
        21.49020290823,
        -0.135763675101,
        22.70877591134,
        0.7515946957133,
        1,
    ],
    "many columns": [
        1.482632110386,
        0.2029229010413,
        9.388758721949,
        54.08099406965,
        0.3283562661335,
        62.01851652374,
        0.2441276615696,
        1,
    ],
    "own prior": [
        -0.6074826916602,
        0.7497506103225,
        0.8831522614827,
        5.060170815411,
        0.6882764698947,
        4.605910885918,
        0.9009056200357,
        1,
    ],
    "models": [
        -0.2331702195447,
        0.7792396000693,
        1.26013536054,
        4.341794405387,
        0.7370485821173,
        4.382069767559,
        0.8237737623059,
        0.5874790945462,
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
