"""That a sum stands for all clients and the prior counts once: against NumPyro's own densities, and by counting."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
import pytest
from numpyro import handlers
from numpyro.infer.autoguide import AutoIAFNormal, AutoLowRankMultivariateNormal
from numpyro.infer.util import log_density

from hubbub import Budget, Ledger, LocalEngine, PrivateSVI, TrustedAggregator
from hubbub.analyses.driver import run
from hubbub.analyses.iterative.stepwise import Stepwise
from hubbub.errors import InvalidInput
from hubbub.privacy import SampledGaussianEvent, fits
from hubbub.privacy.accountant import sampled_multiplier
from hubbub.protocols import Result

ROWS = 5  # so few that a prior left out or counted twice cannot hide


def model(x, y=None):
    w = numpyro.sample("w", dist.Normal(0.5, 0.7))
    s = numpyro.sample("s", dist.HalfNormal(2.0))
    with numpyro.plate("clients", ROWS, subsample_size=x.shape[0]):
        numpyro.sample("y", dist.Normal(w * x[:, 0], s), obs=y)


def test_a_step_is_the_gradient_of_numpyros_own_bound():
    """Likelihood of all rows, prior and guide once each: what NumPyro says of the same draw."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((ROWS, 1)), rng.standard_normal(ROWS)
    fitted = PrivateSVI(
        model, optimiser=optax.sgd(1.0), clip=1e6, steps=1, noise_multiplier=0.0, engine=TrustedAggregator(0), seed=3
    ).fit(x, y)
    guide, key = fitted.analysis_.model.guide, jax.random.PRNGKey(fitted.analysis_.public_seed())

    def bound(flat):
        values = guide.model.values(guide.draw(flat, key)[0])
        joint = log_density(model, (x, y), {}, values)[0]
        drawn = handlers.substitute(guide.guide, data={**guide.parameters(flat)})
        trace = handlers.trace(handlers.seed(drawn, key)).get_trace(x, y)
        samples = [site for site in trace.values() if site["type"] == "sample"]
        return joint - sum(jnp.sum(site["fn"].log_prob(site["value"])) for site in samples)

    start = jnp.asarray(guide.start, dtype=float)
    expected = start + jax.grad(bound)(start) / ROWS
    np.testing.assert_allclose(fitted.trace_[0], expected, rtol=1e-3, atol=1e-4)


class Ones:
    """Every client sends a one: the sum counts them."""

    name, fingerprint, columns, dimension, at_once = "ones", "ones", 1, 1, 64

    def vectors(self, state, rows):
        return np.ones((rows.shape[0], 1))


@dataclass(frozen=True)
class Counted(Result):
    """The sums, as they came."""

    sums: tuple[float, ...]


@dataclass(frozen=True)
class Counting(Stepwise):
    """Keeps the sums as they come."""

    kind, label, columns, program, longest = "counting", "count", ("x",), Ones(), 1.0

    def first(self, steps):
        return ()

    def numbers(self, inner):
        return np.zeros(1)

    def moved(self, inner, noisy, plan):
        return (*inner, noisy.value[0])

    def found(self, state, report):
        return Counted(state.inner)


@pytest.mark.parametrize("selection", ["self", "trainer"])
@pytest.mark.parametrize("absent", [(), (0, 7)])
def test_a_sum_over_some_stands_for_all(selection, absent):
    n = 40
    engine = LocalEngine(computes=2, tolerate=4, seed=1, absent=absent)
    counting = Counting(steps=30, batch=20, selection=selection, noise_multiplier=0.0)
    seen = run(counting, np.zeros((n, 1)), engine, Budget(1.0, 1e-5)).sums
    if selection == "trainer":
        np.testing.assert_allclose(seen, n, atol=1e-6)
    else:  # binomial: five standard errors of the mean of 30 steps
        assert abs(np.mean(seen) - n) < 5 * np.sqrt(n / 30)


def reads_rows(x, y=None):
    m = numpyro.sample("m", dist.Normal(x.mean(), 0.01))
    with numpyro.plate("clients", 30, subsample_size=x.shape[0]):
        numpyro.sample("y", dist.Normal(m, 1.0), obs=y)


def whole_mean(k):
    m = numpyro.sample("m", dist.Normal(0.0, 1.0))
    with numpyro.plate("clients", 30, subsample_size=k.shape[0]):
        numpyro.sample("y", dist.Normal(m, 1.0), obs=k - k.mean())


def positive_mean(x):
    m = numpyro.sample("m", dist.Normal(0.0, 1.0))
    with numpyro.plate("clients", 30, subsample_size=x.shape[0]):
        numpyro.sample("y", dist.LogNormal(m, 1.0), obs=x / x.mean())


X = np.random.default_rng(0).uniform(1, 2, 30)
BAD = {
    "a prior of the rows": (reads_rows, (X, X), "priors that do not depend on the rows"),
    "a mean over whole numbers": (whole_mean, (np.arange(30),), "independent rows"),
    "a mean over positive numbers": (positive_mean, (X,), "independent rows"),
    "no function": ([1], (X,), "model must be a function"),
}


@pytest.mark.parametrize("name", BAD)
def test_models_that_look_at_other_rows_are_refused_for_nothing(name):
    made, data, message = BAD[name]
    ledger = Ledger(Budget(1.0, 1e-5))
    with pytest.raises(InvalidInput, match=message):
        PrivateSVI(made, steps=2, ledger=ledger).fit(*data)
    assert not ledger.entries


def test_a_tick_that_is_no_function_is_refused():
    with pytest.raises(InvalidInput, match="tick must be a function"):
        PrivateSVI(model, tick=3).fit(X[:, None], X)


@pytest.mark.parametrize(
    "guide",
    [
        pytest.param(AutoIAFNormal, marks=pytest.mark.long),
        pytest.param(AutoLowRankMultivariateNormal, marks=pytest.mark.long),
    ],
)
def test_guides_that_are_not_plain_normal_fit_and_claim_no_variance(guide):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((ROWS, 1))
    fitted = PrivateSVI(model, guide, steps=2, noise_multiplier=0.0, engine=TrustedAggregator(0), seed=0).fit(
        x, x[:, 0]
    )
    assert fitted.noise_ is None
    assert np.isfinite(fitted.sample(10)["w"]).all()


@pytest.mark.parametrize(("budget", "probability", "steps"), [
    (Budget(0.01, 1e-5), 0.999, 100), (Budget(1.0, 1e-5), 1e-4, 100), (Budget(1.0, 1e-5), 0.1, 20),
])  # fmt: skip
def test_the_noise_that_is_solved_for_always_fits(budget, probability, steps):
    multiplier = sampled_multiplier(budget, probability, steps)
    assert fits([SampledGaussianEvent(multiplier, probability, steps)], budget)
