"""Computes fail where two of three are enough: the others agree, release once, and over one roster only.

The Computes are real nodes with their HTTP faces and caretakers in one process; a test says who can be reached.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from hubbub.protocols import SecureSum
from hubbub.securesum import Additive, Replicated, Shamir
from hubbub.service.client.client import Client
from hubbub.service.client.outbox import Outbox
from hubbub.service.node import agreement, answers, matching, tables
from hubbub.service.node import store as db
from hubbub.service.wire.canonical import digest, read_signed, sign_record
from hubbub.service.wire.endings import AgreementRecord, RefusalRecord
from hubbub.service.wire.problems import Problem
from hubbub.service.wire.records import RoundRecord
from hubbub.service.wire.refusals import for_good, unsigned
from service.stage import M, N, make_stage
from service.town import EVERYBODY, Town

EXACT = [63 / 16, -15.0]
MISSING, PATIENCE = 10.0, 100.0
TWO_OF_THREE = Replicated(M, 2)


@pytest.fixture
def build(tmp_path: Path) -> Iterator[Callable[..., Town]]:
    with ExitStack() as stack:

        def made(secure_sum: SecureSum = TWO_OF_THREE) -> Town:
            urls = [f"sqlite:///{tmp_path}/compute-{k}.db" for k in range(M)]
            stage = make_stage(urls, secure_sum=secure_sum, agreement_seconds=PATIENCE, missing_seconds=MISSING)
            for node in stage.nodes:
                stack.callback(node.store.close)
            stage.register()
            return Town(stage)

        yield made


@pytest.fixture
def town(build: Callable[..., Town]) -> Town:
    return build()


def test_where_all_answer_nobody_waits(town: Town):
    record = town.begin()
    town.close(record)
    town.look(0, 1, 2, 0)
    assert town.states() == ["released"] * M
    assert town.total(record) == (EXACT, N)
    assert all(town.agreement(k).places == (0, 1, 2) for k in range(M))


@pytest.mark.parametrize("scheme", [Replicated(M, 2), Shamir(M, 2)], ids=str)
@pytest.mark.parametrize("lost", range(M))
@pytest.mark.parametrize("when", ["before close", "after close", "after one roster", "after its agreement"])
def test_any_one_of_three_may_be_lost_for_good_at_any_time(build: Callable[..., Town], scheme, lost: int, when: str):
    town = build(scheme)
    record = town.begin()
    others = sorted(EVERYBODY - {lost})
    if when == "before close":
        town.up -= {lost}
    town.close(record)
    if when == "after one roster":
        town.up -= {others[1]}
        town.look(lost)
        town.up |= {others[1]}
    elif when == "after its agreement":
        town.look(lost)
        assert town.row(lost).state == "agreed"
    town.up -= {lost}
    town.look(*others, *others)
    town.wait(MISSING + 1)
    town.look(*others, *others, *others)
    assert [town.row(k).state for k in others] == ["released"] * 2
    assert town.total(record) == (EXACT, N)


def test_before_that_nothing_is_released(town: Town):
    record = town.begin()
    town.up -= {0}
    town.close(record)
    for seconds in (0, MISSING / 2, MISSING / 2 - 1):
        town.wait(seconds)
        town.look(1, 2, 1, 2)
        assert town.states() == ["open", "closed", "closed"]
    town.wait(1)
    town.look(2)
    assert town.states() == ["open", "closed", "closed"]  # Compute 1 answers, so it goes first
    town.look(1, 2, 1)
    assert town.states() == ["open", "released", "released"]
    assert town.agreement(1).places == town.agreement(2).places == (1, 2)


@pytest.mark.parametrize("lost", range(M))
def test_one_that_comes_back_releases_over_the_same_roster(town: Town, lost: int):
    record = town.begin()
    town.up -= {lost}
    town.close(record)
    town.wait(MISSING + 1)
    town.look(*EVERYBODY, *EVERYBODY, *EVERYBODY)
    assert town.row(lost).state == "open"
    town.up, before = EVERYBODY, town.total(record)
    town.close(record)
    town.look(lost)
    assert town.states() == ["released"] * M
    assert town.total(record) == before == (EXACT, N)
    assert len(town.agreement(lost).places) == 2
    assert lost not in town.agreement(lost).places


def test_one_that_missed_the_reports_does_not_keep_the_others_from_summing(town: Town):
    record = town.begin({1: 2})
    town.close(record)
    town.look(0, 1, 2, 0)
    assert town.states() == ["released", "refused", "released"]
    assert town.row(1).reason == "incomplete"
    assert town.total(record) == (EXACT, N)
    assert town.charged(1)


def test_one_that_missed_a_report_and_comes_back_later_does_not_sum_others(town: Town):
    record = town.begin({1: N - 1})
    town.up -= {1}
    town.close(record)
    town.wait(MISSING + 1)
    town.look(0, 2, 0)
    town.up = EVERYBODY
    town.close(record)
    town.look(1)
    assert town.states() == ["released", "refused", "released"]
    assert (town.row(1).reason, town.charged(1)) == ("incomplete", True)
    assert town.total(record) == (EXACT, N)


def test_a_client_that_one_compute_lacks_is_left_out_where_that_is_allowed(town: Town):
    record = town.begin({1: N - 1})
    town.close(record)
    town.look(0, 1, 2, 0)
    assert town.states() == ["released"] * M
    assert town.total(record)[1] == N - 1


def test_too_few_clients_are_refused_by_all_and_the_charge_stays_until_a_quorum_has_signed_that(town: Town):
    """Each has signed its refusal, but none can know alone that the others have not agreed without it."""
    record = town.begin({0: 2, 1: 2, 2: 2})
    town.close(record)
    town.look(0, 1, 2)
    assert town.states() == ["refused"] * M
    for k, node in enumerate(town.stage.nodes):
        assert town.row(k).reason in ("too-few-clients", "other-refused")
        assert read_signed(answers.signed_refusal(node, town.stage.id, 0), RefusalRecord)[0].compute == k
        assert town.charged(k)
    town.up = frozenset({0})
    town.settle_charges(0)
    assert town.charged(0)
    town.up = frozenset({0, 2})
    town.settle_charges(0, 2)
    assert [town.charged(k) for k in range(M)] == [False, True, False]


def test_what_may_be_released_is_never_given_back(town: Town):
    """One that has refused gives nothing back while others may release, nor one that has agreed and gave up."""
    record = town.begin()
    town.close(record)
    agreement.refuse(town.stage.nodes[0], town.stage.id, 0, "damaged", "its disk is broken")
    town.look(1, 2)
    town.settle_charges(0)
    town.wait(MISSING + 1)
    town.look(1)
    agreement.refuse(town.stage.nodes[1], town.stage.id, 0, "no-agreement", "it is tired")
    town.settle_charges(0, 1)
    assert town.row(1).reason == "perhaps-released"
    town.look(2)
    town.settle_charges(0, 1, 2)
    assert all(town.charged(k) for k in range(M))


def test_a_refusal_of_one_that_has_agreed_gives_nobody_its_charge_back(
    town: Town, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Two clients could not reach the second Compute, which refuses; the others release, and the third one lies."""
    record = town.begin({1: N - 2})
    town.close(record)
    town.look(0, 2, 0, 1)
    assert town.states() == ["released", "refused", "released"]
    honest = read_signed(answers.signed_refusal(town.stage.nodes[1], town.stage.id, 0), RefusalRecord)[0]
    lie = sign_record(replace(honest, compute=2, event=db.new_event()), town.stage.nodes[2].keys.sign)
    liar, refusal, agreements = town.stage.nodes[2], answers.signed_refusal, matching.signed_agreements
    monkeypatch.setattr(answers, "signed_refusal", lambda node, *at: lie if node is liar else refusal(node, *at))
    monkeypatch.setattr(matching, "signed_agreements", lambda node, *at: [] if node is liar else agreements(node, *at))
    town.settle_charges(1)
    assert town.charged(1)
    study, mark, web = town.stage.study, digest(record), town.web()
    missing = unsigned(study, 0, mark, web)
    assert list(missing) == ["compute-0", "compute-2"]
    assert "it has signed what it would release, so its refusal does not count" in missing["compute-2"]
    assert not for_good(study, missing)
    client = Client(study, "c0", Outbox(tmp_path / "out.db"), web, simulation=True)
    client.outbox.put(study.id, "c0", 0, mark, record.event(study), [])
    assert client._refused() == set()
    town.up = frozenset({1, 2})  # what the first one holds is the proof: without it the two refusals count
    town.settle_charges(1)
    assert not town.charged(1)
    assert for_good(study, unsigned(study, 0, mark, town.web()))


