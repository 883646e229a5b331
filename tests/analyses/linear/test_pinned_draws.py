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
        2.493645809687,
        -0.9069737639699,
        3.384735900808,
        6.366829079257,
        -0.9477203617826,
        6.150125838684,
        0.8957637584469,
        1,
    ],
    "small": [
        -0.1554720711672,
        0.4051547510607,
        2.148163665577,
        4.309052176582,
        0.3102561710483,
        4.754943744118,
        0.9554416459412,
        1,
    ],
    "no intercept": [
        3.333628586307,
        -1.316861446766,
        0,
        6.546405769071,
        -1.215104388716,
        7.268513534537,
        0.8661810753311,
        1,
    ],
    "ten": [
        -3.329234649504,
        -0.2282152991644,
        -1.940337459838,
        8.713859229577,
        -0.1956213226122,
        8.397706467782,
        0.8510255532359,
        1,
    ],
    "far from zero": [
        -2.222218207772,
        0.4755547924876,
        -1.614107037148,
        6.968885648234,
        0.754083058651,
        8.559926409446,
        0.8244946333864,
        1,
    ],
    "known trace": [
        0.6787272100557,
        -0.7478325923682,
        2.660716921107,
        21.69624958565,
        -1.275311276374,
        17.82413811991,
        0.789245988442,
        1,
    ],
    "few rows": [
        0.6921163105423,
        -0.1687898898004,
        1.817549910529,
        8.078158829429,
        -0.101899191448,
        6.891550004854,
        0.5394656839431,
        1,
    ],
    "thirty": [
        -3.201926171891,
        -0.15412869856,
        -5.865431729407,
        21.20456235963,
        -0.1873305839387,
        21.96283088158,
        0.8416137809233,
        1,
    ],
    "many columns": [
        1.321044874285,
        0.2178153811106,
        8.842834850555,
        53.13968591154,
        0.09477485061571,
        52.20070251389,
        0.9507032753639,
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
        -0.2763376244069,
        0.7772871709869,
        1.234891822513,
        4.311701735873,
        0.5580357671672,
        6.185169679243,
        0.7652224574987,
        0.5764752759024,
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
