"""The draw of who serves whom, on nodes without HTTP: what an honest Compute reveals, for what, and how often."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select, update

from hubbub.errors import InvalidInput
from hubbub.securesum import Subset
from hubbub.service.node import agreement, draw, tables
from hubbub.service.node import compute as node
from hubbub.service.node.commitments import DrawBox
from hubbub.service.node.known import Known
from hubbub.service.node.store import Store
from hubbub.service.wire.canonical import digest, read_signed, sign_record
from hubbub.service.wire.draw import (
    CommitmentRecord,
    Draw,
    DrawRequestRecord,
    RevealRecord,
    check_listed,
    commit,
    drawn_study,
)
from hubbub.service.wire.endings import RosterRecord
from hubbub.service.wire.merkle import Proof, Tree
from hubbub.service.wire.problems import Problem
from hubbub.service.wire.signing import SigningKey
from service.stage import M, Person, Stage, make_stage

PEOPLE = 60  # with whom the chance that the sums are refused as loose-computes is below 1e-9


def make(urls: list[str], folder: Path, **limits) -> Stage:
    people = [Person(f"c{i}", 1 + i % 2) for i in range(PEOPLE)]
    folders = [folder / f"files-{k}" for k in range(len(urls))]
    return make_stage(urls, people=people, folders=folders, secure_sum=Subset(len(urls), 2), **limits)


@pytest.fixture
def stage(urls: list[str], tmp_path: Path) -> Iterator[Stage]:
    """Registered and invited, and nothing drawn; on both kinds of database."""
    made = make(urls, tmp_path)
    made.invite()
    yield made
    for each in made.nodes:
        each.store.close()


@pytest.fixture
def small(tmp_path: Path) -> Stage:
    """The same on SQLite alone, for what has nothing to do with the database."""
    made = make([f"sqlite:///{tmp_path}/{k}.db" for k in range(M)], tmp_path)
    made.invite()
    return made


def refused(code: str, match: str, work, *arguments) -> None:
    with pytest.raises(Problem, match=match) as caught:
        work(*arguments)
    assert caught.value.code == code


def at(stage: Stage, k: int = 0):
    return stage.nodes[k], stage.id


def signed_again(data: bytes, kind, key: SigningKey, **changes) -> bytes:
    return sign_record(replace(read_signed(data, kind)[0], **changes), key)


# --------------------------------------------------------------------------------------------------- the honest way


def test_all_come_to_the_same_seed_and_a_round_has_the_exact_sum(stage: Stage):
    stage.draw()
    assert len({node.known_study(each, stage.id)[0].seed for each in stage.nodes}) == 1
    for person in stage.people:
        for k in stage.drawn.secure_sum.recipients(person.name):
            stage.enrol(k, person)
    record = stage.round(multiplier=0.0)
    stage.run_to_rosters(record)
    assert stage.settle() == ["released"] * M
    total, samples = stage.total(record)
    expected = sum(p.samples * 2.0 ** (i % 6) / 16 for i, p in enumerate(stage.people))
    assert (total[0], samples) == (expected, sum(person.samples for person in stage.people))


def test_every_step_again_changes_nothing(stage: Stage):
    first = [draw.commitment(each, stage.id) for each in stage.nodes]
    for each in stage.nodes:
        node.register_study(each, sign_record(stage.study, stage.analyst))
    assert [draw.commitment(each, stage.id) for each in stage.nodes] == first
    found = stage.revealed()
    assert stage.revealed() == found
    assert [draw.finish(each, stage.id, found.encode()).new for each in stage.nodes] == [True] * M
    assert [draw.finish(each, stage.id, found.encode()).new for each in stage.nodes] == [False] * M
    for k, each in enumerate(stage.nodes):  # those who are on the list already can be invited again
        assert not node.invite(each, stage.id, stage.invitation(k, stage.people)).new


def test_nothing_goes_on_before_the_draw(small: Stage):
    record = sign_record(small.round(), small.analyst)
    refused("not-drawn", "must have its draw first", node.open_round, *at(small), record)
    refused("not-drawn", "must have its draw first", small.enrol, 0, small.people[0])
    refused("not-drawn", "must have its draw first", draw.result, *at(small))
    refused("not-drawn", "must have its draw first", draw.listed, *at(small), "c0")
    small.revealed()  # all have revealed, and nobody has been told
    refused("not-drawn", "must have its draw first", node.open_round, *at(small), record)


def test_a_client_enrols_and_reports_with_its_own_computes_alone(small: Stage):
    small.draw()
    person = small.people[0]
    (other,) = set(range(M)) - set(small.drawn.secure_sum.recipients(person.name))
    refused("wrong-recipient", f"one that Compute {other + 1} serves", small.enrol, other, person)
    for k in small.drawn.secure_sum.recipients(person.name):
        assert small.enrol(k, person).new


# ----------------------------------------------------------------------------------------------- an analyst who cheats


def test_nobody_is_invited_after_the_draw_was_asked_for(stage: Stage):
    late = Person("late")
    draw.reveal(*at(stage), stage.asked().encode())
    invitation = stage.invitation(0, [*stage.people[:3], late])
    refused("already-drawn", "clients must be invited before the draw, got 1 new", node.invite, *at(stage), invitation)


def test_it_reveals_for_its_own_list_only(small: Stage):
    fewer = small.asked(small.people[:-1])
    refused("invalid-record", f"over the {PEOPLE} client.* got a list of 59", draw.reveal, *at(small), fewer.encode())
    more = [*small.people[:-1], replace(small.people[-1], samples=9)]
    refused("invalid-record", "with another hash", draw.reveal, *at(small), small.asked(more).encode())
    assert draw.reveal(*at(small), small.asked().encode())


def test_it_reveals_once_also_where_a_second_list_would_fit(stage: Stage):
    """The other request differs in a commitment of somebody else, who has signed a second one."""
    asked = stage.asked()
    draw.reveal(*at(stage), asked.encode())
    request = read_signed(asked.request, DrawRequestRecord)[0]
    second = signed_again(asked.commitments[1], CommitmentRecord, stage.nodes[1].keys.sign, commitment=bytes(32))
    values = (request.commitments[0], bytes(32), *request.commitments[2:])
    other = Draw(
        sign_record(replace(request, commitments=values), stage.analyst),
        (asked.commitments[0], second, *asked.commitments[2:]),
    )
    refused("other-record", "another list or other commitments already", draw.reveal, *at(stage), other.encode())


@pytest.mark.parametrize(
    ("change", "code", "match"),
    [
        ("signer", "bad-signature", "must be the analyst's"),
        ("own commitment", "invalid-record", "commitment of Compute 1 must be the one that it signed"),
        ("second own", "invalid-record", "the commitment that this Compute made"),
        ("forged", "invalid-record", "signature must be the study's Compute 2's"),
        ("swapped", "invalid-record", "signature must be the study's Compute 1's"),
        ("too few", "invalid-record", "signed by all 3 Computes"),
        ("nothing to draw from", "invalid-record", "one of each of the 3 Computes"),
    ],
)
def test_a_request_that_is_not_right_reveals_nothing(small: Stage, change: str, code: str, match: str):
    asked, key, commitments = small.asked(), small.analyst, list(small.asked().commitments)
    request = read_signed(asked.request, DrawRequestRecord)[0]
    values = list(request.commitments)
    if change == "signer":
        key = SigningKey.generate()
    elif change == "own commitment":
        values[0] = bytes(32)
    elif change == "second own":
        values[0] = bytes(32)
        commitments[0] = signed_again(commitments[0], CommitmentRecord, small.nodes[0].keys.sign, commitment=bytes(32))
    elif change == "forged":
        values[1] = bytes(32)
        commitments[1] = signed_again(commitments[1], CommitmentRecord, small.analyst, commitment=bytes(32))
    elif change == "swapped":
        commitments[:2], values[:2] = commitments[1::-1], values[1::-1]
    elif change == "too few":
        del commitments[-1]
    else:
        del values[-1]
    bad = Draw(sign_record(replace(request, commitments=tuple(values)), key), tuple(commitments))
    refused(code, match, draw.reveal, *at(small), bad.encode())
    assert draw.reveal(*at(small), asked.encode()), "and the right one still does"


def test_draws_that_lead_to_nothing_are_few(tmp_path: Path):
    """Who reveals last may refuse until a draw suits, and an analyst may end draws and throw the studies away: a
    Compute that has revealed in vain so often stops."""
    stage = make([f"sqlite:///{tmp_path}/{k}.db" for k in range(M)], tmp_path, unfinished_draws=2)
    first = stage.study
    for number in range(3):
        stage.study = replace(first, nonce=str(number))
        stage.invite()
        if number == 0:
            draw.reveal(*at(stage), stage.asked().encode())
        if number == 1:
            stage.draw()
    match = "draws that this Compute revealed for and that led to no released round must number at most 2.*got 2"
    refused("too-many", match, draw.reveal, *at(stage), stage.asked().encode())
    stage.study = replace(first, nonce="0")
    stage.draw()  # ended after all, which alone shows nobody that it was meant to be used
    stage.study = replace(first, nonce="2")
    refused("too-many", match, draw.reveal, *at(stage), stage.asked().encode())
    stage.study = replace(first, nonce="1")
    for person in stage.people:
        for k in stage.drawn.secure_sum.recipients(person.name):
            stage.enrol(k, person)
    stage.run_to_rosters(stage.round())
    assert stage.settle() == ["released"] * M
    stage.study = replace(first, nonce="2")
    assert draw.reveal(*at(stage), stage.asked().encode())


# ----------------------------------------------------------------------------------------------- a Compute that cheats


def test_computes_that_invent_a_client_are_named(small: Stage):
    """Together they serve it alone, so nobody else can say that it is not there."""
    small.register()
    record = small.round()
    small.open(record)
    for person in small.people:
        small.send(record, person)
    small.close(record)
    serving = small.drawn.secure_sum.recipients
    stranger = next(f"x{number}" for number in range(1000) if serving(f"x{number}") == (1, 2))
    for k in (1, 2):
        clients = sorted([stranger, *(person.name for person in small.people[1:] if k in serving(person.name))])
        place = digest(small.study), digest(record), 0, k
        roster = sign_record(RosterRecord(*place, tuple(clients), "lie"), small.nodes[k].keys.sign)
        agreement.receive_roster(*at(small), 0, roster)
    assert agreement.settle(*at(small), 0) == "refused"
    match = "compute-1, compute-2 signed rosters with a client who was not invited"
    refused("round-refused", match, agreement.own_roster, *at(small), 0)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ("secret", "reveal of Compute 2 must fit its commitment"),
        ("request", "reveal of Compute 2 must be for this list and these commitments"),
        ("signature", "signature must be the study's Compute 2's"),
        ("place", "the record of Compute 2 in this study there"),
        ("study", "the record of Compute 2 in this study there"),
        ("missing", "signed by all 3 Computes, got draw=2 signatures"),
    ],
)
def test_everybody_refuses_a_draw_with_a_reveal_that_is_not_right(small: Stage, change: str, match: str):
    good, cheater = small.revealed(), small.nodes[1].keys.sign
    changes = {
        "secret": {"secret": bytes(32)}, "request": {"request": bytes(32)}, "place": {"compute": 2},
        "study": {"study": bytes(32)},
    }.get(change, {})  # fmt: skip
    key = small.analyst if change == "signature" else cheater
    reveals = [good.reveals[0], signed_again(good.reveals[1], RevealRecord, key, **changes), good.reveals[2]]
    bad = replace(good, reveals=tuple(reveals[:2] if change == "missing" else reveals))
    with pytest.raises(InvalidInput, match=match):
        drawn_study(small.study, bad.encode())
    with pytest.raises(InvalidInput, match=match):
        draw.finish(*at(small), bad.encode())
    draw.finish(*at(small), good.encode())


def test_a_compute_takes_no_draw_that_it_has_not_revealed_for(small: Stage):
    found = small.revealed()
    with small.nodes[0].store.write() as connection:
        connection.execute(update(tables.draws).values(request=None, reveal=None))
    refused("other-record", "the one that this Compute revealed for", draw.finish, *at(small), found.encode())


def test_the_seed_depends_on_every_secret_and_on_the_list(small: Stage, tmp_path: Path):
    seeds = {drawn_study(small.study, small.revealed().encode()).seed}
    secrets = [read_signed(each, RevealRecord)[0].secret for each in small.revealed().reveals]
    for k in range(M):
        assert commit(digest(small.study), k, secrets[k]) != commit(digest(small.study), (k + 1) % M, secrets[k])
    for number in range(2):  # the same study again with other secrets, and one client less
        other = make([f"sqlite:///{tmp_path}/again{number}-{k}.db" for k in range(M)], tmp_path / f"{number}")
        other.people = other.people[number:]
        other.invite()
        seeds.add(drawn_study(other.study, other.revealed().encode()).seed)
    assert len(seeds) == 3
    assert all(len(seed) == 64 for seed in seeds)


# ------------------------------------------------------------------------------------------------ a name after the draw


def test_a_client_refuses_a_name_that_was_handed_out_after_the_draw(small: Stage):
    small.draw()
    data = draw.result(*at(small))
    found = Draw.decode(data)
    proof = Proof.of(draw.listed(*at(small), "c3"))
    check_listed(small.study, found, "c3", 2, proof)
    for name, samples, shown in (
        ("late", 2, proof), ("c3", 1, proof), ("c4", 2, proof), ("c3", 2, replace(proof, place=proof.place ^ 1)),
        ("c3", 2, replace(proof, hashes=proof.hashes[::-1])),
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match="client must be on the list that was fixed before the draw"):
            check_listed(small.study, found, name, samples, shown)
    for wrong in (replace(proof, place=PEOPLE), replace(proof, hashes=proof.hashes[:-1]),
                  replace(proof, hashes=(*proof.hashes, bytes(32)))):  # fmt: skip
        with pytest.raises(InvalidInput, match="a hash for each level"):
            check_listed(small.study, found, "c3", 2, wrong)
    refused("not-found", "on the list that was fixed before the draw", draw.listed, *at(small), "late")
    with pytest.raises(InvalidInput, match="on the list that was fixed before"):  # a tree that the analyst made up
        own = Tree.over({f"c{i}": 1 for i in range(PEOPLE - 1)} | {"late": 1})
        check_listed(small.study, found, "late", 1, own.proof("late"))


# -------------------------------------------------------------------------------------------- crashes and old databases


def started_again(stage: Stage, tmp_path: Path, k: int = 0) -> None:
    """The Compute as a new process finds itself: the same files, nothing in memory."""
    before = stage.nodes[k]
    before.store.close()
    fresh = replace(before, store=Store(before.store.url), draws=DrawBox(tmp_path / f"files-{k}" / "draws"))
    assert isinstance(fresh.known, Known)
    stage.nodes[k] = fresh


def test_a_compute_goes_on_after_a_crash_at_every_step(small: Stage, tmp_path: Path):
    before = draw.commitment(*at(small))
    started_again(small, tmp_path)
    assert draw.commitment(*at(small)) == before
    asked = small.asked()
    shown = draw.reveal(*at(small), asked.encode())
    started_again(small, tmp_path)
    assert draw.reveal(*at(small), asked.encode()) == shown
    small.draw()
    seed = small.drawn.seed
    started_again(small, tmp_path)
    assert small.drawn.seed == seed


def test_a_crash_between_file_and_database_costs_nothing(small: Stage, monkeypatch: pytest.MonkeyPatch):
    asked = small.asked()

    def crash(point: str) -> None:
        if point == "after:secret-bound":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("hubbub.service.node.faults.point", crash)
        with pytest.raises(KeyboardInterrupt):
            draw.reveal(*at(small), asked.encode())
    assert draw.reveal(*at(small), asked.encode())


def test_a_database_that_was_set_back_reveals_for_no_other_list(small: Stage, tmp_path: Path):
    """The same list again is answered with the same bytes; for another one the names could be chosen to suit them."""
    secret = read_signed(draw.reveal(*at(small), small.asked().encode()), RevealRecord)[0].secret
    with small.nodes[0].store.write() as connection:  # as it was before
        connection.execute(update(tables.draws).values(request=None, reveal=None))
    started_again(small, tmp_path)
    last = small.people.pop()
    with small.nodes[0].store.write() as connection:
        connection.execute(tables.clients.delete().where(tables.clients.c.client == last.name))
    refused("rolled-back", "for another list of clients", draw.reveal, *at(small), small.asked().encode())
    small.people.append(last)
    node.invite(*at(small), small.invitation(0, small.people))
    assert read_signed(draw.reveal(*at(small), small.asked().encode()), RevealRecord)[0].secret == secret


def test_a_compute_that_lost_its_bytes_says_so(small: Stage, tmp_path: Path):
    (tmp_path / "files-0" / "draws" / small.id).unlink()
    refused("rolled-back", "has lost the bytes it committed to", draw.reveal, *at(small), small.asked().encode())
    small.nodes[0].draws.secret(small.id)  # other ones, made since
    refused("rolled-back", "are not those it committed to", draw.reveal, *at(small), small.asked().encode())


def test_the_bytes_are_their_owners_alone(small: Stage, tmp_path: Path):
    folder = tmp_path / "files-0" / "draws"
    assert (folder.stat().st_mode & 0o077, (folder / small.id).stat().st_mode & 0o077) == (0, 0)
    assert small.nodes[0].draws.secret(small.id).hex() not in repr(small.nodes[0])


def test_a_database_of_before_gets_the_table_that_it_lacks(urls: list[str]):
    store = Store(urls[0])
    with store.write() as connection:
        tables.draws.drop(connection)
    store.close()
    store = Store(urls[0])
    with store.read() as connection:
        assert connection.execute(select(tables.draws)).all() == []
    store.close()


# --------------------------------------------------------------------------------------------------- loose Computes


def test_sums_over_clients_that_tie_nobody_together_are_refused_and_paid_back(tmp_path: Path):
    """8 clients, of whom 3 may collude: not one of 20000 draws would tie 4 Computes together."""
    stage = make_stage(
        [f"sqlite:///{tmp_path}/{k}.db" for k in range(4)], people=[Person(f"c{i}") for i in range(8)], colluders=3,
        secure_sum=Subset(4, 2),
    )  # fmt: skip
    stage.register()
    record = stage.round(multiplier=0.0)
    stage.run_to_rosters(record)
    assert stage.settle() == ["refused"] * 4
    for each in stage.nodes:
        with each.store.read() as connection:
            row = agreement.view(connection, stage.id, 0).row
            assert (row.reason, agreement.db.charged_rounds(connection, stage.id)) == ("loose-computes", set())
