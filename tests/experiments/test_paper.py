"""The paper's figures and table: known values, claims, files, and one object of JSON."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from hubbub.cli import main
from hubbub.cli.experiment import _object
from hubbub.experiments import coverage, efficiency, fig1b, fig2, fig3, table1
from hubbub.experiments.catalogue import Settings, run
from hubbub.experiments.datasets import abalone, white_wine
from hubbub.experiments.methods import METHODS
from hubbub.experiments.outcome import Outcome
from hubbub.experiments.runner import run_cells


def test_data_sets_have_the_real_rows():
    assert abalone().shape == (4177, 9)
    assert white_wine().shape == (4898, 12)
    assert set(np.unique(abalone()[:, 0] > 0)) == {False, True}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list]:
    """Ten splits of Figure 2, soundly and as published, without the sampled posterior, which takes its time."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fig2, "METHODS", METHODS[:-1])
        for mode in ("sound", "published"):
            cells = fig2.cells(mode, 0, 10)
            found[mode] = run_cells(cells, tmp_path_factory.mktemp("cells"), jobs=1)
    return found


def medians(result, dataset: str, method: str) -> list[float]:
    return [r["median"] for r in result.rows if r["dataset"] == dataset and r["method"] == method]


@pytest.mark.long
def test_fig2_known_values(results):
    """Non-private medians, and the published curve of proj DDP on abalone (wide quartiles, ten splits)."""
    sound, published = (fig2.summarise(results[mode], mode, 10) for mode in ("sound", "published"))
    for dataset, expected in (("red_wine", 1.02), ("abalone", 0.57), ("white_wine", 0.98)):
        assert medians(sound, dataset, "NP") == pytest.approx([expected] * 6, abs=0.03)
    np.testing.assert_allclose(
        medians(published, "abalone", "proj DDP"), [0.74, 0.74, 0.65, 0.62, 0.63, 0.585], rtol=0.25
    )


@pytest.mark.long
def test_fig2_claims_and_marks(results):
    sound, published = (fig2.summarise(results[mode], mode, 10) for mode in ("sound", "published"))
    verdicts = {claim.claim: claim.holds for claim in sound.claims}
    assert verdicts["DDP is indistinguishable from TA"]
    assert verdicts["proj DDP is indistinguishable from proj TA"]
    assert verdicts["the projection can clearly improve the results at a given budget"]
    assert all(row["guarantee"] is not False for row in sound.rows)
    assert all(row["guarantee"] is False for row in published.rows if row["method"].startswith("proj"))
    assert len(sound.rows) == 3 * 6 * 6


@pytest.mark.long
def test_the_default_is_close_to_non_private_on_uci(monkeypatch: pytest.MonkeyPatch):
    """At epsilon = 1 over 3 splits within 8, 8 and 4 % (25 splits: 5, 5 and 2), intervals within 85..95 %."""
    monkeypatch.setattr(fig2, "EPSILONS", (1.0,))
    monkeypatch.setattr(fig2, "METHODS", ("NP", "hubbub"))
    for name, most in (("red_wine", 1.08), ("abalone", 1.08), ("white_wine", 1.04)):
        rows = [row for split in range(3) for row in fig2.run_split(name, split, "sound", 0)]
        error = {m: np.median([row["error"] for row in rows if row["method"] == m]) for m in ("NP", "hubbub")}
        assert error["hubbub"] < most * error["NP"]
        assert 0.85 < np.mean([row["coverage"] for row in rows if row["method"] == "hubbub"]) < 0.95


@pytest.mark.long
def test_fig2_rows_do_not_depend_on_the_number_of_jobs(tmp_path: Path):
    cells = fig2.cells("sound", 3, 1)
    assert run_cells(cells, tmp_path / "one", 1) == run_cells(cells, tmp_path / "two", 2)


def test_a_split_uses_disjoint_rows_and_every_method():
    rows = fig2.run_split("red_wine", 0, "sound", 0)
    assert {row["method"] for row in rows} == set(METHODS)
    assert {row["epsilon"] for row in rows} == set(fig2.EPSILONS)
    assert all(np.isfinite(row["error"]) for row in rows)


