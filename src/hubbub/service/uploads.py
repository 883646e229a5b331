"""How a Compute takes reports: many uploads are checked one by one and written in one transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Row, select

from hubbub.errors import CannotOpen, MalformedMessage, ReportRejected
from hubbub.roles import Compute, Study, accept
from hubbub.securesum import PrivateKey, Report, Session, Share, decode_report, join_session
from hubbub.service import store as db
from hubbub.service import tables
from hubbub.service.messages import UPLOAD, frames, upload_parts
from hubbub.service.node import Node, parsed_round
from hubbub.service.problems import Problem
from hubbub.service.records import owns
from hubbub.service.signing import verified


@dataclass(frozen=True)
class Upload:
    """One request: what a client sent, and how it is signed."""

    study: str
    number: int
    client: str
    signature: bytes
    body: bytes = field(repr=False)
    batch: bool = False


@dataclass(frozen=True)
class Rejection:
    """A report that was not taken."""

    name: str
    code: str
    detail: str


@dataclass(frozen=True)
class Taken:
    """What became of an upload: reports new to this Compute, known ones, and those it rejects."""

    fresh: int = 0
    known: int = 0
    rejected: tuple[Rejection, ...] = ()


Outcome = Taken | Problem


@dataclass(frozen=True)
class _Checked:
    """A report that has been opened and belongs to its sender."""

    name: str
    owner: str
    digest: bytes
    body: bytes = field(repr=False)


def accept_uploads(node: Node, uploads: Sequence[Upload]) -> list[Outcome]:
    """What became of each upload; all that is taken of one round is written in one transaction."""
    outcomes: dict[int, Outcome] = {}
    for place in dict.fromkeys((upload.study, upload.number) for upload in uploads):
        mine = [i for i, upload in enumerate(uploads) if (upload.study, upload.number) == place]
        outcomes |= zip(mine, _accept_round(node, *place, [uploads[i] for i in mine]), strict=True)
    return [outcomes[i] for i in range(len(uploads))]


def _accept_round(node: Node, study_id: str, number: int, uploads: Sequence[Upload]) -> list[Outcome]:
    try:
        with node.store.read() as connection:
            study, row = db.find_study(connection, study_id), db.find_round(connection, study_id, number)
            clients = _clients(connection, study_id, {upload.client for upload in uploads})
    except Problem as problem:
        return [problem] * len(uploads)
    role = parsed_round(study.record, row.record)[1]
    checked = [_check(node, role, study.position, row.digest, clients, upload) for upload in uploads]
    with node.store.write("accepted") as connection:
        row = db.find_round(connection, study_id, number, lock=True)
        is_open = row.state == "open" and node.clock() < row.deadline
        return list(_write(connection, study_id, number, is_open, checked))


def _clients(connection: Connection, study_id: str, names: set[str]) -> dict[str, Row[Any]]:
    query = select(tables.clients).where(tables.clients.c.study == study_id, tables.clients.c.client.in_(names))
    return {row.client: row for row in connection.execute(query)}


def _check(
    node: Node, role: Study, position: int, round_digest: bytes, clients: Mapping[str, Row[Any]], upload: Upload
) -> Problem | tuple[list[_Checked], list[Rejection]]:
    """The upload's good reports and the others, or why the whole of it is refused."""
    client = clients.get(upload.client)
    if client is None or client.key is None:
        return Problem("unknown-client", f"client must be enrolled, got client={upload.client[:100]}; enrol it first")
    parts = upload_parts(round_digest, position, upload.client, upload.body)
    if not verified(client.key, upload.signature, UPLOAD, *parts):
        return Problem("bad-signature", "upload must be signed with the client's key for this round; sign it again")
    try:
        bodies = list(frames(upload.body)) if upload.batch else [upload.body]
    except MalformedMessage as error:
        return Problem("malformed", str(error))
    compute = Compute(role, upload.number, position, node.keys.seal)
    if (all_good := _check_at_once(compute, client, bodies)) is not None:
        return all_good, []
    good, rejected, sessions = [], [], dict[bytes, Session | None]()
    for body in bodies:
        try:
            report = decode_report(body)
            if not owns(client.client, client.samples, report.client):
                raise ReportRejected("wrong-client", f"report must be for a sample of {client.client}, got another's")
            open_report(compute, report, client.client, sessions)
            good.append(_Checked(report.client, client.client, hashlib.sha256(body).digest(), body))
        except ReportRejected as error:
            rejected.append(Rejection(report.client, error.reason, str(error)))
        except MalformedMessage as error:
            rejected.append(Rejection("", "malformed", str(error)))
    return good, rejected


