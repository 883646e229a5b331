"""The rounding lemma of docs/privacy.md, section 6: noise that is added before rounding, by every client for itself.

Coarse grids (a client's noise of half a step to two steps) make the correction large enough to be seen; on the grids
that hubbub uses (at least 8 steps) it is below 1e-270.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr

from hubbub.privacy.calibration import log_delta

FINE = 64  # points of the fine grid to a step; on it sums stand for integrals to many digits


def term(value: float, deviation: float, points: np.ndarray) -> np.ndarray:
    """Density of value + normal + uniform noise of one step; at whole numbers it is the law of the rounded sum."""
    return ndtr((points + 0.5 - value) / deviation) - ndtr((points - 0.5 - value) / deviation)


def law_of_the_sum(values: list[float], deviation: float) -> tuple[np.ndarray, np.ndarray]:
    """(exact law of the sum of rounded noisy values, density of the sum of noisy values and uniforms), at integers."""
    reach = math.ceil(max(map(abs, values)) + 40 * deviation)
    coarse, fine = np.arange(-reach, reach + 1.0), np.arange(-reach * FINE, reach * FINE + 1.0) / FINE
    exact, smooth = np.ones(1), np.ones(1)
    for value in values:
        exact = np.convolve(exact, term(value, deviation, coarse))
        smooth = np.convolve(smooth, term(value, deviation, fine)) / (FINE if smooth.size > 1 else 1)
    return exact, smooth[::FINE]


def bound(clients: int, deviation: float) -> float:
    """How far the ratio of the two may lie from 1."""
    eta = [
        2 * sum(math.exp(-2 * (math.pi * n * deviation) ** 2 * j / (j + 1)) for n in range(1, 30))
        for j in range(1, clients)
    ]
    return float(np.prod([1 + each for each in eta]) - 1)


@pytest.mark.parametrize("deviation", [0.4, 0.5, 0.7, 1.0])
@pytest.mark.parametrize("values", [[0.3, -0.2], [0.5, 0.5], [0.1, 0.7, -2.4], [0.0, 1.25, 3.5, -0.4, 0.2]])
def test_the_sum_of_rounded_terms_is_a_rounded_gaussian_up_to_the_stated_factor(values: list[float], deviation: float):
    exact, smooth = law_of_the_sum(values, deviation)
    seen = smooth > 1e-8  # where the convolution has digits left
    off = np.abs(exact[seen] / smooth[seen] - 1).max()
    assert off <= bound(len(values), deviation) * (1 + 1e-6) + 1e-5
    if deviation <= 0.5:
        assert off > 3e-5  # the lemma's correction is really there on so coarse a grid


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("moved", [0.5, 1.3, 4.0])
def test_rounding_costs_no_privacy(epsilon: float, moved: float):
    """delta of the exact law of what is released, for two neighbours, beside that of the Gaussian mechanism."""
    deviation, others = 1.0, [0.3, -1.6]
    one, two = (law_of_the_sum([start, *others], deviation)[0] for start in (0.0 + 0.2, moved + 0.2))
    size = max(one.size, two.size)
    one, two = (np.pad(law, (size - law.size) // 2) for law in (one, two))
    slack = 3 * bound(3, deviation)
    for first, second in ((one, two), (two, one)):
        delta = np.maximum(first - math.exp(epsilon) * second, 0.0).sum()
        assert delta <= math.exp(log_delta(math.sqrt(3) * deviation / moved, epsilon)) + slack


def test_on_hubbubs_grids_the_correction_is_nothing():
    assert 10**7 * 3 * math.exp(-(math.pi**2) * 8**2) < 1e-266
