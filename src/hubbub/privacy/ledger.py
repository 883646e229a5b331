"""The ledger: what has been spent, and a refusal of what would overspend.

Check, then change: a refused charge leaves the ledger as it was. A ledger may live in a file, so that
it outlasts the process and several processes charge the same one.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from hubbub.budget import Budget
from hubbub.errors import BudgetExceeded, InvalidInput, invalid
from hubbub.events import Entry, Event, event_fields, event_of, same_event
from hubbub.privacy.accountant import epsilon_spent, fits
from hubbub.privacy.blocks import Block, announce, inherited
from hubbub.shown import table_html

_OPEN: list[tuple[int, Ledger]] = []  # (thread, ledger) of every `with` block of this process, innermost last
_OPEN_LOCK = threading.Lock()
_POLL_SECONDS = 0.01  # between two attempts to lock a ledger's file


def _forget_blocks() -> None:
    """In a forked child: the blocks are its parent's, which `inherited` finds for as long as they are open."""
    global _OPEN_LOCK
    _OPEN.clear()
    _OPEN_LOCK = threading.Lock()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
    os.register_at_fork(after_in_child=_forget_blocks)


class Ledger:
    """Keeps a total budget: `charge` refuses what would overspend it.

    As an argument (`ledger=`), or as a context manager, in which case every fit inside that has no ledger of its
    own charges it: in other threads too, and in processes of this user that this one has started (`n_jobs`), before
    the block or inside it. There the ledger must live in a file; otherwise the fit is refused. Processes on other
    machines (Dask, Spark, Ray) do not see the block and must be given the ledger with `ledger=`. In a grid
    search use `error_score="raise"`, or scikit-learn turns a refusal into a warning:

        with Ledger(Budget(epsilon=3.0, delta=1e-5)) as ledger:
            GridSearchCV(PrivateLinearRegression(...), grid, error_score="raise").fit(X, y)
        print(ledger)
    """

    def __init__(self, budget: Budget, path: str | os.PathLike[str] | None = None) -> None:
        if not isinstance(budget, Budget):
            raise invalid("budget", "a Budget", repr(budget), "use Ledger(Budget(epsilon=3.0, delta=1e-5))")
        self.budget = budget
        self.path = None if path is None else Path(path).absolute()  # the same file from wherever it is charged
        self._entries: tuple[Entry, ...] = ()
        self._lock, self._pid = threading.RLock(), os.getpid()
        with self._locked():
            self._read()

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Ledger:
        """The ledger that an earlier run left in this file, with the budget it was made with."""
        return cls(_stored(Path(path))[0], path)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All charges so far, oldest first."""
        return self._entries

    @property
    def epsilon(self) -> float:
        """Epsilon spent so far at the budget's delta."""
        return epsilon_spent([entry.event for entry in self._entries], self.budget.delta)

    def charge(self, label: str, *events: Event) -> None:
        """Write the events down, or raise BudgetExceeded and leave the ledger as it was."""
        self.charge_entries([Entry(label, event) for event in events])

    def charge_entries(self, entries: Sequence[Entry]) -> None:
        """Charge several releases at once: all of them, or none."""
        with self._locked():
            self._read()
            if not fits([entry.event for entry in (*self._entries, *entries)], self.budget):
                raise BudgetExceeded(
                    f"budget must cover the charge: of {self.budget} epsilon={self.epsilon:.4g} is spent in "
                    f"{len(self._entries)} release(s), and {len(entries)} more would exceed it; "
                    f"nothing was released, {_remedy(entries, self.budget)}"
                )
            self._write((*self._entries, *entries))

    def exchange(self, charged: Sequence[Entry], spent: Sequence[Entry]) -> None:
        """Put what was really spent in place of charges that were made in advance, for a run that ended early.

        Only for releases that certainly did not happen and never will.
        """
        with self._locked():
            self._read()
            self._write((*_without(self._entries, charged), *spent))

    def __enter__(self) -> Ledger:
        with _OPEN_LOCK:
            _OPEN.append((threading.get_ident(), self))
            try:
                _announce_open()
            except BaseException:
                _OPEN.pop()
                with contextlib.suppress(OSError, InvalidInput):  # what stopped the block is said, not what follows
                    _announce_open()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        mine = (threading.get_ident(), self)
        with _OPEN_LOCK:
            if mine in _OPEN:  # not in a forked child that leaves its parent's block
                del _OPEN[len(_OPEN) - 1 - _OPEN[::-1].index(mine)]
            _announce_open()

    def __copy__(self) -> Ledger:
        return self  # a copy would be a second purse with the same money

    def __deepcopy__(self, _: dict[int, object]) -> Ledger:
        return self  # scikit-learn's clone() deep-copies parameters

    def __reduce__(self) -> tuple[type[Ledger], tuple[Budget, Path]]:
        if self.path is None:
            raise _needs_a_file()
        return Ledger, (self.budget, self.path)

    def __str__(self) -> str:
        head, alone, note = self._told()
        lines = [f"  {number}. {label}: epsilon {one:.4g} on its own" for number, (label, one) in enumerate(alone, 1)]
        return "\n".join([head, *lines, *([f"  {note}"] if note else [])])

    def _repr_html_(self) -> str:
        head, alone, note = self._told()
        rows = ([label, f"{one:.4g}"] for label, one in alone)
        return table_html(["release", "epsilon on its own"], rows, note, head)

    def _told(self) -> tuple[str, list[tuple[str, float]], str]:
        """What was spent of what, every release with its epsilon, and why these may add up to more."""
        spent, total = self.epsilon, self.budget.epsilon
        head = f"Ledger of {self.budget}: epsilon {spent:.4g} of {total:g} spent in {len(self._entries)} release(s)"
        alone = [(entry.label, epsilon_spent([entry.event], self.budget.delta)) for entry in self._entries]
        less = spent < math.fsum(one for _, one in alone) * (1 - 1e-6)
        note = "together less than the sum: losses of independent noise partly cancel (exact composition)"
        return head, alone, note if less else ""

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {
            "budget": {"epsilon": self.budget.epsilon, "delta": self.budget.delta},
            "spent_epsilon": self.epsilon,
            "releases": [entry.label for entry in self._entries],
        }

    def __repr__(self) -> str:
        return f"Ledger({self.budget!r}, spent={self.epsilon:.4g}, releases={len(self._entries)})"

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        if self._pid != os.getpid():  # a forked child: its copy in memory is a second purse, and its lock may be held
            if self.path is None:
                raise _needs_a_file()
            self._lock, self._pid = threading.RLock(), os.getpid()
        with self._lock:
            if self.path is None:
                yield
                return
            with _file_lock(self.path):
                yield

    def _read(self) -> None:
        if self.path is None or not self.path.exists():
            return
        budget, entries = _stored(self.path)
        if budget != self.budget:
            raise InvalidInput(
                f"ledger must be opened with its own budget {budget}, got {self.budget}; "
                "a ledger's budget is fixed when it is made"
            )
        self._entries = entries

    def _write(self, entries: tuple[Entry, ...]) -> None:
        if self.path is not None:
            rows = [{"label": e.label, **event_fields(e.event)} for e in entries]
            text = json.dumps({"epsilon": self.budget.epsilon, "delta": self.budget.delta, "entries": rows}, indent=1)
            draft = self.path.with_name(self.path.name + ".draft")
            with open(draft, "w") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, self.path)
        self._entries = entries


