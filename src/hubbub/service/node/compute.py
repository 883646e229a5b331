"""What a Compute does with each message, apart from HTTP: functions of (node, message), the clock being the node's.

register -> invite -> enrol -> open a round -> accept reports; how a round ends stands in agreement.py.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select

from hubbub.errors import CannotOpen, InvalidInput
from hubbub.privacy import fits
from hubbub.securesum import PrivateKey, Session
from hubbub.service.node import store as db
from hubbub.service.node import tables
from hubbub.service.node.commitments import DrawBox, add_commitment, list_fixed, not_drawn
from hubbub.service.node.inbox import by_place
from hubbub.service.node.known import EnrolledClient, Known, Registered, account, joined
from hubbub.service.node.store import Store
from hubbub.service.node.trust import TrustList
from hubbub.service.node.vault import Vault
from hubbub.service.wire.canonical import Record, check_signature, digest, instant, read_signed
from hubbub.service.wire.charges import event_text
from hubbub.service.wire.messages import ENROL, enrol_parts, token_digest
from hubbub.service.wire.problems import Problem
from hubbub.service.wire.records import (
    MOST_NAME_IN_ROSTER,
    MOST_ROSTER_HEAD,
    ClientRecord,
    InvitationRecord,
    RoundRecord,
    StudyRecord,
    check_client_name,
    read_study,
)
from hubbub.service.wire.signing import SigningKey, verified

_INVITED_AT_ONCE = 1000  # clients written in one transaction


@dataclass(frozen=True)
class NodeKeys:
    """What a Compute opens shares with, and what it signs with."""

    seal: PrivateKey
    sign: SigningKey


@dataclass(frozen=True)
class Limits:
    """What a Compute takes at most; all of it is in its configuration file."""

    studies: int = 100
    dimension: int = 100_000
    body_bytes: int = 16_000_000
    requests_per_second: float = 2000.0
    upload_seconds: float = 30.0
    bodies_bytes: int = 64_000_000
    header_seconds: float = 10.0
    connections: int = 2000
    connections_per_address: int = 300
    agreement_seconds: float = 3600.0
    missing_seconds: float = 60.0
    """How long a Compute that does not answer is waited for, where the others can agree without it."""
    simulation: bool = False
    """Take studies without a budget, which protect nobody."""
    studies_per_analyst: int = 10
    clients_per_analyst: int = 500_000
    """In all studies of one analyst that are under way."""
    roster_bytes: int = 32_000_000
    """Of one roster, which travels in one piece."""
    unfinished_draws: int = 3
    """Of one analyst, for which this Compute has revealed its bytes and released no round since (node/draw.py)."""
    anyone: bool = False
    """Take any analyst's studies with any other Computes: for tests on one machine."""


@dataclass(frozen=True)
class Node:
    """One Compute: its database, its keys, its limits, its clock, and the keys of its rounds."""

    name: str
    store: Store
    keys: NodeKeys
    limits: Limits = field(default_factory=Limits)
    clock: Callable[[], float] = time.time
    trust: TrustList = field(default_factory=TrustList, repr=False)
    vault: Vault = field(default_factory=Vault)
    draws: DrawBox = field(default_factory=DrawBox, repr=False)
    known: Known = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "known", Known(self.store, self.keys.seal))


@dataclass(frozen=True)
class Receipt:
    """What the sender is told: the event in this Compute's audit log, and whether anything was new."""

    event: str
    new: bool = True
    study: str = ""


def register_study(node: Node, data: bytes, other: str | None = None) -> Receipt:
    """Take a signed study in which this Compute is named; the same one again changes nothing."""
    study, event = read_study(data), db.new_event()
    study.check_current()
    position = _position(node, study)
    _check_policy(node, study, position)
    with node.store.write("registered") as connection:
        known = connection.execute(select(tables.studies.c.id).where(tables.studies.c.id == study.id)).one_or_none()
        if known is not None:
            return Receipt(event, new=False, study=study.id)
        now = node.clock()
        _check_quotas(connection, node.limits, study, now)
        row = {"id": study.id, "record": data, "position": position, "registered": now}
        row |= {"analyst": study.analyst, "clients": study.population.clients, "deadline": _seconds(study.deadline)}
        connection.execute(insert(tables.studies).values(**row))
        if study.draws:
            add_commitment(connection, node.draws, node.keys.sign, study, position, event)
        db.write_audit(connection, now, "study-registered", study.id, event=event, other=other, title=study.title)
    return Receipt(event, study=study.id)


def _position(node: Node, study: StudyRecord) -> int:
    """Where this Compute stands among the study's, under exactly its own keys."""
    mine = (node.keys.seal.public(), node.keys.sign.public())
    for position, compute in enumerate(study.computes):
        if (compute.key, compute.verify_key) == mine:
            return position
    raise Problem(
        "invalid-record", f"study must name this Compute ({node.name}) with its keys; take them from /v1/keys"
    )


