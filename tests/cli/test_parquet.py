"""`hubbub fit` and `hubbub predict` read Parquet as they read CSV."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hubbub.cli import main

BASE = ["--target", "y", "--epsilon", "1", "--delta", "1e-5", "--x-bound", "1", "--y-bound", "1", "--seed", "3"]
NAMES = ["age", "dose", "weight", "y"]


@pytest.fixture
def folder(tmp_path: Path, regression_rows: np.ndarray) -> Path:
    table = pa.table(dict(zip(NAMES, regression_rows.T, strict=True)))
    pq.write_table(table, tmp_path / "data.parquet")
    (tmp_path / "parts").mkdir()
    pq.write_table(table.slice(0, 150), tmp_path / "parts" / "0.parquet")
    pq.write_table(table.slice(150), tmp_path / "parts" / "1.parquet")
    np.savetxt(tmp_path / "data.csv", regression_rows, delimiter=",", header=",".join(NAMES), comments="", fmt="%.17g")
    return tmp_path


def test_the_same_rows_give_the_same_model(folder: Path, capsys: pytest.CaptureFixture[str]):
    found = []
    for name in ("data.csv", "data.parquet", "parts"):
        assert main(["fit", str(folder / name), *BASE, "--posterior", "shrinkage", "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out)["coefficients"])
    assert found[0] == found[1] == found[2]


def test_predict_reads_parquet(folder: Path, capsys: pytest.CaptureFixture[str]):
    model = str(folder / "model.json")
    assert main(["fit", str(folder / "data.parquet"), *BASE, "--posterior", "shrinkage", "--out", model]) == 0
    capsys.readouterr()
    assert main(["predict", model, str(folder / "data.parquet")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 401


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([1.0, None, 2.0]), "column dose must hold finite numbers, got something else in row 2"),
        (pa.array([1.0, np.nan, 2.0]), "column dose must hold finite numbers, got something else in row 2"),
        (pa.array(["1", "old", "2"]), "column dose must hold finite numbers, got something else in row 2"),
        (pa.array([[1.0], [2.0], [3.0]]), "column dose must hold numbers, got list"),
    ],
)
def test_bad_columns_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], column: pa.Array, expected: str):
    pq.write_table(pa.table({"age": [1.0, 2.0, 4.0], "dose": column, "y": [0.0, 1.0, 0.5]}), tmp_path / "data.parquet")
    assert main(["fit", str(tmp_path / "data.parquet"), *BASE]) == 2
    assert expected in (error := capsys.readouterr().err)
    assert error.count("\n") == 1


def test_files_that_are_no_parquet_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for content in (None, b"a,b\n1,2\n"):
        if content is not None:
            (tmp_path / "data.parquet").write_bytes(content)
        assert main(["fit", str(tmp_path / "data.parquet"), *BASE]) == 2
        assert "file must be readable Parquet" in (error := capsys.readouterr().err)
        assert error.count("\n") == 1


def test_unknown_column_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["fit", str(folder / "data.parquet"), *BASE, "--features", "age,height"]) == 2
    assert "column must be one of age, dose, weight, y, got column=height" in capsys.readouterr().err
