"""Checks of what parties do: noise is never drawn twice the same, a roster is final, a ledger is shared."""

from __future__ import annotations

import multiprocessing
import pickle
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hubbub.analyses.driver import run
from hubbub.analyses.families.discrete import Bernoulli
from hubbub.arrays import Floats, Words
from hubbub.audit.case import Case, Check, Setting
from hubbub.audit.evidence import Scores
from hubbub.audit.games import budget_for, judged, log_ratio, vectors_under
from hubbub.audit.releases import name_of, order_of, signal_of, worst_of
from hubbub.audit.scenes import FEW, Scene
from hubbub.budget import Budget
from hubbub.engines import LocalEngine
from hubbub.errors import BudgetExceeded, HubbubError, RoundRefused
from hubbub.privacy import Event, Ledger, epsilon_spent
from hubbub.protocols import Mechanism, Release, RoundSpec
from hubbub.randomness import Randomness
from hubbub.roles import (
    Compute,
    Roster,
    Study,
    accept,
    agree,
    combine_sums,
    contribute,
    release,
    roster_of,
    settle_round,
)
from hubbub.securesum import PrivateKey
from hubbub.statistics import Means

Round = Callable[[LocalEngine], Release]
Restart = Callable[[Round, Round, int], list[tuple[Release, Release]]]
"""(first round, second round, how often) -> releases of both, the second one after a restart."""

_FORK = multiprocessing.get_context("fork")
MANY = Scene(20, dropouts=1)
_ROSTERS = 800  # trials at the most: every report is sealed
_RACES = 8


def same(before: Round, after: Round, count: int) -> list[tuple[Release, Release]]:
    """The second round by the same engine."""
    return [(before(engine), after(engine)) for engine in (FEW.engine() for _ in range(count))]


def anew(before: Round, after: Round, count: int) -> list[tuple[Release, Release]]:
    """The second round by a new engine, as in a new process."""
    return [(before(FEW.engine()), after(FEW.engine())) for _ in range(count)]


def copied(before: Round, after: Round, count: int) -> list[tuple[Release, Release]]:
    """The second round by a copy of the engine, as in another process that it was sent to."""
    engines = [FEW.engine() for _ in range(count)]
    copies = [pickle.loads(pickle.dumps(engine)) for engine in engines]
    return [(before(engine), after(copy)) for engine, copy in zip(engines, copies, strict=True)]


def forked(before: Round, after: Round, count: int) -> list[tuple[Release, Release]]:
    """The second round by the same engine in a forked child, which has all of its parent's memory."""
    engine = FEW.engine()
    (later,) = in_children([lambda: [after(engine) for _ in range(count)]])
    return list(zip([before(engine) for _ in range(count)], later, strict=True))


RESTARTS: dict[str, Restart] = {
    "none, the same engine": same, "a new engine": anew, "a copy of the engine": copied, "a forked process": forked,
}  # fmt: skip


def in_children(works: Sequence[Callable[[], Any]]) -> list[Any]:
    """What each of these gives in a child process of its own; all of them start at the same time."""
    gate, running = _FORK.Barrier(len(works)), []
    for work in works:
        receive, send = _FORK.Pipe(duplex=False)
        child = _FORK.Process(target=_live, args=(gate, work, send))
        child.start()
        send.close()  # so that a child that dies ends the pipe
        running.append((child, receive))
    found = []
    for child, receive in running:
        try:
            found.append(receive.recv())
        except EOFError:
            raise HubbubError(f"a child process of the audit must end well, got exit code {child.exitcode}") from None
        child.join()
    return found


def _live(gate: Any, work: Callable[[], Any], send: Any) -> None:
    gate.wait()
    send.send(work())


def attempt_restart(setting: Setting, name: str, *, law: Mechanism, restart: Restart) -> Case:
    """Two rounds, the second after a restart and over columns that hold the negative: equal noise would cancel."""
    budget, statistic = budget_for(law, setting.budget), Means((1.0, 2.0))
    mechanism, _ = law.within(budget, (1.0, 1.0))
    spec = RoundSpec("audit", statistic, mechanism)
    data = FEW.neighbours(worst_of(spec, order_of(law)))
    sums = [vectors_under(spec, rows).sum(axis=0) for rows in data]
    found = []
    for rows in data:
        pairs = restart(partial(_summed, rows=rows, spec=spec), partial(_summed, rows=-rows, spec=spec), setting.trials)
        found.append(np.array([_over_both(*pair, sums) for pair in pairs]))
    return judged(name, Scores(*found), [signal_of(spec, FEW, data)] * 2, budget, setting.error)


def _over_both(before: Release, after: Release, sums: Sequence[Floats]) -> float:
    """The likelihood ratio of both rounds: equal noise goes in with opposite signs."""
    first = log_ratio(before.value, before.noise, sums[0], sums[1])
    return first + log_ratio(after.value, after.noise, -sums[0], -sums[1])


def _summed(engine: LocalEngine, rows: Floats, spec: RoundSpec) -> Release:
    return engine.private_sum(rows, spec)


