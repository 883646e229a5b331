"""The forecast of a generalised linear model: close to what simulated fits give."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub import Budget, PrivateGLM, TrustedAggregator
from hubbub.analyses.glm.analysis import GLM
from hubbub.analyses.glm.families import FAMILIES
from hubbub.analyses.glm.forecast import SIGNAL, forecast, guess_of_mean
from hubbub.analyses.linear.forecast import Forecast
from hubbub.privacy import Population, mechanism_named


def forecasted(
    family: str, n: int, d: int, epsilon: float, mean: float | None = None, colluders: int = 0, most: float = 30.0
) -> Forecast:
    y = (0.0, 1.0) if FAMILIES[family].yes_no else (0.0, most)
    analysis = GLM(tuple(f"x{j}" for j in range(d)), "y", y, ((-5.0, 5.0),) * d, family)
    about = guess_of_mean(family, y) if mean is None else mean
    return forecast(analysis, about, Budget(epsilon, 1e-6), Population(n, 0, colluders), mechanism_named(None))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "n", "d", "epsilon", "intercept", "mean"),
    [("bernoulli", 5000, 4, 1.0, 0.0, 0.5), ("poisson", 10_000, 3, 1.0, 1.0, 3.5)],
)
def test_widths_are_about_those_of_simulated_fits(
    family: str, n: int, d: int, epsilon: float, intercept: float, mean: float
):
    widths = []
    for seed in range(3):
        rng = np.random.default_rng([n, d, seed])
        X = rng.standard_normal((n, d))
        eta = intercept + SIGNAL * X @ rng.choice([-1, 1], d) / np.sqrt(d)
        y = rng.random(n) < 1 / (1 + np.exp(-eta)) if family == "bernoulli" else rng.poisson(np.exp(eta))
        bound, law = None if FAMILIES[family].yes_no else 30.0, TrustedAggregator(seed)
        model = PrivateGLM(family, Budget(epsilon, 1e-6), [5.0] * d, bound, law, draws=400).fit(X, y.astype(float))
        widths.append(np.ptp(model.posterior_.interval(0.9), axis=1).mean())
    assert forecasted(family, n, d, epsilon, mean).width == pytest.approx(np.mean(widths), rel=0.2)


@pytest.mark.parametrize("family", FAMILIES)
def test_more_of_everything_is_better(family: str):
    base = forecasted(family, 5000, 6, 1.0)
    assert 0 < base.width < base.prior_width
    assert forecasted(family, 20_000, 6, 1.0).width < base.width
    assert forecasted(family, 5000, 6, 3.0).width < base.width
    assert forecasted(family, 5000, 2, 1.0).learned > base.learned
    assert forecasted(family, 5000, 6, 1.0, colluders=4000).width > base.width
    assert forecasted(family, 10**8, 6, 1.0).error_ratio < 1.3
    assert forecasted(family, 20, 50, 0.1).hopeless
    assert forecasted(family, 5000, 1, 1.0).width > 0


def test_rare_outcomes_tell_less():
    widths = [forecasted("bernoulli", 5000, 4, 1.0, mean).width for mean in (0.5, 0.1, 0.02)]
    assert widths == sorted(widths)
    assert forecasted("bernoulli", 5000, 4, 1.0, 0.9).width == pytest.approx(widths[1])
