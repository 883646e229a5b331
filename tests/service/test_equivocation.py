"""Three Computes of which the last one cheats: it shows others different rosters, or signs different agreements.

The two honest ones are real nodes with their HTTP faces and caretakers; the cheater has all keys and data that it would have.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx
import pytest
from sqlalchemy import select

from hubbub.service.node import agreement, matching, tables
from hubbub.service.node import store as db
from hubbub.service.node.app import create_app
from hubbub.service.node.caretaker import Caretaker
from hubbub.service.node.metrics import Counts
from hubbub.service.wire.canonical import digest, read_signed, sign_record
from hubbub.service.wire.endings import AgreementRecord, RosterRecord
from hubbub.service.wire.messages import decode_sum
from hubbub.service.wire.problems import Problem
from hubbub.service.wire.records import RoundRecord
from service.stage import M, N, Stage, make_stage

CHEATER = 2
PATIENCE = 100.0


@dataclass
class Cheater:
    """Answers each honest Compute as the test says: which roster it is shown, and what agreement, if any."""

    stage: Stage
    record: RoundRecord
    shown: dict[int, int] = field(default_factory=dict)
    """How many clients are left out of the roster that the Compute at this place sees."""
    agrees: dict[int, str] = field(default_factory=dict)
    """same: as the other says; other: something else; silent: nothing. The default is same."""

    def roster(self, place: int) -> bytes:
        left_out = self.shown.get(place, 0)
        clients = tuple(sorted(person.name for person in self.stage.people))[left_out:]
        study, event = digest(self.stage.study), f"event{left_out}"
        roster = RosterRecord(study, digest(self.record), self.record.number, CHEATER, clients, event)
        return sign_record(roster, self.stage.nodes[CHEATER].keys.sign)

    def agreement(self, theirs: AgreementRecord, like: str) -> bytes:
        mine = replace(theirs, compute=CHEATER, event=f"event{like}")
        if like == "other":
            mine = replace(mine, rosters=(*mine.rosters[:-1], bytes(32)))
        return sign_record(mine, self.stage.nodes[CHEATER].keys.sign)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(200, json={"rosters": []})
        if request.url.path.endswith("/rosters"):
            return httpx.Response(200, content=self.roster(read_signed(request.content, RosterRecord)[0].compute))
        theirs = read_signed(request.content, AgreementRecord)[0]
        like = self.agrees.get(theirs.compute, "same")
        if like == "silent":
            return httpx.Response(503, json={"code": "not-ready", "detail": "later"})
        return httpx.Response(200, json={"agreements": [self.agreement(theirs, like).decode()]})


@dataclass
class Town:
    """The study, and what the Computes are doing."""

    stage: Stage
    rounds: int = 0
    counts: dict[int, Counts] = field(default_factory=lambda: {0: Counts(), 1: Counts()})

    def begin(self, **cheats) -> Cheater:
        """A round that everybody has reported in and that is closed at the honest ones."""
        record = self.stage.round(self.rounds, multiplier=0.0)
        self.rounds += 1
        self.stage.open(record)
        for person in self.stage.people:
            self.stage.send(record, person)
        self.stage.close(record)
        agreement.refuse(self.stage.nodes[CHEATER], self.stage.id, record.number, "test", "it is played by the test")
        return Cheater(self.stage, record, **cheats)

    def look(self, cheater: Cheater, *order: int) -> None:
        """The honest Computes look after the round, in this order."""

        async def play() -> None:
            apps = {}
            async with httpx.AsyncClient(transport=httpx.MockTransport(cheater)) as http:
                for k in (0, 1):
                    apps[k] = httpx.ASGITransport(create_app(self.stage.nodes[k], http))
                mounts = {f"all://compute-{k}.example": app for k, app in apps.items()}
                async with httpx.AsyncClient(transport=httpx.MockTransport(cheater), mounts=mounts) as real:
                    for k in order:
                        await Caretaker(self.stage.nodes[k], real, self.counts[k]).look(patience=60)

        asyncio.run(play())

    def row(self, k: int, number: int):
        with self.stage.nodes[k].store.read() as connection:
            return db.find_round(connection, self.stage.id, number)

    def states(self, number: int) -> list[str]:
        return [self.row(k, number).state for k in (0, 1)]

    def charged(self, k: int, number: int) -> bool:
        mine = (tables.ledger.c.study == self.stage.id) & (tables.ledger.c.number == number)
        with self.stage.nodes[k].store.read() as connection:
            return connection.execute(select(tables.ledger).where(mine)).first() is not None

    def audit(self, k: int, number: int) -> list[tuple[str, dict]]:
        query = select(tables.audit).where(tables.audit.c.number == number).order_by(tables.audit.c.position)
        with self.stage.nodes[k].store.read() as connection:
            return [(row.kind, json.loads(row.detail)) for row in connection.execute(query)]

    def rosters(self, number: int) -> set[bytes]:
        """Over what the honest Computes have released."""
        found = set()
        for k in (0, 1):
            if self.row(k, number).state == "released":
                body = agreement.released_sum(self.stage.nodes[k], self.stage.id, number)
                found.add(decode_sum(body, self.stage.study.computes[k].verify_key).roster)
        return found


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    stage = make_stage([f"sqlite:///{tmp_path}/compute-{k}.db" for k in range(M)], agreement_seconds=PATIENCE)
    stage.register()
    yield Town(stage)
    for node in stage.nodes:
        node.store.close()


@pytest.mark.parametrize(("shown", "namers"), [
    ({0: 0, 1: 1}, [0, 1]), ({0: 1, 1: 0}, [0, 1]), ({0: 0, 1: 3}, [0, 1]), ({0: 3, 1: 0}, [1]),
])  # fmt: skip
def test_who_shows_two_rosters_is_named_and_the_study_goes_on(town: Town, shown: dict[int, int], namers: list[int]):
    """With one client less both honest ones could release; with three less one of them finds too few.

    In the last case it does so before the other holds the roster that would prove the rest; then the other names it.
    """
    cheater = town.begin(shown=shown)
    town.look(cheater, 0, 1, 0, 1)
    assert town.states(0) == ["refused"] * 2
    assert not any(town.charged(k, 0) for k in (0, 1))
    for k in namers:
        row = town.row(k, 0)
        assert row.reason == "second-roster"
        assert "compute-2 (Compute 3 of 3) has signed two different rosters" in row.detail
        assert ("round-refused", {"reason": "second-roster", "compute": CHEATER}) in town.audit(k, 0)
        counted = town.counts[k].current(town.stage.nodes[k].store)
        assert counted["rejected:second-roster"] == 1, "it was fetched, and counts as if it had been sent"
    honest = town.begin()
    town.look(honest, 0, 1, 0)
    assert town.states(1) == ["released"] * 2
    assert len(town.rosters(1)) == 1
    assert town.row(0, 1).roster_size == N


def test_two_agreements_of_one_compute_make_nobody_release_over_other_clients(town: Town):
    """It tells the second one something else than the first: the first one's copy settles it."""
    cheater = town.begin(agrees={0: "silent", 1: "other"})
    town.look(cheater, 0, 1, 0, 1)
    assert town.states(0) == ["agreed"] * 2
    assert ("agreement-differs", {"compute": CHEATER}) in town.audit(1, 0)
    cheater.agrees = {0: "same", 1: "other"}
    town.look(cheater, 0)
    assert town.states(0) == ["released", "agreed"]
    town.look(cheater, 1)
    assert town.states(0) == ["released"] * 2
    assert len(town.rosters(0)) == 1


