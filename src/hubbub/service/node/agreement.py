"""How a round ends: close -> exchange signed rosters -> agree -> compare (matching.py) -> release once, or refuse.

Every step is one transaction that moves the round from one state to the next, and each can be repeated after a crash:
a roster is signed once and kept, the agreed roster follows from the M signed ones, the sum from the roster.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import Connection, Row, insert

from hubbub.errors import InvalidInput, ReportRejected, RoundRefused
from hubbub.roles import Roster, Study, agree, open_share, roster_digest, sum_over, turnout_of
from hubbub.securesum import Share
from hubbub.service.node import store as db
from hubbub.service.node import tables
from hubbub.service.node.compute import Node, Receipt, check_analyst, known_study
from hubbub.service.node.known import parsed_round, parsed_study
from hubbub.service.node.log import log
from hubbub.service.node.tables import State
from hubbub.service.node.vault import KeyLost, Place
from hubbub.service.wire.canonical import check_signature, digest, read_signed, sign_record
from hubbub.service.wire.endings import AgreementRecord, CloseRecord, RosterRecord
from hubbub.service.wire.messages import encode_sum
from hubbub.service.wire.problems import Problem
from hubbub.service.wire.records import StudyRecord

_CHUNK = 500  # reports opened at a time: memory stays constant whatever N is


@dataclass(frozen=True)
class RoundView:
    """A round as it stands, with what the roles need to work on it."""

    row: Row[Any]
    study: StudyRecord
    position: int
    role: Study

    @property
    def least(self) -> int:
        """K - D clients, fewer than which are refused."""
        return self.study.population.clients - self.study.population.dropouts

    def by_all(self, computes: Collection[int]) -> bool:
        """True where something has come from each Compute of the study: a round ends with the word of all of them.

        That holds for every secure sum, also one whose total needs fewer sums than there are Computes.
        """
        return set(computes) == set(range(len(self.study.computes)))


def view(connection: Connection, study_id: str, number: int) -> RoundView:
    """The round as the store has it now."""
    study, row = db.find_study(connection, study_id), db.find_round(connection, study_id, number)
    return RoundView(row, parsed_study(study.record), study.position, parsed_round(study.record, row.record)[1])


def close(node: Node, study_id: str, number: int, data: bytes, other: str | None = None) -> Receipt:
    """End the round at the analyst's signed wish; asked again nothing changes."""
    study, _ = known_study(node, study_id)
    record, signature = read_signed(data, CloseRecord)
    check_analyst(study, record, signature)
    with node.store.read() as connection:
        row = db.find_round(connection, study_id, number)
    if record.study != digest(study) or record.round != row.digest:
        raise Problem("invalid-record", "close must be of this round, got another's; sign it again")
    return _close(node, study_id, number, data, other)


def close_at_deadline(node: Node, study_id: str, number: int) -> Receipt:
    """End the round because its time is over."""
    return _close(node, study_id, number, None, None)


def _close(node: Node, study_id: str, number: int, record: bytes | None, other: str | None) -> Receipt:
    """Freeze the roster, sign it and keep it: from now on there is no other one for this round."""
    event = db.new_event()
    with node.store.write("closed") as connection:
        now, found = node.clock(), view(connection, study_id, number)
        if record is None and now < found.row.deadline:
            raise Problem("round-open", "round must have reached its deadline; wait, or let the analyst close it")
        if not db.move(connection, study_id, number, "open", "closed", now, close=record):
            return Receipt(event, new=False)
        clients = db.roster_now(connection, study_id, number)
        roster = RosterRecord(digest(found.study), found.row.digest, number, found.position, clients, event)
        db.add_roster(connection, study_id, number, found.position, sign_record(roster, node.keys.sign))
        reports = len(clients)
        db.write_audit(connection, now, "round-closed", study_id, number, event=event, other=other, reports=reports)
    return Receipt(event)


def own_roster(node: Node, study_id: str, number: int) -> bytes:
    """The roster that this Compute signed, or the state that stands in the way."""
    with node.store.read() as connection:
        found = view(connection, study_id, number)
        rows = db.stored_rosters(connection, study_id, number)
    if found.row.state == "refused":
        raise refusal(found.row)
    mine = [row.record for row in rows if row.compute == found.position]
    if not mine:
        raise Problem("not-closed", "round must be closed before rosters are exchanged; send the analyst's close")
    return bytes(mine[0])


