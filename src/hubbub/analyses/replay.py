"""The same analysis where somebody else runs the rounds: a study replays what it has released."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hubbub.privacy import GAUSSIAN, Budget, Population
from hubbub.protocols import Analysis, Mechanism, Release, RoundSpec


def replayed(
    analysis: Analysis[Any, Any],
    budget: Budget,
    population: Population,
    releases: Sequence[Release],
    mechanism: Mechanism = GAUSSIAN,
) -> Any:
    """The state of the analysis after these releases, in the order of the rounds."""
    state = analysis.start(analysis.plan(budget, population, mechanism))
    for release in releases:
        state = analysis.tell(state, release)
    return state


def next_round(
    analysis: Analysis[Any, Any],
    budget: Budget,
    population: Population,
    releases: Sequence[Release],
    mechanism: Mechanism = GAUSSIAN,
) -> RoundSpec | None:
    """What to run after these releases; None where the result can be made."""
    return analysis.ask(replayed(analysis, budget, population, releases, mechanism))
