"""How well the sampler's draws stand for the posterior, by n, d and budget: `python benchmarks/chains.py [studies]`."""

from __future__ import annotations

import sys

import numpy as np

from hubbub.analyses.driver import run
from hubbub.analyses.linear.auto import LinearRegression
from hubbub.analyses.linear.noise_aware import sample_posterior
from hubbub.analyses.linear.sampler.diagnostics import diagnose
from hubbub.engines import TrustedAggregator
from hubbub.experiments.given_noise import numbered_columns
from hubbub.privacy import Budget
from hubbub.statistics import Box

SETTINGS = ((1000, 2, 1.0), (300, 2, 0.5), (1000, 10, 1.0), (300, 10, 0.5), (10000, 10, 1.0), (3000, 50, 1.0),
            (2000, 80, 1.0))  # fmt: skip


def main(studies: int) -> None:
    for n, d, epsilon in SETTINGS:
        coefficient, residual = [], []
        for study in range(studies):
            rng = np.random.default_rng(study)
            X = rng.standard_normal((n, d))
            rows = np.column_stack([X, X @ rng.standard_normal(d) / np.sqrt(d) + rng.standard_normal(n)])
            names, y, x = numbered_columns(Box((7.5,) * d, 7.5))
            analysis = LinearRegression(names, "y", y, x)
            released = run(analysis, rows, TrustedAggregator(study), Budget(epsilon, 1e-5)).release.released
            chains = sample_posterior(released, draws=1000).chains
            assert chains is not None
            found = diagnose(chains)
            coefficient.append((found.ess_bulk[:-1].min(), found.r_hat[:-1].max()))
            residual.append((found.ess_bulk[-1], found.r_hat[-1]))
        told = "; ".join(
            f"{name} ess {each[:, 0].min():.0f} to {each[:, 0].max():.0f}, r_hat up to {each[:, 1].max():.3f}"
            for name, each in (("worst coefficient", np.array(coefficient)), ("residual", np.array(residual)))
        )
        print(f"n={n} d={d} epsilon={epsilon}: {told}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
