"""Small NumPyro models for the tests, made once per process."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist


def logistic(X, y=None):
    w = numpyro.sample("w", dist.Normal(jnp.zeros(X.shape[1]), 1.0).to_event(1))
    with numpyro.plate("clients", 1000, subsample_size=X.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=X @ w), obs=y)


def normal_mean(x=None, sigma=1.0):
    """Conjugate: the posterior is N(sum x / (n + 1), 1 / (n + 1)) at sigma = 1."""
    m = numpyro.sample("m", dist.Normal(0.0, 1.0))
    with numpyro.plate("clients", x.shape[0]):
        numpyro.sample("x", dist.Normal(m, sigma), obs=x)


def without_plate(X, y=None):
    w = numpyro.sample("w", dist.Normal(jnp.zeros(X.shape[1]), 1.0).to_event(1))
    numpyro.sample("y", dist.Bernoulli(logits=X @ w), obs=y)


def centred_in_the_model(X, y=None):
    w = numpyro.sample("w", dist.Normal(jnp.zeros(X.shape[1]), 1.0).to_event(1))
    with numpyro.plate("clients", X.shape[0]):
        numpyro.sample("y", dist.Normal((X - X.mean(axis=0)) @ w + X.mean(), 1.0), obs=y)


def fixed_plate(X, y=None):
    w = numpyro.sample("w", dist.Normal(jnp.zeros(X.shape[1]), 1.0).to_event(1))
    with numpyro.plate("clients", 300):
        numpyro.sample("y", dist.Bernoulli(logits=X @ w), obs=y)


def with_local_latent(X, y=None):
    w = numpyro.sample("w", dist.Normal(jnp.zeros(X.shape[1]), 1.0).to_event(1))
    with numpyro.plate("clients", X.shape[0]):
        u = numpyro.sample("u", dist.Normal(0.0, 1.0))
        numpyro.sample("y", dist.Normal(X @ w + u, 1.0), obs=y)


def with_discrete_latent(X, y=None):
    k = numpyro.sample("k", dist.Bernoulli(0.5))
    with numpyro.plate("clients", X.shape[0]):
        numpyro.sample("y", dist.Normal(X[:, 0] * k, 1.0), obs=y)


def own_guide(X, y=None):
    loc = numpyro.param("loc", jnp.zeros(X.shape[1]))
    scale = numpyro.param("scale", 0.1 * jnp.ones(X.shape[1]), constraint=dist.constraints.positive)
    numpyro.sample("w", dist.Normal(loc, scale).to_event(1))


def guide_that_reads_the_data(X, y=None):
    loc = numpyro.param("loc", X.mean(axis=0))
    numpyro.sample("w", dist.Normal(loc, 0.1).to_event(1))


def guide_as_long_as_the_data(X, y=None):
    numpyro.param("each", jnp.zeros(X.shape[0]))
    numpyro.sample("w", dist.Normal(jnp.zeros(X.shape[1]), 0.1).to_event(1))


def guide_without_the_site(X, y=None):
    loc = numpyro.param("loc", 0.0)
    numpyro.sample("other", dist.Normal(loc, 0.1))


def logistic_data(n: int = 300, d: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, (rng.random(n) < 1 / (1 + np.exp(-X @ np.arange(1, d + 1) / d))).astype(int)
