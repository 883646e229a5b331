"""Before anything is released the Computes compare what they agreed on (docs/protocol.md, "Agreement").

A Compute that shows different rosters to different others makes them agree on different clients. Each signs the digests
of the rosters it agreed on, once, and releases only when it has the same from a quorum, by default all M: so no two
honest ones release over different clients, and where they differ their signed rosters show who signed two.
"""

from __future__ import annotations

from typing import Literal

from sqlalchemy import Connection

from hubbub.errors import InvalidInput
from hubbub.service.node import store as db
from hubbub.service.node.agreement import ROLLED_BACK, RoundView, note, refusal, refuse, view
from hubbub.service.node.compute import Node
from hubbub.service.wire.canonical import check_signature, digest, read_signed
from hubbub.service.wire.endings import AgreementRecord
from hubbub.service.wire.problems import Problem

Match = Literal["new", "known", "differs"]


def signed_agreements(node: Node, study_id: str, number: int) -> list[bytes]:
    """The own agreement and those of others that say the same, or the state that stands in the way.

    Whoever asks gets them all: where one Compute holds all M and may release, the others can as well.
    """
    with node.store.read() as connection:
        return list(_signed(connection, study_id, number)[1].values())


def _signed(connection: Connection, study_id: str, number: int) -> tuple[RoundView, dict[int, bytes]]:
    """The round and the agreements that are here, the own one among them; or the state that stands in the way."""
    found, signed = view(connection, study_id, number), db.stored_agreements(connection, study_id, number)
    if found.row.state == "refused":
        raise refusal(found.row)
    if found.position not in signed:
        raise Problem("agreement-under-way", "this Compute does not hold all rosters yet; ask again", 1)
    return found, signed


def own_agreement(node: Node, study_id: str, number: int) -> bytes:
    """What this Compute has signed."""
    with node.store.read() as connection:
        return db.stored_agreements(connection, study_id, number)[view(connection, study_id, number).position]


def receive_agreement(node: Node, study_id: str, number: int, data: bytes) -> Match:
    """Keep another Compute's agreement if it says what this Compute's own says; others are not kept."""
    record = checked(node, study_id, number, data)
    with node.store.write("agreement-received") as connection:
        found, signed = _signed(connection, study_id, number)
        own = read_signed(signed[found.position], AgreementRecord)[0]
        if record.compute != found.position and record.same(own):
            fresh = record.compute not in signed
            if fresh and db.add_agreement(connection, study_id, number, record.compute, data):
                event, compute = db.new_event(), record.compute
                db.write_audit(
                    connection, node.clock(), "agreement-received", study_id, number, event=event, other=record.event,
                    compute=compute,
                )  # fmt: skip
            return "new" if fresh else "known"
    if record.compute == found.position:
        if digest(record) != digest(own):
            raise refuse(node, study_id, number, "rolled-back", ROLLED_BACK, other=record.event)
        return "known"
    kind = "second-agreement" if record.compute in signed else "agreement-differs"
    note(node, study_id, number, kind, other=record.event, compute=record.compute)
    return "differs"


def differing(node: Node, study_id: str, number: int, data: bytes) -> list[int]:
    """The Computes of which another one holds another roster than this one, by its agreement."""
    theirs = checked(node, study_id, number, data)
    own = read_signed(own_agreement(node, study_id, number), AgreementRecord)[0]
    pairs = enumerate(zip(own.rosters, theirs.rosters, strict=True))
    return [place for place, (mine, other) in pairs if mine and other and mine != other]


def signer(data: bytes) -> int:
    """Which Compute an agreement claims to be of; its signature is not yet checked."""
    return read_signed(data, AgreementRecord)[0].compute


def checked(node: Node, study_id: str, number: int, data: bytes) -> AgreementRecord:
    """The agreement, if it is of this round and its Compute signed it."""
    record, signature = read_signed(data, AgreementRecord)
    with node.store.read() as connection:
        found = view(connection, study_id, number)
    computes = found.study.computes
    if (record.study, record.round, record.number) != (digest(found.study), found.row.digest, number):
        raise Problem("invalid-record", "agreement must be of this study and round, got another's; fetch it again")
    if record.compute >= len(computes) or len(record.rosters) != len(computes) or len(record.places) < found.quorum:
        raise Problem("invalid-record", f"agreement must be on the rosters of {found.quorum} Computes, got another's")
    try:
        check_signature(record, signature, computes[record.compute].verify_key, "Compute")
    except InvalidInput as error:
        raise Problem("bad-signature", str(error)) from None
    return record
