"""The rounds of a study: which were released, and which is next."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING

from hubbub.errors import InvalidInput, RoundRefused, invalid

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


def left_out(study: StudyRecord, names: Collection[str]) -> set[int]:
    """Return the places of the Computes with these names, whose sums are not asked for."""
    places = {compute.name: place for place, compute in enumerate(study.computes)}
    for name in names:
        if name not in places:
            raise invalid("without", f"one of {', '.join(places)}", name, "give the name of a Compute of the study")
    return {places[name] for name in names}


def releases(analyst: Analyst, without: Collection[int] = ()) -> list[Release]:
    """Return what all released rounds gave, in order, without those that all Computes have signed to have refused.

    The sums of the Computes in `without` are left out. Refused where the last round's steps are not those that follow
    from the releases before it.
    """
    found = analyst.rounds()
    if found and found[-1].state == "open":
        found = found[:-1]
    done, last = [], None
    for each in found:
        with suppress(RoundRefused):
            done.append(analyst.release(each.record, without=without))
            last = each.record
    if last is not None and analyst.study.budget is not None:  # a simulation has no analysis to replay
        replay_of(analyst.study).check_steps(done, last.steps)
    return done
