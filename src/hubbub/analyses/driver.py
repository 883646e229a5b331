"""The one driver of every analysis: plan, charge, then ask, sum and tell until the result can be made."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from hubbub.errors import NOTHING_RELEASED, UntrustworthyWarning, WeakPrivacyWarning, invalid
from hubbub.events import Entry
from hubbub.privacy import Budget, Ledger, current_ledger, mechanism_named
from hubbub.privacy.report import budget_cautions
from hubbub.protocols import Analysis, Engine, Mechanism, Plan, Result

State = TypeVar("State")
Found = TypeVar("Found", bound=Result)


def run(
    analysis: Analysis[State, Found],
    rows: Any,
    engine: Engine,
    budget: Budget,
    ledger: Ledger | None = None,
    *,
    mechanism: Mechanism | str | None = None,
    tick: Callable[[int], object] | None = None,
) -> Found:
    """Run all rounds of an analysis over the rows, and return what it finds.

    Parameters
    ----------
    analysis : what to ask for; it never sees a row.
    rows : whatever the engine takes: an array with a row for each sample, a table in a cluster.
    engine : where the roles run.
    budget : what all rounds together may spend.
    ledger : a total budget over several runs, charged for all rounds before the first one; by default that of an
        enclosing `with Ledger(...)`. What certainly was not released is given back.
    mechanism : the law of the noise, or its name; by default the engine's. Its amount follows from the budget.
    tick : called with the number of each round that is done.

    Warns, before anything is spent, of a budget that protects little (WeakPrivacyWarning) and of a plan that can tell
    too little (UntrustworthyWarning); and afterwards of a result that must not be trusted, as far as can be told.

    Raises InvalidInput for a bad value, BudgetExceeded where the ledger does not cover the run (nothing is released
    then), and RoundRefused where a round had to be refused.

    For example: `run(Bernoulli(), answers[:, None], LocalEngine(), Budget(1.0, 1e-5))`.
    """
    if not isinstance(budget, Budget):
        raise invalid("budget", "a Budget", repr(budget), "use Budget(epsilon=1.0, delta=1e-5)")
    law = mechanism_named(engine.mechanism if mechanism is None else mechanism)
    held = engine.hold(rows)
    plan = analysis.plan(budget, engine.population(held.shape[0]), law)
    for text in budget_cautions(budget, plan.population.n):
        warnings.warn(text, WeakPrivacyWarning, stacklevel=3)
    for text in analysis.cautions(plan):
        warnings.warn(text, UntrustworthyWarning, stacklevel=3)
    state, account = analysis.start(plan), _Account(plan, current_ledger() if ledger is None else ledger)
    done = 0
    try:
        while (spec := analysis.ask(state)) is not None:
            plan.check(done, spec.event)
            release = engine.private_sum(held, spec)
            done += 1
            state = analysis.tell(state, release)
            if tick is not None:
                tick(done)
    except NOTHING_RELEASED:
        account.settle_for(done)
        raise
    return warned(analysis.result(state))


def warned(found: Found) -> Found:
    """The same, once its cautions have been said."""
    for text in found.cautions():
        warnings.warn(text, UntrustworthyWarning, stacklevel=4)
    return found


class _Account:
    """A run's charge: for all its rounds at first, for those that were released where it ends early."""

    def __init__(self, plan: Plan, ledger: Ledger | None) -> None:
        self._plan, self._ledger = plan, ledger
        self._charged: tuple[Entry, ...] = plan.cost(plan.count)
        if ledger is not None:
            ledger.charge_entries(self._charged)

    def settle_for(self, rounds: int) -> None:
        """Put the cost of the first so many rounds in place of what was charged."""
        if self._ledger is not None:
            self._ledger.exchange(self._charged, self._plan.cost(rounds))
