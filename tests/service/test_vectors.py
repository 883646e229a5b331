"""The service's records and signatures are pinned: version 1 stays what it is."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hubbub.errors import MalformedMessage
from hubbub.service.canonical import check_signature, digest, read_signed, sign_record
from hubbub.service.messages import decode_sum
from vectors.make_service_v1 import COMPUTE, PATH, content, records

VECTORS = json.loads(PATH.read_text())


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


def test_the_pinned_sum_is_read_and_damaged_ones_are_not():
    data = bytes.fromhex(VECTORS["sum"])
    total = decode_sum(data, COMPUTE.public())
    np.testing.assert_array_equal(total.words, np.array([1, 2**64 - 1], dtype=np.uint64))
    for position in range(len(data)):
        damaged = data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]
        with pytest.raises(MalformedMessage):
            decode_sum(damaged, COMPUTE.public())
    for damaged in (b"", data[:-1], data + b"\0"):
        with pytest.raises(MalformedMessage):
            decode_sum(damaged, COMPUTE.public())
