"""What travels besides records and reports: enrolments, tokens, and a Compute's signed sum."""

from __future__ import annotations

import hashlib
import hmac

import numpy as np

from hubbub.errors import MalformedMessage
from hubbub.roles import ComputeSum, Turnout
from hubbub.securesum import pack
from hubbub.securesum.wire.codec import unpack
from hubbub.service.wire.signing import SIGNATURE_BYTES, SigningKey, verified

REPORT_TYPE = "application/octet-stream"
JSON_TYPE = "application/json"
PROBLEM_TYPE = "application/problem+json"
EVENT = "hubbub-event"
"""Header that names an event of the sender's log, both ways."""
ENROL, SUM, EARLY_SUM = b"hubbub enrol v1", b"hubbub sum v2", b"hubbub sum v1"
TOKEN_BYTES = 32


def enrol_parts(study: bytes, compute: int, client: str, samples: int, key: bytes, opening: bytes) -> tuple[bytes, ...]:
    """What a client signs when it enrols: its key, how many samples it holds, and the session that is its own."""
    return study, compute.to_bytes(2, "big"), client.encode(), samples.to_bytes(4, "big"), key, opening


def token_for(token: bytes, verify_key: bytes) -> bytes:
    """What one Compute gets to see of a client's token: of no use at any other Compute."""
    return hmac.digest(token, b"hubbub token v1" + verify_key, "sha256")


def token_digest(token: bytes) -> bytes:
    """What a Compute stores in place of the token."""
    return hashlib.sha256(b"hubbub token digest v1" + token).digest()


def encode_sum(result: ComputeSum, key: SigningKey) -> bytes:
    """The bytes that a Compute publishes: header, words (little-endian), signature."""
    body = pack(
        SUM, result.study, result.round.to_bytes(4, "big"), result.compute.to_bytes(2, "big"), result.roster,
        result.turnout.clients.to_bytes(4, "big"), result.turnout.samples.to_bytes(4, "big"),
        result.words.astype("<u8", copy=False).tobytes(),
    )  # fmt: skip
    return body + key.sign(SUM, body)


def decode_sum(data: bytes, verify_key: bytes) -> ComputeSum:
    """The sum that this Compute signed, or MalformedMessage. Sums of hubbub 0.1 are read, too."""
    body, signature = data[:-SIGNATURE_BYTES], data[-SIGNATURE_BYTES:]
    early = verified(verify_key, signature, EARLY_SUM, body)
    if not early and not verified(verify_key, signature, SUM, body):
        raise MalformedMessage("sum must be signed by its Compute, got another signature; ask the Compute again")
    label, study, number, compute, roster, *counts, words = unpack(body, 7 if early else 8)
    sizes = (len(study), len(number), len(compute), len(roster), *map(len, counts))
    if label != (EARLY_SUM if early else SUM) or sizes != (32, 4, 2, 32, 4, 4)[: len(sizes)] or len(words) % 8:
        raise MalformedMessage("sum has a part of the wrong length; update hubbub")
    turnout = Turnout(int.from_bytes(counts[0], "big"), int.from_bytes(counts[-1], "big"))
    return ComputeSum(
        study, int.from_bytes(number, "big"), int.from_bytes(compute, "big"), roster, turnout,
        np.frombuffer(words, dtype="<u8").astype(np.uint64),
    )  # fmt: skip
