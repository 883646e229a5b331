"""How a Compute takes reports: many uploads are checked one by one and written in one transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from sqlalchemy.exc import IntegrityError

from hubbub.errors import MalformedMessage, ReportRejected
from hubbub.roles import Compute, check_address, open_report
from hubbub.securesum import Report, Session, Share, decode_report
from hubbub.service import store as db
from hubbub.service.inbox import by_place
from hubbub.service.known import Member
from hubbub.service.node import Node
from hubbub.service.problems import Problem


class Upload(NamedTuple):
    """One request: the report of a client, or those of many, which somebody has gathered for them."""

    study: str
    number: int
    reports: Sequence[bytes]
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
    body: bytes
    other: str | None


def accept_uploads(node: Node, uploads: Sequence[Upload]) -> list[list[Outcome]]:
    """What became of each report of each upload; all that is taken of one round is written in one transaction."""
    return by_place(uploads, lambda upload: (upload.study, upload.number), partial(_accept_round, node))


def _accept_round(node: Node, place: tuple[str, int], uploads: Sequence[Upload]) -> list[list[Outcome]]:
    study_id, number = place
    try:
        checked = _check(node, study_id, number, uploads)
    except Problem as problem:
        return [[problem] * len(upload.reports) for upload in uploads]
    try:
        outcomes = _write(node, study_id, number, checked, looking=False)
    except IntegrityError:  # some have come before
        outcomes = _write(node, study_id, number, checked, looking=True)
    each = iter(outcomes)
    return [[next(each) for _ in upload.reports] for upload in uploads]


def _check(node: Node, study_id: str, number: int, uploads: Sequence[Upload]) -> list[Problem | _Checked]:
    """Every report that its client sealed for this round and this Compute."""
    compute = node.known.round(study_id, number)
    bodies = [(body, upload.other) for upload in uploads for body in upload.reports]
    reports = [_decoded(body) for body, _ in bodies]
    members = node.known.members(study_id, {report.client for report in reports if isinstance(report, Report)})
    return [
        report if isinstance(report, Problem) else _opened(compute, members.get(report.client), report, body, other)
        for report, (body, other) in zip(reports, bodies, strict=True)
    ]


def _decoded(body: bytes) -> Report | Problem:
    try:
        return decode_report(body)
    except MalformedMessage as error:
        return Problem("malformed", str(error))


def _opened(
    compute: Compute, member: Member | None, report: Report, body: bytes, other: str | None
) -> Problem | _Checked:
    if member is None:
        return Problem("unknown-client", f"client must be enrolled, got client={report.client}; enrol it first")
    try:
        open_in_session(compute, report, member.session)
    except ReportRejected as error:
        return Problem(error.reason, str(error))
    return _Checked(member, hashlib.sha256(body).digest(), body, other)


def open_in_session(compute: Compute, report: Report, session: Session) -> Share:
    """The share inside, or ReportRejected. That it opens shows who sealed it: only client and Compute can."""
    check_address(compute, report)
    if report.opening != session.opening:
        raise ReportRejected("wrong-session", "report must be sealed in the session that its client enrolled with")
    return open_report(compute, report, partial(session.open, report.sealed))


def _write(
    node: Node, study_id: str, number: int, checked: Sequence[Problem | _Checked], *, looking: bool
) -> list[Outcome]:
    """Hold what is new, confirm what is known, reject what differs from what is held.

    Nearly all reports are new: without `looking` they are taken for that, and IntegrityError says that one is not.
    """
    with node.store.write("accepted") as connection:
        row = db.find_round(connection, study_id, number, lock=True)
        if row.state == "refused":
            gone = Problem("round-refused", f"round {number} was refused ({row.reason}); reports are deleted")
            return [item if isinstance(item, Problem) else gone for item in checked]
        is_open = row.state == "open" and node.clock() < row.deadline
        held = dict[str, bytes]()
        if looking or not is_open:
            names = [item.member.client for item in checked if not isinstance(item, Problem)]
            held = db.held_digests(connection, study_id, number, names)
        fresh, outcomes = list[_Checked](), list[Outcome]()
        for item in checked:
            outcome = item if isinstance(item, Problem) else _outcome(item, held.get(item.member.client), is_open)
            outcomes.append(outcome)
            if isinstance(item, _Checked) and isinstance(outcome, Taken) and outcome.new:
                held[item.member.client] = item.digest
                fresh.append(item)
        rows = [(each.member.client, each.member.samples, each.digest, each.body, each.other) for each in fresh]
        db.add_reports(connection, study_id, number, rows)
        repeated = sum(isinstance(outcome, Taken) for outcome in outcomes) - len(rows)
        db.add_counts(connection, {"accepted": len(rows), "repeated": repeated})
        return outcomes


def _outcome(item: _Checked, before: bytes | None, is_open: bool) -> Outcome:
    if before == item.digest:
        return Taken(item.member.samples, new=False)
    if before is not None:
        return Problem("duplicate", f"{item.member.client} has sent another report already; that one counts")
    if not is_open:
        return Problem("closed", "round takes no more reports; it came too late")
    return Taken(item.member.samples, new=True)
