"""The ledger: what has been spent, and a refusal of what would overspend.

Check, then change: a refused charge leaves the ledger as it was. A ledger may live in a file, so that
it outlasts the process and several processes charge the same one.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from hubbub.errors import BudgetExceeded, InvalidInput, RoundRefused
from hubbub.privacy.accountant import epsilon_spent, fits
from hubbub.privacy.budget import Budget
from hubbub.privacy.events import Event, GaussianEvent

_CURRENT: ContextVar[Ledger | None] = ContextVar("hubbub_ledger", default=None)


@dataclass(frozen=True)
class Entry:
    """One line of the ledger."""

    label: str
    event: Event


class Ledger:
    """Keeps a total budget: `charge` refuses what would overspend it.

    As an argument (`ledger=`), or as a context manager, in which case every fit inside charges it:

        with Ledger(Budget(epsilon=3.0, delta=1e-5)) as ledger:
            GridSearchCV(PrivateLinearRegression(...), grid).fit(X, y)
        print(ledger)
    """

    def __init__(self, budget: Budget, path: str | os.PathLike[str] | None = None) -> None:
        self.budget = budget
        self.path = None if path is None else Path(path)
        self._entries: tuple[Entry, ...] = ()
        if self.path is not None:
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

    def check(self, *events: Event) -> None:
        """Raise BudgetExceeded if these events would not fit any more; change nothing."""
        if not fits([*(entry.event for entry in self._entries), *events], self.budget):
            raise BudgetExceeded(
                f"budget must cover the charge: {self.budget} of which epsilon={self.epsilon:.4g} is spent in "
                f"{len(self._entries)} release(s), and {len(events)} more would exceed it; "
                "nothing was released, use a larger budget or fewer fits"
            )

    def charge(self, label: str, *events: Event) -> None:
        """Write the events down, or raise BudgetExceeded and leave the ledger as it was."""
        with self._locked():
            self._read()
            self.check(*events)
            self._write((*self._entries, *(Entry(label, event) for event in events)))

    @contextlib.contextmanager
    def spending(self, label: str, *events: Event) -> Iterator[None]:
        """Charge before the release; give back only if the round is refused before releasing anything."""
        self.charge(label, *events)
        try:
            yield
        except (RoundRefused, InvalidInput):
            with self._locked():
                self._read()
                self._write(_without(self._entries, [Entry(label, event) for event in events]))
            raise

    def __enter__(self) -> Ledger:
        self._token = _CURRENT.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _CURRENT.reset(self._token)

    def __copy__(self) -> Ledger:
        return self  # a copy would be a second purse with the same money

    def __deepcopy__(self, _: dict[int, object]) -> Ledger:
        return self  # scikit-learn's clone() deep-copies parameters

    def __reduce__(self) -> tuple[type[Ledger], tuple[Budget, Path]]:
        if self.path is None:
            raise InvalidInput(
                "ledger must live in a file to be shared with another process, got path=None; "
                "use Ledger(budget, path='ledger.json') or n_jobs=1"
            )
        return Ledger, (self.budget, self.path)

    def __str__(self) -> str:
        lines = [f"Ledger of {self.budget}: epsilon {self.epsilon:.4g} spent in {len(self._entries)} release(s)"]
        lines += [f"  {number}. {e.label}: {e.event}" for number, e in enumerate(self._entries, 1)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Ledger({self.budget!r}, spent={self.epsilon:.4g}, releases={len(self._entries)})"

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        if self.path is None:
            yield
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock = open(f"{self.path}.lock", "a")  # noqa: SIM115  # closed below, after the unlock
        except OSError as error:
            raise InvalidInput(f"ledger must be a writable file, got ledger={self.path}: {error.strerror}") from None
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
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
            rows = [{"label": e.label, "noise_multiplier": _multiplier(e.event)} for e in entries]
            text = json.dumps({"epsilon": self.budget.epsilon, "delta": self.budget.delta, "entries": rows}, indent=1)
            draft = self.path.with_name(self.path.name + ".draft")
            with open(draft, "w") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, self.path)
        self._entries = entries


def current_ledger() -> Ledger | None:
    """The ledger of the innermost `with Ledger(...)` block, if there is one."""
    return _CURRENT.get()


def _stored(path: Path) -> tuple[Budget, tuple[Entry, ...]]:
    try:
        stored = json.loads(path.read_text())
        entries = tuple(Entry(e["label"], GaussianEvent(float(e["noise_multiplier"]))) for e in stored["entries"])
        return Budget(stored["epsilon"], stored["delta"]), entries
    except (OSError, ValueError, KeyError, TypeError):
        raise InvalidInput(f"ledger must be a file written by hubbub, got ledger={path}; name another file") from None


def _multiplier(event: Event) -> float:
    if not isinstance(event, GaussianEvent):
        raise InvalidInput(f"event must be Gaussian in a ledger file, got event={event}; keep that ledger in memory")
    return event.noise_multiplier


def _without(entries: tuple[Entry, ...], taken_back: list[Entry]) -> tuple[Entry, ...]:
    kept = list(entries)
    for entry in taken_back:
        kept.reverse()
        kept.remove(entry)  # the latest equal one
        kept.reverse()
    return tuple(kept)