@pytest.mark.parametrize("scheme", [Additive(M), Replicated(M, 2, 1), Shamir(M, 3)], ids=str)
def test_where_all_must_sign_one_that_is_lost_ends_the_round(build: Callable[..., Town], scheme):
    town = build(scheme)
    record = town.begin()
    town.up -= {2}
    town.close(record)
    for _ in range(3):
        town.wait(MISSING + 1)
        town.look(0, 1, 0, 1)
    assert town.states() == ["closed", "closed", "open"]
    town.wait(PATIENCE)
    town.look(0, 1)
    assert town.states() == ["refused", "refused", "open"]
    assert not any(town.charged(k) for k in (0, 1))


def test_one_that_refuses_does_not_end_the_round_for_the_others(town: Town):
    record = town.begin()
    town.close(record)
    agreement.refuse(town.stage.nodes[0], town.stage.id, 0, "damaged", "its disk is broken")
    town.look(1, 2)
    town.wait(MISSING + 1)
    town.look(1, 2, 1)
    assert town.states() == ["refused", "released", "released"]
    assert town.total(record) == (EXACT, N)


def parted(town: Town) -> RoundRecord:
    """Compute 0 signs alone for 0 and 1; Compute 1, who has not seen that, for all three."""
    record = town.begin()
    town.close(record)
    town.up = frozenset({0, 1})
    town.look(0)
    town.wait(MISSING + 1)
    town.up = frozenset({0})
    town.look(0)
    town.up = frozenset({1, 2})
    town.look(1)
    assert town.states() == ["agreed", "agreed", "closed"]
    assert (town.agreement(0).places, town.agreement(1).places) == ((0, 1), (0, 1, 2))
    return record


