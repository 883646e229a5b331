"""Do 90 % intervals hold the truth nine times in ten? Linear regression, with and without the variance of the noise.

    python examples/noise_aware_coverage.py [repeats]

Conjugate data (residual deviation 1, four coefficients), 40 studies for each line, epsilon = 1, delta = 1e-5, by a
trusted aggregator's noise, which is what any engine adds at T = 0 and large N. Needs the extra `vi`.
"""

from __future__ import annotations

import sys

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer.autoguide import AutoDiagonalNormal, AutoMultivariateNormal

from hubbub import Budget, PrivateSVI, TrustedAggregator

D, CLIP = 4, 3.0


def model(X, y=None):
    w = numpyro.sample("w", dist.Normal(jnp.zeros(D), 1.0).to_event(1))
    with numpyro.plate("clients", X.shape[0]):
        numpyro.sample("y", dist.Normal(X @ w, 1.0), obs=y)


def main(repeats: int) -> None:
    for clients in (1000, 5000):
        for guide in (AutoMultivariateNormal, AutoDiagonalNormal):
            held = {False: [], True: []}
            for study in range(repeats):
                rng = np.random.default_rng(study)
                w, X = rng.standard_normal(D), rng.standard_normal((clients, D))
                y = X @ w + rng.standard_normal(clients)
                engine = TrustedAggregator(seed=study)
                fitted = PrivateSVI(model, guide, budget=Budget(1.0, 1e-5), clip=CLIP, engine=engine, seed=study)
                fitted.fit(X, y)
                for aware, found in held.items():
                    low, high = np.quantile(fitted.sample(1000, noise_aware=aware)["w"], [0.05, 0.95], axis=0)
                    found.append(np.mean((low < w) & (w < high)))
            plain, aware = (100 * np.mean(held[kind]) for kind in (False, True))
            print(
                f"{clients} clients, {guide.__name__}: {plain:.0f} % without, {aware:.0f} % with the noise's variance"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
