"""Writes tests/vectors/v2/service.json: run it once per version of the service's records, never to make a test pass.

Ed25519 is deterministic, so records are signed again in the tests and must give the same bytes.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from hubbub.privacy import Budget, GaussianMechanism, Population
from hubbub.roles import ComputeSum, Turnout
from hubbub.securesum import PublicKey
from hubbub.service.wire.canonical import digest, sign_record
from hubbub.service.wire.endings import AgreementRecord, CloseRecord, RefusalRecord, RosterRecord, SumRequestRecord
from hubbub.service.wire.messages import (
    ENROL,
    encode_sum,
    enrol_parts,
    token_digest,
    token_for,
)
from hubbub.service.wire.records import ClientRecord, ComputeRecord, InvitationRecord, RoundRecord, StudyRecord
from hubbub.service.wire.signing import SigningKey
from hubbub.statistics import Means
from hubbub.statistics.preparation import clip, shift

PATH = Path(__file__).parent / "v2" / "service.json"
ANALYST, COMPUTE, CLIENT = (SigningKey(bytes([k]) * 32) for k in (1, 2, 3))


def records() -> dict[str, tuple[object, SigningKey]]:
    computes = tuple(
        ComputeRecord(
            f"compute-{k}", f"https://c{k}.example:8443", PublicKey("X25519", bytes([k + 9]) * 32), key.public()
        )
        for k, key in enumerate((COMPUTE, CLIENT))
    )
    analysis = {"kind": "none", "ä": [1.5, None]}
    population = Population(50, 2, 3, samples=90, largest=7)
    study = StudyRecord(
        "blood pressure ä", population, computes, Budget(1.0, 1e-5), "2030-01-01T00:00:00Z", ANALYST.public(), analysis, "7",
        "analyst",
    )  # fmt: skip
    noise = GaussianMechanism(4.0).settled(Means((1.0, 2.0)), population)
    round_ = RoundRecord(
        digest(study), 0, Means((1.0, 2.0)).describe(), GaussianMechanism(4.0).describe(), noise.grid.fraction_bits,
        noise.sigma_client, "2029-12-31T00:00:00Z", "means", (shift([0.5, 0.0]), clip([1.0, 2.0])),
    )  # fmt: skip
    token = token_digest(token_for(bytes(32), COMPUTE.public()))
    return {
        "study": (study, ANALYST),
        "round": (round_, ANALYST),
        "close": (CloseRecord(digest(study), digest(round_)), ANALYST),
        "roster": (RosterRecord(digest(study), digest(round_), 0, 0, ("a/0", "a/1", "b"), "e1"), COMPUTE),
        "refusal": (RefusalRecord(digest(study), digest(round_), 0, 0, "too-few-clients", "e2"), COMPUTE),
        "sum request": (SumRequestRecord(digest(study), digest(round_), 0, "2029-12-31T00:00:00Z"), ANALYST),
        "agreement": (
            AgreementRecord(
                digest(study), digest(round_), 0, 0, (bytes([4]) * 32, bytes([5]) * 32), bytes(range(32)), 3, "e2"
            ),
            COMPUTE,
        ),
        "invitation": (InvitationRecord(digest(study), 0, (ClientRecord("a", token, 2),)), ANALYST),
    }


def content() -> dict[str, object]:
    found = records()
    study, round_ = found["study"][0], found["round"][0]
    role = round_.checked(study)
    total = ComputeSum(role.digest, 0, 0, bytes(range(32)), Turnout(3, 5), np.array([1, 2**64 - 1], dtype=np.uint64))
    enrolment = enrol_parts(digest(study), 0, "a", 2, CLIENT.public(), bytes(range(80)))
    return {
        "records": {name: sign_record(record, key).decode() for name, (record, key) in found.items()},
        "digests": {name: digest(record).hex() for name, (record, _) in found.items()},
        "sealed_to": role.digest.hex(),
        "sum": encode_sum(total, COMPUTE).hex(),
        "enrolment_signature": CLIENT.sign(ENROL, *enrolment).hex(),
    }


if __name__ == "__main__":
    PATH.write_text(json.dumps(content(), indent=1) + "\n")
