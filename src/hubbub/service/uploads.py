"""How a Compute takes reports: many uploads are checked one by one and written in one transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from sqlalchemy import Connection

from hubbub.errors import MalformedMessage, ReportRejected
from hubbub.roles import Compute, check_address, open_report
from hubbub.securesum import Report, Session, Share, decode_report
from hubbub.service import store as db
from hubbub.service.known import Member
from hubbub.service.messages import frames
from hubbub.service.node import Node
from hubbub.service.problems import Problem
from hubbub.service.records import owns


@dataclass(frozen=True)
class Upload:
    """One request: what a client sent."""

    study: str
    number: int
    client: str
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
        compute = node.known.round(study_id, number)
        members = node.known.members(study_id, {upload.client for upload in uploads})
    except Problem as problem:
        return [problem] * len(uploads)
    checked = [_check(compute, members.get(upload.client), upload) for upload in uploads]
    with node.store.write("accepted") as connection:
        row = db.find_round(connection, study_id, number, lock=True)
        is_open = row.state == "open" and node.clock() < row.deadline
        return list(_write(connection, study_id, number, is_open, checked))


def _check(compute: Compute, member: Member | None, upload: Upload) -> Problem | tuple[list[_Checked], list[Rejection]]:
    """The upload's good reports and the others, or why the whole of it is refused."""
    if member is None:
        return Problem("unknown-client", f"client must be enrolled, got client={upload.client[:100]}; enrol it first")
    try:
        bodies = list(frames(upload.body)) if upload.batch else [upload.body]
    except MalformedMessage as error:
        return Problem("malformed", str(error))
    good, rejected = [], []
    for body in bodies:
        name = ""
        try:
            report = decode_report(body)
            name = report.client
            if not owns(member.client, member.samples, name):
                raise ReportRejected("wrong-client", f"report must be for a sample of {member.client}, got another's")
            open_in_session(compute, report, member.session)
            good.append(_Checked(name, member.client, hashlib.sha256(body).digest(), body))
        except ReportRejected as error:
            rejected.append(Rejection(name, error.reason, str(error)))
        except MalformedMessage as error:
            rejected.append(Rejection(name, "malformed", str(error)))
    return good, rejected


def open_in_session(compute: Compute, report: Report, session: Session) -> Share:
    """The share inside, or ReportRejected. That it opens shows who sealed it: only client and Compute can."""
    check_address(compute, report)
    if report.opening != session.opening:
        raise ReportRejected("wrong-session", "report must be sealed in the session that its client enrolled with")
    return open_report(compute, report, partial(session.open, report.sealed))


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
