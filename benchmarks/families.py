"""How often 90 % intervals of the one-sum families hold the truth: noise counted, and the noisy sum taken as exact.

Truth and data are drawn from each family's prior; a trusted aggregator adds the noise, which the secure sum reproduces.

    python benchmarks/families.py [studies]
"""

from __future__ import annotations

import sys

import numpy as np

from hubbub import Bernoulli, Budget, Categorical, Gaussian, PoissonRate
from hubbub.analyses.families.posteriors import DirichletPosterior, NormalVariancePosterior, ScalarPosterior
from hubbub.engines import TrustedAggregator
from hubbub.privacy import Release

CLIENTS, EPSILONS, DELTA, LEVEL = (100, 1000, 10_000), (0.1, 1.0), 1e-5, 0.9


def as_exact(family: object, release: Release) -> object:
    """The conjugate posterior of the noisy sums, moved into their range where the noise pushed them out."""
    n, one = release.n, np.ones(1)
    if isinstance(family, Bernoulli):
        count = np.clip(release.value, 0.0, n)
        return ScalarPosterior(one, "beta", (family.prior[0] + count, family.prior[1] + n - count))
    if isinstance(family, PoissonRate):
        count = np.maximum(release.value, 0.0)
        return ScalarPosterior(one, "gamma", (family.prior[0] + count, family.prior[1] + n * one))
    if isinstance(family, Categorical):
        return DirichletPosterior(one, family.prior + np.clip(release.value, 0.0, n)[None])
    assert isinstance(family, Gaussian)
    mean = np.clip(release.value[:1] * family.bound / n, -family.bound, family.bound)
    square = np.clip(release.value[1:] * family.bound**2 - n * mean**2, 0.0, n * family.bound**2)
    count, shape = family.prior_count + n, family.prior_shape + n / 2
    location = (family.prior_count * family.prior_mean + n * mean) / count
    scale = family.prior_scale + square / 2 + family.prior_count * n / count * (mean - family.prior_mean) ** 2 / 2
    return NormalVariancePosterior(one, location, scale, count, shape)


def study(name: str, n: int, rng: np.random.Generator):  # type: ignore[no-untyped-def]  # of four kinds
    """Family, values and truth."""
    if name == "Bernoulli":
        truth = rng.beta(1, 1)
        return Bernoulli(), rng.random(n) < truth, truth
    if name == "Categorical":
        truth = rng.dirichlet(np.ones(5))
        return Categorical(5), rng.choice(5, p=truth, size=n), truth
    if name == "PoissonRate":
        truth = rng.gamma(2) / 0.5
        return PoissonRate(30.0, (2.0, 0.5)), rng.poisson(truth, n), truth
    variance = 3 / rng.gamma(3)
    truth = np.array([rng.normal(0, np.sqrt(variance)), variance])
    return Gaussian(20.0, 0.0, 1.0, 3.0, 3.0), rng.normal(truth[0], np.sqrt(variance), n), truth


def main(studies: int) -> None:
    """Print the table."""
    print("family, clients, epsilon: noise counted / noisy sum taken as exact")
    for name in ("Bernoulli", "Categorical", "PoissonRate", "Gaussian"):
        for n in CLIENTS:
            for epsilon in EPSILONS:
                rng, hits, intervals = np.random.default_rng(0), np.zeros(2), 0
                for seed in range(studies):
                    family, values, truth = study(name, n, rng)
                    fit = family.fit(values, budget=Budget(epsilon, DELTA), engine=TrustedAggregator(seed))
                    for k, posterior in enumerate((fit.posterior, as_exact(family, fit.release))):
                        low, high = posterior.interval(LEVEL).T.reshape(2, -1)
                        hits[k] += np.sum((low < truth) & (truth < high))
                    intervals += np.size(truth)
                print(f"{name}, {n}, {epsilon:g}: {hits[0] / intervals:.1%} / {hits[1] / intervals:.1%}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
