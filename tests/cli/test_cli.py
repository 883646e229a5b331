"""The command line as a user calls it: real processes, real files, real exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hubbub.cli import main

BASE = ["--target", "y", "--epsilon", "1", "--delta", "1e-5", "--x-bound", "1", "--y-bound", "1"]


def hubbub(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "hubbub", *map(str, arguments)], capture_output=True, text=True)


@pytest.fixture
def csv(tmp_path: Path, regression_rows: np.ndarray) -> Path:
    path = tmp_path / "data.csv"
    np.savetxt(path, regression_rows, delimiter=",", header="age,dose,weight,y", comments="")
    return path


def run_json(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict:
    assert main([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_help_names_every_command_and_exits_zero():
    out = hubbub("--help")
    assert out.returncode == 0
    for command in ("demo", "fit", "predict", "explain"):
        assert command in out.stdout
        help_ = hubbub(command, "--help")
        assert help_.returncode == 0
        assert "For example:" in help_.stdout
        assert "--json" in help_.stdout


def test_version():
    assert hubbub("--version").stdout.strip() == "0.1.0"


def test_demo_prints_table_view_and_report():
    out = hubbub("demo", "--repeats", "2", "--clients", "200")
    assert out.returncode == 0, out.stderr
    for part in ("non-private (NP)", "trusted aggregator (TA)", "distributed, hubbub", "input perturbation",
                 "What Compute 3 sees", "chi-squared p-value", "Privacy report", "this is a demonstration"):  # fmt: skip
        assert part in out.stdout


def test_demo_json_is_one_object_on_standard_output(tmp_path: Path):
    out = hubbub("demo", "--repeats", "2", "--clients", "200", "--json", "--plot", tmp_path / "demo.png")
    content = json.loads(out.stdout)
    assert set(content["mae"]) == {"nonprivate", "trusted", "distributed", "input_perturbation"}
    assert content["n"] == 200
    assert (tmp_path / "demo.png").stat().st_size > 10_000


def test_fit_predict_round_trip(csv: Path, tmp_path: Path):
    model, plot = tmp_path / "model.json", tmp_path / "plot.png"
    out = hubbub("fit", csv, *BASE, "--tolerate", 4, "--computes", 5, "--out", model, "--plot", plot)
    assert out.returncode == 0, out.stderr
    assert "T = 4 may collude or drop out" in out.stdout
    assert "dose" in out.stdout
    assert plot.stat().st_size > 5000
    predicted = hubbub("predict", model, csv)
    lines = predicted.stdout.splitlines()
    assert lines[0] == "prediction,std"
    assert len(lines) == 401
    assert "mean absolute error against column y" in predicted.stderr


def test_fit_json(csv: Path, capsys: pytest.CaptureFixture[str]):
    content = run_json(capsys, "fit", csv, *BASE, "--method", "plain", "--seal")
    assert set(content["coefficients"]) == {"age", "dose", "weight"}
    assert set(content["coefficients"]["age"]) == {"mean", "std", "low", "high"}
    assert content["n"] == 400
    assert content["privacy"]["guarantee"] is True
    assert content["privacy"]["rounds"][0]["sealed"] == "X25519"


def test_predict_json_and_out(csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    model, out = tmp_path / "model.json", tmp_path / "predictions.csv"
    assert main(["fit", str(csv), *BASE, "--out", str(model), "--seed", "1"]) == 0
    capsys.readouterr()
    content = run_json(capsys, "predict", model, csv, "--out", out)
    assert len(content["prediction"]) == len(content["std"]) == 400
    assert content["mae"] < 1
    assert len(out.read_text().splitlines()) == 401
    assert content["privacy"]["guarantee"] is False  # seeded: the label travels with the model


def test_seed_makes_a_labelled_simulation(csv: Path, capsys: pytest.CaptureFixture[str]):
    first = run_json(capsys, "fit", csv, *BASE, "--seed", 3)
    second = run_json(capsys, "fit", csv, *BASE, "--seed", 3)
    assert first["coefficients"] == second["coefficients"]
    assert first["privacy"]["guarantee"] is False
    assert main(["fit", str(csv), *BASE, "--seed", "3"]) == 0
    assert "NOT A GUARANTEE" in capsys.readouterr().out


def test_features_and_named_bounds(csv: Path, capsys: pytest.CaptureFixture[str]):
    options = [*BASE[:6], "--y-bound", "1", "--features", "dose,age", "--x-bound", "age=2,dose=1"]
    assert list(run_json(capsys, "fit", csv, *options)["coefficients"]) == ["dose", "age"]


def test_semicolons_and_tabs_are_recognised(csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for separator in ";\t":
        other = tmp_path / "other.csv"
        other.write_text(csv.read_text().replace(",", separator))
        assert set(run_json(capsys, "fit", other, *BASE)["coefficients"]) == {"age", "dose", "weight"}


def test_ledger_is_charged_across_runs_and_then_refuses(csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    ledger = tmp_path / "ledger.json"
    assert main(["fit", str(csv), *BASE, "--ledger", str(ledger), "--total-epsilon", "1.2"]) == 0
    assert "Ledger of (epsilon=1.2, delta=1e-05)" in capsys.readouterr().out
    before = ledger.read_text()
    assert main(["fit", str(csv), *BASE, "--ledger", str(ledger)]) == 2
    assert capsys.readouterr().err.startswith("hubbub: error: budget must cover the charge")
    assert ledger.read_text() == before


def test_explain_touches_no_data_and_says_what_it_costs(capsys: pytest.CaptureFixture[str]):
    options = [
        "--clients",
        1000,
        "--features",
        11,
        "--epsilon",
        1,
        "--delta",
        "1e-5",
        "--x-bound",
        7.5,
        "--y-bound",
        7.5,
    ]
    for method, labels in (("plain", ["regression"]), ("projected", ["deviations", "regression"])):
        content = run_json(capsys, "explain", *options, "--method", method, "--tolerate", 99)
        assert [r["label"] for r in content["rounds"]] == labels
        assert content["extra_variance_factor"] == pytest.approx(1000 / 900)
        regression = content["rounds"][-1]
        assert regression["dimension"] == 77
        assert regression["upload_bytes"] == 8 * 77 + 32 * 2
        assert regression["noise_std"] == pytest.approx(regression["sigma_std"] * (1000 / 900) ** 0.5)
    assert content["tight_over_paper_sensitivity"] < 0.75
    assert main(["explain", *map(str, options)]) == 0
    assert "Guarantee: (epsilon=1, delta=1e-05)-differential privacy" in capsys.readouterr().out


def test_what_explain_predicts_is_what_fit_does(csv: Path, capsys: pytest.CaptureFixture[str]):
    explained = run_json(capsys, "explain", "--clients", 400, "--features", 3, "--epsilon", 1, "--delta", "1e-5",
                         "--x-bound", 1, "--y-bound", 1, "--method", "plain")["rounds"][0]  # fmt: skip
    done = run_json(capsys, "fit", csv, *BASE, "--method", "plain")["privacy"]["rounds"][0]
    for key in ("sensitivity", "sigma_std", "sigma_client", "noise_std", "fraction_bits", "dimension"):
        assert explained[key] == pytest.approx(done[key])
