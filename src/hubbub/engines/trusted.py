"""The trusted aggregator: one party sees every sample and adds the noise. A baseline, not a product."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hubbub.arrays import Floats, number_rows
from hubbub.privacy import (
    DistributedGaussian,
    GaussianEvent,
    Protection,
    Release,
    SampledGaussianEvent,
    check_population,
)
from hubbub.randomness import Randomness
from hubbub.roles import vectors_of
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

    def private_sum(self, rows: Floats, statistic: Statistic, noise_multiplier: float) -> Release:
        """Exact sum plus Gaussian noise of standard deviation sigma_std."""
        rows = number_rows("rows", rows, statistic.columns)
        tell_outside("rows", statistic, rows)
        check_population(rows.shape[0], 0)
        sigma = DistributedGaussian(noise_multiplier, statistic.sensitivity, rows.shape[0]).sigma_std
        value = np.zeros(statistic.dimension)
        size = rows_at_once(statistic) or _CHUNK_ROWS
        for start in range(0, rows.shape[0], size):
            value += vectors_of(statistic, rows[start : start + size], self._randomness).sum(axis=0)
        value += sigma * self._randomness.normals((statistic.dimension,))
        protection = Protection(
            clients=rows.shape[0],
            tolerated=0,
            computes=1,
            sensitivity=statistic.sensitivity,
            sigma_std=sigma,
            sigma_client=0.0,
            dimension=statistic.dimension,
            statistic=str(statistic.describe()["statistic"]),
            fraction_bits=None,
            sealed=None,
            setting="trusted aggregator",
            generator=self._randomness.source,
            secure_generator=self._randomness.secure,
        )
        probability = probability_of(statistic)
        event = (
            GaussianEvent(noise_multiplier) if probability == 1 else SampledGaussianEvent(noise_multiplier, probability)
        )
        return Release(value, sigma, rows.shape[0], 0, event, protection)
