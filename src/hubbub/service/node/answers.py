"""What a Compute says of a round that has ended: its signed refusal, and to whom it serves its sum."""

from __future__ import annotations

from hubbub.service.node import agreement
from hubbub.service.node import store as db
from hubbub.service.node.compute import Node, check_analyst, known_study
from hubbub.service.wire.canonical import digest, instant, read_signed, sign_record
from hubbub.service.wire.endings import RefusalRecord, SumRequestRecord
from hubbub.service.wire.problems import Problem

REQUEST_SECONDS = 300.0
"""How far the time in a request for a sum may lie from this Compute's clock."""


def signed_refusal(node: Node, study_id: str, number: int) -> bytes:
    """This Compute's signature that it has refused the round; or the state that stands in the way.

    It is made from the committed state, which is never left, so what is signed as refused is never released, unless
    an old copy of the database is put back. Where that may have happened in this round (`rolled-back`, `key-lost`), the
    sum may be out by a release that the database no longer knows, and nothing is signed.
    """
    study, position = known_study(node, study_id)
    with node.store.read() as connection:
        row = db.find_round(connection, study_id, number)
        event = db.refusal_event(connection, study_id, number)
    if row.state == "released":
        raise Problem("not-refused", f"round {number} is released here, so no refusal is signed; ask for the sum")
    if row.state == "open":
        raise Problem("round-open", f"round {number} must have ended first; close it, or wait for its deadline")
    if row.state != "refused":
        raise Problem("agreement-under-way", "the Computes have not all answered yet; ask again", 1)
    if row.reason == agreement.PERHAPS_RELEASED:
        raise Problem("not-refused", "others may have released enough of this round without this Compute; it counts")
    if row.reason in agreement.UNSURE or event is None:
        raise Problem(
            "rolled-back", "an old copy of this database may have been restored; what it refused may be released"
        )
    record = RefusalRecord(digest(study), row.digest, number, position, row.reason, event)
    return sign_record(record, node.keys.sign)


def check_reader(node: Node, study_id: str, number: int, request: bytes | None) -> None:
    """Refuse a sum to whoever may not have it: `request` is what the analyst signed, or None for anybody."""
    study, position = known_study(node, study_id)
    if request is None:
        if study.results != "public":
            raise Problem("analyst-only", "sum must be asked for by POST with the analyst's signed request")
        return
    record, signature = read_signed(request, SumRequestRecord)
    check_analyst(study, record, signature)
    with node.store.read() as connection:
        row = db.find_round(connection, study_id, number)
    if (record.study, record.round, record.compute) != (digest(study), row.digest, position):
        raise Problem("invalid-record", f"request must be for this round and Compute {position + 1}, got another's")
    if abs(instant("time", record.time).timestamp() - node.clock()) > REQUEST_SECONDS:
        raise Problem(
            "stale-request",
            f"time must lie within {REQUEST_SECONDS:g} s of this Compute's clock, got time={record.time}; "
            "sign a new request, and compare the clocks with `hubbub study check`",
        )
