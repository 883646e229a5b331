"""How a round ends: close -> exchange signed rosters -> agree -> compare (matching.py) -> release once, or refuse.

Every step is one transaction that moves the round from one state to the next, and each can be repeated after a crash:
a roster is signed once and kept, the agreed roster follows from the signed ones, the sum from the roster. Where the
secure sum can do without some Computes, so can the agreement: quorum.py says when the others go on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from sqlalchemy import Connection, Row, insert

from hubbub.errors import InvalidInput, ReportRejected, RoundRefused
from hubbub.roles import Roster, Study, Turnout, agree, open_share, roster_digest, sum_over, turnout_of
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

    @property
    def computes(self) -> int:
        """M, the number of Computes."""
        return len(self.study.computes)

    @property
    def quorum(self) -> int:
        """How many Computes must sign the same roster before this one releases its sum over it."""
        return self.role.secure_sum.quorum


def view(connection: Connection, study_id: str, number: int) -> RoundView:
    """The round as the store has it now."""
    study, row = db.find_study(connection, study_id), db.find_round(connection, study_id, number)
    found, role = parsed_study(study.record, study.seed), parsed_round(study.record, row.record, study.seed)[1]
    return RoundView(row, found, study.position, role)


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
INCOMPLETE = "incomplete"
INCOMPLETE_DETAIL = "this Compute lacks reports of clients that the others agreed on; they go on without it"
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


def settle(node: Node, study_id: str, number: int, least: int | None = None) -> State:
    """Take the round as far as what is in the store allows: closed -> agreed -> released, or refused.

    It agrees as soon as the rosters of `least` Computes are here; by default those of all of them.
    """
    found, rosters, samples = stored(node, study_id, number)
    state: State = found.row.state
    if state == "closed" and len(rosters) >= (found.computes if least is None else least):
        state = _agree(node, found, rosters, samples)
    if state == "agreed" and (own := _agreed(node, found)) is not None:
        state = _release(node, found, common(found, {place: rosters[place] for place in own.places}), samples)
    return state


def too_few(node: Node, study_id: str, number: int) -> bool:
    """True where all rosters are here and leave too few clients."""
    found, rosters, _ = stored(node, study_id, number)
    complete = found.row.state == "closed" and len(rosters) == found.computes
    return complete and isinstance(_chosen(found, rosters), RoundRefused)


def stored(node: Node, study_id: str, number: int) -> tuple[RoundView, dict[int, RosterRecord], dict[str, int]]:
    """The round, the rosters that are here by Compute, and the samples of each client that may be on them."""
    with node.store.read() as connection:
        found = view(connection, study_id, number)
        rows = db.stored_rosters(connection, study_id, number)
        if found.study.draws:  # the roster has clients of whom others hold the reports
            samples = db.invited_samples(connection, study_id)
        else:
            samples = db.samples_of(connection, study_id, number)
    return found, {row.compute: read_signed(row.record, RosterRecord)[0] for row in rows}, samples


def _agreed(node: Node, found: RoundView) -> AgreementRecord | None:
    """What this Compute has signed, where a quorum has signed the same (by default all): only then it releases."""
    with node.store.read() as connection:
        signed = db.stored_agreements(connection, found.row.study, found.row.number)
    records = {place: read_signed(data, AgreementRecord)[0] for place, data in signed.items()}
    own = records[found.position]
    same = [place for place, record in records.items() if record.compute == place and record.same(own)]
    return own if len(same) >= found.quorum else None


def common(found: RoundView, rosters: Mapping[int, RosterRecord]) -> Roster | RoundRefused:
    """The clients whom each of these Computes holds, or why there are too few."""
    places = sorted(rosters)
    try:
        return agree(found.role, [rosters[place].clients for place in places], places)
    except RoundRefused as refusal:
        return refusal


def _chosen(found: RoundView, rosters: Mapping[int, RosterRecord]) -> tuple[list[int], Roster] | RoundRefused:
    """On whose rosters to agree, and on which clients; or why there are too few, whosever are left out.

    All that are here, or else without those who hold the fewest clients, as long as a quorum is left.
    """
    fullest = sorted(rosters, key=lambda place: (-len(rosters[place].clients), place))
    first: RoundRefused | None = None
    for count in range(len(fullest), found.quorum - 1, -1):
        roster = common(found, {place: rosters[place] for place in fullest[:count]})
        if not isinstance(roster, RoundRefused):
            return sorted(fullest[:count]), roster
        first = first or roster
    return first or RoundRefused("no-agreement", f"rosters must be of {found.quorum} Computes, got {len(rosters)}")


def _agree(node: Node, found: RoundView, rosters: Mapping[int, RosterRecord], samples: Mapping[str, int]) -> State:
    """Choose what to release over and sign it; nothing is released before a quorum has signed the same."""
    study_id, number, chosen = found.row.study, found.row.number, _chosen(found, rosters)
    complete = len(rosters) == found.computes
    if isinstance(chosen, RoundRefused):
        if not complete:
            return "closed"  # more rosters may come
        refuse(node, study_id, number, chosen.reason, str(chosen))
        return "refused"
    places, roster = chosen
    if found.position not in places:
        if not complete:
            return "closed"
        refuse(node, study_id, number, INCOMPLETE, INCOMPLETE_DETAIL)
        return "refused"
    if strangers := set(roster) - set(samples):  # all Computes that serve a name can put it on their rosters
        refuse(node, study_id, number, "unknown-client", _invented(found, min(strangers)))
        return "refused"
    return sign(node, found, {place: rosters[place] for place in places}, roster, turnout_of(roster, samples))


def _invented(found: RoundView, client: str) -> str:
    """Who says that they hold a report of somebody who was never invited."""
    names = ", ".join(found.study.computes[place].name for place in found.role.secure_sum.recipients(client))
    return f"{names} signed rosters with a client who was not invited; ask their operators what happened"


def sign(node: Node, found: RoundView, rosters: Mapping[int, RosterRecord], roster: Roster, turnout: Turnout) -> State:
    """Sign that this Compute would release over this roster: once in a round, and never another one."""
    study_id, number, event = found.row.study, found.row.number, db.new_event()
    mark = roster_digest(found.role, number, roster)
    signed = tuple(digest(rosters[place]) if place in rosters else b"" for place in range(found.computes))
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
    stays where this Compute has agreed and the others' sums are enough without its own (`PERHAPS_RELEASED`), and where
    the others can agree without it. In that last case it has signed no agreement and never will, and it signs its
    refusal: where all Computes have done so, nobody can release.
    """
    with node.store.write("refused") as connection:
        now = node.clock()
        others = _others_may(connection, study_id, number)
        if reason not in UNSURE and others == "release":
            reason = PERHAPS_RELEASED
        values = {"reason": reason, "detail": detail[:500]}
        moved = any(
            db.move(connection, study_id, number, state, "refused", now, **values)
            for state in ("open", "closed", "agreed")
        )
        if moved:
            db.scrub(connection, study_id, number)
            if reason not in UNSURE and others is None:
                db.refund(connection, study_id, number)
        kind = "round-refused" if moved else "conflict"
        event = db.new_event()
        db.write_audit(connection, now, kind, study_id, number, event=event, other=other, reason=reason, **more)
    if moved:
        _forget(node, (study_id, number))
    return Problem(reason if reason in _CONFLICTS else "round-refused", detail)


