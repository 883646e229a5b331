"""How long the posteriors of one release take: `python benchmarks/posterior.py`."""

from __future__ import annotations

import time

import numpy as np

from hubbub.analyses.driver import run
from hubbub.analyses.linear.auto import LinearRegression
from hubbub.analyses.linear.noise_aware import sample_posterior
from hubbub.analyses.linear.shrinkage import shrinkage_posterior
from hubbub.engines import TrustedAggregator
from hubbub.experiments.given_noise import numbered_columns
from hubbub.privacy import Budget
from hubbub.statistics import Box


def main() -> None:
    for n, d in ((1000, 2), (1000, 10), (3000, 50)):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, d))
        rows = np.column_stack([X, X @ rng.standard_normal(d) / np.sqrt(d) + rng.standard_normal(n)])
        names, y, x = numbered_columns(Box((7.5,) * d, 7.5))
        analysis = LinearRegression(names, "y", y, x)
        released = run(analysis, rows, TrustedAggregator(0), Budget(1.0, 1e-5)).release.released
        sample_posterior(released, draws=100)  # so that imports do not count
        started = time.perf_counter()
        sample_posterior(released, draws=1000)
        sampled = time.perf_counter()
        shrinkage_posterior(released)
        quick = time.perf_counter()
        print(f"d={d}: 1000 noise-aware draws {sampled - started:.2f} s, shrinkage {1e3 * (quick - sampled):.1f} ms")


if __name__ == "__main__":
    main()
