"""What a data holder consents to: everything is shown and compared first, and nothing of theirs is sent before."""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import httpx
import numpy as np
import pytest

from cli.test_study import failed, folder, run  # noqa: F401
from hubbub.cli import contribute, main
from hubbub.service.devnet import LocalComputes
from hubbub.service.wire.canonical import sign_record
from hubbub.service.wire.fingerprints import analyst_fingerprint, compute_fingerprint, study_fingerprint
from hubbub.service.wire.records import StudyRecord, read_study
from hubbub.service.wire.signing import SigningKey
from hubbub.service.wire.web import Patience, Web
from service.meddling import Meddling

pytestmark = pytest.mark.slow


class Holder:
    """Somebody at a terminal, with a study that is open, and what the Computes were asked."""

    def __init__(self, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.place, self.file, self._patch = place, place / "study.json", monkeypatch
        run(capsys, "study", "create", place / "study.toml")
        run(capsys, "study", "open", self.file)
        with open(place / "study.tokens.csv") as tokens:
            self.token = next(row["token"] for row in csv.DictReader(tokens) if row["client"] == "clinic")
        self.network = Meddling()
        web = Web(httpx.Client(transport=self.network), Patience(total=10.0))
        monkeypatch.setattr(contribute, "web_to", lambda _: web)
        monkeypatch.delenv("HUBBUB_TOKEN", raising=False)
        self.arguments = ["contribute", self.file, place / "clinic.csv", "--client", "clinic"]

    @property
    def study(self) -> StudyRecord:
        return read_study(self.file.read_bytes())

    @property
    def pin(self) -> list[str]:
        return ["--yes", "--expect-study", study_fingerprint(self.study)]

    def answers(self, answer: str) -> None:
        self._patch.setattr(sys.stdin, "isatty", lambda: True)
        self._patch.setattr("builtins.input", lambda _: answer)

    def enrolled(self) -> list[int]:
        """How many clients have enrolled, by every Compute's own word."""
        found = [httpx.get(f"{compute.url}/v1/status").json()["studies"] for compute in self.study.computes]
        return [next(each["enrolled"] for each in there if each["study"] == self.study.id) for there in found]

    def swap(self) -> None:
        """Somebody puts a study with the same title, by an analyst of their own, in its place."""
        key = SigningKey.generate()
        self.file.write_bytes(sign_record(replace(self.study, analyst=key.public()), key))


@pytest.fixture
def holder(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Holder:  # noqa: F811
    return Holder(folder, capsys, monkeypatch)


def test_before_the_yes_computes_are_asked_for_rounds_and_nothing_else(
    holder: Holder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    holder.answers("n")
    said = failed(capsys, *holder.arguments, "--token", holder.token)
    assert "nothing was sent, and you are not enrolled by this" in said
    assert {(each.method, each.url.path.rsplit("/", 1)[-1]) for each in holder.network.seen} == {("GET", "rounds")}
    for each in holder.network.seen:
        assert "clinic" not in f"{each.url}{each.headers}{each.content!r}"
    assert holder.enrolled() == [0, 0, 0]
    holder.answers("y")
    monkeypatch.setattr("getpass.getpass", lambda _: holder.token)
    assert run(capsys, *holder.arguments)["rounds"][0]["samples"] == 150
    assert holder.enrolled() == [1, 1, 1]


def test_the_screen_names_all_parties_and_says_what_is_promised_against_whom(
    holder: Holder, capsys: pytest.CaptureFixture[str]
):
    holder.answers("n")
    study = holder.study
    first, second, third = (compute_fingerprint(compute) for compute in study.computes)
    pins = ["--expect-compute", first, "--expect-compute", second.upper()]
    said = failed(capsys, *holder.arguments, *pins, "--follow")
    for line in (
        f"study {study_fingerprint(study)} (not compared)",
        f"analyst {analyst_fingerprint(study.analyst)} (not compared)",
        f"Compute compute-1 at {study.computes[0].url}, keys {first} (as you expect)",
        f"Compute compute-2 at {study.computes[1].url}, keys {second} (as you expect)",
        f"Compute compute-3 at {study.computes[2].url}, keys {third} (not compared)",
        "296 number(s) from each of 150 sample(s)",
        "the analyst together with one more client and all but one of the 3 Computes above",
        "the noisy sums are public",
        f"the study ends at {study.deadline}",
        "it covers this round, and each further one of the study while this command runs",
        "compare what is 'not compared' above",
    ):
        assert line in said


def test_without_a_terminal_the_study_must_be_pinned_once(holder: Holder, capsys: pytest.CaptureFixture[str]):
    (holder.place / "token").write_text(f"{holder.token}\n")
    arguments = [*holder.arguments, "--token-file", holder.place / "token"]
    assert "nobody can be asked, got no terminal; nothing was sent" in failed(capsys, *arguments)
    assert "expect_study must be given with --yes the first time" in failed(capsys, *arguments, "--yes")
    assert holder.enrolled() == [0, 0, 0]
    assert run(capsys, *arguments, *holder.pin)["rounds"][0]["round"] == 0
    assert run(capsys, *holder.arguments, "--yes")["rounds"][0]["round"] == 0  # agreed to this very study before


def test_a_swapped_study_is_refused(holder: Holder, capsys: pytest.CaptureFixture[str]):
    """By the pin, and by the outbox that has agreed to another analyst; title, Computes and budget are the same."""
    pin = holder.pin
    run(capsys, *holder.arguments, "--token", holder.token, *pin)
    holder.swap()
    before = len(holder.network.seen)
    other = ["--outbox", holder.place / "other.outbox"]
    assert "study must be" in failed(capsys, *holder.arguments, *other, *pin)
    holder.answers("y")
    assert "analyst must be" in failed(capsys, *holder.arguments)
    assert "to whom you agreed before" in failed(capsys, *holder.arguments, *holder.pin)
    assert len(holder.network.seen) == before


def test_a_token_comes_from_a_file_the_environment_or_the_arguments_with_a_warning(
    holder: Holder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    start = [*holder.arguments, *holder.pin]
    assert "token must be given the first time" in failed(capsys, *start)
    assert "token_file must be readable" in failed(capsys, *start, "--token-file", holder.place / "none")
    both = ["--token", holder.token, "--token-file", holder.place / "none"]
    assert "token must be given once" in failed(capsys, *start, *both)
    (holder.place / "token").write_text("6f" * 31)
    assert "token must be 64 hexadecimal digits" in failed(capsys, *start, "--token-file", holder.place / "token")
    assert {each.method for each in holder.network.seen} <= {"GET"}
    refused = failed(capsys, *start, "--token", "00" * 32)
    assert "can be read by other users of this machine" in refused
    assert "token must be the one" in refused
    monkeypatch.setenv("HUBBUB_TOKEN", holder.token)
    assert main([*map(str, start), "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["client"] == "clinic"
    assert "can be read by other users" not in captured.err


def test_fingerprints_are_printed_where_they_are_to_be_told(
    holder: Holder, capsys: pytest.CaptureFixture[str], live: LocalComputes, tmp_path: Path
):
    found = run(capsys, "study", "fingerprints", holder.file)
    assert found["study"] == study_fingerprint(holder.study)
    assert run(capsys, "study", "check", holder.file)["fingerprints"] == found
    assert main(["study", "fingerprints", str(holder.file)]) == 0
    assert found["analyst"] in capsys.readouterr().out
    made = run(capsys, "compute", "init", tmp_path / "one", "--listen", "127.0.0.1:9999")["fingerprint"]
    entries = [{"url": url, "fingerprint": found["computes"][f"compute-{k + 1}"]} for k, url in enumerate(live.urls)]
    for last, works in ((entries[2], True), ({**entries[2], "fingerprint": made}, False)):
        text = ", ".join(f'{{ url = "{e["url"]}", fingerprint = "{e["fingerprint"]}" }}' for e in [*entries[:2], last])
        source = tmp_path / f"pinned-{works}.toml"
        lines = (tmp_path / "study.toml").read_text().splitlines()
        source.write_text("\n".join(f"computes = [{text}]" if line.startswith("computes") else line for line in lines))
        if works:
            assert run(capsys, "study", "create", source)["fingerprints"]["computes"] == found["computes"]
        else:
            assert "fingerprint must be" in failed(capsys, "study", "create", source)


def test_samples_stay_those_that_were_enrolled(holder: Holder, capsys: pytest.CaptureFixture[str]):
    run(capsys, *holder.arguments, "--token", holder.token, *holder.pin)
    rows = np.loadtxt(holder.place / "clinic.csv", delimiter=",", skiprows=1)
    np.savetxt(holder.place / "fewer.csv", rows[:100], delimiter=",", header="age,dose,weight,y", comments="")
    wrong = [*holder.arguments[:2], holder.place / "fewer.csv", *holder.arguments[3:], "--yes"]
    assert "samples must be 150, as clinic began the study, got samples=100" in failed(capsys, *wrong)


def test_whoever_has_not_confirmed_is_named(capsys: pytest.CaptureFixture[str]):
    """Where two of three Computes are enough, one may have been lost, or the round over there."""
    computes = tuple(SimpleNamespace(name=f"compute-{k}") for k in range(1, 4))
    for unsent, said in (
        ([], "every Compute has"),
        ([1], "every Compute but compute-2, which the round can do without"),
    ):
        client = SimpleNamespace(
            contribute=lambda record, rows: 1, study=SimpleNamespace(draws=False, computes=computes),
            unsent=lambda record, unsent=unsent: [SimpleNamespace(compute=place) for place in unsent],
        )  # fmt: skip
        contribute._send(client, SimpleNamespace(number=0, label="counts"), np.zeros((1, 1)))
        assert f"round 0 (counts): {said}" in capsys.readouterr().err