def _check_at_once(compute: Compute, client: Row[Any], bodies: Sequence[bytes]) -> list[_Checked] | None:
    """All reports of a faultless upload, opened together; None where one has a fault, which is then looked for."""
    try:
        reports = [decode_report(body) for body in bodies]
    except MalformedMessage:
        return None
    if not all(owns(client.client, client.samples, report.client) for report in reports):
        return None
    try:
        open_reports(compute, [(report, client.client) for report in reports])
    except ReportRejected:
        return None
    return [
        _Checked(report.client, client.client, hashlib.sha256(body).digest(), body)
        for report, body in zip(reports, bodies, strict=True)
    ]


def open_reports(compute: Compute, reports: Sequence[tuple[Report, str]]) -> list[Share]:
    """The shares inside, each report with its owner; or ReportRejected, whichever it is."""
    sessions, known = dict[bytes, Session | None](), dict[str, Session]()
    for report, owner in reports:
        if report.opening not in sessions:
            sessions[report.opening] = _joined(report, compute.key, owner)
        if (session := sessions[report.opening]) is not None:
            known[report.client] = session
    together = Compute(compute.study, compute.round, compute.index, compute.key, sessions=known)
    state, rejected = accept(together, [report for report, _ in reports])
    if rejected:
        raise rejected[0]
    return [state.held[report.client] for report, _ in reports]


def open_report(compute: Compute, report: Report, owner: str, sessions: dict[bytes, Session | None]) -> Share:
    """The share inside, or ReportRejected. All samples of a client may share one session, under the client's name."""
    if report.opening not in sessions:
        sessions[report.opening] = _joined(report, compute.key, owner)
    session = sessions[report.opening]
    known = {} if session is None else {report.client: session}
    state, rejected = accept(
        Compute(compute.study, compute.round, compute.index, compute.key, sessions=known), [report]
    )
    if rejected:
        raise rejected[0]
    return state.held[report.client]


def _joined(report: Report, key: PrivateKey, owner: str) -> Session | None:
    if not report.opening:
        return None
    try:
        return join_session(report.opening, key, report.study, owner, report.compute)
    except CannotOpen:
        return None


def _write(
    connection: Connection,
    study_id: str,
    number: int,
    is_open: bool,
    checked: Sequence[Problem | tuple[list[_Checked], list[Rejection]]],
) -> Iterator[Outcome]:
    """Hold what is new, count what is known, reject what differs from what is held."""
    names = [report.name for item in checked if not isinstance(item, Problem) for report in item[0]]
    held, rows, outcomes = db.held_digests(connection, study_id, number, names), [], list[Outcome]()
    for item in checked:
        if isinstance(item, Problem):
            outcomes.append(item)
            continue
        fresh, known, rejected = 0, 0, list(item[1])
        for report in item[0]:
            before = held.get(report.name)
            if before == report.digest:
                known += 1
            elif before is not None:
                rejected.append(Rejection(report.name, "duplicate", f"{report.name} has sent another report already"))
            elif not is_open:
                rejected.append(Rejection(report.name, "closed", "round takes no more reports; it came too late"))
            else:
                held[report.name] = report.digest
                rows.append({"study": study_id, "number": number, "client": report.name, "owner": report.owner,
                             "digest": report.digest, "body": report.body})  # fmt: skip
                fresh += 1
        outcomes.append(Taken(fresh, known, tuple(rejected)))
    db.add_reports(connection, rows)
    counts = _counts(outcomes)
    db.add_counts(connection, counts)
    return iter(outcomes)


def _counts(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """How far each counter is raised: accepted reports, and every reason of a rejection."""
    counts: dict[str, int] = {}
    for outcome in outcomes:
        if isinstance(outcome, Problem):
            continue  # the application counts whole refusals
        names = ["accepted"] * outcome.fresh + ["repeated"] * outcome.known
        for name in [*names, *(f"rejected:{rejection.code}" for rejection in outcome.rejected)]:
            counts[name] = counts.get(name, 0) + 1
    return counts
