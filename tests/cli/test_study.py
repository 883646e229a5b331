"""A study between parties, on the command line: create, check, open, contribute, close, result; and `hubbub up`."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import httpx
import numpy as np
import pytest

from hubbub.cli import main, study
from hubbub.service.canonical import sign_record
from hubbub.service.client import rounds_of
from hubbub.service.devnet import LocalComputes

pytestmark = pytest.mark.slow

STUDY = """
title = "three columns"
epsilon = 8.0
delta = 1e-5
tolerate = 2
computes = {urls}
parties = {{ hospital = 250, clinic = 150 }}
model = {{ features = ["age", "dose", "weight"], target = "y", x_bound = "1", y_bound = "-1:1" }}
"""


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict:
    code = main([*map(str, arguments), "--json"])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return json.loads(captured.out)


def failed(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([*map(str, arguments)]) == 2
    return capsys.readouterr().err


@pytest.fixture
def folder(live: LocalComputes, tmp_path: Path, regression_rows: np.ndarray) -> Path:
    (tmp_path / "study.toml").write_text(STUDY.format(urls=json.dumps(live.urls)))
    for name, part in (("hospital", regression_rows[:250]), ("clinic", regression_rows[250:])):
        np.savetxt(tmp_path / f"{name}.csv", part, delimiter=",", header="age,dose,weight,y", comments="")
    return tmp_path


def test_a_study_between_two_parties(folder: Path, capsys: pytest.CaptureFixture[str]):
    study = folder / "study.json"
    created = run(capsys, "study", "create", folder / "study.toml")
    assert len(created["study"]) == 64
    assert (folder / "study.key").stat().st_mode & 0o77 == 0
    checked = run(capsys, "study", "check", study)
    assert [row["registered"] for row in checked["computes"]] == [False] * 3
    assert run(capsys, "study", "open", study)["label"] == "columns"
    with open(folder / "study.tokens.csv") as file:
        tokens = {row["client"]: row["token"] for row in csv.DictReader(file)}
    for number, label in enumerate(("columns", "regression")):
        for party in tokens:
            arguments = ["contribute", study, folder / f"{party}.csv", "--client", party, "--yes"]
            sent = run(capsys, *arguments, *(["--token", tokens[party]] if number == 0 else []))
            assert sent["rounds"] == [{"round": number, "label": label, "samples": 250 if party == "hospital" else 150}]
        closed = run(capsys, "study", "close", study)
        assert (closed["n"], closed["next"]) == (400, "regression" if number == 0 else None)
    result = run(capsys, "study", "result", study, "--out", folder / "model.json", "--release", folder / "release.json")
    assert result["n"] == 400
    assert result["privacy"]["guarantee"] is True
    assert result["privacy"]["rounds"][0]["setting"] == "network"
    assert result["coefficients"]["age"]["mean"] == pytest.approx(0.5, abs=0.25)
    assert main(["predict", str(folder / "model.json"), str(folder / "clinic.csv")]) == 0
    capsys.readouterr()
    left = run(capsys, "study", "check", study)["computes"][0]["epsilon_left"]
    assert left == pytest.approx(0.0, abs=1e-3)


def test_contributing_shows_first_what_leaves_and_asks(folder: Path, capsys: pytest.CaptureFixture[str]):
    study = folder / "study.json"
    run(capsys, "study", "create", folder / "study.toml")
    run(capsys, "study", "open", study)
    with open(folder / "study.tokens.csv") as file:
        token = next(row["token"] for row in csv.DictReader(file) if row["client"] == "clinic")
    arguments = ["contribute", study, folder / "clinic.csv", "--client", "clinic", "--token", token]
    said = " ".join(failed(capsys, *arguments).split())
    assert "What would leave this machine" in said
    assert "64 number(s) from each of 150 sample(s)" in said
    assert "nobody can be asked" in said
    assert "token must be the one" in failed(capsys, *arguments[:-1], "00" * 32, "--outbox", folder / "other.outbox")
    wrong = ["contribute", study, folder / "hospital.csv", "--client", "clinic", "--yes"]
    assert "samples must be 150, as clinic began the study, got samples=250" in failed(capsys, *wrong)


def test_a_refused_round_is_opened_again(folder: Path, capsys: pytest.CaptureFixture[str]):
    study = folder / "study.json"
    run(capsys, "study", "create", folder / "study.toml")
    run(capsys, "study", "open", study)
    with open(folder / "study.tokens.csv") as file:
        tokens = {row["client"]: row["token"] for row in csv.DictReader(file)}
    arguments = ["contribute", study, folder / "clinic.csv", "--client", "clinic", "--yes"]
    run(capsys, *arguments, "--token", tokens["clinic"])
    said = failed(capsys, "study", "close", study)
    assert "at least N - T = 398, got 150" in said
    assert "a new round (columns) is open in its place" in said
    assert run(capsys, *arguments)["rounds"][0]["round"] == 1


def test_a_round_that_one_compute_missed_is_opened_there_by_the_same_command(
    folder: Path, capsys: pytest.CaptureFixture[str], live: LocalComputes
):
    path = folder / "study.json"
    run(capsys, "study", "create", folder / "study.toml")
    analyst = study._analyst(path, None, None)
    analyst.register()
    analyst.invite(study._read_tokens(folder / "study.tokens.csv"))
    plan, budget = study._model(analyst.study)
    first = plan.next_round(budget, analyst.study.clients, [])
    record = analyst.plan(0, first.statistic, first.noise_multiplier, first.label, first.steps)
    for url in live.urls[:2]:
        analyst.web.post(f"{url}/v1/studies/{analyst.study.id}/rounds", sign_record(record, analyst.key))
    assert run(capsys, "study", "open", path)["label"] == "columns"
    assert [
        [each.record for each in rounds_of(analyst.study, compute, analyst.web)] for compute in analyst.study.computes
    ] == [[record]] * 3
    assert "must have reports before it is closed" in failed(capsys, "study", "close", path)


def test_computes_take_a_study_once_their_operators_have_named_the_others(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
):
    """Computes as `hubbub compute init` makes them: every step that the commands print is needed, and enough."""
    with LocalComputes(tmp_path_factory.mktemp("wary"), 2, anyone=False) as computes:
        (folder / "study.toml").write_text(STUDY.format(urls=json.dumps(computes.urls)))
        analyst = run(capsys, "study", "key", folder / "analyst.key")["key"]
        created = run(capsys, "study", "create", folder / "study.toml", "--key", folder / "analyst.key")
        assert created["analyst"] == analyst
        assert not (folder / "study.key").exists()
        opening = ["study", "open", folder / "study.json", "--key", folder / "analyst.key"]
        said = failed(capsys, *opening)
        assert analyst in said
        configs = [compute.folder / "compute.toml" for compute in computes.computes]
        for config in configs:
            run(capsys, "compute", "trust", analyst, "--config", config)
        assert "--peer URL" in failed(capsys, *opening)
        keys = [httpx.get(f"{url}/v1/keys").json()["verify_key"] for url in computes.urls]
        for config, key, url in zip(configs, keys[::-1], computes.urls[::-1], strict=True):
            run(capsys, "compute", "trust", key, "--peer", url, "--config", config)
        assert run(capsys, *opening)["label"] == "columns"


def test_mistakes_are_one_line(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert "study must be readable" in failed(capsys, "study", "create", folder / "none.toml")
    (folder / "bad.toml").write_text("title = 'x'\nepsilom = 1")
    assert "got study=epsilom" in failed(capsys, "study", "create", folder / "bad.toml")
    assert "study must be readable" in failed(capsys, "study", "check", folder / "none.json")
    (folder / "junk.json").write_text("{}")
    assert "fields record and signature" in failed(capsys, "study", "result", folder / "junk.json")


def test_compute_init_makes_secret_keys_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    made = run(capsys, "compute", "init", tmp_path / "one", "--listen", "127.0.0.1:9999")
    assert len(made["verify_key"]) == 64
    assert (tmp_path / "one" / "keys.json").stat().st_mode & 0o77 == 0
    assert "without a Compute in it" in failed(capsys, "compute", "init", tmp_path / "one")
    assert "config must be readable" in failed(capsys, "compute", "serve", "--config", tmp_path / "nothing.toml")
    config = tmp_path / "one" / "compute.toml"
    config.write_text(config.read_text().replace("studies = 100", "studies = 'many'"))
    assert "limits.studies must be like 100" in failed(capsys, "compute", "serve", "--config", config)


def test_compute_status(live: LocalComputes, capsys: pytest.CaptureFixture[str]):
    assert run(capsys, "compute", "status", live.urls[0])["name"] == "compute-1"
    assert main(["compute", "status", live.urls[0]]) == 0


def test_up_runs_a_whole_study_with_tls(capsys: pytest.CaptureFixture[str]):
    result = run(capsys, "up", "--clients", 60, "--computes", 2, "--epsilon", 8)
    assert result["reports_accepted"] == [120, 120]
    assert all(url.startswith("https://") for url in result["computes"])
    assert result["privacy"]["guarantee"] is True
    assert set(result["coefficients"]) == {"age", "dose", "weight"}


def test_up_stays_until_told_to_end_and_leaves_no_process(tmp_path: Path):
    command = [
        sys.executable,
        "-m",
        "hubbub",
        "up",
        "--clients",
        "12",
        "--computes",
        "2",
        "--tolerate",
        "1",
        "--no-tls",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        urls = []
        for line in process.stdout:
            if line.strip().startswith("http://"):
                urls.append(line.strip())
            if len(urls) == 2:
                break
        assert "hubbub Compute" in httpx.get(urls[0]).text
        process.terminate()
        process.wait(30)
    for url in urls:
        with pytest.raises(httpx.TransportError):
            httpx.get(url, timeout=2)
