"""The rounds of a study: which were released, and which is next."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from hubbub.errors import InvalidInput, RoundRefused

if TYPE_CHECKING:
    from hubbub.analyses.replay import Replay
    from hubbub.privacy import Release
    from hubbub.service.analyst.analyst import Analyst
    from hubbub.service.wire.records import StudyRecord


def replay_of(study: StudyRecord) -> Replay:
    """Return the analysis of the study, with the budget, the clients and the law of noise that it is planned for."""
    from hubbub.analyses.replay import Replay

    if study.budget is None:
        raise InvalidInput("study must have a budget, got a simulation; it has no result to report")
    return Replay.of(study.analysis, study.budget, study.population, study.noise)


def open_next(analyst: Analyst, done: list[Release]) -> str | None:
    """Plan and open the round that follows these releases, and return its label, or None if there is no more."""
    following = replay_of(analyst.study).next_round(done)
    if following is None:
        return None
    rounds = analyst.catch_up()
    if rounds and rounds[-1].state == "open":
        return rounds[-1].record.label  # opened before, if not everywhere
    analyst.open_round(analyst.plan(len(rounds), following))
    return following.label


def releases(analyst: Analyst) -> list[Release]:
    """Return what all released rounds gave, in order, without those that all Computes have signed to have refused."""
    found = analyst.rounds()
    if found and found[-1].state == "open":
        found = found[:-1]
    done = []
    for each in found:
        with suppress(RoundRefused):
            done.append(analyst.release(each.record))
    return done