def test_spearman_agrees_with_scipy(rng: np.random.Generator):
    predictions, target = rng.integers(0, 20, size=(3, 4, 50)).astype(float), rng.standard_normal(50)
    ours = fig3.spearman(predictions, target)
    for index in np.ndindex(3, 4):
        assert ours[index] == pytest.approx(spearmanr(predictions[index], target).statistic)
    assert fig3.spearman(np.zeros(50), target) == 0.0


@pytest.mark.long
def test_fig3_on_some_drugs(gdsc_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """One split of all drugs without the costly methods: the non-private correlation is about 0.24."""
    monkeypatch.setattr(fig3, "METHODS", ("NP", "TA"))
    monkeypatch.setattr(fig3, "EPSILONS", (10.0,))
    cells = fig3.cells("sound", 0, 1, gdsc_folder)
    assert len(cells) == 5
    total = [row for cell in cells for row in cell.function(*cell.arguments) if row["method"] == "NP"]
    assert sum(row["count"] for row in total) == 265
    assert sum(row["sum"] for row in total) / 265 == pytest.approx(0.24, abs=0.02)


def test_fig3_summary(gdsc_folder: Path):
    row = {"epsilon": 1.0, "method": "DDP", "sum": 10.0, "count": 50, "clients": 50 * 700}
    rows = [{**row, "epsilon": e, "method": m} for e in fig3.EPSILONS for m in METHODS]
    other = [{**r, "sum": 20.0} for r in rows]
    result = fig3.summarise([rows, rows, other, other], "sound", 2)
    assert result.rows[0]["mean"] == pytest.approx(0.3)
    assert result.rows[0]["std"] == pytest.approx(0.1)
    assert set(result.rows[0]) >= {"dataset", "epsilon", "method", "mean", "std", "n", "repeats"}
    assert (result.rows[0]["n"], result.rows[0]["drugs"]) == (700, 100)


def test_fig1b_measures_the_factor():
    result = fig1b.summarise([cell.function(*cell.arguments) for cell in fig1b.cells("sound", 0, 4)], "sound", 4)
    assert [claim.holds for claim in result.claims] == [True, True]
    assert {row["T"] for row in result.rows} == {0, 5, 10, 50}


@pytest.mark.long
def test_efficiency_slopes_are_minus_one(tmp_path: Path):
    cells = efficiency.cells("sound", 0, 12)
    result = efficiency.summarise(run_cells(cells, tmp_path, 2), "sound", 12)
    for kind in efficiency.KINDS:
        assert efficiency.slope(result.rows, kind) == pytest.approx(-1.0, abs=0.1)
    assert [claim.holds for claim in result.claims] == [True, True, True]


def test_table1_measures_a_cell_and_knows_the_papers():
    (row,) = table1.measure(1000, 100, table1.Bench(workers=1, repeats=1, seal=True))
    assert (row["paper_seconds"], row["program_seconds"]) == (2.86, 11.7)
    assert row["speedup"] == pytest.approx(2.86 / row["seconds"])
    assert row["ratio"] == pytest.approx(row["seconds"] / row["limit"])
    assert min(row["session_round_seconds"], row["hpke_seconds"]) > 0
    assert row["bytes_per_client"] == 8000
    assert len(table1.cells("sound", 0, 1)) == 16


@pytest.mark.long
def test_experiment_writes_rows_pictures_and_a_page_that_stands_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    out = tmp_path / "out"
    command = ["experiment", "fig2", "--out", str(out), "--repeats", "2", "--as", "published", "--jobs", "1", "--json"]
    assert main(command) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["experiment"] == "fig2"
    assert set(content["rows"][0]) >= {"dataset", "epsilon", "method", "median", "q25", "q75", "n", "repeats"}
    assert {row["dataset"] for row in content["rows"]} == {"red_wine", "abalone", "white_wine"}
    assert {row["method"] for row in content["rows"]} == set(METHODS)
    assert set(content["claims"][0]) == {"claim", "measured", "holds"}
    with open(out / "fig2_published.csv") as file:
        assert len(list(csv.DictReader(file))) == len(content["rows"])
    assert (out / "fig2_published.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "fig2_published.svg").stat().st_size > 10_000
    page = (out / "report.html").read_text()
    assert "<svg" in page
    assert not re.search(r"(src|href)=['\"](http|//)", page.replace("xlink:href", ""))
    for part in (
        "Claims",
        "not a guarantee",
        "as published",
        "Three ways to compute",
        "What the noise really costs",
        "holds",
    ):
        assert part in page
    stamps = {path: path.stat().st_mtime_ns for path in (out / "cells").iterdir()}
    assert main([*command[:-1]]) == 0
    assert {path: path.stat().st_mtime_ns for path in (out / "cells").iterdir()} == stamps


def test_all_names_the_mode_of_every_row(tmp_path: Path):
    results = [Outcome("fig1b", "sound", [{"N": 1}], [], ""), Outcome("fig2", "published", [{"median": 1.0}], [], "")]
    content = _object("all", "published", results)
    assert content["as"] == "published"
    assert [row["as"] for row in content["rows"]] == ["sound", "published"]


def test_option_without_effect_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["experiment", "fig1b", "--as", "paper", "--repeats", "1", "--jobs", "1", "--out", str(tmp_path)]) == 0
    assert "--as paper makes no difference to fig1b" in capsys.readouterr().err


def test_too_few_splits_to_tell_is_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fig2, "EPSILONS", (1.0,))
    rows = [fig2.run_split(name, 0, "sound", 0) for name in fig2.DATASETS]
    claim = fig2.summarise(rows, "sound", 1).claims[0]
    assert not claim.holds
    assert claim.measured == "1 splits are too few to tell, 10 are needed"


