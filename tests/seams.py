"""Short names for what many tests make: a settled round of Gaussian noise, and shares of additive sharing."""

from __future__ import annotations

import numpy as np

from hubbub.privacy import Population, gaussian_round
from hubbub.protocols import Share, Statistic
from hubbub.roles import RoundPlan, settle_round
from hubbub.securesum.additive import MASKED, SEEDS
from hubbub.securesum.seeds import Generator


def planned(
    statistic: Statistic, multiplier: float, population: Population, fraction_bits: int | None = None
) -> RoundPlan:
    """A round by itself, its grid and noise settled."""
    return settle_round(gaussian_round(statistic, multiplier), population, fraction_bits)


def masked(words: np.ndarray) -> Share:
    """The share that is the masked vector itself."""
    return Share(MASKED, words.size, words.astype("<u8").tobytes())


def seeded(seed: bytes, dimension: int, generator: Generator = "AES-128-CTR") -> Share:
    """A share that is a seed."""
    return Share(SEEDS[generator], dimension, seed)
