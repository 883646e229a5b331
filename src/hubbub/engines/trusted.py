"""The trusted aggregator: one party sees every sample and adds the noise. A baseline, not a product."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from hubbub.arrays import Floats, number_rows
from hubbub.privacy import DistributedGaussian, Population, Protection, Release, SampledGaussianEvent
from hubbub.randomness import Randomness
from hubbub.roles import check_steps_per_sigma, choose_bits, sensitivity_on_grid, vectors_of
from hubbub.securesum import FixedPoint
from hubbub.statistics import Statistic, probability_of, rows_at_once, tell_outside

_CHUNK_ROWS = 4096


@dataclass(frozen=True)
class TrustedAggregator:
    """The same sums as the other engines, with sigma_std added once by a party who sees everything.

    With a noise multiplier of 0 it gives the exact, non-private sum.
    """

    seed: int | None = None
    _randomness: Randomness = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_randomness", Randomness.of(self.seed))

    def population(self, samples: int) -> Population:
        """Who takes part: a client for every row. None of them adds noise, so none is counted on."""
        return Population(samples)

    def private_sum(self, rows: Floats, statistic: Statistic, noise_multiplier: float) -> Release:
        """The sum plus Gaussian noise of standard deviation sigma_std, both rounded to the grid."""
        rows = number_rows("rows", rows, statistic.columns)
        tell_outside("rows", statistic, rows)
        population = self.population(rows.shape[0])
        mechanism = DistributedGaussian(noise_multiplier, statistic.sensitivity, population)
        grid = None
        if noise_multiplier > 0:
            grid = FixedPoint(choose_bits(statistic, 2 * mechanism.sigma_std, population))
            mechanism = replace(mechanism, sensitivity=sensitivity_on_grid(statistic, grid, population))
            check_steps_per_sigma(mechanism.sigma_std, grid)
        probability = probability_of(statistic)
        return Release(
            value=self._exact(rows, statistic) if grid is None else self._noisy(rows, statistic, mechanism, grid),
            noise_std=mechanism.sigma_std,
            n=rows.shape[0],
            clients=rows.shape[0],
            event=mechanism.event if probability == 1 else SampledGaussianEvent(noise_multiplier, probability),
            protection=Protection(
                population=population,
                computes=1,
                sensitivity=mechanism.sensitivity,
                sigma_std=mechanism.sigma_std,
                sigma_client=0.0,
                dimension=statistic.dimension,
                statistic=str(statistic.describe()["statistic"]),
                fraction_bits=None if grid is None else grid.fraction_bits,
                sealed=None,
                setting="trusted aggregator",
                generator=self._randomness.source,
                secure_generator=self._randomness.secure,
            ),
        )

    def _exact(self, rows: Floats, statistic: Statistic) -> Floats:
        """The sum without noise or grid, for comparison."""
        return sum((vectors.sum(axis=0) for vectors in self._vectors(rows, statistic)), np.zeros(statistic.dimension))

    def _noisy(self, rows: Floats, statistic: Statistic, mechanism: DistributedGaussian, grid: FixedPoint) -> Floats:
        """As if one client held all samples: vectors and noise are rounded first, so that the sum is exact."""
        noise = np.empty(statistic.dimension)
        self._randomness.fill_normals(noise, mechanism.sigma_std)
        words = grid.encode(noise)
        for vectors in self._vectors(rows, statistic):
            words += grid.encode(vectors).sum(axis=0, dtype=np.uint64)
        return grid.decode(words)

    def _vectors(self, rows: Floats, statistic: Statistic) -> Iterator[Floats]:
        size = rows_at_once(statistic) or _CHUNK_ROWS
        for start in range(0, rows.shape[0], size):
            yield vectors_of(statistic, rows[start : start + size], self._randomness)
