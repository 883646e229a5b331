"""`hubbub audit` as a user runs it: a short version refutes nothing, and every bad option is one line."""

from __future__ import annotations

import json

import pytest

from hubbub.audit import AuditOptions, audit, checks_for
from hubbub.cli import main
from hubbub.population import Population
from hubbub.privacy import MECHANISMS
from hubbub.securesum import SECURE_SUMS


@pytest.mark.slow
@pytest.mark.parametrize("law", ["discrete-gaussian", "discrete-laplace"])
def test_a_short_audit_refutes_nothing(law: str):
    """A sound program fails this with probability 0.001 at most."""
    report = audit(AuditOptions(mechanisms=(law,), trials=100))
    assert report.passed, [case for case in report.cases if case.refuted]
    uses = {case.name: case.use for case in report.cases if case.use is not None}
    assert uses[f"the same after dropouts, {law}"] == pytest.approx(1.0, abs=1e-5), "no more noise than is needed"


@pytest.mark.parametrize("engine", ["sealed", "trusted"])
def test_other_engines(engine: str):
    report = audit(AuditOptions(mechanisms=("discrete-gaussian",), engine=engine, trials=500))
    assert report.passed
    assert [case.name for case in report.cases] == [f"canaries, {engine} engine, discrete-gaussian"]


def test_every_law_and_every_kind_of_claim_is_tried():
    names = [check.name for check in checks_for(AuditOptions())]
    assert len(set(names)) == len(names)
    for law in MECHANISMS._own:
        assert sum(name.endswith(f", {law}") for name in names) == 39
    for part in (
        "bound:",
        "analysis:",
        "one run:",
        "canaries",
        "bits",
        "length",
        "timing",
        "restart",
        "roster",
        "ledger",
    ):
        assert any(part in name for name in names)
    for scheme in SECURE_SUMS._own:
        assert any(name.startswith("shares of 2 of ") and name.endswith(f" Computes, {scheme}") for name in names)


def test_json_and_exit_code(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    command = ["audit", "--mechanism", "discrete-laplace", "--only", "curious client", "--trials", "400", "--json"]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["passed"] is True
    assert {"name", "claimed", "lower_bound", "use", "refuted"} <= found["cases"][0].keys()
    monkeypatch.setattr(Population, "shares", property(lambda self: 10**6))
    with pytest.raises(SystemExit, match="1"):
        main(command)
    found = json.loads(capsys.readouterr().out)
    assert found["passed"] is False
    assert all(case["refuted"] for case in found["cases"] if case["claimed"] < case["lower_bound"])


def test_the_page_names_every_case(capsys: pytest.CaptureFixture[str]):
    assert main(["audit", "--mechanism", "skellam", "--only", "bound: count", "--trials", "50", "--markdown"]) == 0
    assert "| bound: count, skellam | 2 |" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--mechanism", "pink"], "mechanism must be one of discrete-gaussian"),
        (["--analysis", "magic"], "analysis must be one of linear"),
        (["--analysis", "linear", "--engine", "sealed"], "analysis must be left out for the engine sealed"),
        (["--engine", "quantum"], "quantum"),
        (["--trials", "3"], "trials must be a whole number in 20.."),
        (["--trials", "many"], "--trials"),
        (["--confidence", "1"], "confidence must be in [0.5, 1), got confidence=1.0"),
        (["--epsilon", "0"], "epsilon must be positive"),
        (["--only", "nonsense"], "only must be part of the name of a check"),
        (["--delta", "0", "--mechanism", "gaussian"], "delta must be positive for the mechanism gaussian"),
    ],
)
def test_bad_options_are_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]):
    assert main(["audit", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_progress_of_a_log_leaves_json_alone(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("hubbub.cli.output._EVERY", 0.0)
    assert main(["audit", "--mechanism", "gaussian", "--only", "curious client", "--trials", "20", "--json"]) == 0
    out, err = capsys.readouterr()
    assert len(json.loads(out)["cases"]) == 2
    assert err.splitlines() == ["checks: 1 of 2"]