def _others_may(connection: Connection, study_id: str, number: int) -> Literal["release", "agree"] | None:
    """What the others can still do although this Compute gives the round up.

    "release" where the total may be formed with the help of what this one has signed: others may hold enough
    agreements, and the secure sum can do without its sum. "agree" where it has signed nothing, and they can agree
    without it. Where the study cannot be read any more, nobody here can tell.
    """
    agreed = db.find_round(connection, study_id, number).state == "agreed"
    try:
        row = db.find_study(connection, study_id)
        scheme, position = parsed_study(row.record).secure_sum, row.position
    except (InvalidInput, Problem):
        return "release" if agreed else "agree"
    if not scheme.enough(set(range(scheme.computes)) - {position}):
        return None
    return "release" if agreed else "agree" if scheme.quorum < scheme.computes else None


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
        if held < found.least and not found.study.draws:
            raise Problem("not-enough-reports", f"reports must number at least {found.least}, got {held}", wait)
        raise Problem(
            "round-open", f"round must be closed first; {held} of {found.study.population.clients} are here", wait
        )
    raise Problem("agreement-under-way", "the Computes have not all answered yet; ask again", 1)


def refusal(row: Row[Any]) -> Problem:
    """What to say of a round that was refused."""
    return Problem("round-refused", f"round {row.number} was refused ({row.reason}): {row.detail}")
