"""Studies whose clients use some of the Computes each, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cli.test_any_study import read_tokens
from cli.test_study import failed, run
from hubbub.cli import main
from hubbub.cli.schemes import about, too_few
from hubbub.privacy import Population
from hubbub.securesum import Replicated, Subset
from hubbub.service.devnet import LocalComputes

CLIENTS = 45  # with whom the chance of loose-computes is below 1e-6 (3 Computes, 2 for each)
STUDY = """
title = "who smokes"
clients = {clients}
epsilon = 8.0
delta = 1e-5
computes = {urls}
{inline}
[analysis]
kind = "bernoulli"
column = "smokes"
{table}
"""
EXPLAIN = ["explain", "--clients", 1000, "--features", 2, "--epsilon", 1, "--delta", 1e-5]


def write(folder: Path, urls: tuple[str, ...], inline: str = "", table: str = "", clients: int = CLIENTS) -> Path:
    source = folder / "study.toml"
    source.write_text(STUDY.format(clients=clients, urls=json.dumps(urls), inline=inline, table=table))
    return source


def test_the_smallest_k_for_a_risk_is_found_in_both_forms(
    live: LocalComputes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """45 clients, 2 of 3 conspire: k = 2 exposes 15 of them, k = 3 nobody."""
    goal = "conspiring = 2, risk = {risk}"
    for number, (risk, each) in enumerate([(15.0, 2), (0.5, 3)]):
        table = f'[sum]\nscheme = "subset"\nconspiring = 2\nrisk = {risk}'
        for form, text in (("inline", f'sum = {{ scheme = "subset", {goal.format(risk=risk)} }}'), ("table", table)):
            source = write(tmp_path, live.urls, **{form: text})
            found = run(capsys, "study", "create", source, "--out", tmp_path / f"{form}{number}.json")["secure_sum"]
            assert (found["scheme"], found["each"], found["quorum"], found["may_be_lost"]) == ("subset", each, 3, 0)
            assert "seed" not in found
    assert main(["study", "create", str(write(tmp_path, live.urls, table='[sum]\nscheme = "subset"\neach = 2'))]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "each client uses 2 of 3 Computes, drawn by them when the study is opened" in said
    assert "expected exposed clients of 45" in said
    assert "tell each client its name before `study open`" in said


@pytest.mark.slow
def test_a_study_from_create_to_result(live: LocalComputes, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    source, study = write(tmp_path, live.urls, table='[sum]\nscheme = "subset"\neach = 2'), tmp_path / "study.json"
    pin = run(capsys, "study", "create", source)["fingerprints"]["study"]
    run(capsys, "study", "open", study)
    run(capsys, "study", "open", study)  # the same command again changes nothing
    values = np.arange(CLIENTS) % 3 == 0
    for number, (client, token) in enumerate(read_tokens(tmp_path).items()):
        (tmp_path / "own.csv").write_text(f"smokes\n{int(values[number])}\n")
        trust = ["--trust", 1] if number else ["--trust", 2]
        arguments = ["contribute", study, tmp_path / "own.csv", "--client", client, "--token", token, *trust]
        if number == 0:
            refused = " ".join(failed(capsys, *arguments, "--yes", "--expect-study", pin).split())
            assert "trust must be at most 1, as more of its 3 Computes (scheme subset) would read vectors" in refused
            arguments = arguments[:-2]
        assert main([*map(str, arguments), "--yes", "--expect-study", pin]) == 0
        said = " ".join(capsys.readouterr().err.split())
    assert "split into 2 shares for 2 of the 3 Computes, drawn by lot when all clients were invited" in said
    assert "a group of 2 or more of the 3 Computes reads the numbers" in said
    assert "expected are 33 % with 2" in said
    assert "if every client was told its name before the draw" in said
    assert "your Computes, drawn by lot: " in said
    assert "every Compute that serves you has confirmed" in said
    assert run(capsys, "study", "close", study)["next"] is None
    assert "without must be one of compute-" in failed(capsys, "study", "result", study, "--without", "nobody")
    result = run(capsys, "study", "result", study)
    assert result["n"] == CLIENTS
    assert result["privacy"]["guarantee"] is True
    assert any("expected are 33 % with 2" in each for each in result["privacy"]["not_promised"])


@pytest.mark.slow
def test_up_runs_a_whole_study(capsys: pytest.CaptureFixture[str]):
    result = run(capsys, "up", "--computes", 5, "--subset", 2, "--clients", 90, "--analysis", "bernoulli", "--no-tls")
    assert sum(result["reports_accepted"]) == 180
    assert max(result["reports_accepted"]) < 90
    assert result["scheme"] == {"scheme": "subset", "computes": 5, "each": 2}


def test_what_up_cannot_do_is_one_line(capsys: pytest.CaptureFixture[str]):
    few = failed(capsys, "up", "--computes", 8, "--subset", 3, "--clients", 30)
    assert (
        "clients must be at least 93, of whom 5 may be missing, to tie 8 Computes together, 3 for each client, got"
        in " ".join(few.split())
    )
    assert "each must be a whole number in 2..8, got each=9" in failed(capsys, "up", "--computes", 8, "--subset", 9)
    assert "threshold must be left out with --subset" in failed(capsys, "up", "--subset", 2, "--threshold", 2)
    lost = " ".join(failed(capsys, "up", "--subset", 2, "--lose", 1, "--clients", 200).split())
    assert "lose must be left out with --subset, where all Computes must answer" in lost
    assert "there are only 8 Computes" in " ".join(failed(capsys, "up", "--computes", 8, "--subset", 9).split())


def test_those_who_may_be_missing_tie_nothing_together():
    """As many clients as are enough if all are there are too few if 5 of them may be missing."""
    scheme = Subset(3, 2)
    enough = about(scheme, Population(60, 0, 5))["clients_needed"]
    assert about(scheme, Population(60, 5, 5))["clients_needed"] == enough + 5
    for dropouts, said in (
        (0, ""),
        (5, f"Take care: {enough + 5} clients, of whom 5 may be missing, are needed to tie 3"),
    ):
        people = Population(enough, dropouts, 5)
        assert too_few(about(scheme, people), people).startswith(said)
        assert bool(too_few(about(scheme, people), people)) == bool(said)


def test_how_many_may_be_dishonest_is_never_rounded(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    said = failed(capsys, "contribute", tmp_path / "study.json", tmp_path / "x.csv", "--client", "a", "--trust", "1.9")
    assert "--trust: must be a whole number, got 1.9" in said


def test_explain_says_what_each_scheme_rests_on(capsys: pytest.CaptureFixture[str]):
    found = {
        name: run(capsys, *EXPLAIN, "--scheme", name, *numbers)["secure_sum"]
        for name, numbers in {
            "additive": ["--computes", 5], "replicated": ["--computes", 5, "--threshold", 3],
            "shamir": ["--computes", 5, "--threshold", 3, "--cheating", 2], "subset": ["--computes", 50, "--each", 3],
        }.items()
    }  # fmt: skip
    told = ("may_conspire", "sums_needed", "quorum", "may_be_lost")
    numbers = {name: tuple(each[what] for what in told) for name, each in found.items()}
    assert numbers == {
        "additive": (4, 5, 5, 0), "replicated": (2, 3, 3, 2), "shamir": (2, 3, 4, 1), "subset": (2, 50, 50, 0),
    }  # fmt: skip
    exposed = {row["conspiring"]: row["clients"] for row in found["subset"]["exposure"]}
    assert exposed == pytest.approx(
        {2: 0, 3: 1000 / 19600, 5: 10000 / 19600, 10: 120000 / 19600, 25: 2300000 / 19600, 49: 940}
    )
    assert found["subset"]["trust"].startswith("of the 3 Computes that serve a client, drawn by lot from 50")


def test_explain_says_what_is_not_promised_to_people_too(capsys: pytest.CaptureFixture[str]):
    assert main([*map(str, EXPLAIN), "--scheme", "replicated", "--threshold", "2"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"Not promised: {Replicated(3, 2).trust().proviso}." in said


def test_explain_counts_the_bytes_of_each_scheme(capsys: pytest.CaptureFixture[str]):
    """5 numbers, the sums of a plain regression on 2 features: the formulas of docs/protocol.md."""
    d = 5
    for options, expected in (
        (["--computes", 5], 8 * d + 32 * 4),
        (["--scheme", "subset", "--computes", 50, "--each", 3], 8 * d + 32 * 2),
        (["--scheme", "shamir", "--computes", 5, "--threshold", 3], 8 * d * 3 + 32 * 2),
        (["--scheme", "replicated", "--computes", 3, "--threshold", 2], 2 * (8 * d + 32 * 2)),
    ):
        row = run(capsys, *EXPLAIN, "--method", "plain", *options)["rounds"][-1]
        assert (row["dimension"], row["upload_bytes"]) == (d, expected)
        assert row["sealed_upload_bytes"] > expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--scheme", "shamir", "--computes", 5, "--threshold", 6], "threshold must be a whole number in 2..5, got threshold=6"),
        (["--scheme", "replicated", "--computes", 5, "--threshold", 1], "threshold must be a whole number in 2..5, got threshold=1"),
        (["--scheme", "subset", "--computes", 5, "--each", 6], "each must be a whole number in 2..5, got each=6"),
        (["--scheme", "subset", "--computes", 5, "--each", 1], "each must be a whole number in 2..5, got each=1"),
        (["--scheme", "subset", "--computes", 5], "each must be given for the scheme subset"),
        (["--scheme", "shamir", "--computes", 5], "threshold must be given for the scheme shamir"),
        (["--each", 2], "each must be left out where the scheme is additive"),
        (["--scheme", "subset", "--computes", 5, "--each", 2, "--cheating", 1], "cheating must be left out"),
    ],
)  # fmt: skip
def test_numbers_that_a_scheme_cannot_have_are_one_line(
    capsys: pytest.CaptureFixture[str], options: list, message: str
):
    assert message in " ".join(failed(capsys, *EXPLAIN, *options).split())
