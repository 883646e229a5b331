"""A small study to play through: 6 clients, 1 of whom may be missing, 3 Computes, one round of means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from hubbub.privacy import Population
from hubbub.randomness import Randomness
from hubbub.roles import Compute, Study, contribute
from hubbub.securesum import PrivateKey, Report
from hubbub.statistics import Means
from seams import planned


@dataclass(frozen=True)
class Stage:
    study: Study
    keys: list[PrivateKey]
    samples: dict[str, np.ndarray]

    def reports(self, client: str, number: int = 0) -> tuple[Report, ...]:
        return contribute(self.study, number, client, self.samples[client], Randomness.system())

    def compute(self, index: int = 0, number: int = 0) -> Compute:
        return Compute(self.study, number, index, self.keys[index])

    def inbox(self, index: int = 0, leave_out: tuple[str, ...] = ()) -> list[Report]:
        return [self.reports(client)[index] for client in self.samples if client not in leave_out]


def make_stage(noise_multiplier: float = 0.0, dropouts: int = 1) -> Stage:
    keys = [PrivateKey.generate() for _ in range(3)]
    population = Population(6, dropouts)
    plan = planned(Means((8.0, 8.0)), noise_multiplier, population)
    study = Study(population, tuple(key.public() for key in keys), (plan, plan))
    samples = {f"c{i}": np.array([2.0**i / 16, -float(i)]) for i in range(6)}  # a unique mark per client
    return Stage(study, keys, samples)


@pytest.fixture
def stage() -> Stage:
    return make_stage()
