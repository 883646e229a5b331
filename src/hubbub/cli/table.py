"""Read CSV and Parquet files, and say in one clear line what is wrong in them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from hubbub.arrays import Floats
from hubbub.cli.arrow_csv import Classes, codes_of, csv_codes, csv_columns
from hubbub.errors import InvalidInput

LARGE_BYTES = 5_000_000
"""From this size on pyarrow reads a CSV file, if it is installed; a smaller one takes a quarter of a second anyway."""


@dataclass(frozen=True)
class SmallTable:
    """A CSV file's header and cells; columns become numbers when they are asked for."""

    path: Path
    header: tuple[str, ...]
    cells: list[list[str]]
    lines: list[int]
    """The line of the file at which each row ends."""

    def numbers(self, names: Sequence[str]) -> Floats:
        """Return these columns as (n, len(names)) finite numbers, or say in one line where something else stands."""
        return _finite(self, names)

    def marked(self, names: Sequence[str]) -> Floats:
        """Return these columns as (n, len(names)) numbers, with NaN for each cell that is no finite number."""
        positions = _positions(self.header, names)
        return np.column_stack([np.array([_number(row[at]) for row in self.cells]) for at in positions])

    def codes(self, name: str, classes: Classes) -> Floats:
        """Return 0 or 1 for each row by the column's label, and NaN where it is another."""
        (at,) = _positions(self.header, [name])
        known = {label: float(code) for code, label in enumerate(classes)}
        return np.array([known.get(row[at].strip(), np.nan) for row in self.cells])

    def place(self, row: int) -> str:
        """Say where the file has this row."""
        return f"line {self.lines[row]} of {self.path}"


@dataclass(frozen=True)
class LargeTable:
    """A large CSV file; pyarrow reads the columns that are asked for.

    Where pyarrow finds anything that it takes for no number, or rows of different lengths, the file is read cell by
    cell, as a small one is: either that finds numbers after all (`1_000`), or it says what is wrong and where.
    """

    path: Path
    header: tuple[str, ...]
    delimiter: str
    above: int
    """How many lines of the file come before its rows."""

    def numbers(self, names: Sequence[str]) -> Floats:
        """Return these columns as (n, len(names)) finite numbers, or say in one line where something else stands."""
        return _finite(self, names)

    def marked(self, names: Sequence[str]) -> Floats:
        """Return these columns as (n, len(names)) numbers, with NaN for each cell that is no finite number."""
        found = csv_columns(self.path, self.delimiter, self.above, len(self.header), _positions(self.header, names))
        return self._by_cell.marked(names) if found is None else found

    def codes(self, name: str, classes: Classes) -> Floats:
        """Return 0 or 1 for each row by the column's label, and NaN where it is another."""
        (at,) = _positions(self.header, [name])
        found = csv_codes(self.path, self.delimiter, self.above, len(self.header), at, classes)
        return self._by_cell.codes(name, classes) if found is None else found

    def place(self, row: int) -> str:
        """Say where the file has this row."""
        return self._by_cell.place(row)

    @cached_property
    def _by_cell(self) -> SmallTable:
        return _read_csv(self.path)


@dataclass(frozen=True)
class ParquetTable:
    """A Parquet file (or a folder of them); columns are read when they are asked for."""

    path: Path
    header: tuple[str, ...]
    file: Any

    def numbers(self, names: Sequence[str]) -> Floats:
        """Return these columns as (n, len(names)) finite numbers, or say in one line where something else stands."""
        return _finite(self, names)

    def place(self, row: int) -> str:
        """Say where the file has this row."""
        return f"row {row + 1} of {self.path}"

    def codes(self, name: str, classes: Classes) -> Floats:
        """Return 0 or 1 for each row by the column's label, and NaN where it is another."""
        import pyarrow as pa  # type: ignore[import-untyped]  # ships no types

        _positions(self.header, [name])
        column = self.file.to_table(columns=[name]).column(name)
        try:
            return codes_of(column.cast(pa.string()), classes)
        except pa.ArrowException:
            raise InvalidInput(f"column {name} must hold labels, got {column.type}; convert it") from None

    def marked(self, names: Sequence[str]) -> Floats:
        """Return these columns as (n, len(names)) numbers, with NaN for each value that is no finite number."""
        from hubbub.engines.spark.task import arrow_blocks

        _positions(self.header, names)
        blocks = list(arrow_blocks(self.file.to_batches(columns=list(names)), names))
        return np.vstack([np.empty((0, len(names))), *blocks])


CsvOrParquet = SmallTable | LargeTable | ParquetTable


