"""How many steps, who takes part in each, and the noise that the budget asks for: settled before the first step.

Two ways of batches (docs/privacy.md, section 9). *self*: every client flips its own coin in every step and all send,
so nobody knows who counted; Poisson sampling, which amplifies privacy against everybody. *trainer*: the trainer picks
batches of fixed size, which the Computes and it then know; nothing is amplified, but a client pays only for the steps
in which it takes part, and the picked batches are known beforehand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import InvalidInput, invalid, whole
from hubbub.privacy import (
    Budget,
    Event,
    GaussianEvent,
    SampledGaussianEvent,
    affordable_steps,
    sampled_multiplier,
)

Selection = Literal["self", "trainer"]

MOST_STEPS = 100_000


@dataclass(frozen=True)
class Plan:
    """A run, settled: its steps, its batches and the noise of every step."""

    clients: int
    steps: int
    batch: int
    selection: Selection
    noise_multiplier: float
    picked: NDArray[np.intp] | None = None
    """(steps, batch): the trainer's batches; None where all clients send in every step."""

    @property
    def probability(self) -> float:
        """With which probability a client counts in a step, by its own coin."""
        return self.batch / self.clients if self.picked is None else 1.0

    @property
    def scale(self) -> float:
        """What a sum over a batch is multiplied by, to stand for all clients."""
        return self.clients / self.batch

    @property
    def contributors(self) -> int:
        """How many clients send in a step."""
        return self.clients if self.picked is None else self.batch

    def chosen(self, step: int) -> NDArray[np.intp] | None:
        """The rows of a picked batch; None where all clients send."""
        return None if self.picked is None else self.picked[step]

    def participations(self, steps: int) -> int:
        """In how many of the first steps the client that is picked most often takes part."""
        return steps if self.picked is None else _most_often(self.picked[:steps])

    def event(self, steps: int) -> Event:
        """What the first steps cost, against everybody who sees every one of them."""
        if self.picked is None and self.batch < self.clients:
            return SampledGaussianEvent(self.noise_multiplier, self.probability, steps)
        return GaussianEvent(self.noise_multiplier / math.sqrt(self.participations(steps)))


def make_plan(
    clients: int,
    steps: int,
    batch: int | None,
    selection: Selection,
    budget: Budget,
    noise_multiplier: float | None,
    rng: np.random.Generator,
) -> Plan:
    """Solve for the noise, or, where it is given, for the number of steps that the budget pays for."""
    whole("clients", clients, 2, "one client alone cannot hide; enrol more")
    steps = whole("steps", steps, 1, "take for example 200", most=MOST_STEPS)
    batch = clients if batch is None else whole("batch", batch, 1, "leave it out for all clients", most=clients)
    if selection not in get_args(Selection):
        raise invalid("selection", "'self' or 'trainer'", repr(selection), "use 'self'")
    picked = epochs(clients, batch, steps, rng) if selection == "trainer" and batch < clients else None
    if noise_multiplier is None:
        multiplier = _solved(budget, clients, batch, steps, picked)
    else:
        multiplier = _given(noise_multiplier)
        if multiplier > 0:
            steps = _paid(budget, multiplier, clients, batch, steps, picked)
    return Plan(clients, steps, batch, selection, multiplier, None if picked is None else picked[:steps])


def epochs(clients: int, batch: int, steps: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """(steps, batch): all clients in random order, again and again, so that each takes part equally often."""
    each = clients // batch  # batches of an epoch; the few that are left over wait for the next one
    rounds = [rng.permutation(clients)[: each * batch].reshape(each, batch) for _ in range(-(-steps // each))]
    return np.concatenate(rounds)[:steps]


def _most_often(picked: NDArray[np.intp]) -> int:
    return int(np.bincount(picked.ravel()).max())


def _solved(budget: Budget, clients: int, batch: int, steps: int, picked: NDArray[np.intp] | None) -> float:
    if picked is None:
        return sampled_multiplier(budget, batch / clients, steps)
    return sampled_multiplier(budget, 1.0, _most_often(picked))


def _given(value: object) -> float:
    number = float(value) if isinstance(value, int | float | np.number) and not isinstance(value, bool) else math.nan
    if not (math.isfinite(number) and number >= 0):
        raise invalid("noise_multiplier", "finite and >= 0", repr(value), "leave it out: it follows from the budget")
    return number


def _paid(
    budget: Budget, multiplier: float, clients: int, batch: int, steps: int, picked: NDArray[np.intp] | None
) -> int:
    """As many steps as the budget pays for: the run stops there."""
    if picked is None:
        paid = affordable_steps(budget, multiplier, batch / clients, steps)
    else:
        turns = affordable_steps(budget, multiplier, 1.0, _most_often(picked))
        often = [_most_often(picked[: step + 1]) <= turns for step in range(steps)]
        paid = int(np.sum(often))
    if paid < 1:
        raise InvalidInput(
            f"budget must pay for at least one step, got {budget} for a noise multiplier of {multiplier:.4g}; "
            "leave noise_multiplier out, or raise it or the budget"
        )
    return paid
