"""A small Bayesian neural network: a curve through 5000 points, each held by another client.

    python examples/neural_network.py [figure.png]

One input, eight hidden units, one output: 25 weights, learned by private variational inference. Needs the extra `vi`.
"""

from __future__ import annotations

import sys

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from matplotlib.figure import Figure

from hubbub import Budget, LocalEngine, PrivateSVI, TrustedAggregator

CLIENTS, HIDDEN, NOISE = 5000, 8, 0.2


def curve(x):
    return np.sin(2 * x) + 0.3 * x


def model(x, y=None):
    first = numpyro.sample("first", dist.Normal(jnp.zeros(HIDDEN), 2.0).to_event(1))
    knots = numpyro.sample("knots", dist.Normal(jnp.linspace(-3.0, 3.0, HIDDEN), 1.0).to_event(1))
    second = numpyro.sample("second", dist.Normal(jnp.zeros(HIDDEN), 1.0).to_event(1))
    bias = numpyro.sample("bias", dist.Normal(0.0, 1.0))
    with numpyro.plate("clients", CLIENTS, subsample_size=x.shape[0]):
        hidden = jnp.tanh((2 + first) * (x[:, None] - knots))
        numpyro.sample("y", dist.Normal(hidden @ second + bias, NOISE), obs=y)


def main(path: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, CLIENTS)
    y = curve(x) + NOISE * rng.standard_normal(CLIENTS)
    new = np.linspace(-3, 3, 200)
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    settings = {
        "non-private": {"engine": TrustedAggregator(), "noise_multiplier": 0.0, "clip": 1e6},
        "epsilon 3": {"engine": LocalEngine(tolerate=5), "budget": Budget(3.0, 1e-5)},
        "epsilon 1": {"engine": LocalEngine(tolerate=5), "budget": Budget(1.0, 1e-5)},
    }
    for axes, (label, arguments) in zip(figure.subplots(1, 3, sharey=True), settings.items(), strict=True):
        fitted = PrivateSVI(model, steps=1500, seed=0, **{"clip": 2.0, **arguments}).fit(x, y)
        draws = fitted.predict(new, draws=300)["y"]
        low, middle, high = np.quantile(draws, [0.05, 0.5, 0.95], axis=0)
        fresh = curve(new) + NOISE * rng.standard_normal((50, new.size))
        inside = np.mean((low < fresh) & (fresh < high))
        error = np.sqrt(np.mean((middle - curve(new)) ** 2))
        print(
            f"{label}: off the curve by {error:.2f} on average, 90 % intervals hold {100 * inside:.0f} % of new points"
        )
        axes.plot(new, curve(new), "k--", lw=1, label="truth")
        axes.plot(new, middle, label="median")
        axes.fill_between(new, low, high, alpha=0.3, label="90 % predictive")
        axes.set(title=f"{label}", xlabel="x")
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "neural_network.png")