def receive_roster(
    node: Node, study_id: str, number: int, data: bytes, other: str | None = None, *, differing: bool = False
) -> Receipt:
    """Keep another Compute's signed roster; a second one for the same round ends the round here.

    Once this Compute has signed its agreement others may release, so from then on a second roster ends the round only
    where the Computes are known to differ. A roster of its own that it does not know always does.
    """
    record, event = _checked_roster(node, study_id, number, data), db.new_event()
    with node.store.write("roster-received") as connection:
        found = view(connection, study_id, number)
        known = {row.compute: row.record for row in db.stored_rosters(connection, study_id, number)}
        before = known.get(record.compute)
        if before is not None and digest(read_signed(before, RosterRecord)[0]) == digest(record):
            return Receipt(event, new=False)
        if before is None and record.compute != found.position:
            db.add_roster(connection, study_id, number, record.compute, data)
            db.write_audit(
                connection, node.clock(), "roster-received", study_id, number, event=event, other=record.event,
                compute=record.compute, clients=len(record.clients),
            )  # fmt: skip
            return Receipt(event)
    if record.compute == found.position:
        raise refuse(node, study_id, number, "rolled-back", ROLLED_BACK, other=record.event)
    name = f"{found.study.computes[record.compute].name} (Compute {record.compute + 1} of {len(found.study.computes)})"
    detail = f"{name} has signed two different rosters for this round; ask its operator what happened"
    if found.row.state == "agreed" and not differing:
        note(node, study_id, number, "second-roster", other=record.event, compute=record.compute)
        raise Problem("second-roster", detail)
    raise refuse(node, study_id, number, "second-roster", detail, other=record.event, compute=record.compute)


ROLLED_BACK = "this Compute has signed a roster that its database does not know: an old copy was restored"
_CONFLICTS = ("second-roster", "rolled-back")
PERHAPS_RELEASED = "perhaps-released"
UNSURE = ("rolled-back", "key-lost", PERHAPS_RELEASED)
"""Reasons of a refusal after which this Compute cannot know whether the total is out: its database is an old copy, or
the key of a round is gone, which is erased after a release, or the others may have released enough without it. The
charge stays, and no refusal is signed."""


def note(node: Node, study_id: str, number: int, kind: str, *, other: str | None, **detail: object) -> None:
    """Write down what another party did, where nothing else follows from it: once, however often it does it."""
    row = db.audit_row(node.clock(), kind, study_id, number, event=db.new_event(), other=other, **detail)
    with node.store.write() as connection:
        if not db.audited(connection, row):
            db.write_audits(connection, [row])


def _checked_roster(node: Node, study_id: str, number: int, data: bytes) -> RosterRecord:
    """The roster, if it is of this round and its Compute signed it."""
    record, signature = read_signed(data, RosterRecord)
    with node.store.read() as connection:
        found = view(connection, study_id, number)
    if (record.study, record.round, record.number) != (digest(found.study), found.row.digest, number):
        raise Problem("invalid-record", "roster must be of this study and round, got another's; fetch it again")
    if record.compute >= len(found.study.computes):
        raise Problem("invalid-record", f"compute must be below {len(found.study.computes)}, got {record.compute}")
    try:
        check_signature(record, signature, found.study.computes[record.compute].verify_key, "Compute")
    except InvalidInput as error:
        raise Problem("bad-signature", str(error)) from None
    return record


def check_history(node: Node, study_id: str, signed: Iterable[bytes]) -> None:
    """Refuse to go on where others hold a roster that this Compute signed and its database does not know."""
    study, position = known_study(node, study_id)
    with node.store.read() as connection:
        rows = db.stored_rosters(connection, study_id, compute=position)
    mine = {digest(read_signed(row.record, RosterRecord)[0]) for row in rows}
    for data in signed:
        try:
            record, signature = read_signed(data, RosterRecord)
            check_signature(record, signature, study.computes[position].verify_key, "Compute")
        except InvalidInput:
            continue  # whatever another Compute says that this one did not sign proves nothing
        if record.compute != position or record.study != digest(study) or digest(record) in mine:
            continue
        event = db.new_event()
        with node.store.write() as connection:
            db.write_audit(connection, node.clock(), "rolled-back", study_id, event=event, other=record.event)
        raise Problem("rolled-back", ROLLED_BACK)


def settle(node: Node, study_id: str, number: int) -> State:
    """Take the round as far as what is in the store allows: closed -> agreed -> released, or refused."""
    found, rosters, samples = _stored(node, study_id, number)
    state: State = found.row.state
    if state == "closed" and found.by_all([row.compute for row in rosters]):
        state = _agree(node, found, rosters, samples)
    if state == "agreed" and _all_agree(node, found):
        state = _release(node, found, _common(found, rosters), samples)
    return state