def coded(table: CsvOrParquet, name: str, classes: Classes) -> Floats:
    """Return 0 or 1 for each row by the label in this column, or say in one line where another stands.

    Labels that are both numbers are compared as numbers, so that 1 is also 1.0.
    """
    values = [_number(label) for label in classes]
    if np.isnan(values).any():
        codes = table.codes(name, classes)
    else:
        found = table.marked([name])[:, 0]
        codes = np.select([found == values[0], found == values[1]], [0.0, 1.0], np.nan)
    if np.isnan(codes).any():
        place = table.place(int(np.argmax(np.isnan(codes))))
        raise InvalidInput(
            f"column {name} must hold one of the two labels {classes[0]} and {classes[1]}, got another in {place}; "
            "name both with --classes, that of no first, or drop such rows"
        )
    return codes


def _positions(header: tuple[str, ...], names: Sequence[str]) -> list[int]:
    for name in names:
        if name not in header:
            raise InvalidInput(f"column must be one of {', '.join(header)}, got column={name}; check the spelling")
    return [header.index(name) for name in names]


def _number(cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        return float("nan")
    return value if np.isfinite(value) else float("nan")


def not_numbers(table: CsvOrParquet, names: Sequence[str], rows: Floats) -> list[str]:
    """List the places where the table has no finite number, but never what stands there instead."""
    return [f"column {names[column]} in {table.place(row)}" for row, column in np.argwhere(np.isnan(rows))]


def _finite(table: CsvOrParquet, names: Sequence[str]) -> Floats:
    rows = table.marked(names)
    if np.isnan(rows).any():
        column, _, place = not_numbers(table, names, rows)[0].partition(" in ")
        raise InvalidInput(
            f"{column} must hold finite numbers, got something else in {place}; "
            "correct or drop that row, or leave the column out"
        )
    return rows


def _read_parquet(path: Path) -> ParquetTable:
    try:
        import pyarrow
        import pyarrow.dataset as dataset  # type: ignore[import-untyped]
    except ImportError:
        raise InvalidInput(f"file must be CSV without pyarrow, got file={path}; install hubbub[tables]") from None
    try:
        file = dataset.dataset(path, format="parquet")
    except (OSError, pyarrow.ArrowException) as error:
        what = " ".join(str(error).split())[:200]
        raise InvalidInput(f"file must be readable Parquet, got file={path}: {what}; check the path") from None
    return ParquetTable(path, tuple(file.schema.names), file)


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() == ".parquet" or (path.is_dir() and any(path.glob("*.parquet")))


def read_table(path: Path) -> CsvOrParquet:
    """Read the file; whether commas, semicolons or tabs separate cells is recognised from a CSV file's header."""
    return _read_parquet(path) if _is_parquet(path) else _large(path) or _read_csv(path)


def _large(path: Path) -> LargeTable | None:
    """Let pyarrow read the file, or return None if it is small, pyarrow is missing or the header is refused."""
    try:
        if path.stat().st_size < LARGE_BYTES or find_spec("pyarrow") is None:
            return None
        with _opened(path) as file:
            reader = csv.reader(file, delimiter=_delimiter(file))
            header = _header(path, next(row for row in reader if row))
            return LargeTable(path, header, reader.dialect.delimiter, reader.line_num)
    except (OSError, ValueError, csv.Error, StopIteration, InvalidInput):
        return None


def _read_csv(path: Path) -> SmallTable:
    try:
        with _opened(path) as file:
            reader = csv.reader(file, delimiter=_delimiter(file))
            numbered = [(reader.line_num, row) for row in reader if row]
    except OSError as error:
        raise InvalidInput(f"file must be readable, got file={path}: {error.strerror}; check the path") from None
    except (UnicodeDecodeError, csv.Error):
        raise InvalidInput(f"file must be a UTF-8 CSV file, got file={path}; export it as CSV") from None
    if len(numbered) < 2:
        raise InvalidInput(f"file must have a header and at least one row, got {len(numbered)} line(s) in {path}")
    header = _header(path, numbered[0][1])
    for line, row in numbered[1:]:
        if len(row) != len(header):
            raise InvalidInput(
                f"row must have {len(header)} cells like the header, got {len(row)} in line {line} of {path}"
            )
    return SmallTable(path, header, [row for _, row in numbered[1:]], [line for line, _ in numbered[1:]])


def _opened(path: Path) -> TextIO:
    return open(path, newline="", encoding="utf-8-sig")


def _delimiter(file: TextIO) -> str:
    first = file.readline()
    file.seek(0)
    return max(",;\t", key=first.count)


def _header(path: Path, cells: list[str]) -> tuple[str, ...]:
    header = tuple(" ".join(name.split()) for name in cells)
    if "" in header or len(set(header)) != len(header):
        what = "an empty name" if "" in header else "a name twice"
        raise InvalidInput(f"header must have distinct names, got {what} in {path}; name every column")
    return header


def split_names(field: str, text: str, known: Sequence[str]) -> list[str]:
    """Read `a,b` as distinct names, at least one, all of which must be known."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names or len(set(names)) != len(names) or not set(names) <= set(known):
        raise InvalidInput(f"{field} must be distinct names among {', '.join(known)}, got {text!r}; check the spelling")
    return names
