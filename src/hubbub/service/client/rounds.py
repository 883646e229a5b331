"""Which rounds a study has, as its Computes show them: for clients and analysts."""

from __future__ import annotations

from dataclasses import dataclass, field

from hubbub.errors import HubbubError, InvalidInput
from hubbub.service.wire.canonical import check_signature, read_json
from hubbub.service.wire.problems import Problem
from hubbub.service.wire.records import ComputeRecord, RoundRecord, StudyRecord, read_round
from hubbub.service.wire.web import MOST_LIST, Unreachable, Web

BRIEFLY = 5.0
"""Seconds that a Compute is waited for where others know the same."""


def current_round(study: StudyRecord, web: Web) -> RoundRecord:
    """The latest round of the study, checked against the analyst's signature."""
    found = rounds_at(study, web)
    if not found:
        raise Problem("not-found", "study must have a round, got none yet; wait until the analyst opens one")
    return found[-1].record


@dataclass(frozen=True)
class RoundStatus:
    """A round, as the analyst signed it, and how it stands at a Compute."""

    record: RoundRecord
    signed: bytes = field(repr=False)
    state: str
    reports: int
    """Clients of whom it holds a report."""


def rounds_at(study: StudyRecord, web: Web) -> list[RoundStatus]:
    """All rounds, from the first Compute that answers; or, where some may be behind the others, from the fullest.

    One that does not know the study, or answers nonsense, is passed over where others know better.
    """
    failed, found = list[HubbubError](), list[list[RoundStatus]]()
    spare = study.secure_sum.quorum < len(study.computes)
    for patient in (web.briefly(BRIEFLY), web):
        for compute in study.computes:
            try:
                found.append(rounds_of(study, compute, patient))
            except HubbubError as error:
                failed.append(error)
            if found and not spare:
                break
        if found or spare or not all(isinstance(error, Unreachable) for error in failed):
            break
    if not found:
        raise next((error for error in failed if not isinstance(error, Unreachable)), failed[0])
    return max(found, key=len)


def rounds_of(study: StudyRecord, compute: ComputeRecord, web: Web) -> list[RoundStatus]:
    """All rounds that one Compute knows; every signature is checked."""
    reply = read_json(web.get(f"{compute.url}/v1/studies/{study.id}/rounds", most=MOST_LIST).content)
    try:
        entries = [(entry["record"].encode(), str(entry["state"]), int(entry["reports"])) for entry in reply["rounds"]]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidInput(
            f"{compute.name} must answer with the study's rounds, got something else; ask its operator"
        ) from None
    found = []
    for signed, state, reports in entries:
        record, signature = read_round(signed, study)
        check_signature(record, signature, study.analyst, "analyst")
        found.append(RoundStatus(record, signed, state, reports))
    if [each.record.number for each in found] != list(range(len(found))):
        raise InvalidInput(f"{compute.name} must list every round once and in order, got others; ask its operator")
    return found
