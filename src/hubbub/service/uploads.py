"""How a Compute takes reports: many uploads are checked one by one and written in one transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from sqlalchemy import Connection

from hubbub.errors import MalformedMessage, ReportRejected
from hubbub.roles import Compute, check_address, open_report
from hubbub.securesum import Report, Session, Share, decode_report
from hubbub.service import store as db
from hubbub.service.inbox import by_place
from hubbub.service.known import Member
from hubbub.service.node import Node
from hubbub.service.problems import Problem


@dataclass(frozen=True)
class Upload:
    """One request: what a client sent."""

    study: str
    number: int
    client: str
    body: bytes = field(repr=False)
    other: str | None = None
    """The sender's event, for the audit."""


@dataclass(frozen=True)
class Taken:
    """A report that counts: for how many samples, and whether it came for the first time."""

    samples: int
    new: bool


Outcome = Taken | Problem


@dataclass(frozen=True)
class _Checked:
    """A report that has been opened and belongs to its sender."""

    member: Member
    digest: bytes
    upload: Upload


def accept_uploads(node: Node, uploads: Sequence[Upload]) -> list[Outcome]:
    """What became of each upload; all that is taken of one round is written in one transaction."""
    return by_place(uploads, lambda upload: (upload.study, upload.number), partial(_accept_round, node))


def _accept_round(node: Node, place: tuple[str, int], uploads: Sequence[Upload]) -> list[Outcome]:
    study_id, number = place
    try:
        compute = node.known.round(study_id, number)
        members = node.known.members(study_id, {upload.client for upload in uploads})
    except Problem as problem:
        return [problem] * len(uploads)
    checked = [_check(compute, members.get(upload.client), upload) for upload in uploads]
    with node.store.write("accepted") as connection:
        row = db.find_round(connection, study_id, number, lock=True)
        if row.state == "refused":
            gone = Problem("round-refused", f"round {number} was refused ({row.reason}); reports are deleted")
            return [item if isinstance(item, Problem) else gone for item in checked]
        is_open = row.state == "open" and node.clock() < row.deadline
        return _write(connection, study_id, number, is_open, checked)


def _check(compute: Compute, member: Member | None, upload: Upload) -> Problem | _Checked:
    """The report, if this client sealed it for this round and this Compute."""
    if member is None:
        return Problem("unknown-client", f"client must be enrolled, got client={upload.client[:100]}; enrol it first")
    try:
        report = decode_report(upload.body)
        if report.client != member.client:
            return Problem("wrong-client", f"report must be of {member.client}, got another's; send your own")
        open_in_session(compute, report, member.session)
    except ReportRejected as error:
        return Problem(error.reason, str(error))
    except MalformedMessage as error:
        return Problem("malformed", str(error))
    return _Checked(member, hashlib.sha256(upload.body).digest(), upload)


def open_in_session(compute: Compute, report: Report, session: Session) -> Share:
    """The share inside, or ReportRejected. That it opens shows who sealed it: only client and Compute can."""
    check_address(compute, report)
    if report.opening != session.opening:
        raise ReportRejected("wrong-session", "report must be sealed in the session that its client enrolled with")
    return open_report(compute, report, partial(session.open, report.sealed))


def _write(
    connection: Connection, study_id: str, number: int, is_open: bool, checked: Sequence[Problem | _Checked]
) -> list[Outcome]:
    """Hold what is new, confirm what is known, reject what differs from what is held."""
    names = [item.member.client for item in checked if not isinstance(item, Problem)]
    held, rows, outcomes = db.held_digests(connection, study_id, number, names), [], list[Outcome]()
    for item in checked:
        if isinstance(item, Problem):
            outcomes.append(item)
            continue
        name, samples = item.member.client, item.member.samples
        before = held.get(name)
        if before == item.digest:
            outcomes.append(Taken(samples, new=False))
        elif before is not None:
            outcomes.append(Problem("duplicate", f"{name} has sent another report already; that one counts"))
        elif not is_open:
            outcomes.append(Problem("closed", "round takes no more reports; it came too late"))
        else:
            held[name] = item.digest
            rows.append({"study": study_id, "number": number, "client": name, "samples": samples,
                         "digest": item.digest, "body": item.upload.body, "other": item.upload.other})  # fmt: skip
            outcomes.append(Taken(samples, new=True))
    db.add_reports(connection, rows)
    repeated = sum(isinstance(outcome, Taken) and not outcome.new for outcome in outcomes)
    db.add_counts(connection, {"accepted": len(rows), "repeated": repeated})
    return outcomes
