"""How many steps, who takes part in each, and the noise that the budget asks for: settled before the first step.

Two ways of batches (docs/privacy.md, section 9). *self*: every client flips its own coin in every step and all send,
so nobody knows who counted; Poisson sampling, which amplifies privacy against everybody. *trainer*: the trainer picks
batches of fixed size, which the Computes and it then know; nothing is amplified, but a client pays only for the steps
in which it takes part, and the picked batches are known beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import InvalidInput, invalid, whole
from hubbub.events import noise_multiplier_of, repeated
from hubbub.privacy import Budget, Entry, Event, MultiplierMechanism, affordable_steps
from hubbub.protocols import Description, Mechanism, Plan, Population, RoundSpec, Statistic

Batches = Literal["self", "trainer"]
"""Who chooses the samples that count in a step: each client by its own coin, or the trainer."""

MOST_STEPS = 100_000


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The settings that all methods of many steps share.

    Parameters
    ----------
    steps : of the run. Where `noise_multiplier` is given, as many of them as the budget pays for.
    batch : how many samples count in a step on average; all of them where it is left out.
    selection : "self" (every client flips its own coin, all send) or "trainer" (fixed batches that are known).
    noise_multiplier : Gaussian noise over the sensitivity, in place of what follows from the budget; 0 is no privacy.
    seed : of what is public: the batches that the trainer picks, where a run starts, the draws of a guide.
    """

    steps: int = 100
    batch: int | None = None
    selection: Batches = "self"
    noise_multiplier: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        steps = whole("steps", self.steps, 1, "take for example 200", most=MOST_STEPS)
        object.__setattr__(self, "steps", steps)
        if self.selection not in get_args(Batches):
            raise invalid("selection", "'self' or 'trainer'", repr(self.selection), "use 'self'")
        if self.noise_multiplier is not None:
            object.__setattr__(self, "noise_multiplier", _given(self.noise_multiplier))
        object.__setattr__(self, "seed", whole("seed", self.seed, 0, "give for example 0"))

    def public_seed(self) -> int:
        """Of what is drawn in public besides the batches: where a run starts, and the draws of a guide."""
        return int(np.random.default_rng(self.seed).integers(2**31))

    def described(self) -> dict[str, Any]:
        """The settings as plain JSON values."""
        return {
            "steps": self.steps, "batch": self.batch, "selection": self.selection,
            "noise_multiplier": self.noise_multiplier, "seed": self.seed,
        }  # fmt: skip

    @staticmethod
    def settings_in(description: Description) -> dict[str, Any]:
        """The same settings, taken out of a description."""
        return {name: description[name] for name in ("steps", "batch", "selection", "noise_multiplier", "seed")}


@dataclass(frozen=True, eq=False)
class StepPlan(Plan):
    """A run of many steps, settled; its `specs` are the first step alone, since the others depend on releases."""

    steps: int
    batch: int
    mechanism: Mechanism
    """The noise of every step."""
    picked: NDArray[np.intp] | None = None
    """(steps, batch): the trainer's batches; None where all clients send in every step."""

    @property
    def label(self) -> str:
        """What people call the method."""
        return self.specs[0].label

    @property
    def count(self) -> int:
        """A round for each step."""
        return self.steps

    @property
    def clip(self) -> float:
        """The length to which every vector is clipped: two of them are at most twice as far apart."""
        return self.specs[0].statistic.sensitivity / 2

    @property
    def samples(self) -> int:
        """All samples together."""
        return self.population.n

    @property
    def probability(self) -> float:
        """With which probability a sample counts in a step, by its holder's coin."""
        return self.batch / self.samples if self.picked is None else 1.0

    @property
    def scale(self) -> float:
        """What a sum over a batch is multiplied by, to stand for all samples."""
        return self.samples / self.batch

    @property
    def contributors(self) -> int:
        """How many samples are sent in a step."""
        return self.samples if self.picked is None else self.batch

    @property
    def noise_multiplier(self) -> float | None:
        """Noise over the sensitivity of every step; None of a law that has no such number."""
        return noise_multiplier_of(self.mechanism.event(self.probability))

    def chosen(self, step: int) -> NDArray[np.intp] | None:
        """The clients of a picked batch; None where all of them send."""
        return None if self.picked is None else self.picked[step]

    def participations(self, steps: int) -> int:
        """In how many of the first steps the client that is picked most often takes part."""
        return steps if self.picked is None else _most_often(self.picked[:steps])

    def event(self, steps: int) -> Event:
        """What the first steps cost together, against everybody who sees every one of them."""
        return repeated(self.mechanism.event(self.probability), self.participations(steps))

    def cost(self, rounds: int) -> tuple[Entry, ...]:
        """One charge for all of the first steps; none where there are none."""
        return (Entry(f"{self.label}, {rounds} step(s)", self.event(rounds)),) if rounds else ()


