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
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from hubbub import LocalEngine, TrustedAggregator
from hubbub.analyses.iterative import svi
from hubbub.analyses.iterative.plan import make_plan
from hubbub.analyses.iterative.public import Public
from hubbub.analyses.iterative.rows import as_rows
from hubbub.analyses.iterative.trainer import train
from hubbub.arrays import Floats
from hubbub.engines.local.pool import cores
from hubbub.privacy import Budget, Population, Release, add_share
from hubbub.randomness import Randomness
from hubbub.roles import plan_round
from hubbub.statistics import Statistic

N, FEATURES, COMPUTES = 10_000, 99, 3
STEPS, TURNS = 10, 15
AT_ONCE = 655  # rows to which noise is added at a time: what fits into the cache


def model(X, y=None):
    w = numpyro.sample("w", dist.Normal(jnp.zeros(FEATURES), 1.0).to_event(1))
    b = numpyro.sample("b", dist.Normal(0.0, 1.0))
    with numpyro.plate("clients", N, subsample_size=X.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=X @ w + b), obs=y)


@dataclass(frozen=True)
class Plain:
    """The local engine without shares: every client's noise, then a sum that anybody could read."""

    threads: int = field(default_factory=cores)

    def private_sum(self, rows: Floats, statistic: Statistic, noise_multiplier: float) -> Release:
        plan = plan_round(statistic, noise_multiplier, Population(rows.shape[0]))

        def block_sum(start: int) -> Floats:
            randomness, value = Randomness.system(), np.zeros(plan.dimension)
            vectors = statistic.vectors(rows[start : start + statistic.at_once])
            scratch = np.empty((AT_ONCE, plan.dimension))
            for top in range(0, vectors.shape[0], AT_ONCE):
                part = vectors[top : top + AT_ONCE]
                value += add_share(part, plan.mechanism.sigma_client, randomness, out=scratch[: len(part)]).sum(axis=0)
            return value

        with ThreadPoolExecutor(self.threads) as pool:
            value = sum(pool.map(block_sum, range(0, rows.shape[0], statistic.at_once)))
        return TrustedAggregator(0).private_sum(np.zeros((2, 1)), _Shape(value), 0.0)


@dataclass(frozen=True)
class _Shape:
    """Lets a ready sum pass as a release."""

    value: Floats
    columns: int = 1
    magnitude: float = 1.0
    sensitivity: float = 1.0
    sensitivity_l1: float = 1.0

    @property
    def dimension(self) -> int:
        return self.value.size

    def vectors(self, rows: Floats) -> Floats:
        return np.outer([1.0, 0.0], self.value)

    def describe(self) -> dict[str, object]:
        return {"statistic": "ready"}


def measure() -> dict[str, object]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, FEATURES))
    y = (rng.random(N) < 1 / (1 + np.exp(-X[:, 0]))).astype(float)
    rows, shape = as_rows((X, y))
    parts = svi._prepared(model, None, shape, Public(), N)
    plan = make_plan(N, STEPS, None, "self", Budget(1.0, 1e-5), None, 0, rng)
    optimiser = svi.default_optimiser(STEPS)
    engines = {"secure": LocalEngine(computes=COMPUTES), "plain": Plain(), "trusted": TrustedAggregator()}

    def run(name: str) -> float:
        method = svi._method(parts, optimiser, plan, 1.0, 0.5, jax.random.PRNGKey(0))
        started = time.perf_counter()
        train(method, rows, plan, engines[name], None)
        return (time.perf_counter() - started) / STEPS

    for name in engines:
        run(name)  # compiled and warm
    turns = [{name: run(name) for name in engines} for _ in range(TURNS)]
    return {
        "N": N, "d": parts.program.dimension, "M": COMPUTES, "steps": STEPS * TURNS,
        "secure_over_plain": statistics.median(t["secure"] / t["plain"] for t in turns),
        "secure_over_trusted": statistics.median(t["secure"] / t["trusted"] for t in turns),
        "best_seconds_a_step": {name: min(t[name] for t in turns) for name in engines},
        "python": platform.python_version(), "jax": jax.__version__, "machine": platform.machine(),
    }  # fmt: skip


if __name__ == "__main__":
    json.dump(measure(), sys.stdout, indent=2)
    print()