def too_few(node: Node, study_id: str, number: int) -> bool:
    """True where all rosters are here and leave too few clients."""
    found, rosters, _ = _stored(node, study_id, number)
    complete = found.row.state == "closed" and found.by_all([row.compute for row in rosters])
    return complete and isinstance(_common(found, rosters), RoundRefused)


def _stored(node: Node, study_id: str, number: int) -> tuple[RoundView, Sequence[Row[Any]], dict[str, int]]:
    with node.store.read() as connection:
        found = view(connection, study_id, number)
        rosters = db.stored_rosters(connection, study_id, number)
        return found, rosters, db.samples_of(connection, study_id, number)


def _all_agree(node: Node, found: RoundView) -> bool:
    """True where every Compute has signed that it would release over what this one would: only then it does."""
    with node.store.read() as connection:
        signed = db.stored_agreements(connection, found.row.study, found.row.number)
    if not found.by_all(signed):
        return False
    records = {place: read_signed(data, AgreementRecord)[0] for place, data in signed.items()}
    return all(record.compute == place and record.same(records[found.position]) for place, record in records.items())


def _common(found: RoundView, rosters: Iterable[Row[Any]]) -> Roster | RoundRefused:
    """The clients whom every Compute holds, or why there are too few."""
    try:
        return agree(found.role, [read_signed(row.record, RosterRecord)[0].clients for row in rosters])
    except RoundRefused as refusal:
        return refusal


def _agree(node: Node, found: RoundView, rosters: Sequence[Row[Any]], samples: Mapping[str, int]) -> State:
    """Sign what this Compute would release over, once; nothing is released before all Computes have signed the same."""
    study_id, number, roster = found.row.study, found.row.number, _common(found, rosters)
    if isinstance(roster, RoundRefused):
        refuse(node, study_id, number, roster.reason, str(roster))
        return "refused"
    turnout, event = turnout_of(roster, samples), db.new_event()
    mark = roster_digest(found.role, number, roster)
    signed = tuple(digest(read_signed(row.record, RosterRecord)[0]) for row in rosters)
    record = AgreementRecord(
        digest(found.study), found.row.digest, number, found.position, signed, mark, turnout.samples, event
    )
    with node.store.write("agreed") as connection:
        now = node.clock()
        values = {"roster_digest": mark, "roster_size": turnout.clients}
        if db.move(connection, study_id, number, "closed", "agreed", now, **values):
            db.add_agreement(connection, study_id, number, found.position, sign_record(record, node.keys.sign))
            db.write_audit(connection, now, "roster-agreed", study_id, number, event=event,
                           clients=turnout.clients)  # fmt: skip
    return "agreed"


def _release(node: Node, found: RoundView, roster: Roster | RoundRefused, samples: Mapping[str, int]) -> State:
    """Add up the agreed roster's shares, write the sum down, delete the reports: once, in one transaction."""
    study_id, number = found.row.study, found.row.number
    assert not isinstance(roster, RoundRefused)
    if found.row.roster_digest not in (None, roster_digest(found.role, number, roster)):
        refuse(node, study_id, number, "damaged", "the rosters held are not those agreed on; check the disk")
        return "refused"
    try:
        compute = node.known.round(study_id, number)
        with node.store.read() as connection:
            total = sum_over(compute, roster, samples, _shares(node, connection, found, set(roster)))
        body = encode_sum(total, node.keys.sign)
    except KeyLost as lost:
        refuse(node, study_id, number, "key-lost", key_lost(lost))
        return "refused"
    except (ReportRejected, RoundRefused, KeyError) as error:
        refuse(node, study_id, number, "damaged", f"a held report cannot be read again ({error}); check the disk")
        return "refused"
    with node.store.write("released") as connection:
        now = node.clock()
        if db.move(connection, study_id, number, "agreed", "released", now):
            connection.execute(insert(tables.sums).values(study=study_id, number=number, body=body))
            db.scrub(connection, study_id, number)
            db.write_audit(connection, now, "sum-released", study_id, number, event=db.new_event(),
                           clients=total.turnout.clients)  # fmt: skip
    _forget(node, (study_id, number))
    return "released"