def test_run_resumes_from_its_cells(tmp_path: Path):
    first = run("fig1b", Settings(tmp_path, repeats=1, jobs=1))
    again = run("fig1b", Settings(tmp_path, repeats=1, jobs=1))
    assert again.rows == first.rows


@pytest.mark.parametrize(("arguments", "expected"), [
    (["fig2", "--repeats", "0"], "repeats must be at least 1"), (["fig2", "--jobs", "0"], "jobs must be at least 1"),
    (["fig2", "--seed", "-1"], "seed must be a whole number"), (["fig9"], "fig9"), (["fig2", "--as", "luck"], "luck"),
    (["fig3", "--data", "/nowhere"], "data must be a folder with expression.csv.gz"),
    (["fig3"], "give --data DIR or set HUBBUB_DATA"), (["all"], "give --data DIR or set HUBBUB_DATA"),
])  # fmt: skip
def test_bad_input_is_one_line(arguments, expected, tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("HUBBUB_DATA", raising=False)
    assert main(["experiment", *arguments, "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert error.startswith("hubbub: error: ")
    assert error.count("\n") == 1
    assert expected in error
    assert not (tmp_path / "out").exists()


def test_out_that_is_a_file_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "file").write_text("")
    assert main(["experiment", "fig1b", "--out", str(tmp_path / "file")]) == 2
    assert "out must be a folder" in capsys.readouterr().err


def test_coverage_of_one_setting():
    parts = [coverage.run_part(300, 2, "skewed", 0, first, last) for first, last in ((0, 2), (2, 3))]
    result = coverage.summarise(parts, "sound", 3)
    assert {(row["epsilon"], row["posterior"]) for row in result.rows} == {
        (e, p) for e in (0.5, 1.0, 10.0) for p in ("plugin", "shrinkage", "noise-aware")
    }
    assert all(0 <= row["coverage"] <= 1 and row["width"] > 0 for row in result.rows)
    assert len(result.claims) == 3


def test_more_repeats_of_coverage_go_on_from_fewer():
    few, many = ({cell.key for cell in coverage.cells("sound", 0, repeats)} for repeats in (50, 100))
    assert few < many
    assert sum(cell.arguments[5] - cell.arguments[4] for cell in coverage.cells("sound", 0, 70)) == 12 * 4 * 70


@pytest.mark.parametrize("kind", coverage.FEATURES)
def test_features_have_mean_zero_and_variance_one(kind: str, rng: np.random.Generator):
    x = coverage.features(kind, 200_000, 1, rng)
    assert x.mean() == pytest.approx(0.0, abs=0.02)
    assert x.var() == pytest.approx(1.0, abs=0.1)
