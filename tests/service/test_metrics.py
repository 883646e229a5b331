"""What Prometheus scrapes: names, kinds and labels that dashboards rely on, and nothing of the process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hubbub.service.node.metrics import CONTENT_TYPE, Counts, prometheus
from hubbub.service.node.store import Store
from hubbub.service.node.tables import STATES
from hubbub.service.wire.problems import KINDS

HEADS = [
    "# HELP hubbub_studies Registered studies.",
    "# TYPE hubbub_studies gauge",
    "# HELP hubbub_rounds Rounds by state.",
    "# TYPE hubbub_rounds gauge",
    "# HELP hubbub_reports_accepted_total Reports accepted.",
    "# TYPE hubbub_reports_accepted_total counter",
    "# HELP hubbub_reports_repeated_total Reports sent again, byte for byte.",
    "# TYPE hubbub_reports_repeated_total counter",
    "# HELP hubbub_rejected_total Refusals by reason.",
    "# TYPE hubbub_rejected_total counter",
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(f"sqlite:///{tmp_path / 'node.db'}")
    yield made
    made.close()


def samples(text: bytes) -> dict[tuple[str, ...], float]:
    families = text_string_to_metric_families(text.decode())
    return {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}


def test_names_kinds_and_labels(store: Store):
    text = prometheus(store, Counts())
    assert isinstance(text, bytes)
    assert [line for line in text.decode().splitlines() if line.startswith("#")] == HEADS
    expected = {("hubbub_studies",), ("hubbub_reports_accepted_total",), ("hubbub_reports_repeated_total",)}
    expected |= {("hubbub_rounds", state) for state in STATES} | {("hubbub_rejected_total", code) for code in KINDS}
    assert samples(text) == dict.fromkeys(expected, 0.0)  # so nothing of the process, and no times of creation
    assert CONTENT_TYPE == "text/plain; version=0.0.4; charset=utf-8"


def test_pending_and_stored_counts_are_told_together_and_outlast_the_process(store: Store):
    counts = Counts()
    counts.add("accepted", 2)
    counts.flush(store)
    counts.add("accepted")
    counts.add("rejected:malformed")
    found = samples(prometheus(store, counts))
    assert found["hubbub_reports_accepted_total",] == 3
    assert found["hubbub_rejected_total", "malformed"] == 1
    counts.flush(store)
    assert samples(prometheus(store, Counts())) == found
