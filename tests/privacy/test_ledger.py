"""The ledger refuses to overspend, forgets nothing, and is one purse however it is copied."""

from __future__ import annotations

import copy
import errno
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dp_accounting
import pytest

from hubbub.errors import BudgetExceeded, InvalidInput
from hubbub.privacy import (
    Budget,
    CloseEvent,
    Entry,
    GaussianEvent,
    Ledger,
    PureEvent,
    SampledGaussianEvent,
    current_ledger,
    noise_multiplier,
    shared_multipliers,
)

BUDGET = Budget(1.0, 1e-5)
WHOLE = GaussianEvent(noise_multiplier(BUDGET))


@pytest.fixture(params=["memory", "file"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    return Ledger(BUDGET, tmp_path / "ledger.json" if request.param == "file" else None)


def test_spends_exactly_its_budget_and_no_more(ledger: Ledger):
    ledger.charge("fit", WHOLE)
    assert ledger.epsilon == pytest.approx(1.0, rel=1e-6)
    with pytest.raises(BudgetExceeded, match="nothing was released"):
        ledger.charge("again", GaussianEvent(1e4))
    assert len(ledger.entries) == 1


def test_refused_charge_leaves_the_ledger_as_it_was(ledger: Ledger):
    first, second = (GaussianEvent(m) for m in shared_multipliers(BUDGET, [1, 1]))
    ledger.charge("one", first)
    before = ledger.entries
    with pytest.raises(BudgetExceeded):
        ledger.charge("two at once", second, second)
    assert ledger.entries == before
    ledger.charge("two", second)


def test_what_was_not_released_is_given_back_and_nothing_else(ledger: Ledger):
    event = GaussianEvent(shared_multipliers(BUDGET, [1, 1, 1, 1])[0])
    entries = [Entry("refused", event), Entry("refused too", event)]
    ledger.charge("kept", event)
    ledger.charge_entries(entries)
    ledger.charge("meanwhile", event)
    ledger.exchange(entries, entries[:1])
    assert [entry.label for entry in ledger.entries] == ["kept", "meanwhile", "refused"]
    ledger.exchange(entries[:1], [])
    assert [entry.label for entry in ledger.entries] == ["kept", "meanwhile"]


def test_several_entries_are_charged_together_or_not_at_all(ledger: Ledger):
    first, second, third = (GaussianEvent(m) for m in shared_multipliers(BUDGET, [1, 1, 0.01]))
    ledger.charge("one", first)
    with pytest.raises(BudgetExceeded):
        ledger.charge_entries([Entry("two", second), Entry("three", GaussianEvent(third.noise_multiplier / 50))])
    assert len(ledger.entries) == 1


def test_copies_are_the_same_purse(ledger: Ledger):
    assert copy.copy(ledger) is ledger
    assert copy.deepcopy({"ledger": ledger})["ledger"] is ledger


def test_history_is_readable(ledger: Ledger):
    ledger.charge("deviations", GaussianEvent(20.0))
    text = str(ledger)
    assert "Ledger of (epsilon=1, delta=1e-05)" in text
    assert "1. deviations: epsilon 0.1" in text
    assert "on its own" in text
    assert "releases=1" in repr(ledger)


def test_file_outlasts_the_process(tmp_path: Path):
    path = tmp_path / "deep" / "ledger.json"
    Ledger(BUDGET, path).charge("fit", WHOLE)
    again = Ledger.open(path)
    assert again.budget == BUDGET
    with pytest.raises(BudgetExceeded):
        again.charge("again", WHOLE)
    with pytest.raises(BudgetExceeded):
        pickle.loads(pickle.dumps(again)).charge("again", WHOLE)


def test_two_ledgers_on_one_file_share_the_budget(tmp_path: Path):
    path = tmp_path / "ledger.json"
    one, other = Ledger(BUDGET, path), Ledger(BUDGET, path)
    one.charge("fit", WHOLE)
    with pytest.raises(BudgetExceeded):
        other.charge("fit", WHOLE)


def _charge_often(path: Path) -> int:
    ledger, taken = Ledger(BUDGET, path), 0
    for _ in range(10):
        try:
            ledger.charge("fit", GaussianEvent(shared_multipliers(BUDGET, [1] * 8)[0]))
            taken += 1
        except BudgetExceeded:
            pass
    return taken


def test_processes_at_once_never_overspend(tmp_path: Path):
    """Eight charges fit; two processes that try twenty get eight between them."""
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        taken = pool.map(_charge_often, [tmp_path / "ledger.json"] * 2)
    assert sum(taken) == 8


def test_memory_ledger_refuses_to_leave_the_process():
    with pytest.raises(InvalidInput, match="ledger must live in a file to be shared with another process"):
        pickle.dumps(Ledger(BUDGET))


def test_ledger_file_keeps_its_own_budget(tmp_path: Path):
    Ledger(BUDGET, tmp_path / "l.json").charge("fit", WHOLE)
    with pytest.raises(InvalidInput, match="ledger must be opened with its own budget"):
        Ledger(Budget(100.0, 1e-5), tmp_path / "l.json")


@pytest.mark.parametrize("content", ["", "{}", "[]", json.dumps({"epsilon": -1, "delta": 0.1, "entries": []})])
def test_damaged_ledger_file_is_one_line(tmp_path: Path, content: str):
    (tmp_path / "l.json").write_text(content)
    with pytest.raises(InvalidInput, match="ledger must be a file written by hubbub"):
        Ledger(BUDGET, tmp_path / "l.json")


@pytest.mark.parametrize(
    "foreign",
    [
        dp_accounting.GaussianDpEvent(100.0),
        dp_accounting.PoissonSampledDpEvent(0.1, dp_accounting.GaussianDpEvent(50.0)),
        dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(200.0), 3),
        dp_accounting.ComposedDpEvent([dp_accounting.GaussianDpEvent(100.0), dp_accounting.GaussianDpEvent(90.0)]),
    ],
    ids=lambda event: type(event).__name__,
)
def test_foreign_events_are_charged_and_outlast_the_process(ledger: Ledger, foreign: dp_accounting.DpEvent):
    ledger.charge("a count of our own", foreign)
    assert ledger.epsilon > 0
    if ledger.path is not None:
        again = Ledger.open(ledger.path)
        assert again.entries == ledger.entries == (Entry("a count of our own", foreign),)
        assert again.epsilon == ledger.epsilon
    with pytest.raises(BudgetExceeded):
        ledger.charge("too much", dp_accounting.GaussianDpEvent(0.5))


class Homemade(dp_accounting.DpEvent):
    """Of no package that a reader of the file could know."""


def test_an_event_that_nobody_else_knows_stays_out_of_files(tmp_path: Path):
    ledger = Ledger(BUDGET, tmp_path / "l.json")
    with pytest.raises(InvalidInput, match="event must be"):
        ledger.charge("count", Homemade())
    assert ledger.entries == Ledger.open(ledger.path).entries == () if ledger.path.exists() else ledger.entries == ()


def test_threads_never_overspend():
    """Twenty threads, eight charges fit: the ledger is asked and written under one lock."""
    ledger = Ledger(BUDGET)
    event = GaussianEvent(shared_multipliers(BUDGET, [1] * 8)[0])

    def charge(_: int) -> bool:
        try:
            ledger.charge("fit", event)
        except BudgetExceeded:
            return False
        return True

    with ThreadPoolExecutor(20) as pool:
        assert sum(pool.map(charge, range(60))) == len(ledger.entries) == 8


def test_entering_twice_leaves_no_trace():
    ledger = Ledger(BUDGET)
    with ledger, ledger:
        assert current_ledger() is ledger
    assert current_ledger() is None


def test_forked_child_cannot_spend_a_copy_of_the_purse():
    ledger = Ledger(BUDGET)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            ledger.charge("fit", WHOLE)
            os.write(write, b"charged")
        except InvalidInput:
            os.write(write, b"refused")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 16) == b"refused"