def test_signatures_that_part_end_in_a_refusal_where_the_third_is_gone(town: Town):
    parted(town)
    town.up = frozenset({0, 1})
    town.look(0, 1, 0, 1)
    assert town.states() == ["agreed", "agreed", "closed"]
    town.wait(PATIENCE + 1)
    town.look(0, 1)
    town.up = EVERYBODY
    town.look(2)
    assert town.states() == ["refused"] * M
    assert [town.row(k).reason for k in (0, 1)] == ["perhaps-released"] * 2
    assert all(town.charged(k) for k in range(M))


def test_signatures_that_part_are_settled_by_the_third(town: Town):
    record = parted(town)
    town.up = EVERYBODY
    town.look(2, 0)
    assert town.states() == ["released", "agreed", "released"]
    assert town.total(record) == (EXACT, N)
    town.wait(PATIENCE + 1)
    town.look(1)
    assert (town.row(1).state, town.row(1).reason, town.charged(1)) == ("refused", "perhaps-released", True)


def test_a_signature_that_the_database_does_not_know_shows_that_it_is_old(town: Town):
    record = town.begin()
    town.close(record)
    town.look(0, 1, 2, 0)
    with town.stage.nodes[0].store.write() as connection:
        rounds, agreements = tables.rounds, tables.agreements
        connection.execute(rounds.update().where(rounds.c.study == town.stage.id).values(state="closed"))
        connection.execute(agreements.delete().where(agreements.c.study == town.stage.id))
    town.look(0)
    assert (town.row(0).state, town.row(0).reason) == ("refused", "rolled-back")
    assert town.charged(0)
    with town.stage.nodes[0].store.read() as connection:
        assert 0 not in db.stored_agreements(connection, town.stage.id, 0), "it has not even signed the same again"


def test_an_agreement_on_too_few_rosters_is_none(town: Town):
    record = town.begin()
    town.close(record)
    town.look(0, 1, 2, 0)
    own = town.agreement(2)
    alone = replace(own, rosters=(b"", b"", own.rosters[2]))
    data = sign_record(alone, town.stage.nodes[2].keys.sign)
    assert read_signed(data, AgreementRecord)[0] == alone
    with pytest.raises(Problem) as problem:
        matching.receive_agreement(town.stage.nodes[0], town.stage.id, 0, data)
    assert problem.value.code == "invalid-record"


@pytest.mark.parametrize("seed", range(12))
def test_whoever_is_away_whenever_one_roster_is_released_at_most(town: Town, seed: int):
    """Random schedules of who looks, who is reached, and how much time passes; with uploads that some have missed."""
    draw, released = random.Random(seed), 0
    for number in range(3):
        record = town.begin({k: N - (draw.random() < 0.3) for k in range(M)}, number)
        for _ in range(12):
            town.up = frozenset(k for k in range(M) if draw.random() < 0.7)
            if draw.random() < 0.5:
                town.close(record)
            town.look(*draw.choices(range(M), k=2))
            town.wait(draw.choice([0, 1, MISSING / 2, MISSING]))
        town.up = EVERYBODY
        town.close(record)
        town.look(*EVERYBODY, *EVERYBODY)
        town.wait(PATIENCE + 1)
        town.look(*EVERYBODY, *EVERYBODY)
        assert set(town.states(number)) <= {"released", "refused"}
        sums = town.sums(number)
        assert len({each.roster for each in sums}) <= 1
        if len(sums) >= 2:
            released += 1
            assert town.total(record)[1] >= N - 1
    assert released > 0