def _check_policy(node: Node, study: StudyRecord, position: int) -> None:
    node.trust.check_study(study, position)
    if study.budget is None and not node.limits.simulation:
        raise Problem("not-allowed", "study must have a budget; this Compute takes no simulations")
    if _seconds(study.deadline) <= node.clock():
        raise Problem("invalid-record", f"deadline must lie in the future, got deadline={study.deadline}; set another")
    room = min(node.limits.roster_bytes, node.limits.bodies_bytes // 2)
    most = (room - MOST_ROSTER_HEAD) // MOST_NAME_IN_ROSTER
    if study.population.clients > most:
        raise Problem(
            "too-many",
            f"clients must number at most {most} here, so that a roster of their names fits {room} bytes "
            f"whatever they are called, got {study.population.clients}; ask the operator to raise roster_bytes",
        )


def _check_quotas(connection: Connection, limits: Limits, study: StudyRecord, now: float) -> None:
    """Refuse a study beyond what may be under way here, or beyond its analyst's part; ended studies do not count."""
    columns, here = tables.studies.c, tables.studies.c.deadline > now
    total = connection.execute(select(func.count()).where(here)).scalar_one()
    if total >= limits.studies:
        raise Problem("too-many", f"studies under way must number at most {limits.studies} here; ask the operator")
    counted = select(func.count(), func.coalesce(func.sum(columns.clients), 0))
    count, clients = connection.execute(counted.where(here, columns.analyst == study.analyst)).one()
    if count >= limits.studies_per_analyst:
        most = limits.studies_per_analyst
        raise Problem("too-many", f"studies under way must number at most {most} for one analyst; end one first")
    if clients + study.population.clients > limits.clients_per_analyst:
        raise Problem(
            "too-many",
            f"clients of one analyst's studies must number at most {limits.clients_per_analyst}, got "
            f"{clients + study.population.clients}; end a study first, or ask the operator",
        )


def _seconds(deadline: str) -> float:
    return instant("deadline", deadline).timestamp()


def invite(node: Node, study_id: str, data: bytes, other: str | None = None) -> Receipt:
    """Take the names and token digests of those whom the analyst invites.

    All of it is checked before anything is written. Many are written in several transactions, so that nobody waits long
    for this one: after a crash some are invited and some not, and the same invitation again completes it.
    """
    study, position = known_study(node, study_id)
    invitation, signature = read_signed(data, InvitationRecord)
    check_analyst(study, invitation, signature)
    if invitation.study != digest(study) or invitation.compute != position:
        raise Problem("invalid-record", f"invitation must be for this study and Compute {position + 1}, got another's")
    with node.store.read() as connection:
        _uninvited(connection, study, study_id, invitation.clients)
    event, new = db.new_event(), 0
    for start in range(0, max(1, len(invitation.clients)), _INVITED_AT_ONCE):
        last = start + _INVITED_AT_ONCE >= len(invitation.clients)
        with node.store.write("invited") as connection:
            db.find_study(connection, study_id, lock=True)  # nobody else counts those invited meanwhile
            some = invitation.clients[start : start + _INVITED_AT_ONCE]
            fresh = _uninvited(connection, study, study_id, some)
            if fresh:
                connection.execute(insert(tables.clients), fresh)
            mark, count = event if last else db.new_event(), len(fresh)
            db.write_audit(connection, node.clock(), "invited", study_id, event=mark, other=other, clients=count)
        new += count
    return Receipt(event, new=new > 0)


def _uninvited(
    connection: Connection, study: StudyRecord, study_id: str, clients: Sequence[ClientRecord]
) -> list[dict[str, Any]]:
    """Those whom the store does not have yet, as its rows; refuses what differs from what it has, and too many."""
    known = db.clients_of(connection, study_id, list({client.client for client in clients}))
    fresh = dict[str, ClientRecord]()
    for client in clients:
        if client.samples > study.population.largest:
            raise Problem(
                "invalid-record",
                f"samples of {client.client} must number at most {study.population.largest}, as the study says, got "
                f"{client.samples}; state the largest in the study",
            )
        before = known.get(client.client) or fresh.setdefault(client.client, client)
        if not hmac.compare_digest(before.token, client.token) or before.samples != client.samples:
            raise Problem("other-record", f"client {client.client} has been invited otherwise; use that token")
    _check_invited(connection, study, study_id, fresh.values())
    return [
        {"study": study_id, "client": each.client, "token": each.token, "samples": each.samples}
        for each in fresh.values()
    ]


def _check_invited(connection: Connection, study: StudyRecord, study_id: str, fresh: Collection[ClientRecord]) -> None:
    """With these, no more clients and no more samples than the study was planned for, and nobody after the draw."""
    if fresh and study.draws and list_fixed(connection, study_id):
        raise Problem(
            "already-drawn",
            f"clients must be invited before the draw, got {len(fresh)} new; invite them in a study of their own",
        )
    totals = select(func.count(), func.coalesce(func.sum(tables.clients.c.samples), 0))
    clients, samples = connection.execute(totals.where(tables.clients.c.study == study_id)).one()
    for what, most, found in (
        ("clients", study.population.clients, clients + len(fresh)),
        ("samples", study.population.n, samples + sum(client.samples for client in fresh)),
    ):
        if found > most:
            raise Problem("too-many", f"{what} must number at most {most}, got {found}; invite fewer")


@dataclass(frozen=True)
class Enrolment:
    """A client's request to be known by its key, and to report in this session."""

    study: str
    client: str
    samples: int
    token: bytes = field(repr=False)
    key: bytes
    opening: bytes = field(repr=False)
    signature: bytes = field(repr=False)
    other: str | None = None


def enrol(node: Node, enrolments: Sequence[Enrolment]) -> list[Receipt | Problem]:
    """Bind each client's key and session to its name: once, against its token; the same again changes nothing."""
    return by_place(enrolments, lambda each: each.study, partial(_enrol, node))


def _enrol(node: Node, study_id: str, enrolments: Sequence[Enrolment]) -> list[Receipt | Problem]:
    try:
        study = node.known.study(study_id)
    except Problem as problem:
        return [problem] * len(enrolments)
    sessions = [_session(node, study, each) for each in enrolments]
    outcomes, fresh = list[Receipt | Problem](), dict[str, tuple[Enrolment, str]]()
    with node.store.write("enrolled") as connection:
        named = {
            each.client for each, session in zip(enrolments, sessions, strict=True) if isinstance(session, Session)
        }
        invited = db.clients_of(connection, study_id, sorted(named))
        for each, session in zip(enrolments, sessions, strict=True):
            known = fresh[each.client][0] if each.client in fresh else invited.get(each.client)
            outcome = session if isinstance(session, Problem) else _bound(invited.get(each.client), known, each)
            outcomes.append(outcome)
            if isinstance(outcome, Receipt) and outcome.new:
                fresh[each.client] = each, outcome.event
        _write_enrolments(connection, node.clock(), study_id, list(fresh.values()))
    for each, session in zip(enrolments, sessions, strict=True):
        if not isinstance(session, Problem) and each.client in fresh and fresh[each.client][0] is each:
            node.known.remember(study_id, EnrolledClient(each.client, each.samples, session))
    return outcomes


def _write_enrolments(
    connection: Connection, now: float, study_id: str, fresh: Sequence[tuple[Enrolment, str]]
) -> None:
    db.bind_clients(connection, [
        {"of_study": study_id, "of_client": each.client, "key": each.key, "opening": each.opening, "event": event}
        for each, event in fresh
    ])  # fmt: skip
    db.write_audits(connection, [
        db.audit_row(now, "enrolled", study_id, None, event=event, other=each.other, client=each.client)
        for each, event in fresh
    ])  # fmt: skip


def _session(node: Node, study: Registered, enrolment: Enrolment) -> Session | Problem:
    """The session that the client opened and signed, or what is wrong with it."""
    try:
        name = check_client_name(enrolment.client)
        _check_served(study, name)
        parts = enrol_parts(study.digest, study.position, name, enrolment.samples, enrolment.key, enrolment.opening)
        if not verified(enrolment.key, enrolment.signature, ENROL, *parts):
            return Problem("bad-signature", "enrolment must be signed with the key that it brings; sign it again")
        return joined(enrolment.opening, node.keys.seal, study.digest, name, study.position)
    except Problem as problem:
        return problem
    except CannotOpen:
        return Problem("cannot-open", "session must be opened to this Compute's key; take it from the study")
    except InvalidInput as error:
        return Problem("invalid-record", str(error))


def _check_served(study: Registered, client: str) -> None:
    """Refuse a client that this Compute does not serve, or of whom that is not drawn yet."""
    if not study.record.draws:
        return
    if study.record.secure_sum.undrawn:
        raise not_drawn()
    if study.position not in study.record.secure_sum.recipients(client):
        raise Problem("wrong-recipient", f"client must be one that Compute {study.position + 1} serves, got another")


def _bound(invited: Row[Any] | None, known: Row[Any] | Enrolment | None, enrolment: Enrolment) -> Receipt | Problem:
    """What becomes of an enrolment whose signature is good; `known` is who has the name already."""
    event, stored = db.new_event(), b"" if invited is None else invited.token
    if not hmac.compare_digest(stored, token_digest(enrolment.token)) or invited is None:
        return Problem("bad-token", "token must be the one that the client was given; ask the analyst for it")
    if enrolment.samples != invited.samples:
        samples = f"{invited.samples}, as the analyst invited {enrolment.client}, got {enrolment.samples}"
        return Problem("invalid-record", f"samples must number {samples}; agree on the number first")
    if known is not None and known.key is not None:
        if (known.key, known.opening) != (enrolment.key, enrolment.opening):
            return Problem("already-enrolled", f"client {enrolment.client} has enrolled otherwise; use that key")
        return Receipt(event, new=False)
    return Receipt(event)


def open_round(node: Node, study_id: str, data: bytes, other: str | None = None) -> Receipt:
    """Charge the ledger and open the round, in one transaction; refuses what this Compute's own checks refuse."""
    study, record = checked_round(node, study_id, data)
    event, deadline = db.new_event(), _seconds(record.deadline)
    _account_ahead(node, study, study_id, record)
    with node.store.write("opened") as connection:
        now = node.clock()
        if _opened_already(connection, study_id, record):
            return Receipt(event, new=False)
        if deadline <= now:
            raise Problem("invalid-record", f"deadline must lie in the future, got deadline={record.deadline}")
        _charge(connection, study, study_id, record)
        row = {"study": study_id, "number": record.number, "digest": digest(record), "record": data}
        node.vault.make((study_id, record.number))  # before the round is there: no report waits for it or misses it
        connection.execute(insert(tables.rounds).values(**row, state="open", deadline=deadline, changed=now))
        number, label = record.number, record.label
        db.write_audit(connection, now, "round-opened", study_id, number, event=event, other=other, label=label)
    return Receipt(event)


def checked_round(node: Node, study_id: str, data: bytes) -> tuple[StudyRecord, RoundRecord]:
    """A round that the study's analyst signed and that this Compute has no objection to."""
    study, position = known_study(node, study_id)
    node.trust.check_study(study, position)  # whom the operator no longer names opens no more rounds
    if study.secure_sum.undrawn:
        raise not_drawn()
    record, signature = read_signed(data, RoundRecord)
    check_analyst(study, record, signature)
    if record.checked(study).plan(record.number).dimension > node.limits.dimension:
        raise Problem("too-many", f"dimension must be at most {node.limits.dimension} here; sum fewer numbers")
    return study, record


def _opened_already(connection: Connection, study_id: str, record: RoundRecord) -> bool:
    """True for the same round again; refuses another one in its place, a gap, or a round before the last has ended."""
    before = db.rounds_of(connection, study_id)
    if record.number < len(before):
        if before[record.number].digest != digest(record):
            raise Problem("other-record", f"round {record.number} has another record already; count on from the last")
        return True
    if record.number > len(before):
        raise Problem("invalid-record", f"round must be the next, {len(before)}, got round={record.number}")
    if before and before[-1].state not in ("released", "refused"):
        raise Problem("round-under-way", f"round {len(before) - 1} must end first, it is {before[-1].state}")
    return False


def _account_ahead(node: Node, study: StudyRecord, study_id: str, record: RoundRecord) -> None:
    """Composing sampled steps can take a while: done here, and remembered, no other writer has to wait for it."""
    with node.store.read() as connection:
        events = db.ledger_events(connection, study_id)
    if study.budget is not None and not fits([*events, record.event(study)], study.budget):
        account(events, study.budget.delta)


def _charge(connection: Connection, study: StudyRecord, study_id: str, record: RoundRecord) -> None:
    """Write the round into the ledger, or refuse it and leave the ledger as it was."""
    events, event = db.ledger_events(connection, study_id), record.event(study)
    if study.budget is not None and not fits([*events, event], study.budget):
        spent = account(events, study.budget.delta)
        raise Problem(
            "over-budget",
            f"budget must cover the round: of {study.budget} epsilon={spent:.4g} is spent in {len(events)} round(s), "
            "and this one would exceed it; add more noise",
        )
    row = {"study": study_id, "number": record.number, "label": record.label, "event": event_text(event)}
    connection.execute(insert(tables.ledger).values(**row))


def known_study(node: Node, study_id: str) -> tuple[StudyRecord, int]:
    """The study and this Compute's place in it."""
    found = node.known.study(study_id)
    return found.record, found.position


def most_roster(node: Node, study_id: str) -> int:
    """Bytes that a signed roster of this study can have, whatever its clients are called."""
    return known_study(node, study_id)[0].population.clients * MOST_NAME_IN_ROSTER + MOST_ROSTER_HEAD


def check_analyst(study: StudyRecord, record: Record, signature: bytes) -> None:
    """Refuse what the study's analyst did not sign."""
    try:
        check_signature(record, signature, study.analyst, "analyst")
    except InvalidInput as error:
        raise Problem("bad-signature", str(error)) from None
