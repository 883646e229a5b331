"""Counters kept between flushes, and the metrics that Prometheus scrapes."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from sqlalchemy import func, select

from hubbub.service.node import store as db
from hubbub.service.node import tables
from hubbub.service.node.store import Store
from hubbub.service.wire.problems import KINDS

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
"""Of what `prometheus` returns: the format that every version of Prometheus reads."""


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


def prometheus(store: Store, counts: Counts) -> bytes:
    """What Prometheus scrapes, in the format that `CONTENT_TYPE` names."""
    return generate_latest(_Metrics(store, counts))


class _Metrics(Collector):
    """One node's metrics; every reason of a rejection has a counter, also where it is still zero.

    The counters live in the node's database, because they outlast a restart, so they are collected when they are asked
    for. They are in no registry of prometheus_client: its default one would add numbers of the process.
    """

    def __init__(self, store: Store, counts: Counts) -> None:
        self._store, self._counts = store, counts

    def collect(self) -> Iterator[Metric]:
        """The numbers of this moment."""
        found = self._counts.current(self._store)
        with self._store.read() as connection:
            query = select(tables.rounds.c.state, func.count()).group_by(tables.rounds.c.state)
            states: dict[str, int] = {row[0]: row[1] for row in connection.execute(query)}
            studies = connection.execute(select(func.count()).select_from(tables.studies)).scalar_one()
        yield GaugeMetricFamily("hubbub_studies", "Registered studies.", studies)
        rounds = GaugeMetricFamily("hubbub_rounds", "Rounds by state.", labels=["state"])
        for state in tables.STATES:
            rounds.add_metric([state], states.get(state, 0))
        yield rounds
        yield CounterMetricFamily("hubbub_reports_accepted", "Reports accepted.", found.get("accepted", 0))
        repeated = found.get("repeated", 0)
        yield CounterMetricFamily("hubbub_reports_repeated", "Reports sent again, byte for byte.", repeated)
        rejected = CounterMetricFamily("hubbub_rejected", "Refusals by reason.", labels=["reason"])
        for code in KINDS:
            rejected.add_metric([code], found.get(f"rejected:{code}", 0))
        yield rejected
