"""The one loop of every iterative method: state -> clipped program -> noisy sum -> next state.

The ledger is charged once, for all steps, before the first one. Nothing but the noisy sum reaches the update.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from hubbub.analyses.iterative.plan import Plan
from hubbub.analyses.rounds import Engine, series_of
from hubbub.arrays import Floats
from hubbub.errors import NOTHING_RELEASED, HubbubError
from hubbub.privacy import Entry, Ledger, Release
from hubbub.statistics import Clipped, Program

State = TypeVar("State")


@dataclass(frozen=True)
class NoisySum:
    """What one step gives to the update: a sum that stands for all clients, and how much noise is in it."""

    value: Floats
    noise_std: float
    step: int
    steps: int


@dataclass(frozen=True)
class Method(Generic[State]):
    """An iterative method: where it starts, which public numbers its program is evaluated at, and how it goes on."""

    label: str
    program: Program
    clip: float
    start: State
    numbers: Callable[[State], Floats]
    """The public numbers of a state, at which the program is evaluated."""
    update: Callable[[State, NoisySum], State]


@dataclass(frozen=True)
class Training(Generic[State]):
    """A run, done: its last state, and what its guarantee depends on."""

    state: State
    plan: Plan
    steps: int
    last: Release
    least_covered: int
    """The smallest number of colluders that any of the steps still covered."""
    most_dropouts: int
    most_colluders: int
    """Simulated ones, in any of the steps."""


def train(
    method: Method[State],
    rows: Floats,
    plan: Plan,
    engine: Engine,
    ledger: Ledger | None,
    tick: Callable[[int], object] = lambda _: None,
) -> Training[State]:
    """Run all steps of the plan; `tick` is called with the number of every step that is done."""
    numbers = np.asarray(method.numbers(method.start), dtype=np.float64)
    statistic = Clipped(method.program, numbers, method.clip, plan.probability)
    batch = None if plan.picked is None else plan.batch
    series = series_of(engine, rows, statistic, plan.noise_multiplier, batch)
    charge = Entry(f"{method.label}, {plan.steps} step(s)", plan.event(plan.steps))
    if ledger is not None:
        ledger.charge_entries([charge])
    state, releases, least, lost, false = method.start, 0, plan.contributors, 0, 0
    try:
        for step in range(plan.steps):
            at = Clipped(method.program, np.asarray(method.numbers(state), np.float64), method.clip, plan.probability)
            release = series.private_sum(at, plan.chosen(step))
            releases, last = releases + 1, release
            least, lost = min(least, release.colluders_covered), max(lost, release.dropouts)
            false = max(false, release.protection.colluders)
            state = method.update(state, _standing_for_all(release, plan, step))
            tick(step + 1)
    except NOTHING_RELEASED:
        if ledger is not None:  # what certainly was not released is given back
            spent = Entry(f"{method.label}, {releases} step(s)", plan.event(releases)) if releases else None
            ledger.exchange(charge, spent)
        raise
    return Training(state, plan, releases, last, least, lost, false)


def _standing_for_all(release: Release, plan: Plan, step: int) -> NoisySum:
    """Scaled to all clients; those who dropped out are stood in for by the others."""
    scale = plan.scale * plan.contributors / release.n
    value = scale * release.value
    if not np.isfinite(value).all():
        raise HubbubError(f"the noisy sum must be finite, got another in step {step}; report this")
    return NoisySum(value, scale * release.noise_std, step, plan.steps)
