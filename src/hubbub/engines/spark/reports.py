"""One Compute's own sum, on Spark: its stored reports are opened and added in the workers.

The result is the ComputeSum of `roles.release`, word for word. What a report and a roster must be is decided by the
same steps of `roles/compute.py`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.arrays import Words
from hubbub.engines.spark.engine import only_record, summed
from hubbub.engines.spark.session import Progress, one_line, place_of, spark_errors, spark_session, watched
from hubbub.engines.spark.task import SCHEMA, TaskSum, as_batch
from hubbub.errors import InvalidInput, ReportRejected, RoundRefused, invalid
from hubbub.roles import (
    Compute,
    ComputeSum,
    Roster,
    Study,
    Turnout,
    check_roster,
    compute_sum,
    open_report,
    read_report,
    read_roster,
    serves,
)
from hubbub.securesum import PrivateKey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

REASONS = ("wrong-study", "wrong-round", "wrong-recipient", "cannot-open", "malformed", "other")
"""Why reports are rejected, as counted; the codes are those of the roles."""
_MARKS = 2  # words of a client's mark
_BATCH_BYTES = 1 << 25  # of reports that one worker holds at a time
_MOST_BATCH = 4096


@dataclass(frozen=True)
class OpenAndAdd:
    """The Compute's road over one partition of reports: open, check, add. Sent to the workers with the Compute's key.

    The record's words are the sum. Its counts are the sum of the marks, then how many reports were rejected and
    why.
    """

    compute: Compute
    marking: bytes = field(repr=False)

    def record(self, reports: Iterable[bytes]) -> TaskSum:
        """The sum over one partition."""
        study = self.compute.study
        scheme, clients = study.secure_sum, 0
        total = scheme.empty(study.plan(self.compute.round).dimension)
        counts = np.zeros(_MARKS + len(REASONS), dtype=np.uint64)
        marks, rejected = np.split(counts, [_MARKS])
        for data in reports:
            try:
                report = read_report(self.compute, data)
                share = open_report(self.compute, report)
            except ReportRejected as error:
                rejected[REASONS.index(error.reason if error.reason in REASONS else "other")] += np.uint64(1)
                continue
            scheme.accumulate(total, share)
            marks += mark(report.client, self.marking)
            clients += 1
        return TaskSum(total, clients, counts=counts)


def sum_reports(
    session: SparkSession | None,
    path: str | Path,
    study: Study,
    number: int,
    compute: int,
    key: PrivateKey,
    roster: Roster | DataFrame,
    progress: Progress | None = None,
) -> ComputeSum:
    """This Compute's sum over the roster, from Parquet with the columns client (string) and report (binary).

    A roster too long for one machine can be a DataFrame with a column client. Refuses a roster of which a client is
    missing, cannot be opened, or is stored twice: nothing is then released. Asked again with the same reports and
    roster it gives the same words. That no second roster is ever summed is for the Compute to keep, as with
    `roles.release`.
    """
    if study.population.largest > 1:
        raise invalid("largest", "1, a sample a client, on Spark", study.population.largest, "let the node add it up")
    mine, marking = Compute(study, number, compute, key), os.urandom(32)
    called = _called(mine, roster, marking, progress)
    own = _own_session(spark_session(session), study.plan(number).dimension)
    reports = _opened_reports(_wanted(_stored(own, path), roster), OpenAndAdd(mine, marking))
    with watched(own, progress):
        record = only_record(summed(reports, study.secure_sum))
    _check_added(record, called)
    return compute_sum(mine, called.digest, Turnout(called.clients, called.clients), record.words.copy())


@dataclass(frozen=True)
class _Called:
    """What is to be compared with a roster: how many clients and the digest; how many of them this Compute serves, and
    the sum of their marks."""

    clients: int
    digest: bytes
    served: int
    marks: Words


def _called(compute: Compute, roster: Roster | DataFrame, marking: bytes, progress: Progress | None) -> _Called:
    """The roster as it is to be found in the sum; refuses one that names a client twice or lacks too many."""
    if isinstance(roster, tuple):
        check_roster(compute.study, roster)
        return _read(compute, sorted(roster), marking)
    with watched(roster.sparkSession, progress):
        names = roster.select("client").sort("client")  # by bytes, which is the order of `sorted`
        return _read(compute, (row.client for row in names.toLocalIterator(prefetchPartitions=True)), marking)


def _read(compute: Compute, clients: Iterable[str], marking: bytes) -> _Called:
    """From names in sorted order, which pass through here one after the other; none is kept."""
    marks, served = np.zeros(_MARKS, dtype=np.uint64), 0

    def marked() -> Iterator[str]:
        nonlocal served
        for client in clients:
            if serves(compute, client):
                marks[:] += mark(client, marking)
                served += 1
            yield client

    count, digest = read_roster(compute.study, compute.round, marked())
    return _Called(count, digest, served, marks)


def mark(client: str, marking: bytes) -> Words:
    """Two words that stand for a client: a keyed hash, the key drawn anew for every job.

    Sums of marks are equal for equal rosters and, but for a chance of about 2^-96, for no others (docs/spark.md):
    so a client who is missing or counted twice shows without a list of names at the driver.
    """
    return np.frombuffer(hashlib.blake2b(client.encode(), digest_size=8 * _MARKS, key=marking).digest(), dtype="<u8")


def _check_added(record: TaskSum, called: _Called) -> None:
    """The clients that were added are those of the roster, each once."""
    found, rejected = np.split(record.counts, [_MARKS])
    if record.clients == called.served and (found == called.marks).all():
        return
    why = ", ".join(f"{count} {reason}" for count, reason in zip(rejected, REASONS, strict=True) if count)
    raise RoundRefused(
        "unknown-client",
        f"roster must hold {called.served} clients with one good report stored for each, got {record.clients} good "
        f"ones (rejected: {why or 'none'}); nothing was released",
    )


def _own_session(session: SparkSession, dimension: int) -> SparkSession:
    """The same cluster with settings of its own: reports are long, so few are held at a time."""
    batch = str(max(1, min(_MOST_BATCH, _BATCH_BYTES // (8 * dimension + 256))))
    own = session.newSession()
    own.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", batch)
    own.conf.set("spark.sql.parquet.columnarReaderBatchSize", batch)
    return own


def _stored(session: SparkSession, path: str | Path) -> DataFrame:
    try:
        frame = session.read.parquet(place_of(path))
    except spark_errors() as error:
        raise InvalidInput(f"reports must be Parquet, got path={path}: {one_line(error)}; check the path") from None
    kinds = dict(frame.dtypes)
    if kinds.get("client") != "string" or kinds.get("report") != "binary":
        found = ", ".join(f"{name} {kind}" for name, kind in frame.dtypes)
        raise InvalidInput(f"reports must have columns client string, report binary, got {found}; write them so")
    return frame.select("client", "report")


def _wanted(stored: DataFrame, roster: Roster | DataFrame) -> DataFrame:
    """The reports of the roster's clients. A short roster goes to every machine; the reports stay where they are."""
    import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
    from pyspark.sql.functions import broadcast

    if isinstance(roster, tuple):
        names = pa.table({"client": pa.array(roster, pa.string())})
        roster = broadcast(stored.sparkSession.createDataFrame(names))
    return stored.join(roster.select("client"), "client", "left_semi").select("report")


def _opened_reports(reports: DataFrame, task: OpenAndAdd) -> DataFrame:
    """One record for each partition."""

    def open_and_add(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        data = (report.as_py() for batch in batches for report in batch.column(0))
        yield as_batch(context.partitionId(), task.record(data))

    return reports.mapInArrow(open_and_add, SCHEMA)
