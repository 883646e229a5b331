"""Whether a round is refused for good: only the signatures of a quorum prove it, with additive sharing all Computes.

A Compute that says "refused" without signing it, or alone, proves nothing, since all may have released. Where all have
signed, the honest ones among them never release their sums, and none of them had agreed where the sums of the others
would have been enough (`service/node/agreement.py`), so nobody can form the total. Where fewer than all Computes can
agree, as many refusals prove the same: whoever signs one signs no agreement, and a quorum of the ones and a quorum of
the others would share an honest Compute.
"""

from __future__ import annotations

from collections.abc import Collection

from hubbub.errors import HubbubError, InvalidInput
from hubbub.service.wire.canonical import check_signature, digest, read_signed
from hubbub.service.wire.endings import RefusalRecord
from hubbub.service.wire.records import StudyRecord
from hubbub.service.wire.web import Web

_MOST_TEXT = 200


def unsigned(study: StudyRecord, number: int, mark: bytes, web: Web, wait_for: Collection[str] = ()) -> dict[str, str]:
    """The Computes without a valid signed refusal of the round with this digest, and why; empty where all have signed.

    A Compute whose answer is one of the problems in `wait_for` is asked again for a while.
    """
    missing = {}
    for position, compute in enumerate(study.computes):
        try:
            data = web.get(f"{compute.url}/v1/studies/{study.id}/rounds/{number}/refusal", wait_for=wait_for).content
            check_refusal(study, number, mark, position, data)
        except HubbubError as error:
            missing[compute.name] = str(error)[:_MOST_TEXT]
    return missing


def for_good(study: StudyRecord, missing: Collection[object]) -> bool:
    """True where enough have signed their refusal, all but these, for nobody to release any more."""
    return len(missing) <= len(study.computes) - study.secure_sum.quorum


def check_refusal(study: StudyRecord, number: int, mark: bytes, position: int, data: bytes) -> None:
    """Refuse what this Compute did not sign, or signed for another round."""
    record, signature = read_signed(data, RefusalRecord)
    if (record.study, record.round, record.number, record.compute) != (digest(study), mark, number, position):
        raise InvalidInput("refusal must be of this round and Compute, got another's; ask the Compute again")
    check_signature(record, signature, study.computes[position].verify_key, "Compute")
