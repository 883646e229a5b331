"""The law of the noise in a release: its density is that of the noise that mechanisms add."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from hubbub.protocols import NoiseLaw

SHAPES = [1.0, 1.02, 2.5, 12.0, 40.0, 900.0]


def mixed(noise: float, std: float, shape: float) -> float:
    """The density as it is defined: normal with a variance of std^2 / shape times a draw of Gamma(shape)."""
    log = np.linspace(-60, 10, 200_001)
    variance = np.exp(log)
    density = stats.gamma.logpdf(variance, shape, scale=std**2 / shape) + stats.norm.logpdf(noise, 0, np.sqrt(variance))
    return float(np.exp(density + log).sum() * (log[1] - log[0]))


@pytest.mark.parametrize("shape", SHAPES[1:5])
@pytest.mark.parametrize("noise", [0.02, 1.0, 4.0, -25.0])
def test_density_is_that_of_normal_noise_with_a_gamma_variance(noise: float, shape: float):
    law = NoiseLaw("laplace", 3.0, shape)
    assert law.log_density(np.array(noise)) == pytest.approx(np.log(mixed(noise, 3.0, shape)), abs=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
def test_density_has_the_deviation_that_the_law_says(shape: float):
    """Over a fine grid: it adds up to 1, and its second moment is the square of the deviation."""
    law = NoiseLaw("laplace", 3.0, shape)
    grid = np.linspace(-120, 120, 480_001)
    density = np.exp(law.log_density(grid)) * (grid[1] - grid[0])
    assert density.sum() == pytest.approx(1, abs=1e-5)
    assert density @ grid**2 == pytest.approx(9, rel=1e-4)


def test_a_shape_of_one_is_laplace_and_a_large_one_is_normal():
    noise = np.linspace(-20, 20, 81)
    laplace = stats.laplace(scale=3 / np.sqrt(2)).logpdf(noise)
    np.testing.assert_allclose(NoiseLaw("laplace", 3.0, 1.0).log_density(noise), laplace, atol=1e-12)
    np.testing.assert_allclose(NoiseLaw("laplace", 3.0, 1 + 1e-9).log_density(noise), laplace, atol=1e-5)
    normal = stats.norm(scale=3).logpdf(noise)
    np.testing.assert_allclose(NoiseLaw("normal", 3.0).log_density(noise), normal, atol=1e-12)
    np.testing.assert_allclose(NoiseLaw("laplace", 3.0, 9999.0).log_density(noise), normal, atol=0.1)
    assert NoiseLaw("laplace", 3.0, 1e5).normal
    assert not NoiseLaw("laplace", 3.0, 1.0).normal


def test_bessel_functions_and_their_expansion_meet():
    """At a shape of 30.5 the density goes over to an expansion: nothing jumps there."""
    noise = np.linspace(-20, 20, 81)
    below, above = (NoiseLaw("laplace", 3.0, shape).log_density(noise) for shape in (30.5 - 1e-9, 30.5 + 1e-9))
    np.testing.assert_allclose(below, above, atol=1e-5)


def test_other_units_and_a_least_deviation():
    law = NoiseLaw("laplace", 3.0, 2.5)
    assert law.scaled(2.0) == NoiseLaw("laplace", 6.0, 2.5)
    assert law.scaled(2.0).log_density(np.array(4.0)) == pytest.approx(law.log_density(np.array(2.0)) - np.log(2))
    assert law.at_least(1.0) is law
    assert law.at_least(5.0) == NoiseLaw("laplace", 5.0, 2.5)
