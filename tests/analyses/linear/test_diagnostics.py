"""r-hat and effective sample size: the numbers of ArviZ, and what they are for."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub.analyses.linear.sampler.diagnostics import diagnose, ess_bulk, r_hat


def chains(shape: tuple[int, int], memory: float, apart: float, seed: int) -> np.ndarray:
    """Autoregressive chains, with middles apart."""
    rng = np.random.default_rng(seed)
    found = rng.standard_normal(shape)
    for t in range(1, shape[1]):
        found[:, t] = memory * found[:, t - 1] + np.sqrt(1 - memory**2) * found[:, t]
    return found + apart * np.arange(shape[0])[:, None]


@pytest.mark.parametrize("shape", [(4, 250), (4, 51), (2, 25), (8, 1000), (100, 10)])
@pytest.mark.parametrize(("memory", "apart"), [(0.0, 0.0), (0.9, 0.0), (0.5, 0.5), (-0.6, 0.0)])
def test_numbers_are_those_of_arviz(shape: tuple[int, int], memory: float, apart: float):
    arviz = pytest.importorskip("arviz")
    for seed in range(3):
        draws = chains(shape, memory, apart, seed)
        for values in (draws, np.exp(2 * draws), np.round(draws)):  # heavy tails and ties, too
            assert r_hat(values) == pytest.approx(float(arviz.rhat(values)), rel=1e-9)
            assert ess_bulk(values) == pytest.approx(float(arviz.ess(values, method="bulk")), rel=1e-9)


def test_chains_that_disagree_and_chains_that_crawl_are_told():
    good, apart, slow = chains((4, 250), 0.0, 0.0, 1), chains((4, 250), 0.0, 1.0, 1), chains((4, 250), 0.98, 0.0, 1)
    found = diagnose(np.stack([good, apart, slow, np.zeros((4, 250))], axis=2))
    assert found.r_hat[0] < 1.02
    assert found.r_hat[1] > 1.3
    assert found.ess_bulk[0] > 700
    assert found.ess_bulk[2] < 60
    assert np.isnan(found.r_hat[3])
    assert np.isnan(found.ess_bulk[3])  # an intercept that is not there


def test_chains_of_unequal_width_are_told_though_their_middles_agree():
    found = chains((4, 250), 0.0, 0.0, 2) * np.array([1.0, 1.0, 1.0, 4.0])[:, None]
    assert r_hat(found) > 1.1