def test_without_all_agreements_nothing_is_released_and_the_silent_one_is_named(town: Town):
    cheater = town.begin(agrees={0: "silent", 1: "silent"})
    town.look(cheater, 0, 1, 0, 1)
    assert town.states(0) == ["agreed"] * 2
    town.stage.clock.now += PATIENCE + 1
    town.look(cheater, 0, 1)
    assert town.states(0) == ["refused"] * 2
    assert "did not answer in time (compute-2)" in town.row(0, 0).detail
    assert not any(town.charged(k, 0) for k in (0, 1))


def test_whatever_it_shows_and_signs_honest_computes_release_over_the_same_clients_or_not_at_all(town: Town):
    """All ways to treat the two; the round always ends, and is paid for where this Compute has released, only there."""
    outcomes = set()
    for shown, first, second in itertools.product([(0, 0), (0, 1)], *[["same", "other", "silent"]] * 2):
        cheater = town.begin(shown=dict(enumerate(shown)), agrees={0: first, 1: second})
        number = cheater.record.number
        town.look(cheater, 0, 1, 0, 1)
        town.stage.clock.now += PATIENCE + 1
        town.look(cheater, 0, 1)
        states = town.states(number)
        assert set(states) <= {"released", "refused"}
        assert len(town.rosters(number)) <= 1
        assert [town.charged(k, number) for k in (0, 1)] == [state == "released" for state in states]
        if shown == (0, 1):
            assert states == ["refused"] * 2
        outcomes.add(tuple(states))
    assert outcomes == {("released", "released"), ("refused", "refused")}


def test_once_it_has_signed_a_second_roster_does_not_make_a_compute_refuse(town: Town):
    """The other may have released already: then this one's sum over the same clients is what the study waits for."""
    cheater = town.begin()
    town.look(cheater, 0, 1)
    assert town.states(0) == ["agreed", "released"]
    cheater.shown = {0: 1}
    for _ in range(2):
        with pytest.raises(Problem) as problem:
            agreement.receive_roster(town.stage.nodes[0], town.stage.id, 0, cheater.roster(0))
        assert problem.value.code == "second-roster"
    assert [kind for kind, _ in town.audit(0, 0)].count("second-roster") == 1
    cheater.shown = {}
    town.look(cheater, 0)
    assert town.states(0) == ["released"] * 2
    assert len(town.rosters(0)) == 1


def test_agreements_are_checked_before_they_count(town: Town):
    stage = town.stage
    cheater = town.begin()
    town.look(cheater, 0, 1)
    own = read_signed(matching.own_agreement(stage.nodes[1], stage.id, 0), AgreementRecord)[0]
    cheats = stage.nodes[CHEATER].keys.sign
    for changed, code in [
        (replace(own, compute=CHEATER, round=bytes(32)), "invalid-record"),
        (replace(own, compute=CHEATER, number=1), "invalid-record"),
        (replace(own, compute=CHEATER, rosters=own.rosters[:2]), "invalid-record"),
        (replace(own, compute=7), "invalid-record"),
        (own, "bad-signature"),
    ]:
        with pytest.raises(Problem) as problem:
            matching.receive_agreement(stage.nodes[0], stage.id, 0, sign_record(changed, cheats))
        assert problem.value.code == code


def test_a_restored_database_gets_no_budget_back(town: Town):
    """Before it was restored, this Compute may have released its sum over the roster that others hold."""
    town.begin()
    first = town.stage.nodes[0]
    own = read_signed(agreement.own_roster(first, town.stage.id, 0), RosterRecord)[0]
    forgotten = sign_record(replace(own, event="before"), first.keys.sign)
    with pytest.raises(Problem) as problem:
        agreement.receive_roster(first, town.stage.id, 0, forgotten)
    assert problem.value.code == "rolled-back"
    assert town.row(0, 0).state == "refused"
    assert town.charged(0, 0)
