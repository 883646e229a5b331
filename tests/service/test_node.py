"""What a Compute does with each message, on SQLite and on PostgreSQL: real databases, no HTTP."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import select

from hubbub.errors import InvalidInput
from hubbub.privacy import (
    Budget,
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    EarlyPopulation,
    GaussianEvent,
    GaussianMechanism,
    SampledGaussianEvent,
    SkellamMechanism,
    fits,
    shared_multipliers,
)
from hubbub.privacy.accountant import sampled_multiplier
from hubbub.securesum import Frame
from hubbub.service.node import agreement, status, tables
from hubbub.service.node import compute as node
from hubbub.service.node import store as db
from hubbub.service.node.known import Known
from hubbub.service.node.metrics import Counts
from hubbub.service.node.uploads import Taken, accept_uploads
from hubbub.service.wire.canonical import digest, read_signed, sign_record, stamp
from hubbub.service.wire.endings import CloseRecord, RosterRecord
from hubbub.service.wire.problems import Problem
from hubbub.service.wire.records import EarlyStudyRecord, RoundRecord
from hubbub.service.wire.signing import SigningKey
from hubbub.statistics import Clipped, Means
from hubbub.statistics.clipped import installed
from service.stage import STATISTIC, M, N, Person, Stage, make_stage

EXACT = [63 / 16, -15.0]


def code_of(call, *arguments) -> str:
    with pytest.raises(Problem) as problem:
        call(*arguments)
    return problem.value.code


def test_a_whole_round_gives_the_exact_sum_and_forgets_the_reports(stage: Stage):
    record = stage.round(multiplier=0.0)
    stage.open(record)
    for person in stage.people:
        assert stage.send(record, person) == [Taken(1, True)] * M
    stage.close(record)
    stage.exchange()
    assert stage.settle() == ["released"] * M
    value, present = stage.total(record)
    assert present == N
    np.testing.assert_array_equal(value, EXACT)
    with stage.nodes[0].store.read() as connection:
        rows = connection.execute(select(tables.reports)).all()
    assert [row.locked for row in rows] == [None] * N
    assert {row.client for row in rows} == {person.name for person in stage.people}


def test_released_bytes_are_the_same_for_ever(stage: Stage):
    record = stage.round()
    stage.run_to_rosters(record)
    stage.settle()
    first = agreement.released_sum(stage.nodes[1], stage.id, 0)
    assert stage.settle() == ["released"] * M
    stage.close(record)
    stage.exchange()
    assert agreement.released_sum(stage.nodes[1], stage.id, 0) == first


def test_sending_again_counts_once_and_other_bytes_are_refused(stage: Stage):
    record, person = stage.round(), stage.people[0]
    stage.open(record)
    bodies = stage.reports(record, person)
    upload = stage.upload(record, bodies[0])
    assert stage.accept(0, [upload]) == [Taken(1, True)]
    assert stage.accept(0, [upload, upload]) == [Taken(1, False)] * 2
    other = stage.upload(record, stage.reports(record, person)[0])
    (outcome,) = stage.accept(0, [other])
    assert outcome.code == "duplicate"
    with stage.nodes[0].store.read() as connection:
        assert db.roster_now(connection, stage.id, 0) == (person.name,)
        assert db.counts(connection) == {"accepted": 1, "repeated": 2}


def test_two_different_reports_in_one_transaction_count_once(stage: Stage):
    record, person = stage.round(), stage.people[0]
    stage.open(record)
    uploads = [stage.upload(record, stage.reports(record, person)[0]) for _ in range(2)]
    first, second = stage.accept(0, uploads)
    assert first == Taken(1, True)
    assert second.code == "duplicate"


def test_a_client_lost_halfway_is_in_nobodys_sum(stage: Stage):
    record = stage.round(multiplier=0.0)
    stage.open(record)
    for person in stage.people[:-1]:
        stage.send(record, person)
    stage.send(record, stage.people[-1], computes=[0, 1])
    stage.close(record)
    stage.exchange()
    assert stage.settle() == ["released"] * M
    value, present = stage.total(record)
    assert present == N - 1
    np.testing.assert_array_equal(value, [31 / 16, -10.0])


def test_fewer_than_n_minus_t_are_refused_deleted_and_refunded(stage: Stage):
    record = stage.round()
    stage.run_to_rosters(record, stage.people[:4])
    assert stage.settle() == ["refused"] * M
    for each in stage.nodes:
        assert code_of(agreement.released_sum, each, stage.id, 0) == "round-refused"
        with each.store.read() as connection:
            assert db.ledger_events(connection, stage.id) == []
            assert {row.locked for row in connection.execute(select(tables.reports))} == {None}
            assert db.find_round(connection, stage.id, 0).reason == "too-few-clients"
    assert code_of(agreement.own_roster, stage.nodes[0], stage.id, 0) == "round-refused"


def test_each_state_of_a_sum_has_its_own_code(stage: Stage):
    record, first = stage.round(), stage.nodes[0]
    assert code_of(agreement.released_sum, first, stage.id, 0) == "not-found"
    stage.open(record)
    for person in stage.people[:4]:
        stage.send(record, person)
    assert code_of(agreement.released_sum, first, stage.id, 0) == "not-enough-reports"
    stage.send(record, stage.people[4])
    assert code_of(agreement.released_sum, first, stage.id, 0) == "round-open"
    assert code_of(agreement.own_roster, first, stage.id, 0) == "not-closed"
    stage.close(record)
    assert code_of(agreement.released_sum, first, stage.id, 0) == "agreement-under-way"


def test_late_reports_are_refused_but_known_ones_still_confirmed(stage: Stage):
    record = stage.round()
    stage.open(record)
    reports = stage.reports(record, stage.people[0])
    upload = stage.upload(record, reports[0])
    stage.accept(0, [upload])
    stage.close(record)
    assert stage.accept(0, [upload]) == [Taken(1, False)]
    assert stage.send(record, stage.people[1])[0].code == "closed"


def test_the_deadline_closes_the_round_without_the_analyst(stage: Stage):
    record = stage.round()
    stage.open(record)
    for person in stage.people:
        stage.send(record, person)
    assert code_of(agreement.close_at_deadline, stage.nodes[0], stage.id, 0) == "round-open"
    stage.clock.now += 3601
    assert stage.send(record, stage.people[0])[0].code == "duplicate"
    for each in stage.nodes:
        agreement.close_at_deadline(each, stage.id, 0)
    stage.exchange()
    assert stage.settle() == ["released"] * M


def test_a_party_with_several_samples_sends_their_sum(urls: list[str]):
    stage = make_stage(urls, people=[Person("hospital", 4), Person("clinic", 2)])
    stage.register()
    record = stage.round(multiplier=0.0)
    stage.open(record)
    assert stage.send(record, stage.people[0]) == [Taken(4, True)] * M
    assert stage.send(record, stage.people[1]) == [Taken(2, True)] * M
    stage.close(record)
    stage.exchange()
    stage.settle()
    value, present = stage.total(record)
    assert present == 6
    np.testing.assert_array_equal(value, [4 / 16 + 4 / 16, -2.0])


def test_good_reports_are_taken_beside_bad_ones(stage: Stage):
    record, (first, second, third, *_) = stage.round(), stage.people
    stage.open(record)
    good = stage.reports(record, first)[0]
    flipped = stage.reports(record, second)[0]
    flipped = flipped[:-50] + bytes([flipped[-50] ^ 1]) + flipped[-49:]
    elsewhere = stage.reports(record, third)[1]
    outcomes = stage.accept(0, [stage.upload(record, body) for body in (flipped, elsewhere, b"nonsense", good)])
    assert [outcome.code for outcome in outcomes[:3]] == ["cannot-open", "wrong-recipient", "malformed"]
    assert outcomes[3] == Taken(1, True)


def test_many_strangers_in_a_batch_cost_one_look(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    record, looks = stage.round(), list[list[str]]()
    stage.open(record)
    strangers = [stage.reports(record, Person(f"stranger-{i}"))[0] for i in range(20)]
    load = Known._load
    monkeypatch.setattr(Known, "_load", lambda known, study, names: looks.append(names) or load(known, study, names))
    outcomes = stage.accept(0, [stage.upload(record, *strangers, b"nonsense", strangers[0][:-1])])
    assert [outcome.code for outcome in outcomes] == ["unknown-client"] * 20 + ["malformed"] * 2
    assert len(looks) == 1


def test_a_small_memory_costs_time_and_nothing_else(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    """Clients are forgotten where there are too many, the oldest first, and read again from the store."""
    monkeypatch.setattr("hubbub.service.node.known._MOST_CLIENTS", 2)
    record, known = stage.round(multiplier=0.0), stage.nodes[0].known
    study = stage.upload(record).study
    stage.open(record)
    first, *_, last = known.enrolled(study, [person.name for person in stage.people]).values()
    known.remember("another study", first)
    assert dict(known.remembered(study)) == {last.name: last}
    assert dict(known.remembered("another study")) == {first.name: first}
    reports = [stage.reports(record, person)[0] for person in stage.people]
    assert stage.accept(0, [stage.upload(record, *reports)]) == [Taken(1, True)] * len(reports)


@pytest.mark.parametrize("framed", [True, False], ids=["in a frame", "the general way"])
def test_each_report_of_a_batch_is_taken_or_refused_by_itself(
    stage: Stage, framed: bool, monkeypatch: pytest.MonkeyPatch
):
    """Also beside other uploads, when it comes again, and when the round is over; the general way comes to the same."""
    if not framed:
        opened = Frame.read
        monkeypatch.setattr(Frame, "read", lambda frame, reports, _: opened(frame, reports, {}))  # finds nobody
    record = stage.round(multiplier=0.0)
    stage.open(record)
    good = [stage.reports(record, person) for person in stage.people]
    other = stage.reports(record, stage.people[1])
    stage.accept(0, [stage.upload(record, good[1][0])])
    mixed = stage.upload(record, good[0][0], b"nonsense", good[1][0], other[0], good[2][1], good[2][0])
    alone = stage.upload(record, good[3][0])
    (batch, (single,)) = accept_uploads(stage.nodes[0], [mixed, alone])
    assert [getattr(each, "code", each) for each in batch] == [
        Taken(1, True), "malformed", Taken(1, False), "duplicate", "wrong-recipient", Taken(1, True),
    ]  # fmt: skip
    assert single == Taken(1, True)
    with stage.nodes[0].store.read() as connection:
        assert db.counts(connection) == {"accepted": 4, "repeated": 1}
    for k in range(M):
        stage.accept(k, [stage.upload(record, *(each[k] for each in good))])
    stage.close(record)
    late = stage.accept(0, [stage.upload(record, good[0][0], other[0])])
    assert [getattr(each, "code", each) for each in late] == [Taken(1, False), "duplicate"]
    stage.exchange()
    stage.settle()
    value, present = stage.total(record)
    assert present == len(stage.people)
    np.testing.assert_array_equal(value, [sum(2.0**i / 16 for i in range(present)), -float(sum(range(present)))])


def hospitals() -> list[Person]:
    return [Person(f"hospital-{i}", samples) for i, samples in enumerate((400, 250, 1200, 30, 1))]


@pytest.mark.parametrize("missing", [1, 2])
def test_a_hospital_may_be_absent_whatever_it_holds(urls: list[str], missing: int):
    """K = 5 hospitals, D = 1, C = 1: the largest can stay away. When T counted samples, nobody could."""
    stage = make_stage(urls, people=hospitals(), colluders=1)
    stage.register()
    record = stage.round(multiplier=0.0)
    stage.open(record)
    there = [person for person in stage.people if person.samples not in (1200, 400)[:missing]]
    for person in there:
        stage.send(record, person)
    stage.close(record)
    stage.exchange()
    assert stage.settle() == [("released", "refused")[missing - 1]] * M
    if missing == 1:
        value, samples = stage.total(record)
        assert samples == 400 + 250 + 30 + 1
        marks = {person.name: 2.0**i / 16 for i, person in enumerate(stage.people)}
        assert value[0] == sum(marks[person.name] * person.samples for person in there)


def test_both_sides_must_agree_on_the_number_of_samples(urls: list[str]):
    stage = make_stage(urls, people=[Person("hospital", 4), Person("clinic", 2)])
    stage.register()
    more = replace(stage.people[1], samples=3)
    assert code_of(stage.enrol, 0, more) == "invalid-record"
    whale = stage.invitation(0, [Person("whale", 5)])
    assert code_of(node.invite, stage.nodes[0], stage.id, whale) == "invalid-record"


def test_no_more_clients_are_invited_than_the_noise_was_planned_for(urls: list[str]):
    """Neither clients nor samples: each further client would be one whose noise nobody counted on."""
    stage = make_stage(urls, people=[Person("hospital", 4), Person("clinic", 2), Person("practice", 3)])
    for each in stage.nodes:
        node.register_study(each, sign_record(stage.study, stage.analyst))
    node.invite(stage.nodes[0], stage.id, stage.invitation(0, [Person(f"p{i}") for i in range(3)]))
    assert code_of(node.invite, stage.nodes[0], stage.id, stage.invitation(0, [Person("p3")])) == "too-many"
    node.invite(stage.nodes[1], stage.id, stage.invitation(1, [Person("a", 4), Person("b", 4)]))
    assert code_of(node.invite, stage.nodes[1], stage.id, stage.invitation(1, [Person("c", 2)])) == "too-many"


def test_noise_belongs_to_the_client_and_covers_dropouts_and_colluders_at_once(urls: list[str]):
    stage = make_stage(urls, people=hospitals(), colluders=1)
    noise = stage.round(multiplier=3.0).checked(stage.study).plan(0).noise
    left = noise.sigma_client * np.sqrt(5 - 1 - 1 - 1)  # one absent, one colluding, one subtracts its own share
    assert left == pytest.approx(noise.sigma_std)


def test_a_study_made_by_an_earlier_version_is_not_taken(stage: Stage):
    early = EarlyPopulation(N, 1, 1, N, 1, theorem1=True, held=1)
    study = EarlyStudyRecord(
        "early", early, stage.study.computes, Budget(1.0, 1e-5), stage.study.deadline, stage.analyst.public()
    )
    with pytest.raises(InvalidInput, match="study must be of version 2, got one made by hubbub 0.1"):
        node.register_study(stage.nodes[0], sign_record(study, stage.analyst))


def test_ledger_refuses_what_overspends_and_stays_as_it_was(urls: list[str]):
    budget = Budget(1.0, 1e-5)
    stage = make_stage(urls, budget)
    stage.register()
    first, second = shared_multipliers(budget, [1.0, 2.0])
    for number, multiplier in enumerate((first, second)):
        record = stage.round(number, multiplier)
        stage.run_to_rosters(record)
        assert stage.settle(number) == ["released"] * M
    third = sign_record(stage.round(2, 1e4), stage.analyst)
    assert not fits([GaussianEvent(m) for m in (first, second, 1e4)], budget)
    for each in stage.nodes:
        assert code_of(node.open_round, each, stage.id, third) == "over-budget"
        with each.store.read() as connection:
            assert len(db.ledger_events(connection, stage.id)) == 2
            assert len(db.rounds_of(connection, stage.id)) == 2


def round_of(stage: Stage, number: int, mechanism) -> RoundRecord:
    """A round of the study with noise of this law."""
    noise = mechanism.settled(STATISTIC, stage.study.population)
    return stage.round(
        number, mechanism=mechanism.describe(), fraction_bits=noise.grid.fraction_bits, sigma_client=noise.sigma_client
    )


@pytest.mark.parametrize(
    ("budget", "mechanism", "rounds"),
    [
        (Budget(1.0, 0.0), DiscreteLaplaceMechanism(0.25), 4),
        (Budget(1.0, 1e-5), DiscreteLaplaceMechanism(0.5), 2),
        (Budget(1.0, 1e-5), DiscreteGaussianMechanism(6.0), 2),
        (Budget(1.0, 1e-5), SkellamMechanism(6.0), 2),
        (Budget(1.0, 0.0), DiscreteGaussianMechanism(1e6), 0),
        (Budget(1.0, 1e-5), DiscreteGaussianMechanism(1e-170), 0),
    ],
    ids=str,
)
def test_a_compute_opens_as_many_rounds_of_whole_number_noise_as_the_budget_pays_for(
    urls: list[str], budget: Budget, mechanism, rounds: int
):
    stage = make_stage(urls[:M], budget, [Person("a"), Person("b")])
    stage.study = replace(stage.study, noise=str(mechanism.describe()["mechanism"]))
    stage.register()
    first = stage.nodes[0]
    for number in range(rounds):
        node.open_round(first, stage.id, sign_record(round_of(stage, number, mechanism), stage.analyst))
        with first.store.write() as connection:  # as if it had been released
            assert db.move(connection, stage.id, number, "open", "released", 0.0)
    with first.store.read() as connection:
        assert db.ledger_events(connection, stage.id) == [mechanism.event()] * rounds
    more = sign_record(round_of(stage, rounds, mechanism), stage.analyst)
    assert code_of(node.open_round, first, stage.id, more) == "over-budget"
    with first.store.read() as connection:
        assert len(db.ledger_events(connection, stage.id)) == rounds


def test_ledger_counts_coins_that_clients_flip(urls: list[str]):
    """Four steps on batches that clients select themselves: amplified they fit, and not one more; else not even two."""
    budget, coin = Budget(0.5, 1e-5), 0.3
    stage = make_stage(urls[:M], budget)
    stage.register()
    multiplier = sampled_multiplier(budget, coin, 4)
    assert not fits([GaussianEvent(multiplier)] * 2, budget)
    statistic = Clipped(installed("a program", "f" * 64, 2, 2), np.zeros(2), 1.0, coin)
    first = stage.nodes[0]
    for number in range(4):
        record = stage.round(number, multiplier, statistic)
        node.open_round(first, stage.id, sign_record(record, stage.analyst))
        with first.store.write() as connection:  # as if it had been released
            assert db.move(connection, stage.id, number, "open", "released", 0.0)
    with first.store.read() as connection:
        assert db.ledger_events(connection, stage.id) == [SampledGaussianEvent(multiplier, coin)] * 4
    spent = status.overview(first, Counts())["studies"][0]["budget"]["spent"]
    assert 0.45 < spent <= 0.5
    more = [stage.round(4, multiplier, replace(statistic, probability=each)) for each in (coin, 1.0)]
    for record in more:
        assert code_of(node.open_round, first, stage.id, sign_record(record, stage.analyst)) == "over-budget"


def test_a_budget_needs_noise_and_a_simulation_needs_permission(urls: list[str]):
    stage = make_stage(urls, Budget(1.0, 1e-5), simulation=False)
    stage.register()
    with pytest.raises(InvalidInput, match="only a simulation has no noise"):
        stage.open(stage.round(multiplier=0.0))
    free = replace(stage.study, budget=None)
    assert code_of(node.register_study, stage.nodes[0], sign_record(free, stage.analyst)) == "not-allowed"


def test_a_round_is_not_taken_at_its_word(stage: Stage):
    for changes, message in [
        ({"sigma_client": 1e-9}, "sigma_client must be"),
        ({"sigma_client": 0.999 * stage.round().sigma_client}, "sigma_client must be .*the round misstates its noise"),
        ({"sigma_client": 1.001 * stage.round().sigma_client}, "sigma_client must be .*the round misstates its noise"),
        ({"mechanism": GaussianMechanism(1.0).describe()}, "sigma_client must be .*the round misstates its noise"),
        ({"fraction_bits": 62}, "fraction_bits must be at most"),
        ({"statistic": {"statistic": "means", "bounds": [0.01, 0.01]}}, "sigma_client must be|fraction_bits"),
        ({"statistic": {"statistic": "unheard of"}}, "statistic must be one of"),
        ({"mechanism": {"mechanism": "unheard of"}}, "mechanism must be one of .*update hubbub"),
        ({"mechanism": {"mechanism": "gaussian"}}, "mechanism must be described in full"),
        ({"study": bytes(32)}, "round must be of this study"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            stage.open(replace(stage.round(), **changes))
    other = sign_record(stage.round(), SigningKey.generate())
    assert code_of(node.open_round, stage.nodes[0], stage.id, other) == "bad-signature"
    assert (
        code_of(node.open_round, stage.nodes[0], stage.id, sign_record(stage.round(3), stage.analyst))
        == "invalid-record"
    )


def test_a_round_number_has_one_record_and_rounds_follow_one_another(stage: Stage):
    record = stage.round()
    stage.open(record)
    stage.open(record)
    other = sign_record(stage.round(multiplier=11.0), stage.analyst)
    assert code_of(node.open_round, stage.nodes[0], stage.id, other) == "other-record"
    following = sign_record(stage.round(1), stage.analyst)
    assert code_of(node.open_round, stage.nodes[0], stage.id, following) == "round-under-way"


def test_limits_hold(urls: list[str]):
    stage = make_stage(urls, studies=1, dimension=2)
    stage.register()
    stage.register()
    second = sign_record(replace(stage.study, nonce="other"), stage.analyst)
    assert code_of(node.register_study, stage.nodes[0], second) == "too-many"
    wide = sign_record(stage.round(statistic=Means((1.0,) * 3)), stage.analyst)
    assert code_of(node.open_round, stage.nodes[0], stage.id, wide) == "too-many"
    assert code_of(node.invite, stage.nodes[0], stage.id, stage.invitation(0, [Person("one too many")])) == "too-many"
    assert stage.enrol(0, stage.people[0]).new is False


def test_a_study_must_name_this_compute_with_its_keys(stage: Stage):
    key = stage.study.computes[1].key
    moved = replace(
        stage.study, computes=(replace(stage.study.computes[0], verify_key=bytes(32)), *stage.study.computes[1:])
    )
    assert code_of(node.register_study, stage.nodes[0], sign_record(moved, stage.analyst)) == "invalid-record"
    assert key.suite == "X25519"


def test_tokens_work_once_at_one_compute_and_for_one_key(urls: list[str]):
    stage = make_stage(urls)
    person = stage.people[0]
    for k, each in enumerate(stage.nodes):
        node.register_study(each, sign_record(stage.study, stage.analyst))
        node.invite(each, stage.id, stage.invitation(k, stage.people))
    assert code_of(stage.enrol, 0, person, None, bytes(32)) == "bad-token"
    assert code_of(stage.enrol, 0, Person("a stranger")) == "bad-token"
    assert stage.enrol(0, person).new
    assert not stage.enrol(0, person).new
    assert code_of(stage.enrol, 0, person, SigningKey.generate()) == "already-enrolled"
    record = stage.round()
    stage.open(record)
    outcomes = stage.send(record, person)
    assert outcomes[0] == Taken(1, True)
    assert [outcome.code for outcome in outcomes[1:]] == ["unknown-client"] * 2


def test_a_second_roster_ends_the_round_before_anything_is_released(stage: Stage):
    record = stage.round()
    stage.run_to_rosters(record)
    honest = read_signed(agreement.own_roster(stage.nodes[1], stage.id, 0), RosterRecord)[0]
    second = sign_record(replace(honest, clients=honest.clients[:-1]), stage.nodes[1].keys.sign)
    assert code_of(agreement.receive_roster, stage.nodes[0], stage.id, 0, second) == "second-roster"
    assert code_of(agreement.released_sum, stage.nodes[0], stage.id, 0) == "round-refused"


def test_a_second_roster_after_release_changes_nothing(stage: Stage):
    record = stage.round()
    stage.run_to_rosters(record)
    stage.settle()
    before = agreement.released_sum(stage.nodes[0], stage.id, 0)
    honest = read_signed(agreement.own_roster(stage.nodes[1], stage.id, 0), RosterRecord)[0]
    second = sign_record(replace(honest, clients=honest.clients[:-1]), stage.nodes[1].keys.sign)
    assert code_of(agreement.receive_roster, stage.nodes[0], stage.id, 0, second) == "second-roster"
    assert agreement.released_sum(stage.nodes[0], stage.id, 0) == before


def test_a_forged_roster_is_refused_and_the_round_goes_on(stage: Stage):
    record = stage.round()
    stage.open(record)
    for person in stage.people:
        stage.send(record, person)
    stage.close(record)
    honest = read_signed(agreement.own_roster(stage.nodes[1], stage.id, 0), RosterRecord)[0]
    for forged in (
        sign_record(replace(honest, clients=()), SigningKey.generate()),
        sign_record(honest, stage.nodes[2].keys.sign),
    ):
        assert code_of(agreement.receive_roster, stage.nodes[0], stage.id, 0, forged) == "bad-signature"
    for wrong in (replace(honest, round=bytes(32)), replace(honest, compute=7), replace(honest, number=1)):
        data = sign_record(wrong, stage.nodes[1].keys.sign)
        assert code_of(agreement.receive_roster, stage.nodes[0], stage.id, 0, data) == "invalid-record"
    stage.exchange()
    assert stage.settle() == ["released"] * M


def test_close_must_be_the_analysts_and_of_this_round(stage: Stage):
    record = stage.round()
    stage.open(record)
    close = CloseRecord(digest(stage.study), digest(record))
    forged = sign_record(close, SigningKey.generate())
    assert code_of(agreement.close, stage.nodes[0], stage.id, 0, forged) == "bad-signature"
    other = sign_record(replace(close, round=bytes(32)), stage.analyst)
    assert code_of(agreement.close, stage.nodes[0], stage.id, 0, other) == "invalid-record"


def test_audit_names_the_other_sides_event(stage: Stage):
    record = stage.round()
    stage.open(record)
    stage.close(record)
    stage.exchange()
    with stage.nodes[0].store.read() as connection:
        lines = connection.execute(select(tables.audit).order_by(tables.audit.c.position)).all()
    kinds = [line.kind for line in lines]
    assert kinds.count("roster-received") == 2
    theirs = read_signed(agreement.own_roster(stage.nodes[1], stage.id, 0), RosterRecord)[0].event
    assert theirs in {line.other for line in lines if line.kind == "roster-received"}
    with stage.nodes[1].store.read() as connection:
        closed = select(tables.audit.c.event).where(tables.audit.c.kind == "round-closed")
        assert connection.execute(closed).scalar_one() == theirs


def test_no_secret_is_in_the_database_as_it_is(urls: list[str]):
    if not urls[0].startswith("sqlite"):
        pytest.skip("reads the file")
    stage = make_stage(urls)
    stage.register()
    record = stage.round()
    stage.open(record)
    stage.send(record, stage.people[0])
    stage.nodes[0].store.close()
    content = Path(urls[0].removeprefix("sqlite:///")).read_bytes()
    for secret in (stage.nodes[0].keys.seal.data, stage.nodes[0].keys.sign.data, stage.people[0].token):
        assert secret not in content
    assert stamp(0.0) == "1970-01-01T00:00:00Z"
