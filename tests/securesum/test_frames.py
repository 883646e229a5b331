"""A frame takes exactly the reports that are taken when they are decoded, addressed, opened and read one by one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.errors import CannotOpen, MalformedMessage
from hubbub.securesum import (
    Additive,
    Context,
    Frame,
    PrivateKey,
    Report,
    Session,
    decode_report,
    decode_share,
    encode_report,
    encode_share,
    mark_of,
    start_session,
)
from seams import masked, seeded

STUDY, NUMBER, COMPUTE, DIMENSION = b"\x05" * 32, 7, 2, 3
SCHEME = Additive(3)
FRAME = Frame(STUDY, NUMBER, COMPUTE, SCHEME, DIMENSION)
KEY = PrivateKey.generate()
CLIENT = "zoë"
SESSION = start_session(KEY.public(), STUDY, CLIENT, COMPUTE).short()
MASKED = encode_share(masked(np.arange(DIMENSION, dtype=np.uint64)))
SEED = encode_share(seeded(bytes(range(32)), DIMENSION))
HASHED = encode_share(seeded(bytes(range(32)), DIMENSION, "SHAKE-128"))


def report(share: bytes = MASKED, client: str = CLIENT, session: Session = SESSION, **changed: object) -> bytes:
    """As a client makes it; what is changed is changed inside and outside of the seal."""
    place: dict[str, object] = {"study": STUDY, "round": NUMBER, "compute": COMPUTE} | changed
    sealed = session.seal(share, Context(client=client, **place))  # type: ignore[arg-type]
    return encode_report(Report(client=client, sealed=sealed, opening=session.opening, **place))  # type: ignore[arg-type]


class Known(NamedTuple):
    client: str
    session: Session


def quickly(body: bytes, session: Session = SESSION) -> tuple[str, bytes] | None:
    (found,) = FRAME.read([body], {CLIENT: Known(CLIENT, session)})
    return (found[0].client, bytes(found[1])) if isinstance(found, tuple) else None


def slowly(body: bytes, session: Session = SESSION) -> tuple[str, bytes] | None:
    try:
        found = decode_report(body)
        if (found.study, found.round, found.compute, found.client) != (STUDY, NUMBER, COMPUTE, CLIENT):
            return None
        if found.opening != session.opening:
            return None
        decode_share(session.open(found.sealed, Context(STUDY, NUMBER, CLIENT, COMPUTE)), SCHEME, DIMENSION)
    except (MalformedMessage, CannotOpen):
        return None
    return found.client, found.sealed


@pytest.mark.parametrize("share", [MASKED, SEED, HASHED], ids=["masked", "seed", "hashed"])
def test_what_clients_send_is_taken(share: bytes):
    body = report(share)
    assert quickly(body) == slowly(body) == (CLIENT, decode_report(body).sealed)


@pytest.mark.parametrize("changed", [{"study": b"\x06" * 32}, {"round": 8}, {"compute": 1}])
def test_a_report_for_elsewhere_has_no_sender_here(changed: dict[str, object]):
    assert list(FRAME.read([report(**changed)], {})) == [None]


@pytest.mark.parametrize(
    "share",
    [
        b"", MASKED[:5], MASKED[:-1], MASKED + b"\0", b"\2" + MASKED[1:], b"\1\4" + MASKED[2:], b"\1\2" + MASKED[2:],
        SEED[:-1], b"\1\1" + SEED[2:], encode_share(masked(np.zeros(4, dtype=np.uint64))),
    ],
)  # fmt: skip
def test_what_is_sealed_well_but_is_no_share_of_the_round_is_not_taken(share: bytes):
    body = report(share)
    assert quickly(body) is None
    assert slowly(body) is None


def test_another_session_of_the_same_client_is_not_taken():
    other = start_session(KEY.public(), STUDY, CLIENT, COMPUTE).short()
    body = report(session=other)
    assert quickly(body) is None
    assert quickly(body, other) is not None
    assert (
        quickly(encode_report(Report(STUDY, NUMBER, CLIENT, COMPUTE, decode_report(body).sealed, SESSION.opening)))
        is None
    )


def test_a_report_without_a_session_is_not_taken():
    assert quickly(encode_report(Report(STUDY, NUMBER, CLIENT, COMPUTE, decode_report(report()).sealed))) is None


def test_every_flipped_bit_and_every_cut_is_judged_alike():
    """Also those that only make the name another, or no text at all."""
    body = report(SEED)
    for position in range(len(body)):
        for bit in range(8):
            flipped = bytearray(body)
            flipped[position] ^= 1 << bit
            assert quickly(bytes(flipped)) is None
            assert slowly(bytes(flipped)) is None
        assert quickly(body[:position]) is None
        assert quickly(body + bytes(position + 1)) is None


@given(st.binary(max_size=40), st.integers(0, 300), st.integers(0, 300), st.sampled_from([MASKED, SEED]))
def test_whatever_is_put_in_between_is_judged_alike(inserted: bytes, start: int, length: int, share: bytes):
    body = report(share)
    for bad in (body[:start] + inserted + body[start + length :], inserted + body, body + inserted):
        assert quickly(bad) == slowly(bad)


def test_marks_tell_reports_of_one_client_apart():
    first, second = (decode_report(report()).sealed for _ in range(2))
    assert mark_of(first) == mark_of(bytearray(first))
    assert mark_of(first) != mark_of(second)
    assert len(mark_of(first)) == 32
