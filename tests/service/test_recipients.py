"""Where every client uses a few of the Computes: each takes the reports of those that it serves, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubbub.errors import InvalidInput
from hubbub.randomness import Randomness
from hubbub.roles import contribute
from hubbub.securesum import Additive, Replicated, Shamir, Subset, encode_report
from hubbub.service.analyst.analyst import new_study
from hubbub.service.client.client import Client, check_withstands, withstands
from hubbub.service.client.outbox import Outbox
from hubbub.service.node import draw
from hubbub.service.node.compute import register_study
from hubbub.service.node.uploads import Taken
from hubbub.service.wire.canonical import sign_record
from hubbub.service.wire.problems import Problem
from hubbub.service.wire.web import Web
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


def test_a_client_can_say_how_many_dishonest_computes_a_study_must_withstand(tmp_path: Path):
    """2 of 3 withstands one that is curious; one that signs two rosters only where the study reckons with it."""
    for scheme, found in [
        (Additive(M), 2), (Replicated(M, 2), 0), (Replicated(M, 2, 1), 1), (Shamir(M, 3), 2), (Subset(M, 2), 1),
    ]:  # fmt: skip
        stage = make_stage([f"sqlite:///{tmp_path}/{scheme}{k}.db" for k in range(M)], secure_sum=scheme)
        assert withstands(scheme) == found
        for least in range(1, M):
            if least <= found:
                check_withstands(stage.study, least)
            else:
                with pytest.raises(InvalidInput, match=f"trust must be at most {found}, which is.*got trust={least}"):
                    check_withstands(stage.study, least)
        with pytest.raises(InvalidInput, match="a whole number in 1..2"):
            check_withstands(stage.study, 0)
    assert [withstands(Shamir(5, 3, f)) for f in range(3)] == [0, 2, 2]
    assert withstands(Replicated(4, 2)) == 1
