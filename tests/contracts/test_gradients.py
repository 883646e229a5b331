"""The gradient statistic on every engine: exact without noise, with the stated noise, and self-selected batches."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from conftest import FALSE_ALARM
from contracts.test_engines import ENGINES, NETWORK, ON_NODES, N
from hubbub import Engine, InvalidInput
from hubbub.privacy import gaussian_round
from hubbub.statistics import Clipped, Program, install, statistic_from

CLIP = 0.8


@pytest.fixture(scope="module")
def program() -> Program:
    """The gradient of a logistic regression's log likelihood, exported by JAX."""
    import jax.numpy as jnp
    from jax import grad, nn

    from hubbub.analyses.iterative.xla import compile_program

    def likelihood(w, row):
        logit = jnp.dot(row[:-1], w)
        return row[-1] * logit - nn.softplus(logit)

    found = compile_program("gradient of a test", grad(likelihood), 3, 4, N)
    install(found)
    return found


def rows_and_state(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    rows = np.column_stack([2 * rng.standard_normal((N, 3)), rng.integers(0, 2, N)])
    return rows, np.array([0.5, -0.25, 1.0])


@pytest.fixture(
    params=[
        "local", "local, sealed", "trusted", "spark",
        *ON_NODES,
    ]
)  # fmt: skip
def make(request: pytest.FixtureRequest) -> Callable[[int | None], Engine]:
    if request.param in ENGINES:
        return ENGINES[request.param]
    urls = request.getfixturevalue("live").urls
    return lambda seed: NETWORK[request.param](urls, seed)


def test_sum_of_clipped_gradients_is_exact_to_the_grid_and_has_the_stated_noise(make, program, rng):
    rows, state = rows_and_state(rng)
    statistic, engine = Clipped(program, state, CLIP), make(1)
    by_hand = rows[:, :-1] * (rows[:, -1] - 1 / (1 + np.exp(-rows[:, :-1] @ state)))[:, None]
    by_hand *= np.minimum(1, CLIP / np.linalg.norm(by_hand, axis=1))[:, None]
    release = engine.private_sum(rows, gaussian_round(statistic, 0.0))
    bits = release.protection.fraction_bits
    tolerance = 1e-9 if bits is None else N * 2.0**-bits
    np.testing.assert_allclose(release.value, statistic.vectors(rows).sum(axis=0), atol=tolerance)
    np.testing.assert_allclose(release.value, by_hand.sum(axis=0), atol=1e-5)  # JAX computes in 32 bits
    noisy = engine.private_sum(rows, gaussian_round(statistic, 5.0))
    z = (noisy.value - release.value) / noisy.noise_std
    assert np.sum(z**2) < stats.chi2(3).isf(FALSE_ALARM)
    assert noisy.protection.sensitivity >= 2 * CLIP


def test_coins_are_flipped_on_every_engine(make, program, rng):
    """All clients send; about half count. Without noise the sum is one of the 2^N partial sums, not the whole one."""
    rows, state = rows_and_state(rng)
    engine = make(3)
    release = engine.private_sum(rows, gaussian_round(Clipped(program, state, CLIP, probability=0.5), 0.0))
    again = engine.private_sum(rows, gaussian_round(Clipped(program, state, CLIP, probability=0.5), 0.0))
    whole = Clipped(program, state, CLIP).vectors(rows).sum(axis=0)
    assert release.n == N
    assert not np.allclose(release.value, whole)
    assert not np.allclose(release.value, again.value)
    assert release.event.probability == 0.5


def test_description_names_the_program_and_brings_no_code(program, rng):
    rows, state = rows_and_state(rng)
    description = Clipped(program, state, CLIP, 0.5).describe()
    assert len(str(description)) < 500
    there = statistic_from(description)
    np.testing.assert_array_equal(there.vectors(rows), Clipped(program, state, CLIP).vectors(rows))
    stranger = statistic_from({**description, "fingerprint": "0" * 64})
    assert (stranger.dimension, stranger.sensitivity) == (3, 2 * CLIP)  # a Compute can add it up
    with pytest.raises(InvalidInput, match="program must be installed at the client, got program='gradient of a test'"):
        stranger.vectors(rows)


@pytest.mark.parametrize(
    "change",
    [{"clip": -1.0}, {"probability": 0.0}, {"probability": 2.0}, {"state": ["x"]}, {"program": 3}, {"state": 1}],
)
def test_bad_descriptions_are_refused(program, rng, change):
    description = Clipped(program, rows_and_state(rng)[1], CLIP).describe()
    with pytest.raises(InvalidInput):
        statistic_from({**description, **change})
