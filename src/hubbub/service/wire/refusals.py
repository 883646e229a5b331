"""Whether a round is refused for good: only the signatures of a quorum prove it, with additive sharing all Computes.

A Compute that says "refused" without signing it, or alone, proves nothing, since all may have released. Where all have
signed, the honest ones among them never release their sums, and none of them had agreed where the sums of the others
would have been enough (`service/node/agreement.py`), so nobody can form the total. Where fewer than all Computes can
agree, as many refusals prove the same: whoever signs one signs no agreement, and a quorum of the ones and a quorum of
the others would share an honest Compute. This rests on the trust that so few sign both as the study's trust sentence
says. Where both signatures of a Compute are found, its refusal does not count.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from hubbub.errors import HubbubError, InvalidInput
from hubbub.service.wire.canonical import check_signature, digest, read_json, read_signed
from hubbub.service.wire.endings import MOST_AGREEMENT, AgreementRecord, RefusalRecord
from hubbub.service.wire.records import ComputeRecord, StudyRecord
from hubbub.service.wire.web import Unreachable, Web

_MOST_TEXT = 200
CONTRADICTS = "it has signed what it would release, so its refusal does not count; ask its operator"


def unsigned(study: StudyRecord, number: int, mark: bytes, web: Web, wait_for: Collection[str] = ()) -> dict[str, str]:
    """The Computes without a valid signed refusal of the round with this digest, and why; empty where all have signed.

    A Compute whose answer is one of the problems in `wait_for` is asked again for a while. Where fewer than all can
    agree, each that answers is asked for the agreements that it holds, too, and whoever has signed one counts as
    without a refusal.
    """
    missing, agreed = {}, set[int]()
    for position, compute in enumerate(study.computes):
        try:
            data = web.get(f"{compute.url}/v1/studies/{study.id}/rounds/{number}/refusal", wait_for=wait_for).content
            check_refusal(study, number, mark, position, data)
        except HubbubError as error:
            missing[compute.name] = str(error)[:_MOST_TEXT]
            if not isinstance(error, Unreachable):
                agreed |= _agreed_at(study, number, mark, compute, web)
    return missing | {study.computes[place].name: CONTRADICTS for place in sorted(agreed)}


def _agreed_at(study: StudyRecord, number: int, mark: bytes, compute: ComputeRecord, web: Web) -> set[int]:
    """Who has signed an agreement that this Compute holds; nobody where that proves nothing."""
    if study.secure_sum.quorum == len(study.computes):
        return set()
    try:
        url = f"{compute.url}/v1/studies/{study.id}/rounds/{number}/agreements"
        return agreed_in(study, number, mark, web.get(url, most=len(study.computes) * MOST_AGREEMENT).content)
    except HubbubError:
        return set()


def agreed_in(study: StudyRecord, number: int, mark: bytes, reply: bytes) -> set[int]:
    """The Computes whose signed agreements on the round with this digest are in a reply; others prove nothing."""
    content, found = read_json(reply), set[int]()
    signed = content.get("agreements") if isinstance(content, dict) else None
    for data in signed if isinstance(signed, list) else ():
        with suppress(InvalidInput):
            record, signature = read_signed(str(data).encode(errors="surrogatepass"), AgreementRecord)
            here = (record.study, record.round, record.number) == (digest(study), mark, number)
            if here and record.compute < len(study.computes):
                check_signature(record, signature, study.computes[record.compute].verify_key, "Compute")
                found.add(record.compute)
    return found


def for_good(study: StudyRecord, missing: Collection[object]) -> bool:
    """True where enough have signed their refusal, all but these, for nobody to release any more."""
    return len(missing) <= len(study.computes) - study.secure_sum.quorum


def check_refusal(study: StudyRecord, number: int, mark: bytes, position: int, data: bytes) -> None:
    """Refuse what this Compute did not sign, or signed for another round."""
    record, signature = read_signed(data, RefusalRecord)
    if (record.study, record.round, record.number, record.compute) != (digest(study), mark, number, position):
        raise InvalidInput("refusal must be of this round and Compute, got another's; ask the Compute again")
    check_signature(record, signature, study.computes[position].verify_key, "Compute")
