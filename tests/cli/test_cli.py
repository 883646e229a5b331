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
    for command in ("demo", "fit", "refit", "predict", "explain"):
        assert command in out.stdout
        help_ = hubbub(command, "--help")
        assert help_.returncode == 0
        assert "For example:" in help_.stdout
        assert "--json" in help_.stdout


def test_version():
    assert hubbub("--version").stdout.strip() == "0.2.0.dev0"


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
    assert "D = 4 may be missing and C = 4 may collude, both" in out.stdout
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


@pytest.fixture
def far_csv(tmp_path: Path, rng: np.random.Generator) -> Path:
    """Columns and target that lie far from zero: y = 3 + age / 20 - dose + noise."""
    age, dose = rng.uniform(20, 90, 4000), rng.uniform(-1, 1, 4000)
    path = tmp_path / "far.csv"
    rows = np.column_stack([age, dose, 3 + age / 20 - dose + 0.5 * rng.standard_normal(4000)])
    np.savetxt(path, rows, delimiter=",", header="age,dose,y", comments="")
    return path


@pytest.mark.parametrize("bounds", [
    ["--x-bound", "age=0:120,dose=1"], ["--x-bound", "0:120,-1:1"], ["--x-bound", "-1:120", "--posterior", "noise-aware"],
])  # fmt: skip
def test_ranges_by_name_by_position_and_for_all(far_csv: Path, capsys: pytest.CaptureFixture[str], bounds: list[str]):
    content = run_json(
        capsys, "fit", far_csv, *BASE[:2], "--epsilon", 5, "--delta", "1e-5", "--y-bound", "0:10", *bounds
    )
    assert content["coefficients"]["age"]["mean"] == pytest.approx(1 / 20, abs=0.02)
    assert content["intercept"] == pytest.approx(3, abs=1)
    assert content["privacy"]["guarantee"] is True


def test_the_table_shows_intercept_and_residual_deviation(far_csv: Path, capsys: pytest.CaptureFixture[str]):
    options = [*BASE[:6], "--x-bound", "age=0:120,dose=1", "--y-bound", "0:10"]
    shown = {}
    for choice in ("--intercept", "--no-intercept"):
        assert main(["fit", str(far_csv), *options, choice]) == 0
        shown[choice] = capsys.readouterr().out
        assert "residual deviation" in shown[choice]
    assert "intercept" in shown["--intercept"]
    assert "intercept" not in shown["--no-intercept"]
    assert main(["fit", str(far_csv), *options, "--method", "plain"]) == 0
    out = capsys.readouterr().out
    assert "assumed" in out
    assert "intercept" not in out


def test_no_intercept_in_json(far_csv: Path, capsys: pytest.CaptureFixture[str]):
    options = [*BASE[:6], "--x-bound", "age=0:120,dose=1", "--y-bound", "0:10"]
    assert run_json(capsys, "fit", far_csv, *options, "--no-intercept")["intercept"] == 0.0
    assert run_json(capsys, "fit", far_csv, *options)["intercept"] != 0.0


def test_norm_instead_of_bounds(csv: Path, capsys: pytest.CaptureFixture[str]):
    content = run_json(capsys, "fit", csv, *BASE[:6], "--x-norm", 1.8, "--y-bound", 1)
    assert set(content["coefficients"]) == {"age", "dose", "weight"}


def test_prior_scale_pulls_towards_zero(csv: Path, capsys: pytest.CaptureFixture[str]):
    for scale in ("1e-4", "age=1e-4,dose=1e-4,weight=1e-4"):
        content = run_json(capsys, "fit", csv, *BASE, "--prior-scale", scale)
        assert all(abs(row["high"]) < 1e-3 for row in content["coefficients"].values())


