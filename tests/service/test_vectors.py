"""The service's records and signatures are pinned: version 2 stays what it is, and version 1 is read as it was made."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hubbub.errors import InvalidInput, MalformedMessage
from hubbub.privacy import EarlyPopulation
from hubbub.service.wire.canonical import check_signature, digest, read_signed, sign_record
from hubbub.service.wire.endings import CloseRecord, RosterRecord
from hubbub.service.wire.messages import decode_sum
from hubbub.service.wire.records import EarlyRoundRecord, EarlyStudyRecord, InvitationRecord, read_round, read_study
from vectors.make_service_v2 import ANALYST, COMPUTE, PATH, content, records

VECTORS = json.loads(PATH.read_text())
EARLY = json.loads((Path(PATH).parents[1] / "v1" / "service.json").read_text())
EARLY_KINDS = {
    "study": EarlyStudyRecord, "round": EarlyRoundRecord, "close": CloseRecord, "roster": RosterRecord,
    "invitation": InvitationRecord,
}  # fmt: skip


def test_everything_is_still_the_same_bytes():
    assert content() == VECTORS


@pytest.mark.parametrize("name", VECTORS["records"])
def test_pinned_records_are_read_and_verified(name: str):
    expected, key = records()[name]
    record, signature = read_signed(VECTORS["records"][name].encode(), type(expected))
    assert record == expected
    assert digest(record).hex() == VECTORS["digests"][name]
    check_signature(record, signature, key.public(), "signer")
    assert sign_record(record, key).decode() == VECTORS["records"][name]


@pytest.mark.parametrize("name", EARLY["records"])
def test_records_of_version_1_are_read_as_they_were_made(name: str):
    record, signature = read_signed(EARLY["records"][name].encode(), EARLY_KINDS[name])
    assert digest(record).hex() == EARLY["digests"][name]
    check_signature(record, signature, (COMPUTE if name == "roster" else ANALYST).public(), "signer")


def test_a_study_of_version_1_and_its_round_say_what_they_said_and_nobody_joins_them():
    """N = 50 samples, T = 2: noise of sigma_std^2/(N - T - 1) a sample, and the digest that shares were sealed to."""
    study = read_study(EARLY["records"]["study"].encode())
    assert study.population == EarlyPopulation(50, 2, 2, 50, 1, theorem1=True, held=1)
    round_ = read_round(EARLY["records"]["round"].encode(), study)[0]
    assert isinstance(round_, EarlyRoundRecord)
    role = round_.checked(study)
    assert role.digest.hex() == EARLY["sealed_to"]
    noise = role.plan(0).noise
    assert noise.sigma_client == pytest.approx(noise.sigma_std / np.sqrt(47))
    with pytest.raises(InvalidInput, match="study must be of version 2, got one made by hubbub 0.1"):
        study.check_current()


@pytest.mark.parametrize(("vectors", "turnout"), [(VECTORS, (3, 5)), (EARLY, (3, 3))], ids=["v2", "v1"])
def test_the_pinned_sum_is_read_and_damaged_ones_are_not(vectors: dict[str, str], turnout: tuple[int, int]):
    data = bytes.fromhex(vectors["sum"])
    total = decode_sum(data, COMPUTE.public())
    assert total.turnout == turnout
    np.testing.assert_array_equal(total.words, np.array([1, 2**64 - 1], dtype=np.uint64))
    for position in range(len(data)):
        damaged = data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]
        with pytest.raises(MalformedMessage):
            decode_sum(damaged, COMPUTE.public())
    for damaged in (b"", data[:-1], data + b"\0"):
        with pytest.raises(MalformedMessage):
            decode_sum(damaged, COMPUTE.public())