def _shares(
    node: Node, connection: Connection, found: RoundView, roster: Collection[str]
) -> Iterator[tuple[str, Share]]:
    """The clients of the roster whose reports are held and their shares, some reports at a time."""
    study_id, number = found.row.study, found.row.number
    compute, unlock = node.known.round(study_id, number), partial(node.vault.unlock, (study_id, number))
    for rows in db.stream_reports(connection, study_id, number, _CHUNK):
        chosen = [row for row in rows if row.client in roster]
        enrolled = node.known.enrolled(study_id, [row.client for row in chosen])
        for row in chosen:
            opened = partial(enrolled[row.client].session.open, unlock(row.locked))
            yield row.client, open_share(compute, row.client, opened)


def refuse(
    node: Node, study_id: str, number: int, reason: str, detail: str, *, other: str | None = None, **more: object
) -> Problem:
    """Give the round up, unless it is released: delete the shares, give the budget back. Returns what to raise.

    The charge stays where an old database was restored: before that this Compute may have released its sum. It also
    stays where this Compute has agreed and the others' sums are enough without its own (`PERHAPS_RELEASED`).
    """
    with node.store.write("refused") as connection:
        now = node.clock()
        if reason not in UNSURE and _others_may_release(connection, study_id, number):
            reason = PERHAPS_RELEASED
        values = {"reason": reason, "detail": detail[:500]}
        moved = any(
            db.move(connection, study_id, number, state, "refused", now, **values)
            for state in ("open", "closed", "agreed")
        )
        if moved:
            db.scrub(connection, study_id, number)
            if reason not in UNSURE:
                db.refund(connection, study_id, number)
        kind = "round-refused" if moved else "conflict"
        event = db.new_event()
        db.write_audit(connection, now, kind, study_id, number, event=event, other=other, reason=reason, **more)
    if moved:
        _forget(node, (study_id, number))
    return Problem(reason if reason in _CONFLICTS else "round-refused", detail)


def _others_may_release(connection: Connection, study_id: str, number: int) -> bool:
    """True where the total may be formed although this Compute gives the round up.

    It has signed its agreement, so others may hold all of them and release; and the secure sum can do without its sum.
    Where the round cannot be read any more, nobody here can tell.
    """
    if db.find_round(connection, study_id, number).state != "agreed":
        return False
    try:
        found = view(connection, study_id, number)
    except (InvalidInput, Problem):
        return True
    return found.role.secure_sum.enough(set(range(len(found.study.computes))) - {found.position})


def _forget(node: Node, place: Place) -> None:
    """Erase the key of a round that has ended. Where the disk does not allow it, the caretaker tries again."""
    try:
        node.vault.erase(place)
    except OSError as error:
        log("key-not-erased", study=place[0][:16], round=place[1], error=type(error).__name__)
    node.store.truncate()


def key_lost(lost: KeyLost) -> str:
    """What is said of a round whose key is gone."""
    return f"{lost}: an old copy of the database may have been restored; start a new round"


def forget_ended(node: Node, *, starting: bool = False) -> None:
    """Erase the keys that are left of rounds that have ended, after a crash or a fault of the disk.

    A key without a round is left of one whose opening was not committed. Nothing was stored under it, and when the
    Compute starts no opening is under way. A round without a key, found then, is refused: it may have been released.
    """
    with node.store.read() as connection:
        unended = db.unended(connection)
        left = node.vault.places() - unended
        states = {place: db.state_of(connection, *place) for place in left}
    for place, state in states.items():
        if state in ("released", "refused") or (starting and state is None):
            _forget(node, place)
    for place in unended - node.vault.places() if starting else ():
        refuse(node, *place, "key-lost", key_lost(KeyLost(f"round {place[1]} has no key in the folder of round keys")))
    node.store.truncate(again=not starting)


def released_sum(node: Node, study_id: str, number: int) -> bytes:
    """The sum's bytes, always the same ones; or which state the round is in instead."""
    with node.store.read() as connection:
        found = view(connection, study_id, number)
        body = db.stored_sum(connection, study_id, number)
        held = db.count_reports(connection, study_id, number)
    if body is not None:
        return body
    if found.row.state == "refused":
        raise refusal(found.row)
    if found.row.state == "open":
        wait = max(1, min(30, round(found.row.deadline - node.clock())))
        if held < found.least:
            raise Problem("not-enough-reports", f"reports must number at least {found.least}, got {held}", wait)
        raise Problem(
            "round-open", f"round must be closed first; {held} of {found.study.population.clients} are here", wait
        )
    raise Problem("agreement-under-way", "the Computes have not all answered yet; ask again", 1)


def refusal(row: Row[Any]) -> Problem:
    """What to say of a round that was refused."""
    return Problem("round-refused", f"round {row.number} was refused ({row.reason}): {row.detail}")