def make_plan(
    schedule: Schedule,
    budget: Budget,
    population: Population,
    mechanism: Mechanism,
    label: str,
    statistic: Callable[[float], Statistic],
) -> StepPlan:
    """Solve for the noise, or, where it is given, for the number of steps that the budget pays for.

    `statistic` is what the first step sums, given the probability with which a sample counts.
    """
    batch, picked = _batches(schedule, population)
    steps, noise = schedule.steps, mechanism
    probability = batch / population.n if picked is None else 1.0
    turns = steps if picked is None else _most_often(picked)
    if schedule.noise_multiplier is None:
        noise = mechanism.within(budget, (1.0,) * turns, probability)[0]
    else:
        noise = _amount(mechanism, schedule.noise_multiplier)
        if schedule.noise_multiplier > 0:
            mechanism.within(budget, (1.0,))  # refuses a delta that no amount of such noise keeps
            steps = _paid(budget, noise.event(probability), steps, picked)
    picked = None if picked is None else picked[:steps]
    first = RoundSpec(label, statistic(probability), noise, chosen=None if picked is None else picked[0])
    return StepPlan(budget, population, (first,), steps, batch, noise, picked)


def _batches(schedule: Schedule, population: Population) -> tuple[int, NDArray[np.intp] | None]:
    """How many samples a batch has, and which, where the trainer picks them."""
    samples, batch = population.n, schedule.batch
    batch = samples if batch is None else whole("batch", batch, 1, "leave it out for all clients", most=samples)
    if schedule.selection == "self" or batch == samples:
        return batch, None
    if population.clients < samples:
        raise InvalidInput(
            "selection must be 'self' where clients hold several samples, got 'trainer'; "
            "let the clients select themselves"
        )
    replace(population, clients=batch, samples=batch)  # refuses where too few would be left to add noise
    return batch, epochs(samples, batch, schedule.steps, np.random.default_rng(schedule.seed))


def epochs(clients: int, batch: int, steps: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """(steps, batch): all clients in random order, again and again, so that each takes part equally often."""
    each = clients // batch  # batches of an epoch; the few that are left over wait for the next one
    rounds = [rng.permutation(clients)[: each * batch].reshape(each, batch) for _ in range(-(-steps // each))]
    return np.concatenate(rounds)[:steps]


def _most_often(picked: NDArray[np.intp]) -> int:
    return int(np.bincount(picked.ravel()).max())


def _given(value: object) -> float:
    number = float(value) if isinstance(value, int | float | np.number) and not isinstance(value, bool) else math.nan
    if not (math.isfinite(number) and number >= 0):
        raise invalid("noise_multiplier", "finite and >= 0", repr(value), "leave it out: it follows from the budget")
    return number


def _amount(mechanism: Mechanism, multiplier: float) -> Mechanism:
    """The law with so much noise, where it has such a number."""
    if isinstance(mechanism, MultiplierMechanism):
        return replace(mechanism, noise_multiplier=multiplier)
    law = mechanism.describe()["mechanism"]
    raise invalid("noise_multiplier", f"left out for the mechanism {law}", multiplier, "give a budget only")


def _paid(budget: Budget, one: Event, steps: int, picked: NDArray[np.intp] | None) -> int:
    """As many steps as the budget pays for: the run stops there."""
    if picked is None:
        paid = affordable_steps(budget, one, steps)
    else:
        turns = affordable_steps(budget, one, _most_often(picked))
        paid = sum(_most_often(picked[: step + 1]) <= turns for step in range(steps))
    if paid < 1:
        raise InvalidInput(
            f"budget must pay for at least one step, got {budget} for a noise multiplier of "
            f"{noise_multiplier_of(one):.4g}; leave noise_multiplier out, or raise it or the budget"
        )
    return paid