@pytest.fixture
def release(csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    path = tmp_path / "release.json"
    assert main(["fit", str(csv), *BASE[:2], "--epsilon", "5", *BASE[4:], "--release", str(path)]) == 0
    capsys.readouterr()
    return path


def test_what_was_paid_for_is_kept_though_nobody_reads_the_output(csv: Path, tmp_path: Path):
    """As in `hubbub fit .. | head -1`."""
    kept = tmp_path / "kept.json"
    arguments = [sys.executable, "-m", "hubbub", "fit", csv, *BASE, "--release", kept]
    with subprocess.Popen([*map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        process.stdout.close()
    assert json.loads(kept.read_text())["names"] == ["age", "dose", "weight"]


def test_release_carries_names_target_and_privacy(release: Path):
    content = json.loads(release.read_text())
    assert content["names"] == ["age", "dose", "weight"]
    assert content["target"] == "y"
    assert content["n"] == 400
    assert content["privacy"]["budget"] == {"epsilon": 5.0, "delta": 1e-5}


def test_refit_is_the_fit_again(csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "release.json"
    fitted = run_json(capsys, "fit", csv, *BASE, "--release", path)
    again = run_json(capsys, "refit", path)
    for name, row in fitted["coefficients"].items():
        assert again["coefficients"][name] == pytest.approx(row)
    assert again["intercept"] == pytest.approx(fitted["intercept"])
    assert again["privacy"] == fitted["privacy"]
    assert again["further_epsilon"] == 0
    assert again["models"] == []


def test_refit_with_fewer_features_predicts_from_those_alone(
    release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    model, plot, few = tmp_path / "model.json", tmp_path / "plot.png", tmp_path / "few.csv"
    content = run_json(capsys, "refit", release, "--features", "dose,age", "--out", model, "--plot", plot)
    assert list(content["coefficients"]) == ["dose", "age"]
    assert content["coefficients"]["age"]["mean"] == pytest.approx(0.5, abs=0.2)
    assert content["coefficients"]["dose"]["mean"] == pytest.approx(-0.3, abs=0.2)
    assert content["residual_deviation"] < 0.3
    assert plot.stat().st_size > 5000
    few.write_text("age,dose\n1,0\n0,0\n")
    one, none = run_json(capsys, "predict", model, few)["prediction"]
    assert one - none == pytest.approx(content["coefficients"]["age"]["mean"])


def test_refit_takes_another_prior(release: Path, capsys: pytest.CaptureFixture[str]):
    tight = run_json(capsys, "refit", release, "--prior-scale", "age=1e-4,dose=1,weight=1")["coefficients"]
    assert abs(tight["age"]["mean"]) < 1e-3 < abs(tight["dose"]["mean"])


def test_refit_compares_models(release: Path, capsys: pytest.CaptureFixture[str]):
    models = run_json(capsys, "refit", release, "--compare", "age,dose; weight;0")["models"]
    assert [model["features"] for model in models] == [["age", "dose"], ["weight"], []]
    assert sum(model["probability"] for model in models) == pytest.approx(1)
    assert models[0]["probability"] > 0.99


def test_refit_says_that_it_costs_nothing_and_what_was_promised(release: Path, capsys: pytest.CaptureFixture[str]):
    assert (
        main(["refit", str(release), "--compare", "age,dose;weight;0", "--plot", str(release.with_suffix(".svg"))]) == 0
    )
    out = capsys.readouterr().out
    for part in ("No privacy was spent", "released with (epsilon=5, delta=1e-05)-differential privacy", "at most 148 times",
                 "residual deviation", "no feature", "posterior probability", "< 0.001"):  # fmt: skip
        assert part in out
    picture = release.with_suffix(".svg").read_text()
    assert "noise budget by source" in picture


def test_refit_of_a_simulation_says_so(csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "release.json"
    assert main(["fit", str(csv), *BASE, "--seed", "1", "--release", str(path)]) == 0
    capsys.readouterr()
    assert main(["refit", str(path)]) == 0
    out = capsys.readouterr().out
    assert "NOT A GUARANTEE: the noise can be reproduced" in out
    assert "It was released with" not in out


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
        content = run_json(capsys, "explain", *options, "--method", method, "--dropouts", 60, "--colluders", 39)
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


@pytest.mark.parametrize("mechanism", ["discrete-gaussian", "skellam", "gaussian"])
def test_fit_takes_every_law_of_noise(csv: Path, capsys: pytest.CaptureFixture[str], mechanism: str):
    found = run_json(capsys, "fit", csv, *BASE, "--mechanism", mechanism, "--posterior", "shrinkage")
    assert found["privacy"]["guarantee"]
    assert found["privacy"]["budget"] == {"epsilon": 1.0, "delta": 1e-5}
    assert ("double precision" in json.dumps(found["privacy"])) == (mechanism == "gaussian")


def test_a_pure_budget_is_kept_by_laplace_noise_and_charged_to_a_pure_ledger(
    csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Epsilons add up; normal noise is refused by such a ledger in one line, and nothing is charged for it."""
    ledger = tmp_path / "ledger.json"
    pure = [
        "--target",
        "y",
        "--epsilon",
        "1",
        "--delta",
        "0",
        "--x-bound",
        "1",
        "--y-bound",
        "1",
        "--posterior",
        "shrinkage",
    ]
    charged = [*pure, "--mechanism", "discrete-laplace", "--ledger", ledger, "--total-epsilon", "2"]
    for _ in range(2):
        found = run_json(capsys, "fit", csv, *charged)
        assert found["privacy"]["budget"] == {"epsilon": 1.0, "delta": 0.0}
        assert found["privacy"]["guarantee"]
    before = ledger.read_text()
    assert main(["fit", *map(str, [csv, *charged])]) != 0
    said = capsys.readouterr().err
    assert "budget must cover the charge: of (epsilon=2, delta=0) epsilon=2 is spent" in " ".join(said.split())
    assert ledger.read_text() == before