def attempt_own_share(setting: Setting, name: str, *, law: Mechanism) -> Case:
    """A curious client takes its own share of the noise for everybody's: equal shares would cancel."""
    budget, scene = budget_for(law, setting.budget), FEW
    (mechanism,) = law.within(budget, (1.0,))
    spec = RoundSpec("audit", Means((1.0, 2.0)), mechanism)
    data = scene.neighbours(worst_of(spec, order_of(law)))
    noise = settle_round(spec, scene.engine().population(scene.clients)).noise
    sums = [vectors_under(spec, rows).sum(axis=0) for rows in data]
    found = []
    for rows in data:
        vectors, scores = vectors_under(spec, rows), []
        mine = noise.encoded(vectors[:1].copy())[0]
        for _ in range(setting.trials):
            words = noise.noisy_words(vectors, Randomness.system())
            left = words.sum(axis=0, dtype=np.uint64) - np.uint64(scene.clients) * (words[0] - mine)
            scores.append(log_ratio(noise.grid.decode(left), noise.law(scene.left), *sums))
        found.append(np.array(scores))
    return judged(name, Scores(*found), [signal_of(spec, scene, data)], budget, setting.error)


def attempt_roster(setting: Setting, name: str, *, law: Mechanism) -> Case:
    """A second sum over all but the victim is asked for; where it is given, the difference is the victim's."""
    budget, scene = budget_for(law, setting.budget), MANY
    (mechanism,) = law.within(budget, (1.0,))
    spec = RoundSpec("audit", Means((1.0, 2.0)), mechanism)
    data = scene.neighbours(worst_of(spec, order_of(law)))
    plan = settle_round(spec, scene.engine().population(scene.clients))
    keys = [PrivateKey.generate() for _ in range(3)]
    study = Study(plan.population, tuple(key.public() for key in keys), (plan,))
    whole = [vectors_under(spec, rows).sum(axis=0) for rows in data]
    alone = [vectors_under(spec, rows[-1:]).sum(axis=0) for rows in data]
    found: list[list[float]] = []
    for rows in data:
        scores = []
        for _ in range(min(setting.trials, _ROSTERS)):
            all_of_them, others = _two_rosters(study, keys, rows)
            if others is None:
                scores.append(log_ratio(plan.noise.grid.decode(all_of_them), plan.noise.law(scene.clients), *whole))
            else:
                victim = plan.noise.grid.decode(all_of_them - others)
                scores.append(log_ratio(victim, plan.noise.law(1), *alone))
        found.append(scores)
    scores_ = Scores(np.array(found[0]), np.array(found[1]))
    return judged(name, scores_, [signal_of(spec, scene, data)], budget, setting.error)


def _two_rosters(study: Study, keys: Sequence[PrivateKey], rows: Floats) -> tuple[Words, Words | None]:
    """The sum over everybody, and the one over all but the last client where the Computes give that, too."""
    names = [f"client-{i:02}" for i in range(rows.shape[0])]
    reports = [contribute(study, 0, name, row, Randomness.system()) for name, row in zip(names, rows, strict=True)]
    computes = [accept(Compute(study, 0, k, key), [each[k] for each in reports])[0] for k, key in enumerate(keys)]
    roster = agree(study, [roster_of(compute) for compute in computes])
    computes, words = _sums(study, computes, roster)
    try:
        return words, _sums(study, computes, tuple(name for name in roster if name != names[-1]))[1]
    except RoundRefused:
        return words, None


def _sums(study: Study, computes: Sequence[Compute], roster: Roster) -> tuple[list[Compute], Words]:
    done = [release(compute, roster) for compute in computes]
    return [compute for compute, _ in done], combine_sums(study, 0, [each for _, each in done])[0]


def attempt_ledger(setting: Setting, name: str, *, law: Mechanism, block: bool) -> Case:
    """Two processes fit at the same time under a ledger that covers one of them."""
    budget, most = budget_for(law, setting.budget), 0.0
    rows = np.zeros((10, 1))
    for _ in range(_RACES):
        with tempfile.TemporaryDirectory(prefix="hubbub-audit-") as folder:
            path = Path(folder) / "ledger.json"
            events = _in_a_block(rows, budget, law, path) if block else _by_file(rows, budget, law, path)
        most = max(most, epsilon_spent(events, budget.delta))
    return Case.of(
        name, budget.epsilon, most, most / budget.epsilon, "two processes at once, spent and released", 2 * _RACES
    )


def _by_file(rows: Floats, budget: Budget, law: Mechanism, path: Path) -> list[Event]:
    """Each process has opened the file before either of them is charged."""
    ledgers = [Ledger(budget, path) for _ in range(2)]
    found = in_children([partial(_fitted, rows, budget, law, ledger) for ledger in ledgers])
    return [event for events in found for event in events]


def _in_a_block(rows: Floats, budget: Budget, law: Mechanism, path: Path) -> list[Event]:
    """The parent has a block open, of which its children know."""
    with Ledger(budget, path):
        found = in_children([partial(_fitted, rows, budget, law, None)] * 2)
    return [event for events in found for event in events]


def _fitted(rows: Floats, budget: Budget, law: Mechanism, ledger: Ledger | None) -> list[Event]:
    """The events of what a fit has released: none where the ledger refuses it, or cannot be written."""
    try:
        result = run(Bernoulli(), rows, LocalEngine(), budget, ledger, mechanism=law)
    except (BudgetExceeded, OSError):
        return []
    return [each.release.event for each in result.privacy.rounds]


def conduct(law: Mechanism) -> list[Check]:
    """What parties do."""
    label = name_of(law)
    return [
        *(
            Check(f"noise after a restart: {how}, {label}", partial(attempt_restart, law=law, restart=restart))
            for how, restart in RESTARTS.items()
        ),
        Check(f"a client's own noise taken for everybody's, {label}", partial(attempt_own_share, law=law)),
        Check(f"second roster, {label}", partial(attempt_roster, law=law)),
        Check(f"one ledger, two processes, {label}", partial(attempt_ledger, law=law, block=False)),
        Check(f"one block with a ledger, two child processes, {label}", partial(attempt_ledger, law=law, block=True)),
    ]
