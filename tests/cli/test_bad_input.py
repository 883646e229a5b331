"""Every user's mistake: one line on standard error, exit code 2, no traceback, nothing charged or written."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hubbub.analyses.linear.release import RegressionRelease
from hubbub.cli import main
from one_line import nothing_happened, refused

GOOD = {
    "--target": "y", "--epsilon": "1", "--delta": "1e-5", "--x-bound": "1", "--y-bound": "1", "--ledger": "LEDGER",
    "--total-epsilon": "10", "--out": "MODEL",
}  # fmt: skip

CASES = {
    "epsilon zero": ({"--epsilon": "0"}, "epsilon must be positive and finite, got epsilon=0.0"),
    "epsilon negative": ({"--epsilon": "-1"}, "epsilon must be positive and finite, got epsilon=-1.0"),
    "epsilon nan": ({"--epsilon": "nan"}, "epsilon must be positive and finite, got epsilon=nan"),
    "epsilon text": ({"--epsilon": "much"}, "much"),
    "delta zero": ({"--delta": "0"}, "delta must be positive for the mechanism discrete-gaussian, whose tails no pure epsilon covers, got delta=0"),
    "delta zero, gaussian": ({"--delta": "0", "--mechanism": "gaussian"}, "delta must be positive for the mechanism gaussian"),
    "delta zero, skellam": ({"--delta": "0", "--mechanism": "skellam"}, "delta must be positive for the mechanism skellam"),
    "delta too small": ({"--delta": "1e-150"}, "budget must be at least delta=4e-98 and epsilon=2e-06 for 4 round(s) of the mechanism discrete-gaussian"),
    "delta too small, skellam": ({"--delta": "1e-25", "--mechanism": "skellam"}, "for 4 round(s) of the mechanism skellam"),
    "delta too small, gaussian": ({"--delta": "1e-16", "--mechanism": "gaussian"}, "budget must be at least delta=1e-15"),
    "unknown mechanism": ({"--mechanism": "pink"}, "mechanism must be one of discrete-gaussian, discrete-laplace, skellam, gaussian, got mechanism='pink'"),
    "no mechanism": ({"--mechanism": ""}, "mechanism must be one of discrete-gaussian"),
    "delta one": ({"--delta": "1"}, "delta must be at least 0 and below 1, got delta=1.0"),
    "y bound zero": ({"--y-bound": "0"}, "y_bound must be positive and finite, got y_bound=0.0"),
    "y bound negative": ({"--y-bound": "-2"}, "y_bound must be positive and finite, got y_bound=-2.0"),
    "x bound zero": ({"--x-bound": "0"}, "x_bound must be positive and finite, got x_bound=0.0"),
    "x bound text": ({"--x-bound": "wide"}, "x-bound must be numbers or ranges, got x-bound=wide"),
    "x bound empty": ({"--x-bound": ","}, "x-bound must be one number or 3 of them, got 0"),
    "x bound nan": ({"--x-bound": "nan"}, "x_bound must be positive and finite, got x_bound=nan"),
    "x range backwards": ({"--x-bound": "age=0:1,dose=2:1,weight=3"}, "x-bound must be ranges low:high with low < high, got 2:1"),
    "x range of a point": ({"--x-bound": "-1:-1"}, "x-bound must be ranges low:high with low < high, got -1:-1"),
    "x range infinite": ({"--x-bound": "0:inf"}, "x-bound must be ranges low:high with low < high, got 0:inf"),
    "x range of three": ({"--x-bound": "0:1:2"}, "x-bound must be numbers or ranges, got x-bound=0:1:2"),
    "x range open": ({"--x-bound": "0:"}, "x-bound must be numbers or ranges, got x-bound=0:"),
    "x range huge": ({"--x-bound": "0:1e200"}, "x_bound must be in 1e-50..1e+50"),
    "x bound named twice": ({"--x-bound": "age=1,age=2,dose=2,weight=3"}, "x-bound must name every feature once, got age twice"),
    "x bound half named": ({"--x-bound": "age=1,2,3"}, "x-bound must name every feature or none"),
    "neither bound nor norm": ({"--x-bound": None}, "x-bound or x-norm must be given, one of the two, got neither"),
    "bound and norm": ({"--x-norm": "1"}, "x-bound or x-norm must be given, one of the two, got both"),
    "norm zero": ({"--x-bound": None, "--x-norm": "0"}, "x_norm must be positive and finite, got x_norm=0.0"),
    "norm text": ({"--x-bound": None, "--x-norm": "long"}, "long"),
    "norm for plain": ({"--x-bound": None, "--x-norm": "1", "--method": "plain"}, "x-norm must be left out for method plain"),
    "y range backwards": ({"--y-bound": "1:0"}, "y-bound must be ranges low:high with low < high, got 1:0"),
    "y bounds two": ({"--y-bound": "1,2"}, "y-bound must be one entry, got 2"),
    "y bound text": ({"--y-bound": "high"}, "y-bound must be numbers or ranges, got y-bound=high"),
    "prior zero": ({"--prior-scale": "0"}, "prior-scale must be positive and finite, got prior-scale=0"),
    "prior text": ({"--prior-scale": "vague"}, "prior-scale must be positive and finite, got prior-scale=vague"),
    "prior infinite": ({"--prior-scale": "inf"}, "prior-scale must be positive and finite, got prior-scale=inf"),
    "priors too few": ({"--prior-scale": "1,2"}, "prior-scale must be one number or 3 of them, got 2"),
    "prior for projected": ({"--prior-scale": "1", "--method": "projected"}, "prior-scale must be left out for method projected"),
    "prior for shrinkage": ({"--prior-scale": "1", "--posterior": "shrinkage"}, "prior-scale must be left out for posterior shrinkage"),
    "unknown posterior": ({"--posterior": "exact"}, "exact"),
    "posterior of another method": ({"--posterior": "plugin"}, "posterior must be one of auto, noise-aware, shrinkage for method 'auto'"),
    "release for plain": ({"--release": "release.json", "--method": "plain"}, "release must be left out for method plain"),
    "release ending": ({"--release": "release.pkl"}, "--release must end in .json"),
    "release is the model": ({"--release": "MODEL"}, "release must be another file than out"),
    "x bounds too few": ({"--x-bound": "1,2"}, "x-bound must be one number or 3 of them, got 2"),
    "x bound unnamed": ({"--x-bound": "age=1,dose=2"}, "x-bound must name every feature once, got weight"),
    "x bound unknown": ({"--x-bound": "age=1,dose=2,weight=3,z=1"}, "got z missing or unknown"),
    "half a Compute": ({"--computes": "2.5"}, "--computes: must be a whole number, got 2.5"),
    "many Computes": ({"--computes": "70000"}, "computes must be a whole number in 2..1000"),
    "half a colluder": ({"--tolerate": "0.5"}, "--tolerate"),
    "huge bound": ({"--y-bound": "1e200"}, "y_bound must be in 1e-50..1e+50, got y_bound=1e+200"),
    "tiny epsilon": ({"--epsilon": "1e-12"}, "epsilon must be at least 1e-06"),
    "out is the data": ({"--out": "data.csv"}, "out must be another file than file"),
    "out is the ledger": ({"--out": "ledger.json", "--ledger": "ledger.json"}, "out must be another file than ledger"),
    "out cannot be opened": ({"--out": "x" * 300 + ".json"}, "--out must be a file in a writable folder"),
    "ledger is a folder": ({"--ledger": "."}, "ledger must be a writable file"),
    "one Compute": ({"--computes": "1"}, "computes must be a whole number in 2..1000, got computes=1"),
    "too many tolerated": ({"--tolerate": "399"}, "dropouts + colluders must be at most K - 2 = 398 for K=400 clients"),
    "tolerated negative": ({"--tolerate": "-1"}, "tolerate must be a whole number >= 0, got tolerate=-1"),
    "unknown target": ({"--target": "height"}, "target must be one of age, dose, weight, y, got target=height"),
    "unknown feature": ({"--features": "age,height"}, "column must be one of age, dose, weight, y, got column=height"),
    "target as feature": ({"--features": "age,y"}, "features must be at least one distinct column besides the target"),
    "unknown method": ({"--method": "magic"}, "magic"),
    "unknown option": ({"--colour": "red"}, "--colour"),
    "plot ending": ({"--plot": "plot.txt"}, "--plot must end in .png, .svg, .pdf"),
    "plot folder": ({"--plot": "/nowhere/plot.png"}, "--plot must be a file in a writable folder"),
    "out ending": ({"--out": "model.pkl"}, "--out must end in .json"),
    "bad seed": ({"--seed": "-1"}, "seed must be a whole number >= 0"),
    "missing delta": ({"--delta": None}, "--delta"),
    "ledger without total": ({"--total-epsilon": None}, "total-epsilon must be given for a new ledger"),
    "total without ledger": ({"--ledger": None}, "total-epsilon must be given together with --ledger"),
}  # fmt: skip

FILES = {
    "text": (
        "age,dose,weight,y\n1,2,3,4\n1,old,3,4\n",
        "column dose must hold finite numbers, got something else in line 3",
    ),
    "nan": (
        "age,dose,weight,y\n1,2,3,4\n1,nan,3,4\n",
        "column dose must hold finite numbers, got something else in line 3",
    ),
    "infinite": (
        "age,dose,weight,y\n1,2,3,inf\n1,2,3,4\n",
        "column y must hold finite numbers, got something else in line 2",
    ),
    "missing": (
        "age,dose,weight,y\n1,,3,4\n1,2,3,4\n",
        "column dose must hold finite numbers, got something else in line 2",
    ),
    "empty column": (
        "age,dose,weight,y\n1,,3,4\n2,,4,5\n",
        "column dose must hold finite numbers, got something else in line 2",
    ),
    "ragged": ("age,dose,weight,y\n1,2,3,4\n1,2,3\n", "row must have 4 cells like the header, got 3 in line 3"),
    "header only": ("age,dose,weight,y\n", "file must have a header and at least one row"),
    "empty file": ("", "file must have a header and at least one row"),
    "no name": (",dose,weight,y\n1,2,3,4\n", "header must have distinct names, got an empty name"),
    "after blank lines": (
        "age,dose,weight,y\n\n\n1,2,3,x\n",
        "column y must hold finite numbers, got something else in line 4",
    ),
    "double names": ("age,age,weight,y\n1,2,3,4\n", "header must have distinct names"),
    "one row": ("age,dose,weight,y\n1,2,3,4\n", "clients must be a whole number >= 2, got clients=1"),
}


@pytest.fixture
def folder(tmp_path: Path, regression_rows: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.savetxt(tmp_path / "data.csv", regression_rows, delimiter=",", header="age,dose,weight,y", comments="")
    return tmp_path


def fit_arguments(folder: Path, change: dict[str, str | None]) -> list[str]:
    options = {**GOOD, **change}
    places = {"LEDGER": str(folder / "ledger.json"), "MODEL": str(folder / "model.json")}
    flat = [part for key, value in options.items() if value is not None for part in (key, places.get(value, value))]
    return ["fit", str(folder / "data.csv"), *flat]


@pytest.mark.parametrize("name", CASES)
def test_bad_option(folder: Path, capsys: pytest.CaptureFixture[str], name: str):
    change, expected = CASES[name]
    refused(capsys, fit_arguments(folder, change), expected)
    nothing_happened(folder)


@pytest.mark.parametrize("name", FILES)
def test_bad_file(folder: Path, capsys: pytest.CaptureFixture[str], name: str):
    content, expected = FILES[name]
    (folder / "data.csv").write_text(content)
    refused(capsys, fit_arguments(folder, {}), expected)
    nothing_happened(folder)


def test_unreadable_files(folder: Path, capsys: pytest.CaptureFixture[str]):
    arguments = fit_arguments(folder, {})
    (folder / "data.csv").unlink()
    refused(capsys, arguments, "file must be readable")
    (folder / "data.csv").mkdir()
    refused(capsys, arguments, "file must be readable")
    (folder / "data.csv").rmdir()
    (folder / "data.csv").write_bytes(b"\xff\xfe\x00binary\x80\n1,2\n")
    refused(capsys, arguments, "file must be a UTF-8 CSV file")
    nothing_happened(folder)


def test_bad_predict(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "ledger.csv").write_text("{}")
    refused(capsys, ["predict", "none.json", "data.csv"], "model must be readable")
    refused(capsys, ["predict", "ledger.csv", "data.csv"], "model must be a file written by `hubbub fit --out`")
    assert main(["fit", "data.csv", *["--target", "y", "--epsilon", "1", "--delta", "1e-5", "--x-bound", "1", "--y-bound", "1"],
                 "--out", "model.json", "--json"]) == 0  # fmt: skip
    capsys.readouterr()
    (folder / "other.csv").write_text("age,y\n1,2\n")
    refused(capsys, ["predict", "model.json", "other.csv"], "column must be one of age, y, got column=dose")
    refused(capsys, ["predict", "model.json", "data.csv", "--out", "data.csv"], "out must be another file than file")
    (folder / "huge.csv").write_text("age,dose,weight\n1e308,1e308,1e308\n")
    refused(capsys, ["predict", "model.json", "huge.csv"], "columns must hold numbers of a sensible size")


def test_intercept_for_a_method_without_one(folder: Path, capsys: pytest.CaptureFixture[str]):
    arguments = [*fit_arguments(folder, {"--method": "plain"}), "--intercept"]
    refused(capsys, arguments, "fit_intercept must be left out for method 'plain'")
    nothing_happened(folder)


REFITS = {
    "prior zero": (["--prior-scale", "0"], "prior-scale must be positive and finite, got prior-scale=0"),
    "priors too many": (["--features", "age", "--prior-scale", "1,2"], "prior-scale must be one entry, got 2"),
    "unknown feature": (["--features", "age,height"], "features must be distinct names among age, dose, weight, got 'age,height'"),
    "feature twice": (["--features", "age,age"], "features must be distinct names among age, dose, weight"),
    "no feature": (["--features", ""], "features must be distinct names among age, dose, weight, got ''"),
    "unknown model": (["--compare", "age;height"], "compare must be distinct names among age, dose, weight, got 'height'"),
    "empty model": (["--compare", "age;"], "compare must be distinct names among age, dose, weight, got ''"),
    "model outside features": (["--features", "age,dose", "--compare", "age;weight"], "compare must be distinct names among age, dose, got"),
    "one model": (["--compare", "age,dose"], "compare must be at least two different models"),
    "same models": (["--compare", "age,dose;dose,age"], "compare must be at least two different models"),
    "plot ending": (["--plot", "plot.txt"], "--plot must end in .png, .svg, .pdf"),
    "out ending": (["--out", "model.pkl"], "--out must end in .json"),
    "out is the release": (["--out", "release.json"], "out must be another file than release"),
    "unknown option": (["--epsilon", "1"], "--epsilon"),
}  # fmt: skip

DAMAGED = {
    "format": ({"format": "other"}, "release must be a file written by `hubbub fit --release`"),
    "shape": ({"xy": [1.0]}, "release must be a file written by `hubbub fit --release`"),
    "names twice": ({"names": ["age", "age", "dose"]}, "release must be a file written by `hubbub fit --release`"),
    "names no list": ({"names": "abc"}, "release must be a file written by `hubbub fit --release`"),
    "no noise": ({"noise_std": -1}, "release must be a file written by `hubbub fit --release`"),
    "odd law of noise": ({"noise_shape": -1}, "release must be a file written by `hubbub fit --release`"),
    "nan": ({"yy": float("nan")}, "release must be a file written by `hubbub fit --release`"),
    "endless clients": ({"n": float("inf")}, "release must be a file written by `hubbub fit --release`"),
    "too many digits": ({"n": 10**400}, "release must be a file written by `hubbub fit --release`"),
    "more than rows can add up to": ({"yy": 1e200}, "release must be a file written by `hubbub fit --release`"),
    "huge scale": ({"scale": [1e300] * 4}, "release must be a file written by `hubbub fit --release`"),
    "no privacy": ({"privacy": {}}, "release must carry its privacy report"),
    "odd privacy": ({"privacy": {"guarantee": True, "budget": {"epsilon": "x"}}}, "release must carry its privacy report"),
}  # fmt: skip


@pytest.fixture
def release(folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main([*fit_arguments(folder, {"--ledger": None, "--total-epsilon": None, "--out": None}), "--seed", "0",
                 "--posterior", "shrinkage", "--release", "release.json"]) == 0  # fmt: skip
    capsys.readouterr()
    return folder / "release.json"


@pytest.mark.parametrize("name", REFITS)
def test_bad_refit(release: Path, capsys: pytest.CaptureFixture[str], name: str):
    arguments, expected = REFITS[name]
    before = release.read_text()
    refused(capsys, ["refit", "release.json", *arguments], expected)
    assert release.read_text() == before


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_release(release: Path, capsys: pytest.CaptureFixture[str], name: str):
    change, expected = DAMAGED[name]
    release.write_text(json.dumps({**json.loads(release.read_text()), **change}))
    refused(capsys, ["refit", "release.json", "--out", "model.json"], expected)
    assert not (release.parent / "model.json").exists()


def test_unreadable_release(folder: Path, capsys: pytest.CaptureFixture[str]):
    refused(capsys, ["refit", "none.json"], "release must be readable, got release=none.json")
    refused(
        capsys, ["refit", "data.csv"], "release must be a file written by `hubbub fit --release`, got release=data.csv"
    )
    refused(capsys, ["refit"], "--release requires an argument")


def test_release_that_no_sampler_can_use(
    release: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: object, **__: object) -> None:
        raise np.linalg.LinAlgError("Singular matrix")

    monkeypatch.setattr(RegressionRelease, "posterior", fail)
    refused(capsys, ["refit", "release.json"], "release must hold sums that fit together, got others in release.json")


@pytest.mark.parametrize("header", ["length [cm],a [/s],w,y", "[/foo],[b],[/b],y", "a$x_{$,$b$,c,y"])
def test_odd_column_names_are_printed_as_they_are(folder: Path, capsys: pytest.CaptureFixture[str], header: str):
    lines = (folder / "data.csv").read_text().splitlines()
    (folder / "data.csv").write_text("\n".join([header, *lines[1:]]))
    assert main(fit_arguments(folder, {"--plot": "plot.png"})) == 0
    out = capsys.readouterr().out
    for name in header.split(",")[:-1]:
        assert name in out
    assert (folder / "plot.png").exists()


def test_predict_does_without_the_target(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert main(fit_arguments(folder, {})) == 0
    (folder / "new.csv").write_text("age,dose,weight,y\n0.1,0.2,0.3,\n")
    capsys.readouterr()
    assert main(["predict", str(folder / "model.json"), str(folder / "new.csv")]) == 0
    assert capsys.readouterr().out.count("\n") == 2


@pytest.mark.parametrize(("arguments", "expected"), [
    (["explain", "--clients", "2", "--features", "3", "--epsilon", "1", "--delta", "1e-5", "--tolerate", "1"],
     "dropouts + colluders must be at most K - 2 = 0"),
    (["explain", "--clients", "9", "--features", "0", "--epsilon", "1", "--delta", "1e-5"], "features must be in 1..5000"),
    (["explain", "--clients", "9", "--features", "100000", "--epsilon", "1", "--delta", "1e-5"], "got features=100000"),
    (["explain", "--clients", "9", "--features", "2", "--epsilon", "1", "--delta", "2"], "delta must be at least 0 and below 1"),
    (["explain", "--clients", "9", "--features", "2", "--epsilon", "1", "--delta", "1e-5", "--computes", "0"],
     "computes must be a whole number in 2..1000"),
    (["demo", "--repeats", "0"], "repeats must be at least 1"),
    (["demo", "--clients", "5000"], "clients must be in 3..1598"),
    (["demo", "--epsilon", "-1"], "epsilon must be positive"),
    (["demo", "--plot", "demo.doc"], "--plot must end in"),
    (["dance"], "dance"),
])  # fmt: skip
def test_bad_explain_and_demo(capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str):
    refused(capsys, arguments, expected)
