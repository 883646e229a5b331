"""One Compute's own sum, on Spark: its stored reports are opened and added in the workers.

The result is the ComputeSum of `roles.release`, word for word. What a report must be is decided by `roles.accept`.
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
from hubbub.engines.spark.task import SCHEMA, Record, as_batch
from hubbub.errors import InvalidInput, MalformedMessage, ReportRejected, RoundRefused, invalid
from hubbub.roles import Compute, ComputeSum, Roster, Study, Turnout, accept, check_turnout, roster_digest
from hubbub.securesum import PrivateKey, decode_report, pack

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

REASONS = ("wrong-study", "wrong-round", "wrong-recipient", "cannot-open", "malformed", "other")
"""Why reports are rejected, as counted; the codes are those of `roles.accept`."""
_MARKS = 2  # words of a client's mark
_EXTRA = _MARKS + len(REASONS)
_BATCH_BYTES = 1 << 25  # of reports that one worker holds at a time
_MOST_BATCH = 4096


@dataclass(frozen=True)
class OpenAndAdd:
    """The Compute's road over one partition of reports: open, check, add. Sent to the workers with the Compute's key.

    The record's words are the sum, then the sum of the clients' marks, then how many reports were rejected and why.
    """

    study: Study
    round: int
    compute: int
    key: PrivateKey = field(repr=False)
    marking: bytes = field(repr=False)

    def record(self, reports: Iterable[bytes]) -> Record:
        """The sum over one partition."""
        dimension = self.study.plan(self.round).dimension
        total = np.zeros(dimension + _EXTRA, dtype=np.uint64)
        sums, marks, rejected = np.split(total, [dimension, dimension + _MARKS])
        clients = 0
        for data in reports:
            try:
                client, words = self._opened(data)
            except ReportRejected as error:
                rejected[REASONS.index(error.reason if error.reason in REASONS else "other")] += np.uint64(1)
                continue
            sums += words
            marks += mark(client, self.marking)
            clients += 1
        return Record(total, clients)

    def _opened(self, data: bytes) -> tuple[str, Words]:
        try:
            report = decode_report(data)
        except MalformedMessage as error:
            raise ReportRejected("malformed", str(error)) from None
        state, rejected = accept(Compute(self.study, self.round, self.compute, self.key), [report])
        if rejected:
            raise rejected[0]
        return report.client, state.held[report.client].expand()


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
    marking = os.urandom(32)
    if isinstance(roster, tuple):
        called = _called(study, number, roster, marking)
    else:
        with watched(roster.sparkSession, progress):
            called = _called_in_spark(study, number, roster, marking)
    own = _own_session(spark_session(session), study.plan(number).dimension)
    task = OpenAndAdd(study, number, compute, key, marking)
    with watched(own, progress):
        record = only_record(summed(_opened_reports(_wanted(_stored(own, path), roster), task)))
    _check_added(record, called)
    return ComputeSum(
        study.digest,
        number,
        compute,
        called.digest,
        Turnout(called.clients, called.clients),
        record.words[:-_EXTRA].copy(),
    )


@dataclass(frozen=True)
class _Called:
    """What is to be compared with a roster: how many clients, the sum of their marks, and the digest."""

    clients: int
    marks: Words
    digest: bytes


def _called(study: Study, number: int, roster: Roster, marking: bytes) -> _Called:
    check_turnout(study.population, len(set(roster)))
    if len(set(roster)) != len(roster):
        raise RoundRefused("unknown-client", "roster must hold distinct clients, got some twice; agree on it again")
    return _Called(len(roster), _marks(roster, marking), roster_digest(study, number, roster))


def _called_in_spark(study: Study, number: int, roster: DataFrame, marking: bytes) -> _Called:
    """The same for a DataFrame: the names pass through here one after the other, and none is kept."""
    names = roster.select("client").sort("client")  # by bytes, which is the order of `sorted`
    clients, last, marks = 0, None, np.zeros(_MARKS, dtype=np.uint64)
    digest = hashlib.sha256(pack(study.digest, number.to_bytes(4, "big")))
    for row in names.toLocalIterator(prefetchPartitions=True):
        if row.client == last:
            raise RoundRefused("unknown-client", "roster must hold distinct clients, got some twice; agree on it again")
        digest.update(pack(row.client.encode()))
        marks += mark(row.client, marking)
        clients, last = clients + 1, row.client
    check_turnout(study.population, clients)
    return _Called(clients, marks, digest.digest())


def mark(client: str, marking: bytes) -> Words:
    """Two words that stand for a client: a keyed hash, the key drawn anew for every job.

    Sums of marks are equal for equal rosters and, but for a chance of about 2^-96, for no others (docs/spark.md):
    so a client who is missing or counted twice shows without a list of names at the driver.
    """
    return np.frombuffer(hashlib.blake2b(client.encode(), digest_size=8 * _MARKS, key=marking).digest(), dtype="<u8")


def _marks(clients: Iterable[str], marking: bytes) -> Words:
    total = np.zeros(_MARKS, dtype=np.uint64)
    for client in clients:
        total += mark(client, marking)
    return total


def _check_added(record: Record, called: _Called) -> None:
    """The clients that were added are those of the roster, each once."""
    found, rejected = np.split(record.words[-_EXTRA:], [_MARKS])
    if record.clients == called.clients and (found == called.marks).all():
        return
    why = ", ".join(f"{count} {reason}" for count, reason in zip(rejected, REASONS, strict=True) if count)
    raise RoundRefused(
        "unknown-client",
        f"roster must hold {called.clients} clients with one good report stored for each, got {record.clients} good "
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
