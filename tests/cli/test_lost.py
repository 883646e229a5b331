"""Studies and `hubbub up` with a threshold, on the command line: one Compute is lost for good."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cli.test_any_study import read_tokens, write_study
from cli.test_study import failed, run
from hubbub.service.client.outbox import Outbox
from hubbub.service.devnet import LocalComputes
from hubbub.service.node.compute import Limits

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("number", range(2))
def test_a_study_of_two_of_three_has_its_result_without_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], number: int
):
    with LocalComputes(tmp_path / "nodes", 3, limits=Limits(missing_seconds=1.5)) as computes:
        write_study(tmp_path, computes.urls, "bernoulli")
        source, study = tmp_path / "study.toml", tmp_path / "study.json"
        source.write_text(source.read_text() + '\n[sum]\nscheme = "replicated"\nthreshold = 2\n')
        pin = run(capsys, "study", "create", source)["fingerprints"]["study"]
        run(capsys, "study", "open", study)
        assert "none of them signs contradicting statements" in run(capsys, "study", "check", study)["trust"]
        clinic = ["contribute", study, tmp_path / "clinic.csv", "--client", "clinic"]
        refused = " ".join(failed(capsys, *clinic, "--trust", 1).split())
        assert "trust_cheating must be at most 0, as more of its 3 Computes (scheme replicated) that sign" in refused
        assert "if you take it that no more do, give --trust-cheating 0" in refused
        assert "trust must be given with --trust-cheating" in failed(capsys, *clinic, "--trust-cheating", 0)
        for party, token in read_tokens(tmp_path).items():
            arguments = ["--client", party, "--token", token, "--yes", "--expect-study", pin]
            trust = ["--trust", 1, "--trust-cheating", 0] if party == "clinic" else []
            run(capsys, "contribute", study, tmp_path / f"{party}.csv", *arguments, *trust)
        box = Outbox(study.with_name("study.clinic.outbox"))
        assert box.demand() == (1, 0)
        box.keep_demand(1, 1)  # as if with the yes to an earlier study, in place of which this one was put
        assert "trust_cheating must be at most 0" in " ".join(failed(capsys, *clinic, "--yes").split())
        computes.computes[number].kill()
        shutil.rmtree(computes.computes[number].folder)
        assert run(capsys, "study", "close", study)["next"] is None
        result = run(capsys, "study", "result", study)
        assert result["n"] == 1200
        assert result["privacy"]["guarantee"] is True


def test_up_loses_a_compute_and_has_its_result(capsys: pytest.CaptureFixture[str]):
    result = run(capsys, "up", "--clients", 40, "--threshold", 2, "--lose", 1, "--epsilon", 8, "--no-tls")
    assert result["lost"] == "compute-1"
    assert result["reports_accepted"] == [160, 160]
    assert set(result["coefficients"]) == {"age", "dose", "weight"}
    assert any("sign contradicting statements" in each for each in result["privacy"]["not_promised"])


def test_what_cannot_be_lost_is_said_in_one_line(capsys: pytest.CaptureFixture[str]):
    assert "lose must be left out where all 3 Computes must answer" in failed(capsys, "up", "--lose", 1)
    assert "lose must be a whole number in 1..3" in failed(capsys, "up", "--threshold", 2, "--lose", 4)
    assert "threshold must be a whole number in 2..3" in failed(capsys, "up", "--threshold", 4)
