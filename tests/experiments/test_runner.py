"""Cells: resumable, and the same rows whatever the number of jobs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hubbub.experiments.runner import Cell, run_cells, seed_of


def square(value: int, log: str) -> list[dict[str, int]]:
    with open(log, "a") as file:
        file.write(f"{value}\n")
    return [{"value": value, "square": value**2}]


def fail(value: int) -> list[dict[str, int]]:
    raise ZeroDivisionError(value)


def make(tmp_path: Path, count: int = 5) -> list[Cell]:
    return [Cell(f"square {k}", square, (k, str(tmp_path / "log"))) for k in range(count)]


def computed(tmp_path: Path) -> list[int]:
    return sorted(map(int, (tmp_path / "log").read_text().split()))


@pytest.mark.parametrize("jobs", [1, 2])
def test_rows_come_in_the_cells_order(tmp_path: Path, jobs: int):
    rows = run_cells(make(tmp_path), tmp_path / "cells", jobs)
    assert [row[0]["square"] for row in rows] == [0, 1, 4, 9, 16]


@pytest.mark.parametrize("jobs", [1, 2])
def test_finished_cells_are_not_computed_again(tmp_path: Path, jobs: int):
    run_cells(make(tmp_path, 3), tmp_path / "cells", jobs)
    ticks: list[int] = []
    rows = run_cells(make(tmp_path, 5), tmp_path / "cells", jobs, ticks.append)
    assert computed(tmp_path) == [0, 1, 2, 3, 4]
    assert ticks == [3, 1, 1]
    assert [row[0]["square"] for row in rows] == [0, 1, 4, 9, 16]


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_was_done_before_a_crash_is_kept(tmp_path: Path, jobs: int):
    cells = make(tmp_path, 3)
    with pytest.raises(ZeroDivisionError):
        run_cells([*cells, Cell("bad", fail, (1,))], tmp_path / "cells", jobs)
    run_cells(cells, tmp_path / "cells", jobs)
    assert computed(tmp_path) == [0, 1, 2]


def test_cut_off_file_is_computed_again(tmp_path: Path):
    run_cells(make(tmp_path, 1), tmp_path / "cells", 1)
    (path,) = (tmp_path / "cells").glob("*.json")
    path.write_text(path.read_text()[:-5])
    run_cells(make(tmp_path, 1), tmp_path / "cells", 1)
    assert computed(tmp_path) == [0, 0]
    assert json.loads(path.read_text())["key"] == "square 0"


def test_seeds_depend_on_every_part():
    assert len({seed_of("a", 1), seed_of("a", 2), seed_of("b", 1), seed_of("a/1")}) == 3  # "a/1" is ("a", 1)
    assert seed_of("a", 1) == seed_of("a", 1) < 2**48
