"""The forecast: close to what simulated fits give, and advice that would work."""

from __future__ import annotations

import re

import numpy as np
import pytest

from fits import fit_auto
from hubbub import Budget
from hubbub.analyses.linear.auto import weights
from hubbub.analyses.linear.forecast import advice, forecast
from hubbub.analyses.linear.noise_aware import sample_posterior
from hubbub.engines import TrustedAggregator
from hubbub.privacy import shared_multipliers
from hubbub.statistics import Box


@pytest.mark.slow
@pytest.mark.parametrize(("n", "d", "epsilon"), [(1000, 4, 1.0), (3000, 10, 1.0), (10_000, 2, 3.0)])
def test_widths_are_about_those_of_simulated_fits(n: int, d: int, epsilon: float):
    widths = []
    for seed in range(8):
        rng = np.random.default_rng([n, seed])
        X = rng.standard_normal((n, d))
        y = X @ rng.choice([-1, 1], d) / np.sqrt(d) + rng.standard_normal(n)
        rows = np.column_stack([X, y / np.sqrt(2)])
        multipliers = shared_multipliers(Budget(epsilon, 1e-5), weights())
        fit = fit_auto(rows, Box((5.0,) * d, 5.0), multipliers, TrustedAggregator(seed))
        draws = sample_posterior(fit.released, draws=400).coefficients
        widths.append(np.ptp(np.quantile(draws, [0.05, 0.95], axis=0), axis=0).mean())
    assert np.mean(widths) == pytest.approx(forecast(n, d, Budget(epsilon, 1e-5)).width, rel=0.15)


def test_more_of_everything_is_better():
    budget = Budget(1.0, 1e-5)
    base = forecast(1000, 10, budget)
    assert forecast(4000, 10, budget).width < base.width
    assert forecast(1000, 10, Budget(4.0, 1e-5)).width < base.width
    assert forecast(1000, 5, budget).learned > base.learned
    assert forecast(1000, 10, budget, not_counted=900).width > base.width
    assert forecast(10**7, 5, budget).error_ratio == pytest.approx(1.0, abs=1e-3)
    assert forecast(20, 50, Budget(0.1, 1e-5)).learned < 0.01


@pytest.mark.parametrize(("n", "d", "epsilon"), [(300, 10, 0.5), (1000, 30, 1.0)])
def test_following_the_advice_makes_a_good_fit(n: int, d: int, epsilon: float):
    lines = advice(n, d, Budget(epsilon, 1e-5))
    assert lines
    for line in lines:
        number = float(re.search(r"about ([\d.e+]+)", line)[1])
        n_, d_, e_ = {"m": (int(number), d, epsilon), "a": (n, d, number), "f": (n, int(number), epsilon)}[line[0]]
        assert forecast(n_, d_, Budget(e_, 1e-5)).good
    assert advice(10**6, 3, Budget(1.0, 1e-5)) == []
