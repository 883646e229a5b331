"""Where every client uses a few of the Computes: each takes the reports of those that it serves, and no others."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import httpx
import pytest

from hubbub.errors import InvalidInput
from hubbub.protocols import SecureSum
from hubbub.randomness import Randomness
from hubbub.roles import contribute
from hubbub.securesum import Additive, Replicated, Shamir, Subset, encode_report
from hubbub.service.analyst.analyst import Analyst, new_study
from hubbub.service.client import client as clients
from hubbub.service.client.client import Client
from hubbub.service.client.consent import check_withstands, withstands
from hubbub.service.client.outbox import Outbox
from hubbub.service.node import draw
from hubbub.service.node.compute import register_study
from hubbub.service.node.uploads import Taken
from hubbub.service.wire.canonical import sign_record
from hubbub.service.wire.problems import Problem
from hubbub.service.wire.records import StudyRecord
from hubbub.service.wire.web import Patience, Unreachable, Web
from service.stage import M, Stage, make_stage

CHOSEN = Subset(M, 2, "a seed that the analyst chose")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = make_stage([f"sqlite:///{tmp_path}/{k}.db" for k in range(M)], secure_sum=Subset(M, 2))
    stage.register()
    return stage


@pytest.mark.parametrize("remembered", [True, False])
def test_a_report_of_a_client_that_the_compute_does_not_serve_is_for_somebody_else(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, remembered: bool
):
    """Also where it is opened on the quick way, for clients in memory: the client made it as if it had k = M."""
    record = stage.round(multiplier=0.0)
    stage.open(record)
    person = stage.people[0]
    (other,) = set(range(M)) - set(stage.drawn.secure_sum.recipients(person.name))
    role, sessions = record.checked(stage.drawn), [stage.session(k, person).short() for k in range(M)]
    good = contribute(role, 0, person.name, [[1.0, 2.0]], Randomness.system(), sessions=sessions)
    with monkeypatch.context() as patch:
        patch.setattr(Subset, "recipients", lambda *_: sorted([other, good[0].compute]))
        bad = next(
            each for each in contribute(role, 0, person.name, [[1.0, 2.0]], Randomness.system(), sessions=sessions)
            if each.compute == other
        )  # fmt: skip
    if not remembered:
        for node in stage.nodes:
            node.known._clients.clear()
    for report in good:
        (outcome,) = stage.accept(report.compute, [stage.upload(record, encode_report(report))])
        assert outcome == Taken(1, True)
    (outcome,) = stage.accept(other, [stage.upload(record, encode_report(bad))])
    assert isinstance(outcome, Problem)
    assert (outcome.code, "that Compute" in str(outcome)) == ("wrong-recipient", True)


def test_a_client_sends_to_those_who_serve_it(stage: Stage, tmp_path: Path):
    record = stage.round(multiplier=0.0)
    for person in stage.people:
        client = Client(stage.study, person.name, Outbox(tmp_path / "out.db"), Web.open(), simulation=True)
        client.outbox.keep_draw(stage.id, person.name, draw.result(stage.nodes[0], stage.id))
        client.make(record, [[1.0, 2.0]])
        serving = list(stage.drawn.secure_sum.recipients(person.name))
        assert [parcel.compute for parcel in client.unsent(record)] == serving
        assert len(client.identity.sessions) == len(serving)


def test_everybody_refuses_a_seed_that_the_analyst_chose_in_one_line(tmp_path: Path):
    stage = make_stage([f"sqlite:///{tmp_path}/{k}.db" for k in range(M)], secure_sum=CHOSEN)
    message = "seed must be drawn by the Computes.*got seed='a seed that the analyst chose'.*must be drawn, not chosen"
    with pytest.raises(InvalidInput, match=message):
        Client(stage.study, "c0", Outbox(tmp_path / "out.db"), Web.open(), simulation=True)
    with pytest.raises(InvalidInput, match=message):
        register_study(stage.nodes[0], sign_record(stage.study, stage.analyst))
    arguments = "a test", stage.study.computes, stage.study.population, None, stage.analyst
    with pytest.raises(InvalidInput, match=message):
        new_study(*arguments, seconds=60, secure_sum=CHOSEN)
    for scheme in (None, Replicated(M, 2), Shamir(M, 2, 1), Subset(M, 2)):
        new_study(*arguments, seconds=60, secure_sum=scheme)


def test_a_client_can_say_how_many_computes_may_pool_and_how_many_may_contradict_themselves(tmp_path: Path):
    """2 of 3 withstands one that is curious; one that contradicts itself only where the study reckons with it."""
    for scheme, found in [
        (Additive(M), (2, 2)), (Replicated(M, 2), (1, 0)), (Replicated(M, 2, 1), (1, 2)), (Shamir(M, 3), (2, 2)),
        (Subset(M, 2), (1, 2)),
    ]:  # fmt: skip
        stage = make_stage([f"sqlite:///{tmp_path}/{scheme}{k}.db" for k in range(M)], secure_sum=scheme)
        assert withstands(scheme) == found
        for pooling, contradicting in product(range(1, M), range(M)):
            if pooling <= found[0] and contradicting <= found[1]:
                check_withstands(stage.study, pooling, contradicting)
                continue
            name, most = ("trust", found[0]) if pooling > found[0] else ("trust_cheating", found[1])
            with pytest.raises(InvalidInput, match=f"{name} must be at most {most}, as more of its 3 Computes"):
                check_withstands(stage.study, pooling, contradicting)
        with pytest.raises(InvalidInput, match="a whole number in 1..2"):
            check_withstands(stage.study, 0, 0)
        with pytest.raises(InvalidInput, match="trust_cheating must be a whole number in 0..2"):
            check_withstands(stage.study, 1, 3)
    assert [withstands(Shamir(5, 3, f)) for f in range(3)] == [(2, 0), (2, 2), (2, 2)]
    assert withstands(Replicated(4, 2)) == (1, 1)


def test_an_outbox_remembers_the_last_demand(tmp_path: Path):
    box = Outbox(tmp_path / "out.db")
    assert box.demand() is None
    for demand in ((1, 0), (1, 0), (2, 1)):
        box.keep_demand(*demand)
        assert Outbox(tmp_path / "out.db").demand() == demand


class Town:
    """Computes that confirm whatever they are sent; one of them silent or busy for so many requests."""

    def __init__(self, study: StudyRecord, place: int, busy: bool, count: int) -> None:
        self.hosts = [httpx.URL(each.url).host for each in study.computes]
        self.place, self.busy, self.count, self.told = place, busy, count, list[int]()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        at = self.hosts.index(request.url.host)
        if at == self.place and self.count > 0:
            self.count -= 1
            if self.busy:
                return httpx.Response(503, json={"code": "not-ready", "detail": "later"})
            raise httpx.ConnectError("nobody is there", request=request)
        self.told.append(at)
        return httpx.Response(200, content=b"{}")


@pytest.mark.parametrize("busy", [False, True])
@pytest.mark.parametrize("scheme", [Additive(M), Replicated(M, 2)], ids=str)
def test_those_who_answer_are_told_first_and_the_others_are_waited_for_where_they_are_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: SecureSum, busy: bool
):
    """A silent Compute that the round can do without is not waited for; one that is only busy is."""
    monkeypatch.setattr(clients, "BRIEFLY", 0.05)
    stage = make_stage([f"sqlite:///{tmp_path}/{k}.db" for k in range(M)], secure_sum=scheme)
    record, waits = stage.round(multiplier=0.0), busy or scheme == Additive(M)
    for step in ("enrol", "contribute"):
        town, waited = Town(stage.study, 0, busy, 3), list[Sequence[str]]()
        web = Web(httpx.Client(transport=httpx.MockTransport(town)), Patience(total=20.0, first=0.04))
        box = Outbox(tmp_path / f"{step}.db")
        client = Client(stage.study, "c0", box, web, simulation=True, waits=waited.append)
        client.enrol(bytes(32)) if step == "enrol" else client.contribute(record, [[1.0, 2.0]])
        assert town.told == ([1, 2, 0] if waits else [1, 2])
        assert waited == ([["compute-0"]] if waits else [])
    assert [parcel.compute for parcel in client.unsent(record)] == ([] if waits else [0])


def test_patience_is_for_all_who_are_silent_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(clients, "BRIEFLY", 0.05)
    stage = make_stage([f"sqlite:///{tmp_path}/{k}.db" for k in range(M)])

    def silent(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("nobody is there", request=request)

    web = Web(httpx.Client(transport=httpx.MockTransport(silent)), Patience(total=1.0))
    client, started = Client(stage.study, "c0", Outbox(tmp_path / "o.db"), web, simulation=True), time.monotonic()
    with pytest.raises(Unreachable, match="Compute must answer within 1 s.*run the same command again"):
        client.enrol(bytes(32))
    assert time.monotonic() - started < 2.0
    for spared in (Additive(M), Replicated(M, 2)):
        stage = make_stage([f"sqlite:///{tmp_path}/{spared}{k}.db" for k in range(M)], secure_sum=spared)
        analyst = Analyst(stage.study, stage.analyst, web)
        match = (
            "2 of 3 Computes are needed, 0 answer; compute-0, compute-1, compute-2 are away"
            if spared.quorum < M
            else ""
        )
        with pytest.raises(Unreachable, match=match):
            analyst.rounds()