def test_a_forked_child_does_not_keep_the_lock_that_a_thread_held(tmp_path: Path):
    """The child lives on; the lock of its parent's other thread was never its own, and ends when that thread is done."""
    path = tmp_path / "ledger.json"
    ledger = Ledger(BUDGET, path)
    held, forked, (read, write) = threading.Event(), threading.Event(), os.pipe()

    def hold() -> None:
        with ledger._locked():
            held.set()
            forked.wait(30)

    with ThreadPoolExecutor(2) as pool:
        holding = pool.submit(hold)
        assert held.wait(30)
        child = os.fork()
        if child == 0:
            os.close(write)
            os.read(read, 1)  # until the parent closes its end
            os._exit(0)
        charging = pool.submit(Ledger(BUDGET, tmp_path / "other.json").charge, "elsewhere", WHOLE)
        charging.result(30)
        waiting = pool.submit(lambda: Ledger(BUDGET, path).charge("fit", WHOLE))
        try:
            assert not waiting.done()  # the fork took the lock from nobody
            forked.set()
            holding.result(30)
            waiting.result(10)
        finally:
            forked.set()
            os.close(write)
            os.waitpid(child, 0)
    assert len(Ledger.open(path).entries) == 1


def test_file_system_without_locks_is_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A marker file in place of a lock would outlast whoever was killed, so it is no substitute."""

    def flock(*_: object) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr("fcntl.flock", flock)
    with pytest.raises(InvalidInput, match="ledger must be a writable file, got ledger=.*: Function not implemented"):
        Ledger(BUDGET, tmp_path / "ledger.json")
    assert not (tmp_path / "ledger.json").exists()


WINDOWS = """
import os
del os.fork, os.register_at_fork, os.getuid
from hubbub import Budget, Ledger
from hubbub.privacy import GaussianEvent, current_ledger
ledger = Ledger(Budget(1.0, 1e-5), {path!r})
ledger.charge("fit", GaussianEvent(100.0))
print(len(ledger.entries), current_ledger())
try:
    ledger.__enter__()
