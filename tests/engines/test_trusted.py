"""The trusted aggregator: what it releases lies on the grid, so that the last bits of a double show nothing."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub.engines import TrustedAggregator
from hubbub.privacy import gaussian_round
from hubbub.statistics import Means


@pytest.mark.parametrize("seed", [None, 3])
def test_what_is_released_lies_on_a_grid_that_the_noise_dwarfs(seed: int | None):
    """On doubles as they are, an event on the last bits told two neighbours apart (epsilon > 3 where 1 was claimed)."""
    rows = np.random.default_rng(0).uniform(-1, 1, (300, 4))
    release = TrustedAggregator(seed).private_sum(rows, gaussian_round(Means((1.0,) * 4), 1.0))
    bits = release.protection.fraction_bits
    assert bits is not None
    steps = release.value * 2.0**bits
    assert (steps == np.rint(steps)).all()
    assert 2.0**28 < release.noise_std * 2.0**bits < 2.0**31
    assert release.protection.sensitivity == pytest.approx(Means((1.0,) * 4).sensitivity + 2 * 2.0**-bits)


def test_without_noise_the_sum_is_exact():
    rows = np.random.default_rng(0).uniform(-1, 1, (300, 4))
    release = TrustedAggregator().private_sum(rows, gaussian_round(Means((1.0,) * 4), 0.0))
    np.testing.assert_allclose(release.value, rows.sum(axis=0), rtol=1e-12)
    assert release.protection.fraction_bits is None
