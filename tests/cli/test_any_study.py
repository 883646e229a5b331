"""Studies of every kind of analysis on live Computes, through the commands that people use."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from cli.test_study import failed, run
from hubbub.analyses.saved import load_model
from hubbub.cli.contribute import _staying
from hubbub.errors import InvalidInput
from hubbub.experiments.trials import TRIALS
from hubbub.service.devnet import LocalComputes
from hubbub.service.wire.web import Unreachable

pytestmark = pytest.mark.slow

PARTIES = {"hospital": 500, "clinic": 300, "registry": 400}
ONE_ROUND = ("bernoulli", "categorical", "gaussian", "poisson")
TRUTHS = {
    "bernoulli": {"probability": 0.3},
    "categorical": {f"probability of {k}": p for k, p in enumerate((0.4, 0.3, 0.2, 0.1))},
    "gaussian": {"mean": -1.0, "variance": 2.25},
    "poisson": {"rate": 2.5},
}


def write_study(folder: Path, urls: tuple[str, ...], kind: str, **settings: object) -> list[str]:
    """study.toml, and a CSV file for each party; returns the columns."""
    trial = TRIALS[kind]
    entries = {"kind": kind, **trial.settings, **settings}
    lines = [f"{name} = {json.dumps(value)}" for name, value in entries.items()]
    parties = ", ".join(f"{name} = {samples}" for name, samples in PARTIES.items())
    head = [f"title = {json.dumps(trial.title)}", "epsilon = 8.0", "delta = 1e-5", f"computes = {json.dumps(urls)}"]
    (folder / "study.toml").write_text("\n".join([*head, f"parties = {{ {parties} }}", "[analysis]", *lines]))
    columns = [*entries["features"]] if "features" in entries else [entries["column"]]
    columns += [entries["target"]] if "target" in entries else []
    rows, start = trial.rows(np.random.default_rng(1), sum(PARTIES.values())), 0
    for name, samples in PARTIES.items():
        part = rows[start : start + samples]
        np.savetxt(folder / f"{name}.csv", part, delimiter=",", header=",".join(columns), comments="")
        start += samples
    return columns


def read_tokens(folder: Path) -> dict[str, str]:
    with open(folder / "study.tokens.csv") as file:
        return {row["client"]: row["token"] for row in csv.DictReader(file)}


@pytest.mark.parametrize("kind", ONE_ROUND)
def test_a_study_of_one_sum(live: LocalComputes, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str):
    write_study(tmp_path, live.urls, kind)
    study = tmp_path / "study.json"
    pin = run(capsys, "study", "create", tmp_path / "study.toml")["fingerprints"]["study"]
    run(capsys, "study", "open", study)
    for party, token in read_tokens(tmp_path).items():
        arguments = ["--client", party, "--token", token, "--yes", "--expect-study", pin]
        run(capsys, "contribute", study, tmp_path / f"{party}.csv", *arguments)
    assert "must have released all its rounds, got 0" in failed(capsys, "study", "result", study)
    assert run(capsys, "study", "close", study)["next"] is None
    result = run(capsys, "study", "result", study)
    assert result["privacy"]["guarantee"] is True
    assert result["n"] == 1200
    for name, truth in TRUTHS[kind].items():
        assert result["quantities"][name]["low"] - 0.15 < truth < result["quantities"][name]["high"] + 0.15
    said = failed(capsys, "study", "result", study, "--out", tmp_path / "model.json")
    assert "--out must be left out for this analysis" in " ".join(said.split())


@pytest.mark.parametrize(("kind", "steps"), [("glm", 4), ("logistic", 10), ("mixture", 4)])
def test_a_study_of_many_rounds_is_followed(
    live: LocalComputes, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, steps: int
):
    write_study(tmp_path, live.urls, kind, **({} if kind == "glm" else {"steps": steps}))
    study = tmp_path / "study.json"
    pin = run(capsys, "study", "create", tmp_path / "study.toml")["fingerprints"]["study"]
    run(capsys, "study", "open", study)
    followers = [
        subprocess.Popen(
            [sys.executable, "-m", "hubbub", "contribute", study, tmp_path / f"{party}.csv", "--client", party,
             "--token", token, "--yes", "--follow", "--expect-study", pin, "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for party, token in read_tokens(tmp_path).items()
    ]  # fmt: skip
    for number in range(steps):
        _wait_for_reports(capsys, live.urls, number, followers)
        closed = run(capsys, "study", "close", study)
        assert (closed["round"], closed["n"], closed["next"] is None) == (number, 1200, number == steps - 1)
    for follower in followers:
        out, said = follower.communicate(timeout=60)
        assert follower.returncode == 0, said
        assert [each["round"] for each in json.loads(out)["rounds"]] == list(range(steps))
    result = run(capsys, "study", "result", study)
    assert result["privacy"]["guarantee"] is True
    if kind == "glm":
        files = ["--out", tmp_path / "model.json", "--release", tmp_path / "release.json"]
        assert run(capsys, "study", "result", study, *files) == result
        assert run(capsys, "refit", tmp_path / "release.json")["coefficients"] == result["coefficients"]
        assert load_model(tmp_path / "model.json").coefficients() == result["coefficients"]
        age = result["coefficients"]["age"]
        assert age["low"] < 0.03 < age["high"] < 0.2
        return
    assert result["privacy"]["steps"] == steps
    if kind == "logistic":
        assert result["coefficients"]["first"]["mean"] > 0.3 > -0.3 > result["coefficients"]["second"]["mean"]


def _wait_for_reports(
    capsys: pytest.CaptureFixture[str], urls: tuple[str, ...], number: int, followers: list[subprocess.Popen[str]]
) -> None:
    """Until every Compute holds the reports of all parties for this round of the youngest study."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        found = [run(capsys, "compute", "status", url)["studies"][-1]["rounds"] for url in urls]
        if all(len(rounds) > number and rounds[number]["reports"] == len(PARTIES) for rounds in found):
            return
        time.sleep(0.1)
    for follower in followers:
        follower.kill()
    said = [follower.communicate()[1][-500:] for follower in followers]
    raise AssertionError(f"round {number} has not had all reports within two minutes, got {found} and {said}")


def test_who_follows_a_study_stays_while_a_compute_is_away(capsys: pytest.CaptureFixture[str]):
    """Said once; and what is no outage ends it."""
    answers: list[str | Exception] = [Unreachable("no answer"), Unreachable("no answer"), "round 2"]

    def call() -> str:
        found = answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    assert _staying(call) == "round 2"
    assert capsys.readouterr().err.count("waiting: no answer") == 1
    answers.append(InvalidInput("not an outage"))
    with pytest.raises(InvalidInput):
        _staying(call)
