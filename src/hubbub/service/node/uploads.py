"""How a Compute takes reports: many uploads are checked one by one and written in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

from sqlalchemy.exc import IntegrityError

from hubbub.errors import ReportRejected
from hubbub.roles import Compute, check_new, open_share, read_report, serves, serves_all
from hubbub.securesum import Frame, mark_of
from hubbub.service.node import store as db
from hubbub.service.node.agreement import key_lost, refuse
from hubbub.service.node.compute import Node
from hubbub.service.node.inbox import by_place
from hubbub.service.node.known import EnrolledClient
from hubbub.service.node.store import ReportRow
from hubbub.service.node.vault import KeyLost
from hubbub.service.wire.problems import Problem

_AT_ONCE = 500  # reports locked and written in one statement


class Upload(NamedTuple):
    """One request: the report of a client, or those of many, which somebody has gathered for them."""

    study: str
    number: int
    reports: Sequence[bytes]
    other: str | None = None
    """The sender's event, for the audit."""


class Taken(NamedTuple):
    """A report that counts: for how many samples, and whether it came for the first time."""

    samples: int
    new: bool


Outcome = Taken | Problem


def accept_uploads(node: Node, uploads: Sequence[Upload]) -> list[list[Outcome]]:
    """What became of each report of each upload; all that is taken of one round is written in one transaction."""
    return by_place(uploads, lambda upload: (upload.study, upload.number), partial(_accept_round, node))


def _accept_round(node: Node, place: tuple[str, int], uploads: Sequence[Upload]) -> list[list[Outcome]]:
    study_id, number = place
    try:
        checked = _check(node, study_id, number, uploads)
    except Problem as problem:
        problem.__traceback__ = None  # whose frames hold on to the reports, and to the problem
        return [[problem] * len(upload.reports) for upload in uploads]
    try:
        outcomes = _written(node, study_id, number, checked)
    except KeyLost as lost:
        refusal = refuse(node, study_id, number, "key-lost", key_lost(lost))
        return [[refusal] * len(upload.reports) for upload in uploads]
    each = iter(outcomes)
    return [list(islice(each, len(upload.reports))) for upload in uploads]


def _written(node: Node, study_id: str, number: int, checked: Sequence[Problem | ReportRow]) -> list[Outcome]:
    try:
        return _write(node, study_id, number, checked, looking=False)
    except IntegrityError:  # some have come before
        return _write(node, study_id, number, checked, looking=True)


def _check(node: Node, study_id: str, number: int, uploads: Sequence[Upload]) -> list[Problem | ReportRow]:
    """Every report that its client sealed for this round and this Compute."""
    compute = node.known.round(study_id, number)
    study = compute.study
    frame = Frame(study.digest, number, compute.index, study.secure_sum, study.plan(number).dimension)
    remembered, checked = node.known.remembered(study_id), list[Problem | ReportRow | None]()
    choosy = not serves_all(compute)
    names, rest = list[str](), list[tuple[int, bytes, str]]()
    for upload in uploads:
        other = upload.other or ""
        for body, found in zip(upload.reports, frame.read(upload.reports, remembered), strict=True):
            if isinstance(found, tuple) and not (choosy and not serves(compute, found[0].name)):
                client, sealed = found
                checked.append((client.name, client.samples, mark_of(sealed), sealed, other))
                continue
            names += [found] if isinstance(found, str) else []
            rest.append((len(checked), body, other))
            checked.append(None)
    enrolled = node.known.enrolled(study_id, names)
    for place, body, other in rest:
        checked[place] = _read(compute, enrolled, body, other)
    return [each for each in checked if each is not None]


def _read(compute: Compute, enrolled: Mapping[str, EnrolledClient], body: bytes, other: str) -> Problem | ReportRow:
    """The general way, one check after the other: for clients who were not in memory, and to say why not.

    `enrolled` are those whom the frame has found; where it found nobody, a check fails before they are asked.
    """
    try:
        report = read_report(compute, body)
        client = enrolled.get(report.client)
        if report.opening and client is None:
            return Problem("unknown-client", f"client must be enrolled, got client={report.client}; enrol it first")
        if client is None or report.opening != client.session.opening:
            return Problem("wrong-session", "report must be sealed in the session that its client enrolled with")
        open_share(compute, client.name, partial(client.session.open, report.sealed))
    except ReportRejected as error:
        return Problem(error.reason, str(error))
    return client.name, client.samples, mark_of(report.sealed), report.sealed, other


def _write(
    node: Node, study_id: str, number: int, checked: Sequence[Problem | ReportRow], *, looking: bool
) -> list[Outcome]:
    """Hold what is new, confirm what is known, reject what differs from what is held.

    Nearly all reports are new: without `looking` they are taken for that, and IntegrityError says that one is not.
    """
    with node.store.write("accepted") as connection:
        row = db.find_round(connection, study_id, number, lock=True)
        if row.state == "refused":
            gone = Problem("round-refused", f"round {number} was refused ({row.reason}); reports are deleted")
            return [item if isinstance(item, Problem) else gone for item in checked]
        good = [item for item in checked if not isinstance(item, Problem)]
        is_open = row.state == "open" and node.clock() < row.deadline
        if looking or not is_open:
            held = db.held_marks(connection, row.id, [item[0] for item in good])
            fresh, outcomes = _compared(checked, held, is_open)
        else:
            fresh = good
            taken = {samples: Taken(samples, new=True) for samples in {item[1] for item in good}}
            if len(good) == len(checked) and len(taken) == 1:  # as in nearly every request
                outcomes = [*taken.values()] * len(good)
            else:
                outcomes = [item if isinstance(item, Problem) else taken[item[1]] for item in checked]
        for start in range(0, len(fresh), _AT_ONCE):  # not all at once: what is small stays in the processor's cache
            some = fresh[start : start + _AT_ONCE]
            stored = node.vault.lock((study_id, number), [item[3] for item in some])
            pairs = zip(some, stored, strict=True)
            rows = [(client, samples, mark, each, other) for (client, samples, mark, _, other), each in pairs]
            db.add_reports(connection, row.id, rows)
        repeated = 0 if fresh is good else sum(isinstance(each, Taken) for each in outcomes) - len(fresh)
        db.add_counts(connection, {"accepted": len(fresh), "repeated": repeated})
        return outcomes


def _compared(
    checked: Sequence[Problem | ReportRow], held: dict[str, str], is_open: bool
) -> tuple[list[ReportRow], list[Outcome]]:
    """What is new, and what becomes of everything, where reports with these marks are held.

    The very report that is held is confirmed again, also after the round has closed.
    """
    fresh, outcomes = list[ReportRow](), list[Outcome]()
    for item in checked:
        if isinstance(item, Problem):
            outcomes.append(item)
            continue
        client, samples, mark, _, _ = item
        if held.get(client) == mark:
            outcomes.append(Taken(samples, new=False))
            continue
        try:
            check_new(client, held=client in held, is_open=is_open)
        except ReportRejected as error:
            outcomes.append(Problem(error.reason, str(error)))
            continue
        held[client] = mark
        fresh.append(item)
        outcomes.append(Taken(samples, new=True))
    return fresh, outcomes
