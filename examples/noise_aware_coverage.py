"""Do 90 % intervals hold the truth nine times in ten? Three models, with the noise counted and left out.

    python examples/noise_aware_coverage.py [repeats] [linear|logistic|hospitals] [first seed]

Coefficients are drawn from their prior, delta = 1e-5, 500 steps, noise by a trusted aggregator, which is what any
engine adds at T = 0 and large N. Needs the extra `vi`.
"""

from __future__ import annotations

import sys

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer.autoguide import AutoDiagonalNormal, AutoMultivariateNormal

from hospitals import model as hospitals
from hospitals import simulated
from hubbub import Budget, PrivateSVI, TrustedAggregator

COLUMNS, WIDTH = 6, 0.5
BOTH = (AutoDiagonalNormal, AutoMultivariateNormal)


def linear(X, y=None):
    w = numpyro.sample("w", dist.Normal(jnp.zeros(COLUMNS), WIDTH).to_event(1))
    with numpyro.plate("clients", X.shape[0]):
        numpyro.sample("y", dist.Normal(X @ w, 1.0), obs=y)


def logistic(X, y=None):
    w = numpyro.sample("w", dist.Normal(jnp.zeros(COLUMNS), WIDTH).to_event(1))
    with numpyro.plate("clients", X.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=X @ w), obs=y)


def study(model, clients: int, rng: np.random.Generator) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Rows with pairs of columns correlated by 0.3, and the coefficients."""
    w, shared = WIDTH * rng.standard_normal(COLUMNS), rng.standard_normal((clients, 1))
    X = np.sqrt(0.3) * shared + np.sqrt(0.7) * rng.standard_normal((clients, COLUMNS))
    if model is linear:
        return (X, X @ w + rng.standard_normal(clients)), w
    return (X, (rng.random(clients) < 1 / (1 + np.exp(-X @ w))).astype(int)), w


SETTINGS = [  # model, clients, epsilon, clip, guides
    (hospitals, 20_000, 1.0, 2.0, BOTH[:1]),
    (hospitals, 20_000, 3.0, 2.0, BOTH[:1]),
    (hospitals, 6_000, 1.0, 2.0, BOTH[:1]),
    (linear, 1_000, 1.0, 4.0, BOTH),
    (linear, 5_000, 1.0, 4.0, BOTH),
    (logistic, 5_000, 1.0, 2.5, BOTH),
    (logistic, 20_000, 0.5, 2.5, BOTH),
]


def main(repeats: int, only: str, first: int) -> None:
    for model, clients, epsilon, clip, guides in SETTINGS:
        name = "hospitals" if model is hospitals else model.__name__
        for guide in guides if only in ("", name) else ():
            held, doubtful = {False: [], True: []}, 0
            for seed in range(first, first + repeats):
                if model is hospitals:
                    *data, truth = simulated(seed, clients)
                else:
                    data, truth = study(model, clients, np.random.default_rng(seed))
                fitted = PrivateSVI(
                    model,
                    guide,
                    budget=Budget(epsilon, 1e-5),
                    clip=clip,
                    engine=TrustedAggregator(seed=seed),
                    seed=seed,
                ).fit(*data)
                doubtful += "DO NOT TRUST" in fitted.result_.note
                for aware, found in held.items():
                    draws = fitted.sample(1000, noise_aware=aware)["effect" if model is hospitals else "w"]
                    low, high = np.quantile(draws, [0.05, 0.95], axis=0)
                    found.extend((low < truth) & (truth < high))
            plain, aware = (100 * np.mean(held[kind]) for kind in (False, True))
            print(
                f"{name}, {clients} clients, epsilon {epsilon:g}, {guide.__name__}: {aware:.0f} % of {len(held[True])} "
                f"intervals hold the truth ({plain:.0f} % with the noise left out), {doubtful} of {repeats} warned of",
                flush=True,
            )


if __name__ == "__main__":
    arguments = sys.argv[1:]
    main(int(arguments[0]) if arguments else 20, "".join(arguments[1:2]), int((arguments[2:3] or [0])[0]))
