"""A large CSV file read by pyarrow and cell by cell, in one run: python benchmarks/csv_files.py [rows]

11 columns of normal numbers with all their digits, as `hubbub fit` reads them; a million rows unless told otherwise.
Either way gives the same numbers to the bit. Seconds mean little on a busy machine, the ratio of the two more.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from hubbub.arrays import Floats
from hubbub.cli import table

COLUMNS, AT_ONCE = 11, 10_000


def write(path: Path, rows: int) -> list[str]:
    """A file of this many rows, and the names of its columns."""
    names, rng = [f"x{column}" for column in range(COLUMNS)], np.random.default_rng(0)
    with open(path, "w") as file:
        file.write(",".join(names) + "\n")
        for start in range(0, rows, AT_ONCE):
            block = rng.standard_normal((min(AT_ONCE, rows - start), COLUMNS)).tolist()
            file.writelines(",".join(map(repr, row)) + "\n" for row in block)
    return names


def timed(read: object, path: Path, names: list[str]) -> tuple[float, Floats]:
    """Seconds, and the numbers."""
    started = time.perf_counter()
    numbers = read(path).numbers(names)  # type: ignore[operator]
    return time.perf_counter() - started, numbers


def main(rows: int) -> None:
    """Print one JSON object."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.csv"
        names = write(path, rows)
        if not isinstance(table.read_table(path), table.LargeTable):
            sys.exit("pyarrow must be installed and the file large; pip install 'hubbub[tables]', more rows")
        fast, first = timed(table.read_table, path, names)
        slow, second = timed(table._read_csv, path, names)
        assert first.tobytes() == second.tobytes()
        found = {"rows": rows, "megabytes": path.stat().st_size / 1e6, "pyarrow seconds": fast, "by cell seconds": slow}
        print(json.dumps({**found, "fast over slow": fast / slow}))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
