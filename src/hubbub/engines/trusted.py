"""The trusted aggregator: one party sees every sample and adds the noise. A baseline, not a product."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hubbub.arrays import Floats, number_rows
from hubbub.engines.held import held_array
from hubbub.population import Population, TrustedPopulation
from hubbub.protocols import Engine, Mechanism, Protection, Release, RoundNoise, RoundSpec
from hubbub.randomness import Randomness
from hubbub.roles import Outside, RoundPlan, settle_round, vectors_of
from hubbub.settings import AGGREGATOR
from hubbub.statistics import warn_outside

_CHUNK_ROWS = 4096


@dataclass(frozen=True)
class TrustedAggregator(Engine):
    """The same sums as the other engines, with all the noise added once by a party who sees everything.

    A mechanism whose noise has no size gives the exact, non-private sum, without a grid: for comparison.
    """

    seed: int | None = None
    mechanism: Mechanism | str | None = None
    _randomness: Randomness = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_randomness", Randomness.of(self.seed))

    def hold(self, rows: Any) -> Floats:
        """An array, as it is."""
        return held_array(rows)

    def population(self, samples: int) -> Population:
        """Who takes part: a client for every row. None of them adds noise, so none is counted on."""
        return TrustedPopulation(samples)

    def private_sum(self, rows: Any, spec: RoundSpec) -> Release:
        """The sum plus noise of standard deviation sigma_std, both on the grid."""
        rows = number_rows("rows", rows, None if spec.steps else spec.statistic.columns)
        rows = rows if spec.chosen is None else rows[spec.chosen]
        plan = settle_round(spec, self.population(rows.shape[0]))
        noise = plan.noise
        exact = noise.sigma_std == 0
        return Release(
            value=self._exact(rows, plan) if exact else self._noisy(rows, plan, noise),
            noise=noise.law(1),
            n=rows.shape[0],
            clients=rows.shape[0],
            event=plan.event,
            protection=Protection(
                population=noise.population,
                trust=None,
                sensitivity=noise.sensitivity,
                sigma_std=noise.sigma_std,
                sigma_client=0.0,
                dimension=plan.dimension,
                statistic=str(plan.statistic.describe()["statistic"]),
                mechanism=str(plan.mechanism.describe()["mechanism"]),
                reservation=plan.mechanism.reservation,
                fraction_bits=None if exact else noise.grid.fraction_bits,
                sealed=None,
                setting=AGGREGATOR,
                generator=self._randomness.source,
                secure_generator=self._randomness.secure,
            ),
        )

    def _exact(self, rows: Floats, plan: RoundPlan) -> Floats:
        """The sum without noise or grid, for comparison."""
        return sum((vectors.sum(axis=0) for vectors in self._vectors(rows, plan)), np.zeros(plan.dimension))

    def _noisy(self, rows: Floats, plan: RoundPlan, noise: RoundNoise) -> Floats:
        """As if one client held all samples: vectors and noise are rounded first, so that the sum is exact."""
        words = noise.shares(1, plan.dimension, self._randomness)[0]
        for vectors in self._vectors(rows, plan):
            words += noise.encoded(vectors).sum(axis=0, dtype=np.uint64)
        return noise.grid.decode(words)

    def _vectors(self, rows: Floats, plan: RoundPlan) -> Iterator[Floats]:
        """The vectors, some at a time; in the end whoever holds them is told which samples counted as zero."""
        size, outside = plan.statistic.at_once or _CHUNK_ROWS, Outside()
        for start in range(0, rows.shape[0], size):
            vectors, found = vectors_of(plan, rows[start : start + size], self._randomness)
            outside = outside.and_then(found, start)
            yield vectors
        warn_outside("rows", plan.statistic, outside.number, rows.shape[0], outside.first)
