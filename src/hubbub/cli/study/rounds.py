"""The rounds of a study: which were released, and which is next."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from hubbub.errors import InvalidInput, RoundRefused

if TYPE_CHECKING:
    from hubbub.estimators.staged import RegressionPlan
    from hubbub.privacy import Budget, Release
    from hubbub.service.analyst.analyst import Analyst
    from hubbub.service.wire.records import StudyRecord


def regression_of(study: StudyRecord) -> tuple[RegressionPlan, Budget]:
    """Return the regression that the study computes, and its budget."""
    from hubbub.estimators.staged import RegressionPlan

    if study.budget is None:
        raise InvalidInput("study must have a budget, got a simulation; it has no result to report")
    return RegressionPlan.of(study.model), study.budget


def open_next(analyst: Analyst, done: list[Release]) -> str | None:
    """Plan and open the round that follows these releases, and return its label, or None if there is no more."""
    plan, budget = regression_of(analyst.study)
    following = plan.next_round(budget, analyst.study.population.n, done)
    if following is None:
        return None
    rounds = analyst.catch_up()
    if rounds and rounds[-1].state == "open":
        return rounds[-1].record.label  # opened before, if not everywhere
    record = analyst.plan(
        len(rounds), following.statistic, following.noise_multiplier, following.label, following.steps
    )
    analyst.open_round(record)
    return following.label


def releases(analyst: Analyst) -> list[Release]:
    """Return what all released rounds gave, in order, without those that all Computes have signed to have refused."""
    from hubbub.service.client.contributor import rounds_of

    found = max((rounds_of(analyst.study, compute, analyst.web) for compute in analyst.study.computes), key=len)
    if found and found[-1].state == "open":
        found = found[:-1]
    done = []
    for each in found:
        with suppress(RoundRefused):
            done.append(analyst.release(each.record))
    return done
