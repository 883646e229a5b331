"""`hubbub fit --family`: labels and counts on the command line, files, predictions, forecasts, and bad input in one line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hubbub.analyses.glm.families import FAMILIES
from hubbub.cli import main, table
from hubbub.cli.table import coded, read_table
from hubbub.errors import InvalidInput
from one_line import nothing_happened, refused

BASE = {
    "--target": "claim", "--features": "age,smoker", "--family": "bernoulli", "--classes": "no,yes", "--epsilon": "1",
    "--delta": "1e-5", "--x-bound": "age=0:110,smoker=0:1", "--ledger": "ledger.json", "--total-epsilon": "10",
    "--out": "model.json",
}  # fmt: skip
COUNTS = {"--target": "visits", "--family": "poisson", "--classes": None, "--y-bound": "20"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng, n = np.random.default_rng(4), 1500
    age, smoker = rng.normal(50, 12, n).round(1), (rng.random(n) < 0.3).astype(int)
    claim = rng.random(n) < 1 / (1 + np.exp(2.5 - 0.05 * age - 0.5 * smoker))
    visits = rng.poisson(np.exp(0.02 * age + 0.4 * smoker))
    lines = [
        f"{a},{s},{'yes' if c else ' no '},{int(c)},{v}" for a, s, c, v in zip(age, smoker, claim, visits, strict=True)
    ]
    (tmp_path / "data.csv").write_text("\n".join(["age,smoker,claim,flag,visits", *lines]))
    return tmp_path


def arguments(change: dict[str, str | None], *more: str) -> list[str]:
    options = {**BASE, **change}
    return [
        "fit",
        "data.csv",
        *(part for key, value in options.items() if value is not None for part in (key, value)),
        *more,
    ]


def fitted(capsys: pytest.CaptureFixture[str], change: dict[str, str | None], *more: str) -> dict:
    assert main(arguments({"--ledger": None, "--total-epsilon": None, **change}, "--seed", "3", "--json", *more)) == 0
    return json.loads(capsys.readouterr().out)


def test_a_yes_or_no_from_the_fit_to_predictions(folder: Path, capsys: pytest.CaptureFixture[str]):
    found = fitted(capsys, {}, "--release", "release.json", "--plot", "plot.png")
    assert (found["family"], found["classes"], found["target"], found["n"]) == (
        "bernoulli",
        ["no", "yes"],
        "claim",
        1500,
    )
    assert found["coefficients"]["age"]["low"] < 0.05 < found["coefficients"]["age"]["high"]
    assert (folder / "plot.png").stat().st_size > 1000
    assert main(["predict", "model.json", "data.csv"]) == 0
    captured = capsys.readouterr()
    header, *lines = captured.out.splitlines()
    assert header == "probability,low,high"
    rows = np.array([line.split(",") for line in lines], dtype=float)
    assert (rows[:, 1] < rows[:, 0]).all()
    assert (rows[:, 0] < rows[:, 2]).all()
    claim = np.char.strip(np.loadtxt("data.csv", delimiter=",", skiprows=1, usecols=2, dtype=str)) == "yes"
    assert rows[claim, 0].mean() > rows[~claim, 0].mean() + 0.05
    assert f"column claim: {np.mean((rows[:, 0] - claim) ** 2):.4g} (exact" in " ".join(captured.err.split())
    assert main(["refit", "release.json", "--prior-scale", "1e-5", "--out", "small.json", "--json"]) == 0
    small = json.loads(capsys.readouterr().out)
    assert abs(small["coefficients"]["age"]["mean"]) < 1e-4
    assert (small["classes"], small["n"], small["further_epsilon"]) == (["no", "yes"], 1500, 0.0)
    assert main(["predict", "small.json", "data.csv", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["classes"] == ["no", "yes"]
    assert len(again["probability"]) == len(again["high"]) == 1500
    assert 0.1 < again["brier"] < 0.3


def test_counts(folder: Path, capsys: pytest.CaptureFixture[str]):
    found = fitted(capsys, COUNTS)
    assert "classes" not in found
    assert found["coefficients"]["smoker"]["low"] < 0.4 < found["coefficients"]["smoker"]["high"]
    assert main(["predict", "model.json", "data.csv", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows["mae"] < 2
    assert np.mean(rows["expected"]) == pytest.approx(3.2, abs=0.5)


def test_rates_for_an_exposure(folder: Path, capsys: pytest.CaptureFixture[str]):
    rng, lines = np.random.default_rng(7), (folder / "data.csv").read_text().splitlines()
    years = rng.uniform(0.5, 4, len(lines) - 1).round(2)
    rows = [line.split(",") for line in lines[1:]]
    visits = rng.poisson(years * np.exp(0.02 * np.array([float(row[0]) for row in rows]) - 1))
    (folder / "data.csv").write_text(
        "\n".join(
            [
                "age,smoker,years,visits",
                *(f"{r[0]},{r[1]},{t},{v}" for r, t, v in zip(rows, years, visits, strict=True)),
            ]
        )
    )
    given = {**COUNTS, "--exposure": "years", "--exposure-bound": "0.5:4", "--features": None}
    found = fitted(capsys, given, "--release", "release.json")
    assert found["exposure"] == "years"
    assert list(found["coefficients"]) == ["age", "smoker"]
    assert found["intercept"] == pytest.approx(-1, abs=0.3)
    assert main(["predict", "model.json", "data.csv", "--json"]) == 0
    expected = np.array(json.loads(capsys.readouterr().out)["expected"])
    (folder / "rate.csv").write_text("age,smoker\n" + "\n".join(f"{r[0]},{r[1]}" for r in rows))
    assert main(["predict", "model.json", "rate.csv", "--json"]) == 0
    np.testing.assert_allclose(expected, years * np.array(json.loads(capsys.readouterr().out)["expected"]))
    assert main(["refit", "release.json", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["exposure"] == "years"


def test_labels_are_codes_whatever_they_are(folder: Path):
    read = read_table(folder / "data.csv")
    flag = read.numbers(["flag"])[:, 0]
    for name, classes in (("claim", ("no", "yes")), ("flag", ("0", "1")), ("flag", ("0.0", "1e0"))):
        np.testing.assert_array_equal(coded(read, name, classes), flag)
    np.testing.assert_array_equal(coded(read, "claim", ("yes", "no")), 1 - flag)
    np.testing.assert_array_equal(coded(read, "flag", ("1", "0")), 1 - flag)


def test_what_is_printed_says_of_whom_and_what_is_not_promised(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert main(arguments({"--family": "probit"})) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "family probit, for the probability that claim is yes" in shown
    assert "labels of one kind only by a classifier that is not told its classes" in shown
    assert "Guarantee: (epsilon=1, delta=1e-05)-differential privacy" in shown


def test_labels_of_one_kind_are_fitted(folder: Path, capsys: pytest.CaptureFixture[str]):
    """A single row must not decide whether a fit fails."""
    (folder / "data.csv").write_text("age,smoker,claim\n" + "\n".join(f"{30 + k % 40},{k % 2},no" for k in range(300)))
    assert fitted(capsys, {})["intercept"] < 0


@pytest.mark.parametrize(
    "cells", [["no", "yes", " yes", '"no"'], ["yes", "no", "", "no"], ["no", "maybe", "yes"], ["é", "no"]]
)
@pytest.mark.parametrize("classes", [("no", "yes"), ("é", "no")])
def test_large_files_and_parquet_have_the_codes_of_small_ones(
    tmp_path: Path, cells: list[str], classes: tuple[str, str]
):
    path = tmp_path / "data.csv"
    path.write_text("\n".join(["x;y", *(f"{k};{cell}" for k, cell in enumerate(cells))]), encoding="utf-8")
    pq.write_table(pa.table({"y": [cell.strip('"') or None for cell in cells]}), tmp_path / "data.parquet")

    def codes(name: str) -> list[float] | None:
        try:
            return coded(read_table(tmp_path / name), "y", classes).tolist()
        except InvalidInput:
            return None

    small, parquet = codes("data.csv"), codes("data.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "LARGE_BYTES", 0)
        assert codes("data.csv") == small == parquet
        with pytest.raises(InvalidInput, match=r"got another in line 2 of .*data.csv"):
            coded(read_table(path), "y", ("a", "b"))


CASES = {
    "unknown family": ({"--family": "normal"}, f"family must be one of {', '.join(FAMILIES)}, got family=normal"),
    "no classes for text": ({"--classes": None}, "column claim must hold one of the two labels 0 and 1, got another in line 2"),
    "another label": ({"--classes": "no,perhaps"}, "column claim must hold one of the two labels no and perhaps, got another in"),
    "one class": ({"--classes": "yes"}, "classes must be two distinct labels, got classes=yes"),
    "same classes": ({"--classes": "yes, yes"}, "classes must be two distinct labels, got classes=yes, yes"),
    "three classes": ({"--classes": "no,yes,maybe"}, "classes must be two distinct labels"),
    "empty class": ({"--classes": "no,"}, "classes must be two distinct labels"),
    "classes of counts": ({**COUNTS, "--classes": "0,1"}, "classes must be left out for family poisson, got classes=0,1"),
    "classes alone": ({"--family": None, "--y-bound": "1"}, "classes must be given together with --family"),
    "bound of a yes or no": ({"--y-bound": "1"}, "y-bound must be left out for family bernoulli, got y-bound=1"),
    "no bound of counts": ({**COUNTS, "--y-bound": None}, "y-bound must be given for family poisson, got none"),
    "no bound at all": ({"--family": None, "--classes": None}, "y-bound must be given, got none; give e.g. --y-bound 10"),
    "bound of counts below zero": ({**COUNTS, "--y-bound": "-5:20"}, "y_bound must be (0, B) for counts"),
    "bound of counts zero": ({**COUNTS, "--y-bound": "0"}, "y_bound must be positive and finite, got y_bound=0.0"),
    "counts that are none": ({**COUNTS, "--target": "age", "--features": "smoker", "--x-bound": "1"}, "y must be a whole number >= 0"),
    "exposure without bound": ({**COUNTS, "--exposure": "flag"}, "exposure-bound must be given with the other, got none"),
    "bound without exposure": ({**COUNTS, "--exposure-bound": "0.1:9"}, "exposure must be given with the other, got none"),
    "exposure from zero": ({**COUNTS, "--exposure": "age", "--features": "smoker", "--x-bound": "1", "--exposure-bound": "0:110"}, "exposure_bound must be above 0"),
    "exposure of zero": ({**COUNTS, "--exposure": "flag", "--exposure-bound": "0.1:1"}, "exposure must be above zero in every row, got others"),
    "exposure of a yes or no": ({"--exposure": "age", "--exposure-bound": "1:2"}, "exposure must be left out for family bernoulli, got exposure=age"),
    "exposure alone": ({"--family": None, "--classes": None, "--y-bound": "1", "--exposure": "age"}, "exposure must be given together with --family"),
    "exposure unknown": ({**COUNTS, "--exposure": "years", "--exposure-bound": "1:2"}, "column must be one of age, smoker, claim, flag, visits, got column=years"),
    "exposure as a feature": ({**COUNTS, "--exposure": "age", "--exposure-bound": "1:2"}, "features must be at least one distinct column besides the target"),
    "exposure as the target": ({**COUNTS, "--exposure": "visits", "--exposure-bound": "1:2"}, "exposure must be another column than the target"),
    "norm": ({"--x-bound": None, "--x-norm": "1"}, "x-norm must be left out with --family, got x-norm=1.0"),
    "method": ({"--method": "plain"}, "method must be left out with --family, got method=plain"),
    "posterior": ({"--posterior": "shrinkage"}, "posterior must be left out with --family, got posterior=shrinkage"),
    "no bounds of features": ({"--x-bound": None}, "x-bound or x-norm must be given, one of the two, got neither"),
    "prior zero": ({"--prior-scale": "0"}, "prior-scale must be positive and finite"),
    "unknown target": ({"--target": "height"}, "target must be one of age, smoker, claim, flag, visits, got target=height"),
    "text among features": ({"--features": "age,claim", "--target": "flag", "--x-bound": "1", "--classes": None}, "column claim must hold finite numbers, got something else in line 2"),
    "too many tolerated": ({"--tolerate": "1499"}, "dropouts + colluders must be at most K - 2 = 1498"),
    "tiny delta": ({"--delta": "1e-150"}, "for 4 round(s) of the mechanism discrete-gaussian"),
    "labels in spark": ({"--engine": "spark"}, "classes must be left out for the engine spark, got classes=no,yes; code the column as 0 and 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_bad_option(folder: Path, capsys: pytest.CaptureFixture[str], name: str):
    change, expected = CASES[name]
    refused(capsys, arguments(change), expected)
    nothing_happened(folder)


def test_no_intercept(folder: Path, capsys: pytest.CaptureFixture[str]):
    refused(capsys, arguments({}, "--no-intercept"), "intercept must be left out with --family, got intercept=False")


FILES = {
    "a release in place of a model": (["predict", "release.json", "data.csv"], "model must be a 'hubbub linear regression 2' or"),
    "a model in place of a release": (["refit", "model.json"], "release must be a 'hubbub regression release 2' or a"),
    "fewer features": (["refit", "release.json", "--features", "age"], "features must be left out for a generalised linear model, got"),
    "models compared": (["refit", "release.json", "--compare", "age;smoker"], "compare must be left out for a generalised linear model"),
    "missing column": (["predict", "model.json", "other.csv"], "column must be one of age, claim, got column=smoker"),
}  # fmt: skip


def test_files_that_do_not_fit(folder: Path, capsys: pytest.CaptureFixture[str]):
    fitted(capsys, COUNTS, "--release", "release.json")
    (folder / "other.csv").write_text("age,claim\n1,no\n")
    for command, expected in FILES.values():
        refused(capsys, command, expected)
    for file, command in (
        ("model.json", ["predict", "model.json", "data.csv"]),
        ("release.json", ["refit", "release.json"]),
    ):
        (folder / file).write_text(json.dumps({**json.loads((folder / file).read_text()), "family": "other"}))
        refused(capsys, command, "must be a file written by `hubbub fit --")


def explain(*more: str) -> list[str]:
    given = {"--clients": "5000", "--features": "4", "--epsilon": "1", "--delta": "1e-5"}
    given.update(zip(more[::2], more[1::2], strict=True))
    return ["explain", *(part for pair in given.items() for part in pair)]


def test_explain_forecasts_and_says_what_it_assumes(capsys: pytest.CaptureFixture[str]):
    def explained(*more: str) -> dict:
        assert main([*explain(*more), "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    even, rare = explained("--family", "bernoulli"), explained("--family", "bernoulli", "--mean", "0.05")
    assert [r["label"] for r in even["rounds"]] == ["columns", "step 1", "step 2", "step 3"]
    assert even["expected"]["interval_width"] < rare["expected"]["interval_width"]
    assert even["expected"]["mean"] == 0.5
    assert explained("--family", "poisson", "--y-bound", "20")["expected"]["mean"] == 2.0
    assert explained("--family", "poisson", "--y-bound", "0:20", "--mean", "3")["expected"]["mean"] == 3.0
    assert explained("--family", "bernoulli", "--epsilon", "0.001")["cautions"]
    assert main(explain("--family", "poisson", "--y-bound", "20", "--epsilon", "0.01")) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "give the linear predictor a deviation of 0.7, and y has a mean of 2 (--mean says otherwise)" in shown
    assert "of the linear predictor per deviation of x" in shown
    assert "Verdict: hopeless" in shown


@pytest.mark.parametrize(("more", "expected"), [
    (["--family", "normal"], "family must be one of bernoulli"),
    (["--family", "poisson"], "y-bound must be given for family poisson, got none"),
    (["--family", "bernoulli", "--y-bound", "1"], "y-bound must be left out for family bernoulli"),
    (["--family", "bernoulli", "--mean", "1"], "mean must be between 0 and 1, got mean=1.0"),
    (["--family", "bernoulli", "--mean", "nan"], "mean must be between 0 and 1, got mean=nan"),
    (["--family", "poisson", "--y-bound", "20", "--mean", "-1"], "mean must be between 0 and 20, got mean=-1.0"),
    (["--family", "bernoulli", "--method", "plain"], "method must be left out with --family, got method=plain"),
    (["--family", "bernoulli", "--features", "2000"], "state must be a whole number in 1..1400"),
    (["--mean", "3"], "mean must be given together with --family, got mean=3.0"),
])  # fmt: skip
def test_bad_explain(capsys: pytest.CaptureFixture[str], more: list[str], expected: str):
    refused(capsys, explain(*more), expected)
