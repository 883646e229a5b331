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

from hubbub.analyses.linear.auto import LABELS
from hubbub.cli import main
from hubbub.cli.study import access
from hubbub.cli.study.rounds import replay_of
from hubbub.cli.tokens import read_tokens
from hubbub.errors import InvalidInput
from hubbub.service.client.rounds import rounds_of
from hubbub.service.devnet import LocalComputes
from hubbub.service.wire.canonical import sign_record
from hubbub.service.wire.web import Web
from service.live import LiveStudy
from service.meddling import says_refused, web_over

pytestmark = pytest.mark.slow

STUDY = """
title = "three columns"
epsilon = 8.0
delta = 1e-5
computes = {urls}
parties = {{ hospital = 250, clinic = 150 }}
analysis = {{ kind = "linear", features = ["age", "dose", "weight"], target = "y", x_bound = "1", y_bound = "-1:1" }}
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


@pytest.mark.parametrize("results", ["public", "analyst"])
def test_a_study_between_two_parties(folder: Path, capsys: pytest.CaptureFixture[str], results: str):
    study, source = folder / "study.json", folder / "study.toml"
    source.write_text(f'results = "{results}"\n{source.read_text()}')
    created = run(capsys, "study", "create", source)
    pin = ["--expect-study", created["fingerprints"]["study"]]
    assert len(created["study"]) == 64
    assert (folder / "study.key").stat().st_mode & 0o77 == 0
    checked = run(capsys, "study", "check", study)
    assert [row["registered"] for row in checked["computes"]] == [False] * 3
    assert run(capsys, "study", "open", study)["label"] == "columns"
    with open(folder / "study.tokens.csv") as file:
        tokens = {row["client"]: row["token"] for row in csv.DictReader(file)}
    for number, label in enumerate(LABELS):
        for party in tokens:
            arguments = ["contribute", study, folder / f"{party}.csv", "--client", party, "--yes"]
            sent = run(capsys, *arguments, *(["--token", tokens[party], *pin] if number == 0 else []))
            assert sent["rounds"] == [{"round": number, "label": label, "samples": 250 if party == "hospital" else 150}]
        closed = run(capsys, "study", "close", study)
        assert (closed["n"], closed["next"]) == (400, [*LABELS[1:], None][number])
    result = run(capsys, "study", "result", study, "--out", folder / "model.json", "--release", folder / "release.json")
    assert result["n"] == 400
    assert result["privacy"]["guarantee"] is True
    assert result["privacy"]["rounds"][0]["setting"] == "network"
    assert result["coefficients"]["age"]["mean"] == pytest.approx(0.5, abs=0.25)
    assert main(["predict", str(folder / "model.json"), str(folder / "clinic.csv")]) == 0
    capsys.readouterr()
    (folder / "study.key").rename(folder / "elsewhere.key")
    if results == "public":
        assert run(capsys, "study", "result", study)["n"] == 400
    else:
        assert "who alone is served the results of this study" in failed(capsys, "study", "result", study)
        assert run(capsys, "study", "result", study, "--key", folder / "elsewhere.key")["n"] == 400
    left = run(capsys, "study", "check", study)["computes"][0]["epsilon_left"]
    assert left == pytest.approx(0.0, abs=1e-3)


def test_a_cell_that_is_no_number_keeps_nobody_away(folder: Path, capsys: pytest.CaptureFixture[str]):
    """Staying away would tell; the data holder alone is told, with line and column, and never the value."""
    study, file = folder / "study.json", folder / "clinic.csv"
    pin = run(capsys, "study", "create", folder / "study.toml")["fingerprints"]["study"]
    run(capsys, "study", "open", study)
    with open(folder / "study.tokens.csv") as tokens:
        token = next(row["token"] for row in csv.DictReader(tokens) if row["client"] == "clinic")
    lines = file.read_text().splitlines()
    lines[7] = "0.1,very old,0.2,0.3"
    file.write_text("\n".join(lines))
    arguments = [
        "contribute",
        study,
        file,
        "--client",
        "clinic",
        "--yes",
        "--token",
        token,
        "--expect-study",
        pin,
        "--json",
    ]
    assert main([*map(str, arguments)]) == 0
    out, said = capsys.readouterr()
    assert json.loads(out)["rounds"] == [{"round": 0, "label": "columns", "samples": 150}]
    assert "column dose in line 8 of" in " ".join(said.split())
    assert "very old" not in out + said


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('days = "x"', "days must be a number above 0"), ("days = -1", "days must be a number above 0"), ("days = nan", "days must be"),
        ("days = 1e9", "days must be"), ('parties = { a = "x", b = 1 }', "parties.a must be a whole number"),
        ("parties = { a = 2.7, b = 1 }", "parties.a must be a whole number"), ('parties = ["a"]', "parties must be a table"),
        ('clients = "x"', "clients must be a whole number"), ("computes = 5", "computes must be a list of addresses"),
        ("computes = [{}]", "computes must be a list"), ('computes = ["http://127.0.0.1:99999"]', "url must be such as"),
        ('computes = ["ht!tp://x"]', "url must be such as"), ('analysis = "x"', "analysis must be a table with a kind"),
        ('analysis = { kind = "linear", features = 5 }', "features must be a list of names"),
        ('analysis = { kind = "linear", features = ["age"], target = "y", x_bound = "1", y_bound = "1", prior = 3 }', "analysis must be made of"),
        ('analysis = { kind = "linear", features = ["age"], target = "y", x_bound = "1" }', "analysis must have the entry y_bound"),
        ('analysis = { kind = "lunar" }', "kind must be one of linear"),
        ('analysis = { kind = "lunar", package = "hubbub-moon" }', "of the package 'hubbub-moon'"),
        ('analysis = { kind = "bernoulli", colour = "red" }', "analysis must have the settings of its kind"),
        ('analysis = { kind = "categorical", categories = 1 }', "categories must be"),
        ('analysis = { kind = "bernoulli", prior = 3 }', "prior must be a pair"),
        ('model = { features = ["age"] }', "[analysis] with kind"), ('privacy = { mechanism = "pink" }', "mechanism must be one of discrete-gaussian"),
        ("privacy = 3", "privacy must be a table"), ('privacy = { law = "skellam" }', "privacy must be a table"),
        ("privacy = { mechanism = 3 }", "mechanism must be one of"), ('privacy = { mechanism = "pink", package = "hubbub-paint" }', "of the package 'hubbub-paint'"),
        ('sum = { scheme = "magic" }', "scheme must be one of additive"), ("sum = 3", "sum must be a table"),
        ('sum = { scheme = "replicated", threshold = 4 }', "threshold must be a whole number in 2..3, got threshold=4"),
        ('sum = { scheme = "shamir", threshold = 1 }', "threshold must be a whole number in 2..3, got threshold=1"),
        ('sum = { scheme = "shamir", threshold = 2, cheatin = 1 }', "sum must be made of what the scheme shamir has (threshold, cheating), got sum=cheatin"),
        ('sum = { scheme = "additive", threshold = 2 }', "sum must be made of what the scheme additive has (no other entries), got sum=threshold"),
        ('sum = { scheme = "additive", threshold = 0 }', "got sum=threshold"), ('sum = { scheme = "additive", seed = "mine" }', "got sum=seed"),
        ('sum = { scheme = "replicated", threshold = 2, each = 0 }', "got sum=each"),
        ('sum = { scheme = "replicated" }', "sum must have threshold for the scheme replicated, got none"),
        ('sum = { scheme = "subset", each = 4 }', "each must be a whole number in 2..3, got each=4"),
        ('sum = { scheme = "subset", each = 1 }', "each must be a whole number in 2..3, got each=1"),
        ('sum = { scheme = "subset" }', "sum must have each, or conspiring and risk"),
        ('sum = { scheme = "subset", risk = 0.1 }', "sum must have each, or conspiring and risk"),
        ('sum = { scheme = "subset", each = 2, conspiring = 2, risk = 0.1 }', "sum must have each, or conspiring and risk"),
        ('sum = { scheme = "subset", conspiring = 3, risk = 0.1 }', "conspiring must be a whole number in 0..2"),
        ('sum = { scheme = "subset", conspiring = 2, risk = 0 }', "risk must be a number of clients above 0"),
        ('sum = { scheme = "subset", conspiring = 2, risk = "no" }', "risk must be a number of clients above 0"),
        ('sum = { scheme = "subset", every = 2 }', "sum must be made of scheme, each, conspiring, risk"),
        ('sum = { scheme = "subset", each = 2, seed = "mine" }', "a seed must be drawn, not chosen"),
    ],
)  # fmt: skip
def test_a_bad_entry_of_a_study_is_one_line_and_nothing_is_written(
    folder: Path, capsys: pytest.CaptureFixture[str], line: str, message: str
):
    source, entry = folder / "study.toml", line.split(" =")[0]
    drop = ("parties", "clients") if entry in ("parties", "clients") else (entry,)
    kept = [text for text in source.read_text().splitlines() if not text.startswith(drop)]
    source.write_text("\n".join([*kept, line]))
    said = failed(capsys, "study", "create", source)
    assert message in said
    assert len(said.strip().splitlines()) <= 4  # one sentence, as wide as a terminal
    assert not (folder / "study.json").exists()


def test_tokens_of_another_study_invite_nobody(folder: Path, capsys: pytest.CaptureFixture[str]):
    run(capsys, "study", "create", folder / "study.toml")
    (folder / "few.csv").write_text("client,token,samples\n")
    said = failed(capsys, "study", "open", folder / "study.json", "--tokens", folder / "few.csv")
    assert "tokens must be of the study's 2 clients with 400 samples, got 0 with 0" in " ".join(said.split())


@pytest.mark.parametrize(
    "reply", [[], {}, {"rounds": 5}, {"rounds": [{}]}, {"rounds": [{"record": 7, "state": "open"}]}]
)
def test_a_compute_that_answers_nonsense_is_one_line(live: LocalComputes, tmp_path: Path, reply: object):
    made = LiveStudy(live, tmp_path)
    web = Web(httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200, json=reply))))
    with pytest.raises(InvalidInput, match="must answer with the study's rounds, got something else"):
        rounds_of(made.study, made.study.computes[0], web)


def test_a_refused_round_is_opened_again(folder: Path, capsys: pytest.CaptureFixture[str]):
    study = folder / "study.json"
    pin = run(capsys, "study", "create", folder / "study.toml")["fingerprints"]["study"]
    run(capsys, "study", "open", study)
    with open(folder / "study.tokens.csv") as file:
        tokens = {row["client"]: row["token"] for row in csv.DictReader(file)}
    arguments = ["contribute", study, folder / "clinic.csv", "--client", "clinic", "--yes"]
    run(capsys, *arguments, "--token", tokens["clinic"], "--expect-study", pin)
    said = failed(capsys, "study", "close", study)
    assert "clients must number at least 2 (all 2 but 0 dropouts), got 1" in said
    assert "a new round (columns) is open in its place" in said
    assert run(capsys, *arguments)["rounds"][0]["round"] == 1


def test_a_round_that_one_compute_only_says_it_refused_is_not_opened_again(
    folder: Path, capsys: pytest.CaptureFixture[str], live: LocalComputes, monkeypatch: pytest.MonkeyPatch
):
    path = folder / "study.json"
    pin = run(capsys, "study", "create", folder / "study.toml")["fingerprints"]["study"]
    run(capsys, "study", "open", path)
    with open(folder / "study.tokens.csv") as file:
        for row in csv.DictReader(file):
            arguments = ["--client", row["client"], "--token", row["token"], "--yes", "--expect-study", pin]
            run(capsys, "contribute", path, folder / f"{row['client']}.csv", *arguments)
    with monkeypatch.context() as patch:
        patch.setattr(access, "web_to", lambda *_, **__: web_over(says_refused(live.urls[1])))
        said = failed(capsys, "study", "close", path)
    assert "compute-2 has not signed a refusal" in said
    assert "no new round is opened: ask the operators of those Computes" in said
    record = access.signed_study(path)
    assert [each.state for each in rounds_of(record, record.computes[0], access.web_to(None))] == ["released"]
    assert run(capsys, "study", "close", path)["next"] == "regression"  # it has released after all


def test_a_round_that_one_compute_missed_is_opened_there_by_the_same_command(
    folder: Path, capsys: pytest.CaptureFixture[str], live: LocalComputes
):
    path = folder / "study.json"
    run(capsys, "study", "create", folder / "study.toml")
    analyst = access.as_analyst(path, None, None)
    analyst.register()
    analyst.invite(read_tokens(folder / "study.tokens.csv"))
    record = analyst.plan(0, replay_of(analyst.study).next_round([]))
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
    assert result["reports_accepted"] == [240, 240]
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
