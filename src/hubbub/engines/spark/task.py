"""What happens inside a Spark task: blocks of rows in, one record out; then records are added up.

A record holds the sums of all M Computes over one partition. They travel together, so a task that is run twice can
never mix the shares of two attempts (docs/spark.md). Nothing here imports pyspark.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hubbub.arrays import Floats, Words, number_rows, rows_not_finite
from hubbub.errors import InvalidInput
from hubbub.protocols import SecureSum
from hubbub.randomness import Randomness
from hubbub.roles import RoundPlan, share_out

SCHEMA = "part bigint, words binary, clients bigint, problem string, outside bigint, counts binary"
"""A record as a row: where it was made, its words, how many clients are in them, or why there are none; how many of
these clients count as zero, because their sample is outside the domain; and the counts that go with them."""

Row = tuple[int, bytes, int, str | None, int, bytes]


@dataclass(frozen=True)
class TaskSum:
    """What one task hands on: words to be added up, or the first problem that was met."""

    words: Words = field(repr=False)
    """Sums of shares, which the secure sum merges in its own way."""
    clients: int
    problem: str | None = None
    outside: int = 0
    counts: Words = field(default_factory=lambda: np.zeros(0, dtype=np.uint64), repr=False)
    """Numbers beside the shares, which are added in Z/2^64 whatever the scheme; none where the task counts nothing."""

    def row(self, part: int) -> Row:
        """The values of SCHEMA."""
        return part, self.words.tobytes(), self.clients, self.problem, self.outside, self.counts.tobytes()

    @classmethod
    def of(cls, words: bytes, clients: int, problem: str | None, outside: int, counts: bytes) -> TaskSum:
        """Back from a row's values."""
        sums, beside = np.frombuffer(words, dtype=np.uint64), np.frombuffer(counts, dtype=np.uint64)
        return cls(sums, clients, problem, outside, beside)


@dataclass(frozen=True)
class ShareOut:
    """The clients' road over one partition: share out. Sent to the workers as it is.

    Without a key every call draws from a stream of its own, keyed by the operating system of the machine it runs on;
    with one (a simulation) the stream depends on the key and the partition alone.
    """

    plan: RoundPlan
    scheme: SecureSum
    key: bytes | None = field(repr=False)

    def record(self, part: int, blocks: Iterable[Floats]) -> TaskSum:
        """The M sums over all blocks of a partition; a block that does not fit the plan makes it a problem."""
        stream = self._stream(part)
        tally = self.scheme.tally(self.plan.dimension, stream)
        clients = zeros = 0
        try:
            for block in blocks:
                zeros += share_out(self.plan, block, tally, stream).number
                clients += block.shape[0]
        except InvalidInput as error:
            return TaskSum(np.zeros(0, dtype=np.uint64), 0, str(error))
        return TaskSum(tally.sums.reshape(-1), clients, outside=zeros)

    def _stream(self, part: int) -> Randomness:
        if self.key is None:
            return Randomness.system()
        return Randomness(hashlib.sha256(self.key + part.to_bytes(8, "big")).digest(), "SIMULATION")


def added(records: Iterable[TaskSum], scheme: SecureSum) -> TaskSum | None:
    """All records as one, or None where there are none; one problem is enough to spoil the whole."""
    total: TaskSum | None = None
    for record in records:
        if total is None:
            total = replace(record, words=record.words.copy())
        elif total.problem is None:
            total = _together(total, record, scheme)
    return total


def _together(total: TaskSum, record: TaskSum, scheme: SecureSum) -> TaskSum:
    """Both as one; the words of the first are overwritten."""
    if record.problem is not None:
        return record
    scheme.merge(total.words, record.words)
    return TaskSum(
        total.words, total.clients + record.clients, None, total.outside + record.outside, total.counts + record.counts
    )


def array_blocks(blocks: Iterable[object], columns: int) -> Iterator[Floats]:
    """NumPy blocks; what is not finite becomes NaN, which no later step turns into a number."""
    for block in blocks:
        yield _marked(number_rows("rows", block, columns))


def arrow_blocks(batches: Iterable[Any], names: Sequence[str]) -> Iterator[Floats]:
    """Arrow batches as (n, columns) numbers; text is read as numbers, and what is not finite becomes NaN."""
    for batch in batches:
        rows = np.empty((batch.num_rows, len(names)))
        for position, name in enumerate(names):
            rows[:, position] = _numbers(name, batch.column(position))
        yield _marked(rows)


def _marked(rows: Floats) -> Floats:
    return rows if rows_not_finite(rows) is None else np.where(np.isfinite(rows), rows, np.nan)


def _numbers(name: str, column: Any) -> Floats:
    """One Arrow column as numbers, or one line that says that its kind is none."""
    import pyarrow as pa  # type: ignore[import-untyped]  # ships no types

    text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    try:
        values = _parsed(column) if text else column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    except pa.ArrowException:
        raise InvalidInput(f"column {name} must hold numbers, got {column.type}; convert it or leave it out") from None
    return np.asarray(values, dtype=np.float64)


def _parsed(column: Any) -> Floats:
    """Text as numbers, all at once where that works; NaN for what is not a number."""
    import pyarrow as pa

    try:
        return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
    except pa.ArrowInvalid:
        return np.array([_number(cell) for cell in column.to_pylist()])


def _number(cell: str | None) -> float:
    try:
        return float(cell) if cell is not None else np.nan
    except ValueError:
        return np.nan


def records_of(batches: Iterable[Any]) -> Iterator[TaskSum]:
    """The records in Arrow batches of SCHEMA."""
    for batch in batches:
        for row in batch.to_pylist():
            yield TaskSum.of(row["words"], row["clients"], row["problem"], row["outside"], row["counts"])


def as_batch(part: int, record: TaskSum) -> Any:
    """One record as an Arrow batch of SCHEMA."""
    import pyarrow as pa

    fields = [
        ("part", pa.int64()), ("words", pa.binary()), ("clients", pa.int64()), ("problem", pa.string()),
        ("outside", pa.int64()), ("counts", pa.binary()),
    ]  # fmt: skip
    columns = [pa.array([value], kind) for value, (_, kind) in zip(record.row(part), fields, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))
