"""How Computes agree while some are away, where the secure sum can do without them (docs/protocol.md, "Quorum").

Every Compute signs one agreement in a round, and releases once a quorum has signed the same. So whatever is decided
here about who goes first, and when, can end a round without a result, and never make two rosters be released.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Row

from hubbub.errors import RoundRefused
from hubbub.roles import roster_digest, turnout_of
from hubbub.service.node import store as db
from hubbub.service.node.agreement import (
    INCOMPLETE,
    INCOMPLETE_DETAIL,
    ROLLED_BACK,
    UNSURE,
    RoundView,
    common,
    refuse,
    sign,
    stored,
)
from hubbub.service.node.compute import Node
from hubbub.service.node.matching import checked
from hubbub.service.wire.canonical import digest
from hubbub.service.wire.endings import AgreementRecord


def turn(found: RoundView, answered: Collection[int], waited: float, missing_seconds: float) -> int | None:
    """With the rosters of how many Computes this one may sign an agreement of its own now; None is not now.

    At first whoever holds all rosters signs: all come to the same. Once some are away for `missing_seconds`, the
    lowest-numbered Compute that answers goes first and the others sign what it has signed; each further one waits as
    long again. Shortly before that nobody signs on his own, so that those who see one come back do not part from those
    who do not.
    """
    if waited < missing_seconds / 2:
        return found.computes
    before = sum(place < found.position for place in answered)
    return found.quorum if waited >= missing_seconds * (1 + before) else None


def lacking(node: Node, study_id: str, number: int, signed: Sequence[bytes]) -> list[int]:
    """The Computes whose rosters these agreements are on, of whom this Compute holds none or another."""
    _, rosters, _ = stored(node, study_id, number)
    records = [checked(node, study_id, number, data) for data in signed]
    return sorted({
        place for record in records for place in record.places
        if place not in rosters or digest(rosters[place]) != record.rosters[place]
    })  # fmt: skip


def follow(node: Node, study_id: str, number: int, signed: Sequence[bytes]) -> bool:
    """Sign what others have signed, if this Compute finds it right and could sum it. True where it has signed.

    It ends the round here where a quorum has signed what it cannot sum, and where it finds a signature of its own of
    which its database knows nothing.
    """
    found, rosters, samples = stored(node, study_id, number)
    if found.row.state != "closed":
        return False
    records = [checked(node, study_id, number, data) for data in signed]
    for record in records:
        if record.compute == found.position:
            raise refuse(node, study_id, number, "rolled-back", ROLLED_BACK, other=record.event)
    for record in records:
        chosen = {place: rosters[place] for place in record.places if place in rosters}
        if tuple(digest(each) for each in chosen.values()) != tuple(filter(None, record.rosters)):
            continue
        roster = common(found, chosen)
        if isinstance(roster, RoundRefused) or roster_digest(found.role, number, roster) != record.roster:
            continue
        if not set(roster) <= set(rosters[found.position].clients):
            if len(_signers(record, records)) >= found.quorum:
                raise refuse(node, study_id, number, INCOMPLETE, INCOMPLETE_DETAIL)
            continue
        if (turnout := turnout_of(roster, samples)).samples == record.samples:
            return sign(node, found, chosen, roster, turnout) == "agreed"
    return False


def kept_charges(node: Node, study_id: str) -> list[Row[Any]]:
    """Rounds that this Compute has refused without having agreed, and whose charge it keeps as others may release."""
    with node.store.read() as connection:
        charged = db.charged_rounds(connection, study_id)
        rows = db.rounds_of(connection, study_id)
    return [row for row in rows if row.number in charged and row.state == "refused" and row.reason not in UNSURE]


def give_back(node: Node, study_id: str, number: int) -> None:
    """Take back the charge of a round of which a quorum has signed its refusal: nobody can release it any more."""
    with node.store.write("given-back") as connection:
        db.refund(connection, study_id, number)
        db.write_audit(connection, node.clock(), "charge-given-back", study_id, number, event=db.new_event())


def _signers(record: AgreementRecord, records: Sequence[AgreementRecord]) -> set[int]:
    """Who has signed the same."""
    return {each.compute for each in records if each.same(record)}
