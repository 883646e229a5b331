"""Sealing: opens for the right Compute in the right context, and for nothing else."""

from __future__ import annotations

import json
import traceback
from pathlib import Path

import pytest

from hubbub.errors import CannotOpen, InvalidInput
from hubbub.securesum import Context, PrivateKey, PublicKey, SuiteName, open_sealed, seal

V1 = json.loads((Path(__file__).parent.parent / "vectors" / "v1" / "sealed.json").read_text())
SUITES: list[SuiteName] = ["X25519", "MLKEM768-X25519"]
CONTEXT = Context(bytes(32), 0, "client-1", 2)


def opened(vector: dict[str, str], sealed: bytes, context: Context) -> bytes:
    key = PrivateKey(vector["suite"], bytes.fromhex(vector["private_key"]))  # type: ignore[arg-type]
    return open_sealed(sealed, key, context)


def context_of(vector: dict[str, object]) -> Context:
    return Context(
        bytes.fromhex(str(vector["study"])),
        int(str(vector["round"])),
        str(vector["client"]),
        int(str(vector["compute"])),
    )


@pytest.mark.parametrize("vector", V1, ids=lambda v: v["suite"])
def test_known_answers_open(vector: dict[str, str]):
    assert opened(vector, bytes.fromhex(vector["sealed"]), context_of(vector)).hex() == vector["plaintext"]
    key = PrivateKey(vector["suite"], bytes.fromhex(vector["private_key"]))  # type: ignore[arg-type]
    assert key.public().data.hex() == vector["public_key"]


@pytest.mark.parametrize("vector", V1, ids=lambda v: v["suite"])
@pytest.mark.parametrize("field", ["study", "round", "client", "compute"])
def test_another_context_does_not_open(vector: dict[str, str], field: str):
    context = context_of(vector)
    changed = {"study": b"\x01" * 32, "round": 4, "client": "client-2", "compute": 0}[field]
    with pytest.raises(CannotOpen):
        opened(vector, bytes.fromhex(vector["sealed"]), context._replace(**{field: changed}))


@pytest.mark.parametrize("vector", V1, ids=lambda v: v["suite"])
def test_every_flipped_byte_and_every_cut_is_refused(vector: dict[str, str]):
    sealed, context = bytes.fromhex(vector["sealed"]), context_of(vector)
    for position in range(0, len(sealed), max(1, len(sealed) // 60)):
        flipped = bytearray(sealed)
        flipped[position] ^= 1
        with pytest.raises(CannotOpen):
            opened(vector, bytes(flipped), context)
        with pytest.raises(CannotOpen):
            opened(vector, sealed[:position], context)
    with pytest.raises(CannotOpen):
        opened(vector, sealed + b"\x00", context)


@pytest.mark.parametrize("suite", SUITES)
def test_round_trip_and_freshness(suite: SuiteName):
    key = PrivateKey.generate(suite)
    first, second = (seal(b"share", key.public(), CONTEXT) for _ in range(2))
    assert first != second
    assert open_sealed(first, key, CONTEXT) == open_sealed(second, key, CONTEXT) == b"share"


@pytest.mark.parametrize("suite", SUITES)
def test_another_key_does_not_open(suite: SuiteName):
    sealed = seal(b"share", PrivateKey.generate(suite).public(), CONTEXT)
    with pytest.raises(CannotOpen):
        open_sealed(sealed, PrivateKey.generate(suite), CONTEXT)


def test_one_suite_does_not_open_the_others_messages():
    keys = {suite: PrivateKey.generate(suite) for suite in SUITES}
    for suite, other in (SUITES, SUITES[::-1]):
        with pytest.raises(CannotOpen):
            open_sealed(seal(b"share", keys[suite].public(), CONTEXT), keys[other], CONTEXT)


@pytest.mark.parametrize("suite", SUITES)
def test_secrets_appear_in_no_repr_and_no_traceback(suite: SuiteName):
    key = PrivateKey.generate(suite)
    assert key.data.hex() not in repr(key)
    assert repr(key.data) not in repr(key)
    try:
        open_sealed(b"x" * 100, key, CONTEXT)
    except CannotOpen:
        text = traceback.format_exc()
    assert key.data.hex() not in text
    assert repr(key.data) not in text


def test_failures_all_read_the_same():
    key = PrivateKey.generate()
    good = seal(b"share", key.public(), CONTEXT)
    messages = set()
    for bad in (b"", good[:40], good[:-1] + b"\x00"):
        with pytest.raises(CannotOpen) as caught:
            open_sealed(bad, key, CONTEXT)
        messages.add(str(caught.value))
        assert caught.value.__cause__ is None
    assert len(messages) == 1


def test_context_bytes_are_unambiguous():
    first = Context(bytes(32), 1, "ab", 1).info()
    assert first != Context(bytes(32), 1, "a", 1).info()
    assert len({Context(bytes(32), r, c, k).info() for r in (0, 1) for c in ("a", "b") for k in (0, 1)}) == 8


@pytest.mark.parametrize("size", [0, 31, 33])
def test_public_key_of_wrong_length_is_one_line(size: int):
    with pytest.raises(InvalidInput, match="public key must be 32 bytes long for X25519"):
        PublicKey("X25519", bytes(size))


def test_unknown_suite_is_one_line():
    with pytest.raises(InvalidInput, match="suite must be one of X25519, MLKEM768-X25519, got suite='RSA'"):
        PrivateKey.generate("RSA")  # type: ignore[arg-type]