def current_ledger() -> Ledger | None:
    """The ledger of this thread's innermost `with Ledger(...)` block; else the one that another thread has open.

    A worker thread has no block of its own and charges the ledger of the thread that started it; a worker process
    charges that of the nearest process it comes from. Where several are open there it cannot know which one, and
    refuses; so does a process whose block has its ledger in another process's memory.
    """
    open_now = list(_OPEN)
    mine = [ledger for thread, ledger in open_now if thread == threading.get_ident()]
    if mine:
        return mine[-1]
    others = {id(ledger): ledger for _, ledger in open_now}
    if len(others) > 1:
        raise InvalidInput("ledger must be clear, got several open in other threads; pass ledger= to the estimator")
    return next(iter(others.values()), None) or _inherited_ledger()


def _inherited_ledger() -> Ledger | None:
    """The ledger that a process this one comes from has open, or a refusal where it cannot be charged from here."""
    found = set(inherited())
    if len(found) > 1:
        raise InvalidInput("ledger must be clear, got several open in the parent process; pass ledger= to the fit")
    for block in found:
        if block.path is None:
            raise _needs_a_file()
        return Ledger(Budget(block.epsilon, block.delta), block.path)
    return None


def _announce_open() -> None:
    """Tell other processes which blocks are open here."""
    announce([Block(ledger.budget.epsilon, ledger.budget.delta, _text(ledger.path)) for _, ledger in _OPEN])


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _needs_a_file() -> InvalidInput:
    return InvalidInput(
        "ledger must live in a file to be shared with another process, got path=None; "
        "use Ledger(budget, path='ledger.json') or n_jobs=1"
    )


def _file_lock(path: Path) -> AbstractContextManager[object]:
    """The lock of a ledger's file, held from now until the block ends.

    A new one for each use, so a forked child has none of its parent's. Where the file system cannot lock, this is an
    error: the library's substitute, a file that marks the lock, would outlast a process that was killed elsewhere.
    """
    from filelock import FileLock  # here, so that `import hubbub` stays light

    try:
        if path.exists() and not path.is_file():
            raise IsADirectoryError(0, "not an ordinary file")
        path.parent.mkdir(parents=True, exist_ok=True)
        return FileLock(f"{path}.lock", fallback_to_soft=False).acquire(poll_interval=_POLL_SECONDS)
    except OSError as error:
        raise InvalidInput(
            f"ledger must be a writable file, got ledger={path}: {error.strerror}; choose another place"
        ) from None


def _stored(path: Path) -> tuple[Budget, tuple[Entry, ...]]:
    try:
        stored = json.loads(path.read_text())
        entries = tuple(Entry(e["label"], event_of(e)) for e in stored["entries"])
        return Budget(stored["epsilon"], stored["delta"]), entries
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InvalidInput(f"ledger must be a file written by hubbub, got ledger={path}; name another file") from None


def _remedy(entries: Sequence[Entry], budget: Budget) -> str:
    """What helps whoever was refused."""
    if budget.pure and math.isinf(epsilon_spent([entry.event for entry in entries], 0.0)):
        return "use the mechanism discrete-laplace or a total budget with a delta: no pure epsilon covers such noise"
    return "use a larger total budget or fewer fits"


def _without(entries: tuple[Entry, ...], taken_back: Sequence[Entry]) -> tuple[Entry, ...]:
    kept = list(entries)
    for entry in taken_back:
        places = [i for i, each in enumerate(kept) if each.label == entry.label and same_event(each.event, entry.event)]
        del kept[places[-1]]  # the latest equal one
    return tuple(kept)
