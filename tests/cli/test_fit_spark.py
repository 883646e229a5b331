"""`hubbub fit --engine spark`: the file stays in Spark, and everything else is as with the local engine."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hubbub.cli import main
from hubbub.engines.spark.engine import SparkEngine
from hubbub.engines.spark.table import SparkTable
from hubbub.estimators.linear_regression import PrivateLinearRegression
from hubbub.privacy import Budget
from spark_support import shared_session

NAMES = ["age", "dose", "weight", "y"]
BASE = ["--target", "y", "--delta", "1e-6", "--x-bound", "age=0:2,dose=1,weight=1", "--y-bound", "1"]
SPARK = [*BASE, "--engine", "spark", "--posterior", "shrinkage"]


@pytest.fixture
def folder(tmp_path: Path, regression_rows: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> Path:
    shared_session()  # the commands find it
    monkeypatch.chdir(tmp_path)
    rows = np.tile(regression_rows, (5, 1))
    rows[:, 0] += 1
    pq.write_table(pa.table(dict(zip(NAMES, rows.T, strict=True))), tmp_path / "data.parquet")
    np.savetxt(tmp_path / "data.csv", rows, delimiter=",", header=",".join(NAMES), comments="")
    return tmp_path


def fitted(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert main(["fit", *arguments, "--epsilon", "50", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_model_is_that_of_the_local_engine_up_to_the_noise(folder: Path, capsys: pytest.CaptureFixture[str]):
    local = fitted(capsys, "data.csv", *BASE, "--posterior", "shrinkage")
    for file in ("data.parquet", "data.csv"):
        found = fitted(capsys, file, *SPARK, "--computes", "4", "--tolerate", "2")
        assert found["n"] == 2000
        for name in NAMES[:3]:
            assert found["coefficients"][name]["mean"] == pytest.approx(local["coefficients"][name]["mean"], abs=0.05)
        assert found["privacy"]["guarantee"] is True
        assert found["privacy"]["setting"].startswith("all parties were simulated on one Spark cluster")
        assert [found["privacy"][k] for k in ("computes", "dropouts_covered", "colluders_covered")] == [4, 2, 2]


def test_model_and_release_are_written_and_the_report_printed(folder: Path, capsys: pytest.CaptureFixture[str]):
    options = ["--target", "y", "--epsilon", "1", "--delta", "1e-6", "--x-bound", "2", "--y-bound", "1"]
    options += ["--features", "dose,age", "--engine", "spark", "--posterior", "shrinkage"]
    assert main(["fit", "data.parquet", *options, "--out", "model.json", "--release", "release.json"]) == 0
    shown = capsys.readouterr().out
    assert "one Spark cluster, not sealed; drawn by operating system" in " ".join(shown.split())
    assert main(["predict", "model.json", "data.parquet"]) == 0
    assert main(["refit", "release.json"]) == 0
    assert json.loads((folder / "release.json").read_text())["names"] == ["dose", "age"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (["--seal"], "seal must be left out for the engine spark"),
        (["--method", "plain"], "method must be auto for the engine spark, got method=plain"),
        (["--features", "age,height"], "column must be one of age, dose, weight, y, got column=height"),
        (["--tolerate", "1999"], "dropouts + colluders must be at most K - 2 = 1998"),
        (["--x-norm", "1"], "x-bound or x-norm must be given, one of the two, got both"),
    ],
)
def test_bad_options_are_one_line(folder: Path, capsys: pytest.CaptureFixture[str], change: list[str], expected: str):
    assert main(["fit", "data.parquet", *BASE, "--engine", "spark", "--epsilon", "1", *change]) == 2
    assert expected in (error := capsys.readouterr().err)
    assert error.count("\n") == 1


@pytest.mark.parametrize("cell", ["old", "", "nan"])
def test_a_bad_cell_does_not_stop_a_fit(folder: Path, capsys: pytest.CaptureFixture[str], cell: str):
    lines = (folder / "data.csv").read_text().splitlines()
    lines[1234] = f"1,{cell},0,0"
    (folder / "data.csv").write_text("\n".join(lines))
    ledger = ["--ledger", "ledger.json", "--total-epsilon", "10"]
    assert main(["fit", "data.csv", *SPARK, "--epsilon", "1", *ledger]) == 0
    said = capsys.readouterr().err
    assert said.count("Take care: rows must be finite numbers to count, got 1 of 2000 that are not") == 1
    assert len(json.loads((folder / "ledger.json").read_text())["entries"]) == 4


def test_estimator_fits_a_table(folder: Path):
    table = SparkTable.read(folder / "data.parquet")
    model = PrivateLinearRegression(
        budget=Budget(50.0, 1e-6), x_bound=[(0, 2), 1, 1], y_bound=1, posterior="shrinkage", engine=SparkEngine()
    ).fit(table, "y")
    assert list(model.feature_names_in_) == NAMES[:3]
    np.testing.assert_allclose(model.coef_, [0.5, -0.3, 0.1], atol=0.05)
    assert model.privacy_.is_guarantee
    assert "age" in str(model.summary())


def test_a_generalised_linear_model_of_a_table(folder: Path, capsys: pytest.CaptureFixture[str]):
    rng, n = np.random.default_rng(2), 2000
    age = rng.normal(50, 12, n)
    smoker = rng.random(n) < 0.3
    eta = 0.05 * (age - 50) + 0.5 * smoker
    table = {
        "age": age,
        "smoker": smoker,
        "claim": rng.random(n) < 1 / (1 + np.exp(-eta)),
        "visits": rng.poisson(np.exp(eta)),
    }
    pq.write_table(pa.table(table), folder / "rows.parquet")
    options = ["--delta", "1e-6", "--x-bound", "age=0:110,smoker=0:1", "--engine", "spark", "--features", "age,smoker"]
    found = fitted(
        capsys, "rows.parquet", *options, "--target", "claim", "--family", "bernoulli", "--out", "model.json"
    )
    assert found["n"] == 2000
    assert found["classes"] == ["0", "1"]
    assert found["privacy"]["guarantee"] is True
    assert 0.02 < found["coefficients"]["age"]["low"] < 0.05 < found["coefficients"]["age"]["high"] < 0.08
    assert main(["predict", "model.json", "rows.parquet"]) == 0
    assert capsys.readouterr().out.startswith("probability,low,high\n0.")
    found = fitted(capsys, "rows.parquet", *options, "--target", "visits", "--family", "poisson", "--y-bound", "10")
    assert found["coefficients"]["age"]["mean"] == pytest.approx(0.05, abs=0.015)
    bad = ["fit", "rows.parquet", *options, "--target", "claim", "--family", "bernoulli", "--epsilon", "1"]
    assert main([*bad, "--classes", "no,yes"]) == 2
    assert "classes must be left out for the engine spark" in capsys.readouterr().err
