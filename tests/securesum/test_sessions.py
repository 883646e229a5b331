"""Session keys: as tightly bound as HPKE alone, and no nonce is used twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hubbub.errors import CannotOpen
from hubbub.securesum import Context, PrivateKey, Session, SuiteName, join_session, start_session

CONTEXT = Context(b"\x05" * 32, 7, "client-1", 2)
V1 = json.loads((Path(__file__).parent.parent / "vectors" / "v1" / "sessions.json").read_text())


def both(suite: SuiteName = "X25519") -> tuple[Session, Session, PrivateKey]:
    key = PrivateKey.generate(suite)
    ours = start_session(key.public(), CONTEXT.study, CONTEXT.client, CONTEXT.compute)
    return ours, join_session(ours.opening, key, CONTEXT.study, CONTEXT.client, CONTEXT.compute), key


@pytest.mark.parametrize("suite", ["X25519", "MLKEM768-X25519"])
@pytest.mark.parametrize("size", [0, 1, 38, 10_000])
def test_what_is_sealed_opens(suite: SuiteName, size: int):
    ours, theirs, _ = both(suite)
    assert theirs.open(ours.seal(bytes(size), CONTEXT), CONTEXT) == bytes(size)


@pytest.mark.parametrize("vector", V1, ids=lambda v: v["suite"])
def test_known_answers_open(vector: dict[str, str]):
    key = PrivateKey(vector["suite"], bytes.fromhex(vector["private_key"]))  # type: ignore[arg-type]
    session = join_session(bytes.fromhex(vector["opening"]), key, CONTEXT.study, CONTEXT.client, CONTEXT.compute)
    assert session.open(bytes.fromhex(vector["sealed"]), CONTEXT).hex() == vector["plaintext"]


@pytest.mark.parametrize("changed", [{"study": b"\x06" * 32}, {"round": 8}, {"client": "client-2"}, {"compute": 0}])
def test_another_context_does_not_open(changed: dict[str, object]):
    ours, theirs, key = both()
    other = CONTEXT._replace(**changed)  # type: ignore[arg-type]
    with pytest.raises(CannotOpen):
        theirs.open(ours.seal(b"share", CONTEXT), other)
    if "round" not in changed:
        with pytest.raises(CannotOpen):
            join_session(ours.opening, key, other.study, other.client, other.compute)


def test_every_flipped_byte_and_every_cut_is_refused():
    ours, theirs, _ = both()
    sealed = ours.seal(b"a share", CONTEXT)
    for position in range(len(sealed)):
        flipped = bytearray(sealed)
        flipped[position] ^= 1
        for bad in (bytes(flipped), sealed[:position]):
            with pytest.raises(CannotOpen):
                theirs.open(bad, CONTEXT)


def test_no_two_messages_share_a_nonce():
    """Also not two for one round."""
    ours, _, _ = both()
    contexts = [CONTEXT._replace(round=number // 2) for number in range(2000)]
    assert len({ours.seal(b"", context)[:12] for context in contexts}) == 2000


def test_a_message_is_plain_aes_256_gcm():
    """Nonce and ciphertext, with the context as associated data: what any other implementation would write."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    secret, nonce = bytes(range(32)), bytes(range(12))
    session = Session(b"opening", secret)
    sealed = nonce + AESGCM(secret).encrypt(nonce, b"share", CONTEXT.info())
    assert session.open(sealed, CONTEXT) == b"share"
    written = session.seal(b"share", CONTEXT)
    assert AESGCM(secret).decrypt(written[:12], written[12:], CONTEXT.info()) == b"share"


def test_an_opening_of_the_wrong_length_is_refused():
    from hubbub.securesum.seal import sessions
    from hubbub.securesum.seal.hpke import seal_bytes

    key = PrivateKey.generate()
    short = seal_bytes(bytes(16), key.public(), sessions._info(CONTEXT.study, CONTEXT.client, CONTEXT.compute))
    with pytest.raises(CannotOpen):
        join_session(short, key, CONTEXT.study, CONTEXT.client, CONTEXT.compute)


def test_session_shows_nothing():
    ours, _, _ = both()
    assert repr(ours) == "Session()"
