"""A step of private variational inference with and without the secure sum, in one run: python benchmarks/iterative.py

N = 10000 clients, d = 100 latent numbers, M = 3 Computes. A step is: every client's gradient, clipped; noise; the sum;
the optimiser. *plain* does all of it but the secure sum: each client's noise is drawn and added, in as many threads,
and the noisy vectors are summed as they are. *trusted* is a trusted aggregator: no noise of single clients either, one
draw at the end. The three take turns; medians of the ratios are printed, since seconds mean little on a busy machine.
"""

from __future__ import annotations

import json
import platform
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from hubbub import LocalEngine, TrustedAggregator
from hubbub.analyses.driver import run
from hubbub.analyses.iterative.public import Public
from hubbub.analyses.iterative.rows import as_rows
from hubbub.analyses.iterative.svi import VariationalInference, guided_model
from hubbub.arrays import Floats
from hubbub.engines.local.pool import cores
from hubbub.privacy import Budget, Population, Release, gaussian_round
from hubbub.protocols import Engine, RoundSpec
from hubbub.randomness import Randomness
from hubbub.roles import settle_round
from hubbub.statistics import Count

N, FEATURES, COMPUTES = 10_000, 99, 3
STEPS, TURNS = 10, 15
AT_ONCE = 655  # rows to which noise is added at a time: what fits into the cache


def model(X, y=None):
    w = numpyro.sample("w", dist.Normal(jnp.zeros(FEATURES), 1.0).to_event(1))
    b = numpyro.sample("b", dist.Normal(0.0, 1.0))
    with numpyro.plate("clients", N, subsample_size=X.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=X @ w + b), obs=y)


@dataclass(frozen=True)
class Plain(Engine):
    """The local engine without shares: every client's noise, then a sum that anybody could read."""

    threads: int = field(default_factory=cores)

    def hold(self, rows: Floats) -> Floats:
        return rows

    def population(self, samples: int) -> Population:
        return Population(samples)

    def private_sum(self, rows: Floats, spec: RoundSpec) -> Release:
        plan, statistic = settle_round(spec, Population(rows.shape[0])), spec.statistic
        at_once = statistic.at_once or rows.shape[0]

        def block_sum(start: int) -> Floats:
            randomness, value = Randomness.system(), np.zeros(plan.dimension)
            vectors = statistic.vectors(rows[start : start + at_once])
            noise = np.empty((AT_ONCE, plan.dimension))
            for top in range(0, vectors.shape[0], AT_ONCE):
                part = vectors[top : top + AT_ONCE]
                randomness.fill_normals(noise[: len(part)], plan.noise.sigma_client)
                noise[: len(part)] += part
                value += noise[: len(part)].sum(axis=0)
            return value

        with ThreadPoolExecutor(self.threads) as pool:
            value = sum(pool.map(block_sum, range(0, rows.shape[0], at_once)))
        release = TrustedAggregator(0).private_sum(np.zeros((2, 1)), gaussian_round(Count(1.0), 0.0))
        return replace(release, value=value, n=rows.shape[0])  # a sum that is ready passes as a release


def measure() -> dict[str, object]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, FEATURES))
    y = (rng.random(N) < 1 / (1 + np.exp(-X[:, 0]))).astype(float)
    rows, shape = as_rows((X, y))
    analysis = VariationalInference(guided_model(model, None, shape, Public(), N), steps=STEPS)
    engines = {"secure": LocalEngine(computes=COMPUTES), "plain": Plain(), "trusted": TrustedAggregator()}

    def seconds(name: str) -> float:
        started = time.perf_counter()
        run(analysis, rows, engines[name], Budget(1.0, 1e-5))
        return (time.perf_counter() - started) / STEPS

    for name in engines:
        seconds(name)  # compiled and warm
    turns = [{name: seconds(name) for name in engines} for _ in range(TURNS)]
    return {
        "N": N, "d": analysis.program.dimension, "M": COMPUTES, "steps": STEPS * TURNS,
        "secure_over_plain": statistics.median(t["secure"] / t["plain"] for t in turns),
        "secure_over_trusted": statistics.median(t["secure"] / t["trusted"] for t in turns),
        "best_seconds_a_step": {name: min(t[name] for t in turns) for name in engines},
        "python": platform.python_version(), "jax": jax.__version__, "machine": platform.machine(),
    }  # fmt: skip


if __name__ == "__main__":
    json.dump(measure(), sys.stdout, indent=2)
    print()
