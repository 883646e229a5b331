"""Only what the likelihood looks at is summed over clients: the rest has a gradient of zero, and gets no noise."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer.autoguide import AutoDiagonalNormal, AutoMultivariateNormal, AutoNormal

from hubbub import Budget, LocalEngine, PrivateSGLD, PrivateSVI
from hubbub.analyses.iterative.row_model import row_model
from hubbub.analyses.iterative.rows import as_rows
from hubbub.errors import InvalidInput

GROUPS, ROWS = 4, 2000


def hierarchical(group, y=None):
    mean = numpyro.sample("mean", dist.Normal(0.0, 2.0))
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    with numpyro.plate("groups", GROUPS):
        effect = numpyro.sample("effect", dist.Normal(mean, spread))
    with numpyro.plate("rows", ROWS, subsample_size=group.shape[0]):
        numpyro.sample("y", dist.Normal(effect[group], 1.0), obs=y)


def not_centred(group, y=None):
    """The same, but rows look at all of it."""
    mean = numpyro.sample("mean", dist.Normal(0.0, 2.0))
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    with numpyro.plate("groups", GROUPS):
        raw = numpyro.sample("raw", dist.Normal(0.0, 1.0))
    with numpyro.plate("rows", ROWS, subsample_size=group.shape[0]):
        numpyro.sample("y", dist.Normal(mean + spread * raw[group], 1.0), obs=y)


def in_a_branch(group, y=None):
    """What stands in a function that JAX compiles apart counts as looked at."""
    a = numpyro.sample("a", dist.Normal(0.0, 1.0))
    b = numpyro.sample("b", dist.Normal(a, 1.0))
    unused = numpyro.sample("unused", dist.Normal(jnp.zeros(3), 1.0).to_event(1))
    numpyro.deterministic("shown", unused.sum())
    with numpyro.plate("rows", ROWS, subsample_size=group.shape[0]):
        numpyro.sample("y", dist.Normal(jax.lax.cond(b > 0, jnp.exp, jnp.sin, b) + 0 * group, 1.0), obs=y)


def nothing_to_learn(group, y=None):
    numpyro.sample("mean", dist.Normal(0.0, 2.0))
    with numpyro.plate("rows", ROWS, subsample_size=group.shape[0]):
        numpyro.sample("y", dist.Normal(group, 1.0), obs=y)


def data(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    group = rng.integers(0, GROUPS, ROWS)
    return group, np.array([-1.0, 0.0, 0.5, 1.5])[group] + rng.standard_normal(ROWS)


@pytest.mark.parametrize(
    ("model", "names"),
    [(hierarchical, {"effect"}), (not_centred, {"mean", "spread", "raw"}), (in_a_branch, {"b"})],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_what_is_left_out_has_a_gradient_of_zero_everywhere(model, names, rng):
    """The walk over the program against the numbers: at 200 random positions and rows."""
    rows, shape = as_rows(data())
    cut = row_model(model, shape, {})
    marked = cut.unravel(jnp.asarray(cut.whole(np.ones(cut.touched.size))))
    assert {name for name, value in marked.items() if np.all(value)} == names
    assert all(np.all(value == 0) for name, value in marked.items() if name not in names)
    positions = jnp.asarray(rng.standard_normal((200, cut.dimension)))
    gradients = np.asarray(jax.vmap(jax.grad(cut.client_part))(positions, jnp.asarray(rows[:200])))
    left = np.setdiff1d(np.arange(cut.dimension), cut.touched)
    assert not gradients[:, left].any()
    assert np.all(np.abs(gradients[:, cut.touched]).max(axis=0) > 0)


@pytest.mark.parametrize(
    "guide", [AutoNormal, AutoDiagonalNormal, pytest.param(AutoMultivariateNormal, marks=pytest.mark.long)]
)
def test_noise_reaches_only_what_was_summed(guide):
    fitted = PrivateSVI(hierarchical, guide, steps=40, seed=0, budget=Budget(1.0, 1e-5), engine=LocalEngine(seed=1))
    fitted.fit(*data())
    assert fitted.program_.dimension == GROUPS
    noise = fitted.noise_
    assert noise.heard.centre.shape == (GROUPS,)  # releases speak of what rows look at, and of nothing else
    assert noise.mean.shape == (GROUPS + 2,)
    assert np.linalg.eigvalsh(noise.covariance).min() > 0


def test_a_scale_is_learned_where_noise_would_have_drowned_it():
    """Noise on the spread itself used to move it to several times its size at this budget."""
    fitted = PrivateSVI(
        hierarchical, steps=400, seed=0, clip=2.0, budget=Budget(1.0, 1e-5), engine=LocalEngine(seed=1)
    ).fit(*data())
    low, high = np.quantile(fitted.sample(2000)["spread"], [0.05, 0.95])
    assert 0.3 < low < 1.0 < high < 3.0


def test_langevin_sampling_moves_what_no_client_touches():
    fitted = PrivateSGLD(
        hierarchical, steps=300, seed=0, clip=2.0, budget=Budget(5.0, 1e-5), engine=LocalEngine(seed=1)
    ).fit(*data())
    assert fitted.program_.dimension == GROUPS
    assert fitted.positions_.shape[1] == GROUPS + 2
    assert np.all(fitted.positions_.std(axis=0) > 0)


def test_a_model_whose_rows_look_at_nothing_is_refused():
    with pytest.raises(InvalidInput, match="model must have rows that depend on a latent site"):
        PrivateSVI(nothing_to_learn, steps=2).fit(*data())
