"""`hubbub bench`: what it prints, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hubbub.cli import main
from hubbub.engines.local.pool import POOL

FIELDS = {"N", "d", "M", "shares", "seconds", "limit", "bytes_per_client", "peak_mb", "paper_seconds"}


def bench(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert main(["bench", "table1", "--workers", "1", "--repeats", "1", "--json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def test_cells_are_those_asked_for(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    picture, resident = tmp_path / "table1.png", POOL.peak_bytes() / 2**20
    found = bench(capsys, "--cells", "100x10,1000x33", "--seal", "--plot", str(picture))
    first, second = found["cells"]
    assert set(first) >= FIELDS
    assert (first["N"], first["d"], first["M"], first["paper_seconds"]) == (100, 10, 10, 1.72)
    assert (second["N"], second["d"], second["paper_seconds"]) == (1000, 33, None)
    for cell in found["cells"]:
        assert cell["ratio"] == pytest.approx(cell["seconds"] / cell["limit"])
        assert cell["bytes_per_client"] == 80 * cell["d"]
        assert 10 < cell["peak_mb"] < resident + 1500  # above what this process held before
        assert min(cell["session_round_seconds"], cell["hpke_seconds"]) > 0
    assert picture.stat().st_size > 10_000


def test_seeds_are_short_on_the_wire(capsys: pytest.CaptureFixture[str]):
    (cell,) = bench(capsys, "--cells", "50x1000", "--shares", "seeds", "--computes", "4")["cells"]
    assert (cell["shares"], cell["M"], cell["bytes_per_client"]) == ("seeds", 4, 8 * 1000 + 3 * 32)
    assert cell["paper_seconds"] is None  # the paper's table has ten Computes


def test_table_for_people(capsys: pytest.CaptureFixture[str]):
    assert main(["bench", "table1", "--cells", "100x10", "--workers", "1"]) == 0
    out = capsys.readouterr().out
    assert "ratio" in out
    assert "1.72" in out
    assert "d = 1000 repeated ten times" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cells", "many"], "cells must be all, or a list of clients x numbers such as 10000x100"),
        (["--cells", "1x10"], "clients must be at least 2"),
        (["--cells", "100x10,"], "cells must be all, or a list"),
        (["--cells", "100x0"], "numbers at least 1"),
        (["--computes", "1"], "computes must be a whole number in 2..1000, got computes=1"),
        (["--shares", "whole"], "whole"),
        (["--engine", "cloud"], "cloud"),
        (["--workers", "0"], "workers must be a whole number >= 1, got workers=0"),
        (["--repeats", "0"], "repeats must be a whole number >= 1, got repeats=0"),
        (["--plot", "table1.txt"], "plot must end in .png, .svg, .pdf"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]):
    cells = [] if "--cells" in arguments else ["--cells", "100x10"]
    assert main(["bench", "table1", *cells, *arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert len(captured.err.strip().splitlines()) == 1
    assert captured.out == ""
