"""SparkTable: rows that stay in the cluster, as a DataFrame or as NumPy blocks, one client each."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from hubbub.arrays import Floats
from hubbub.engines.spark.session import one_line, place_of, spark_errors, spark_session, watched
from hubbub.engines.spark.task import SCHEMA, ShareOut, array_blocks, arrow_blocks, as_batch
from hubbub.errors import InvalidInput
from hubbub.protocols import Engine, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession

    from hubbub.engines.spark.task import Row

_BLOCK_WORDS = 1 << 18
_TEXT = (".csv", ".tsv", ".txt")
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "string")


@dataclass(frozen=True)
class SparkTable(Table):
    """A DataFrame (or an RDD of NumPy blocks) and the columns to use; nothing of it is ever loaded here.

    `clients` is N, where it is known already; it is counted once otherwise.
    """

    source: DataFrame | RDD[Any] = field(repr=False)
    columns: tuple[str, ...] = ()
    clients: int | None = None

    @classmethod
    def read(
        cls, path: str | Path, columns: Sequence[str] | None = None, session: SparkSession | None = None
    ) -> SparkTable:
        """These columns (default: all) of a Parquet file or folder, or of a CSV file with a header."""
        session, place = spark_session(session), place_of(path)
        try:
            frame = _text(session, place) if _is_text(place) else session.read.parquet(place)
        except spark_errors() as error:
            raise InvalidInput(
                f"file must be Parquet or CSV (.csv, .tsv, .txt) that Spark can read, got file={path}: "
                f"{one_line(error)}; check the path"
            ) from None
        table = cls(frame, tuple(frame.columns))
        return table if columns is None else table.select(columns)

    @classmethod
    def of_blocks(cls, blocks: RDD[Any]) -> SparkTable:
        """An RDD of NumPy blocks, all with as many columns as the first."""
        first = blocks.first()
        return cls(blocks, tuple(f"column {j}" for j in range(np.shape(first)[1])))

    @property
    def session(self) -> SparkSession:
        """Where the rows are."""
        return spark_session() if self._frame is None else self._frame.sparkSession

    def engine(self) -> Engine:
        """A SparkEngine with three Computes, on the cluster that holds the rows."""
        from hubbub.engines.spark.engine import SparkEngine

        return SparkEngine(computes=3)

    @cached_property
    def shape(self) -> tuple[int, int]:
        """(N, columns); the rows are counted the first time somebody asks."""
        clients = self._count() if self.clients is None else self.clients
        return clients, len(self.columns)

    def _count(self) -> int:
        with watched(self.session, None):
            return int(self._blocks.map(len).sum()) if self._frame is None else self._frame.count()

    @property
    def _frame(self) -> DataFrame | None:
        return cast("DataFrame", self.source) if hasattr(self.source, "mapInArrow") else None

    @property
    def _blocks(self) -> RDD[Any]:
        return cast("RDD[Any]", self.source)

    def select(self, columns: Sequence[str]) -> SparkTable:
        """The same rows with these columns, in this order."""
        for name in columns:
            if name not in self.columns:
                raise InvalidInput(
                    f"column must be one of {', '.join(self.columns)}, got column={name}; check the spelling"
                )
        if self._frame is None:
            raise InvalidInput("columns must be selected before anything else, got a table of blocks; select first")
        counted = self.__dict__.get("shape", (self.clients,))[0]  # once is enough
        return replace(self, columns=tuple(columns), clients=counted)

    def records(self, task: ShareOut) -> DataFrame:
        """One record for each partition. Every action on it draws fresh noise: run one, once."""
        if self._frame is None:
            return _shared_blocks(self.session, self._blocks, len(self.columns), task)
        return _shared_frame(self._numeric(self._frame), self.columns, task)

    def _numeric(self, frame: DataFrame) -> DataFrame:
        """The columns as doubles; text is left to the workers, who can say what is wrong with it."""
        from pyspark.sql.functions import col

        kinds, chosen = dict(frame.dtypes), []
        for position, name in enumerate(self.columns):
            if kinds[name] not in _NUMBERS and not kinds[name].startswith("decimal"):
                raise InvalidInput(f"column {name} must hold numbers, got {kinds[name]}; convert it or leave it out")
            column = col(_quoted(name))
            column = column if kinds[name] == "string" else column.cast("double")
            chosen.append(column.alias(f"c{position}"))  # mapInArrow takes dots in names for fields
        return frame.select(chosen)


def repeated_rows(row: Floats, clients: int, session: SparkSession | None = None) -> SparkTable:
    """One row for many clients, made in the workers: for measuring."""
    context = spark_session(session).sparkContext
    partitions = 2 * context.defaultParallelism
    counts = [clients // partitions + (part < clients % partitions) for part in range(partitions)]
    size = max(1, _BLOCK_WORDS // row.size)

    def blocks(count: int) -> Iterator[Floats]:
        for start in range(0, count, size):
            yield np.broadcast_to(row, (min(size, count - start), row.size))

    names = tuple(f"column {j}" for j in range(row.size))
    return SparkTable(context.parallelize(counts, partitions).flatMap(blocks), names, clients)


def _shared_frame(frame: DataFrame, names: tuple[str, ...], task: ShareOut) -> DataFrame:
    def share(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        part = context.partitionId()
        yield as_batch(part, task.record(part, arrow_blocks(batches, names)))

    return frame.mapInArrow(share, SCHEMA)


def _shared_blocks(session: SparkSession, blocks: RDD[Any], columns: int, task: ShareOut) -> DataFrame:
    def share(part: int, block: Iterable[object]) -> list[Row]:
        return [task.record(part, array_blocks(block, columns)).row(part)]

    return session.createDataFrame(blocks.mapPartitionsWithIndex(share), SCHEMA, verifySchema=False)


def _text(session: SparkSession, path: str) -> DataFrame:
    """A CSV file's cells as text; every file must have the same header, and every row as many cells."""
    first = session.read.text(path).first()
    line = "" if first is None else first[0].removeprefix("\ufeff")
    delimiter = max(",;\t", key=line.count)
    names = next(csv.reader([line], delimiter=delimiter), [])
    clean = [" ".join(name.split()) for name in names]
    if not clean or "" in clean or len(set(clean)) != len(clean):
        raise InvalidInput(f"header must have distinct names, got {line!r} in {path}; name every column")
    schema = ", ".join(f"{_quoted(name)} string" for name in names)
    reader = session.read.option("sep", delimiter).option("mode", "FAILFAST").option("enforceSchema", "false")
    return reader.csv(path, schema=schema, header=True).toDF(*clean)


def _is_text(path: str) -> bool:
    return path.removesuffix(".gz").lower().endswith(_TEXT)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
