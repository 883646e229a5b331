"""A Compute's part in the draw of who serves whom (wire/draw.py): commit, reveal once, take the result.

Every step can be repeated: the same request gives the same reveal, the same result changes nothing.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, update

from hubbub.errors import InvalidInput
from hubbub.service.node import store as db
from hubbub.service.node import tables
from hubbub.service.node.commitments import find_draw, not_drawn, unfinished_draws
from hubbub.service.node.compute import Node, Receipt, check_analyst, known_study
from hubbub.service.wire.canonical import digest, read_signed, sign_record
from hubbub.service.wire.draw import (
    CommitmentRecord,
    Draw,
    DrawRequestRecord,
    RevealRecord,
    checked_request,
    commit,
    drawn_study,
)
from hubbub.service.wire.merkle import Tree
from hubbub.service.wire.problems import Problem
from hubbub.service.wire.records import StudyRecord


def commitment(node: Node, study_id: str) -> bytes:
    """This Compute's signed commitment, always the same one."""
    with node.store.read() as connection:
        return bytes(find_draw(connection, study_id).commitment)


def reveal(node: Node, study_id: str, data: bytes, other: str | None = None) -> bytes:
    """This Compute's signed bytes, for the one list of clients and the one set of commitments that the request fixes.

    It compares the list with its own, and finds its own commitment among the signed ones of all Computes.
    """
    study, position = known_study(node, study_id)
    node.trust.check_study(study, position)
    request = _request(study, Draw.decode(data))
    with node.store.read() as connection:
        own = read_signed(find_draw(connection, study_id).commitment, CommitmentRecord)[0]
        tree = Tree.over(db.invited_samples(connection, study_id))
    if request.commitments[position] != own.commitment:
        raise Problem("invalid-record", "request must have the commitment that this Compute made, got another; ask it")
    if (request.root, request.clients) != (tree.root, len(tree.names)):
        raise Problem(
            "invalid-record",
            f"request must be over the {len(tree.names)} client(s) that are invited here, got a list of "
            f"{request.clients} with another hash; invite the same clients at every Compute",
        )
    with node.store.write("revealed") as connection:
        return _reveal(connection, node, study, position, request, len(tree.names), other)


def _request(study: StudyRecord, draw: Draw) -> DrawRequestRecord:
    """The request with its commitments, or the problem with it."""
    check_analyst(study, *read_signed(draw.request, DrawRequestRecord))
    try:
        return checked_request(study, draw)
    except InvalidInput as error:
        raise Problem("invalid-record", str(error)) from None


def _reveal(
    connection: Connection, node: Node, study: StudyRecord, position: int, request: DrawRequestRecord, clients: int,
    other: str | None,
) -> bytes:  # fmt: skip
    """Write down what is revealed and for which request, unless that was done before."""
    db.find_study(connection, study.id, lock=True)  # nobody is invited meanwhile
    row, mark = find_draw(connection, study.id), digest(request)
    if row.request is not None:
        if bytes(row.request) != mark:
            raise Problem("other-record", "draw has another list or other commitments already; send that request")
        return bytes(row.reveal)
    if len(db.invited_samples(connection, study.id)) != clients:  # nobody is ever struck off
        raise Problem("invalid-record", "request must be over all who are invited here, got fewer; sign it again")
    _check_unfinished(connection, node, study)
    secret, event = node.draws.show(study.id, mark), db.new_event()
    if commit(digest(study), position, secret) != request.commitments[position]:
        raise Problem("rolled-back", "this Compute's bytes are not those it committed to; make the study again")
    signed = sign_record(RevealRecord(digest(study), position, mark, secret, event), node.keys.sign)
    connection.execute(_of(study.id).values(request=mark, reveal=signed))
    db.write_audit(connection, node.clock(), "draw-revealed", study.id, event=event, other=other, clients=clients)
    return signed


def _check_unfinished(connection: Connection, node: Node, study: StudyRecord) -> None:
    """Refuse to reveal again and again where nothing comes of it: somebody may be choosing among draws."""
    most = node.limits.unfinished_draws
    if (found := unfinished_draws(connection, study.analyst)) >= most:
        raise Problem(
            "too-many",
            f"draws that this Compute revealed for and that led to no released round must number at most {most} for "
            f"one analyst, got {found}; end a round of each, or ask the operator to raise unfinished_draws",
        )


def finish(node: Node, study_id: str, data: bytes, other: str | None = None) -> Receipt:
    """Take the reveals of all Computes, and the seed that follows; the same again changes nothing."""
    study, _ = known_study(node, study_id)
    draw, event = Draw.decode(data), db.new_event()
    mark, found = digest(_request(study, draw)), drawn_study(study, draw.encode())
    with node.store.write("drawn") as connection:
        db.find_study(connection, study_id, lock=True)
        row = find_draw(connection, study_id)
        if row.request is None or bytes(row.request) != mark:
            raise Problem("other-record", "draw must be the one that this Compute revealed for, got another's; ask it")
        if row.seed is not None:
            return Receipt(event, new=False)
        connection.execute(_of(study_id).values(draw=draw.encode(), seed=found.seed))
        db.write_audit(connection, node.clock(), "drawn", study_id, event=event, other=other, seed=found.seed)
    return Receipt(event)


def result(node: Node, study_id: str) -> bytes:
    """All signed records of the draw, or the problem not-drawn."""
    with node.store.read() as connection:
        db.find_study(connection, study_id)
        row = find_draw(connection, study_id)
    if row.draw is None:
        raise not_drawn()
    return bytes(row.draw)


def listed(node: Node, study_id: str, client: str) -> dict[str, Any]:
    """The proof that a client is on the list that was fixed before the draw."""
    result(node, study_id)
    found = node.known.tree(study_id).proof(client)
    if found is None:
        raise Problem("not-found", "client must be on the list that was fixed before the draw; ask the analyst")
    return found.content()


def _of(study_id: str) -> Any:
    return update(tables.draws).where(tables.draws.c.study == study_id)
