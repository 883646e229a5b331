"""Counters kept between flushes, and the Prometheus text of all of them."""

from __future__ import annotations

import threading
from collections import Counter

from sqlalchemy import func, select

from hubbub.service import store as db
from hubbub.service import tables
from hubbub.service.problems import KINDS
from hubbub.service.store import Store


class Counts:
    """What happened since the last flush; flushed every second, so that a flood of bad requests costs no disk."""

    def __init__(self) -> None:
        self._pending: Counter[str] = Counter()
        self._brief, self._flushing = threading.Lock(), threading.Lock()

    def add(self, name: str, value: int = 1) -> None:
        """Raise a counter."""
        with self._brief:
            self._pending[name] += value

    def flush(self, store: Store) -> None:
        """Add what is pending to the store's counters; what could not be written stays pending."""
        with self._flushing:
            taken = self._copy()
            if taken:
                with store.write() as connection:
                    db.add_counts(connection, taken)
                with self._brief:
                    self._pending -= taken

    def current(self, store: Store) -> dict[str, int]:
        """The store's counters with what is pending, each once."""
        with self._flushing, store.read() as connection:
            return dict(Counter(db.counts(connection)) + self._copy())

    def _copy(self) -> Counter[str]:
        with self._brief:
            return self._pending.copy()


def prometheus(store: Store, counts: Counts) -> str:
    """The text that Prometheus scrapes; every reason of a rejection has a counter, also where it is still zero."""
    found = counts.current(store)
    with store.read() as connection:
        query = select(tables.rounds.c.state, func.count()).group_by(tables.rounds.c.state)
        states: dict[str, int] = {row[0]: row[1] for row in connection.execute(query)}
        studies = connection.execute(select(func.count()).select_from(tables.studies)).scalar_one()
    lines = ["# HELP hubbub_studies Registered studies.", "# TYPE hubbub_studies gauge", f"hubbub_studies {studies}"]
    lines += ["# HELP hubbub_rounds Rounds by state.", "# TYPE hubbub_rounds gauge"]
    lines += [f'hubbub_rounds{{state="{state}"}} {states.get(state, 0)}' for state in tables.STATES]
    for name, help_ in (("accepted", "Reports accepted."), ("repeated", "Reports sent again, byte for byte.")):
        metric = f"hubbub_reports_{name}_total"
        lines += [f"# HELP {metric} {help_}", f"# TYPE {metric} counter", f"{metric} {found.get(name, 0)}"]
    lines += ["# HELP hubbub_rejected_total Refusals by reason.", "# TYPE hubbub_rejected_total counter"]
    lines += [f'hubbub_rejected_total{{reason="{code}"}} {found.get(f"rejected:{code}", 0)}' for code in KINDS]
    return "\n".join(lines) + "\n"