except Exception as error:
    print(type(error).__name__, error)
"""


def test_without_forks_and_users_ledgers_are_charged_and_the_block_is_refused(tmp_path: Path):
    """What Windows lacks: a fit is charged with ledger=, and a block, which others could not find, is not opened."""
    code = WINDOWS.format(path=str(tmp_path / "ledger.json"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == "1 None"
    assert second.startswith("InvalidInput block must be opened where processes can be told apart, got Windows")


def test_threads_with_ledgers_of_their_own_charge_their_own():
    """A worker without a block takes the only one there is; with two open elsewhere it refuses."""

    def in_thread(action):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(action).result()

    outer, other = Ledger(BUDGET), Ledger(BUDGET)
    with outer:
        assert in_thread(current_ledger) is outer

        def with_own() -> Ledger | None:
            with other:
                with pytest.raises(InvalidInput, match="several open in other threads"):
                    in_thread(current_ledger)
                return current_ledger()

        assert in_thread(with_own) is other
        assert current_ledger() is outer
    assert current_ledger() is None


def test_ledger_needs_a_budget_and_an_ordinary_file(tmp_path: Path):
    with pytest.raises(InvalidInput, match="budget must be a Budget, got budget=3.0"):
        Ledger(3.0)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="ledger must be a writable file"):
        Ledger(BUDGET, tmp_path)
    assert not (tmp_path.parent / f"{tmp_path.name}.lock").exists()


def test_context_manager_sets_the_current_ledger():
    assert current_ledger() is None
    with Ledger(BUDGET) as outer:
        with Ledger(BUDGET) as inner:
            assert current_ledger() is inner
        assert current_ledger() is outer
    assert current_ledger() is None


def test_events_of_another_library_are_given_back_too(ledger: Ledger):
    """A file keeps lists where the event had tuples; they are the same event."""
    half = dp_accounting.GaussianDpEvent(20.0)
    entry = Entry("theirs", dp_accounting.ComposedDpEvent((half, half)))
    ledger.charge_entries([entry])
    ledger.exchange([entry], [])
    assert ledger.entries == ()


# every kind of event

KINDS = [
    GaussianEvent(40.0), SampledGaussianEvent(20.0, 0.25, 3), PureEvent(0.02), PureEvent(0.01, 4),
    CloseEvent(GaussianEvent(40.0), 1e-6, 1e-20), CloseEvent(SampledGaussianEvent(20.0, 0.25), 1e-100, 1e-100),
]  # fmt: skip


@pytest.mark.parametrize("event", KINDS, ids=str)
def test_every_kind_of_event_is_charged_outlasts_the_process_and_is_given_back(ledger: Ledger, event):
    entry = Entry("round", event)
    ledger.charge_entries([entry, entry])
    assert 0 < ledger.epsilon < 1
    if ledger.path is not None:
        assert Ledger.open(ledger.path).entries == (entry, entry)
        assert Ledger.open(ledger.path).epsilon == ledger.epsilon
    ledger.exchange([entry], [])
    assert ledger.entries == (entry,)


def test_mixed_ledgers_are_charged_for_all_kinds_together(ledger: Ledger):
    for number, event in enumerate(KINDS):
        before = ledger.epsilon
        ledger.charge(f"round {number}", event)
        assert ledger.epsilon > before
    alone = [Ledger(BUDGET) for _ in KINDS]
    for each, event in zip(alone, KINDS, strict=True):
        each.charge("round", event)
    assert ledger.epsilon < sum(each.epsilon for each in alone)
    before = ledger.entries
    with pytest.raises(BudgetExceeded, match="use a larger total budget or fewer fits"):
        ledger.charge("too much", PureEvent(1.0))
    assert ledger.entries == before


@pytest.fixture(params=["memory", "file"])
def pure(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    return Ledger(Budget(1.0, 0.0), tmp_path / "pure.json" if request.param == "file" else None)


def test_a_ledger_without_delta_adds_epsilons_and_spends_all_of_them(pure: Ledger):
    for _ in range(10):
        pure.charge("tenth", PureEvent(0.1))
    assert pure.epsilon == pytest.approx(1.0, rel=1e-15)
    assert "together less than the sum" not in str(pure)
    assert "Ledger of (epsilon=1, delta=0): epsilon 1 of 1 spent in 10 release(s)" in str(pure)
    with pytest.raises(BudgetExceeded, match="use a larger total budget or fewer fits"):
        pure.charge("more", PureEvent(1e-6))
    assert len(pure.entries) == 10
    if pure.path is not None:
        assert Ledger.open(pure.path).budget == Budget(1.0, 0.0)


@pytest.mark.parametrize("event", [each for each in KINDS if not isinstance(each, PureEvent)], ids=str)
def test_a_ledger_without_delta_refuses_noise_that_is_not_pure_in_one_line(pure: Ledger, event):
    pure.charge("pure", PureEvent(0.5))
    with pytest.raises(
        BudgetExceeded, match="use the mechanism discrete-laplace or a total budget with a delta"
    ) as caught:
        pure.charge("normal", event)
    assert "\n" not in str(caught.value)
    assert pure.entries == (Entry("pure", PureEvent(0.5)),)
    assert pure.epsilon == 0.5


@pytest.mark.parametrize(
    "fields",
    [
        {"epsilon": 0.5}, {"epsilon": -0.5, "steps": 1}, {"epsilon": "much", "steps": 1}, {"epsilon": 0.5, "steps": 0},
        {"close_to": {"noise_multiplier": 1.0}, "ratio": 2.0, "outside": 0.0},
        {"close_to": {"noise_multiplier": 1.0}, "ratio": 0.0}, {"close_to": 3, "ratio": 0.0, "outside": 0.0},
    ],
    ids=str,
)  # fmt: skip
def test_damaged_events_in_a_file_are_one_line(tmp_path: Path, fields: dict[str, object]):
    path = tmp_path / "l.json"
    path.write_text(json.dumps({"epsilon": 1.0, "delta": 1e-5, "entries": [{"label": "round", **fields}]}))
    with pytest.raises(InvalidInput):
        Ledger.open(path)
