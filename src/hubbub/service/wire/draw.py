"""How the Computes of each client are drawn, where each client uses a few of them: commit, fix the names, reveal.

Every Compute commits to 32 random bytes when a study is registered. The analyst invites all clients and signs a request
for the draw, which fixes the list of their names and all commitments. Each Compute that finds its own list there, and
its own commitment, reveals its bytes: once, for that request. The seed is a hash of the request and of all that was
revealed. One honest Compute is enough: when it reveals, every name and all others' bytes are fixed already, and before
that nobody knew its own (docs/decisions/0024 has what those can do who reveal last).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Self, TypeVar

from hubbub.errors import InvalidInput, invalid, whole
from hubbub.securesum import pack
from hubbub.service.wire.canonical import (
    Content,
    canonical,
    check_signature,
    digest,
    hexed,
    read_json,
    read_signed,
    text,
)
from hubbub.service.wire.merkle import HASH_BYTES, Proof, root_from
from hubbub.service.wire.records import MOST_CLIENTS, VERSION, StudyRecord, check_version

SECRET_BYTES = 32
MOST_SIGNED = 2_000
"""Of a signed commitment or reveal."""
MOST_REQUEST_HEAD = 1_000
_COMMIT, _SEED = b"hubbub commit v1", b"hubbub draw v1"


def commit(study: bytes, compute: int, secret: bytes) -> bytes:
    """What a Compute shows of its bytes before they are revealed."""
    return hashlib.sha256(pack(_COMMIT, study, compute.to_bytes(2, "big"), secret)).digest()


@dataclass(frozen=True)
class CommitmentRecord:
    """A Compute binds itself to random bytes: one commitment for a study, and never another."""

    LABEL: ClassVar[bytes] = b"hubbub commitment v1"
    study: bytes
    compute: int
    commitment: bytes
    event: str
    """Of the signing Compute's audit log."""

    def content(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "hubbub": VERSION, "study": self.study.hex(), "compute": self.compute,
            "commitment": self.commitment.hex(), "event": self.event,
        }  # fmt: skip

    @classmethod
    def of(cls, content: Content) -> Self:
        """The record, or InvalidInput."""
        study, compute = _place(content)
        commitment = hexed("commitment", content["commitment"], HASH_BYTES)
        return cls(study, compute, commitment, text("event", content["event"], 64))


@dataclass(frozen=True)
class DrawRequestRecord:
    """The analyst fixes who may take part, and asks the Computes to reveal what they committed to."""

    LABEL: ClassVar[bytes] = b"hubbub draw request v1"
    study: bytes
    root: bytes
    """Of the tree over the sorted names with their numbers of samples (merkle.py)."""
    clients: int
    """How many names there are."""
    commitments: tuple[bytes, ...]
    """Of all Computes, in their order."""

    def content(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "hubbub": VERSION, "study": self.study.hex(), "root": self.root.hex(), "clients": self.clients,
            "commitments": [each.hex() for each in self.commitments],
        }  # fmt: skip

    @classmethod
    def of(cls, content: Content) -> Self:
        """The record, or InvalidInput."""
        check_version(content)
        clients = whole("clients", content["clients"], 1, "invite clients before the draw", most=MOST_CLIENTS)
        commitments = tuple(hexed("commitments", each, HASH_BYTES) for each in content["commitments"])
        study, root = hexed("study", content["study"], 32), hexed("root", content["root"], HASH_BYTES)
        return cls(study, root, clients, commitments)


@dataclass(frozen=True)
class RevealRecord:
    """A Compute shows the bytes that it committed to, for one request: it shows them for no other."""

    LABEL: ClassVar[bytes] = b"hubbub reveal v1"
    study: bytes
    compute: int
    request: bytes
    """The digest of the analyst's request, hence of the names and of all commitments."""
    secret: bytes
    event: str
    """Of the signing Compute's audit log."""

    def content(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "hubbub": VERSION, "study": self.study.hex(), "compute": self.compute, "request": self.request.hex(),
            "secret": self.secret.hex(), "event": self.event,
        }  # fmt: skip

    @classmethod
    def of(cls, content: Content) -> Self:
        """The record, or InvalidInput."""
        study, compute = _place(content)
        request, secret = hexed("request", content["request"], 32), hexed("secret", content["secret"], SECRET_BYTES)
        return cls(study, compute, request, secret, text("event", content["event"], 64))


def _place(content: Content) -> tuple[bytes, int]:
    """Study and Compute."""
    check_version(content)
    return hexed("study", content["study"], 32), whole("compute", content["compute"], 0, "count Computes from 0")


@dataclass(frozen=True)
class Draw:
    """All signed records of a draw, as they travel: request and commitments, and the reveals once they are there."""

    request: bytes
    commitments: tuple[bytes, ...]
    reveals: tuple[bytes, ...] = ()

    def encode(self) -> bytes:
        """The same bytes for the same records."""
        return canonical({
            "request": self.request.decode(), "commitments": [each.decode() for each in self.commitments],
            "reveals": [each.decode() for each in self.reveals],
        })  # fmt: skip

    @classmethod
    def decode(cls, data: bytes) -> Draw:
        """What was encoded, unchecked; or InvalidInput."""
        content = read_json(data)
        if not isinstance(content, dict) or set(content) != {"request", "commitments", "reveals"}:
            raise InvalidInput("draw must have the fields request, commitments and reveals; send all that was signed")
        request, *others = (_texts(content[name]) for name in ("request", "commitments", "reveals"))
        if len(request) != 1 or not isinstance(content["request"], str):
            raise InvalidInput("draw must have one signed request, got another; send all that was signed")
        return cls(request[0], *others)


def _texts(value: object) -> tuple[bytes, ...]:
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(each, str) and each.isascii() for each in found):
        raise InvalidInput("draw must be made of signed records as texts, got something else; send what was signed")
    return tuple(each.encode() for each in found)


def most_draw(computes: int) -> int:
    """Bytes that a draw among so many Computes can have."""
    return MOST_REQUEST_HEAD + computes * (4 * MOST_SIGNED)


def checked_request(study: StudyRecord, draw: Draw) -> DrawRequestRecord:
    """The request that this study's analyst signed, if all its commitments are signed by the study's Computes."""
    return _request(digest(study), study.analyst, _keys(study), draw.request, draw.commitments)


def drawn_study(study: StudyRecord, data: bytes) -> StudyRecord:
    """The study with its drawn seed, after every signature and every hash of the draw is checked."""
    return replace(study, seed=_seed(digest(study), study.analyst, _keys(study), data))


def check_listed(study: StudyRecord, draw: Draw, name: str, samples: int, proof: Proof) -> None:
    """Refuse a draw whose list of names does not hold this client with so many samples.

    Otherwise an analyst could hand out a name after the draw whose Computes all conspire.
    """
    request = read_signed(draw.request, DrawRequestRecord)[0]
    if root_from(proof, request.clients, name, samples) != request.root:
        raise InvalidInput(
            f"client must be on the list that was fixed before the draw, got {name} with {samples} sample(s), who is "
            "not: do not take part, the name may have been chosen for its Computes"
        )


def check_ties(study: StudyRecord, names: Sequence[str]) -> None:
    """RoundRefused where the sums over all these clients would tell more than the total, so that no round can end."""
    for _ in study.secure_sum.vetted(sorted(names), study.population.colluders + 1):
        pass


def _keys(study: StudyRecord) -> tuple[bytes, ...]:
    return tuple(compute.verify_key for compute in study.computes)


def _request(
    study: bytes, analyst: bytes, keys: Sequence[bytes], signed: bytes, commitments: Sequence[bytes]
) -> DrawRequestRecord:
    request, signature = read_signed(signed, DrawRequestRecord)
    if request.study != study:
        raise InvalidInput("draw must be of this study, got another's; take both from the same source")
    check_signature(request, signature, analyst, "analyst")
    if len(request.commitments) != len(keys):
        raise invalid("commitments", f"one of each of the {len(keys)} Computes", len(request.commitments), "ask all")
    for place, record in enumerate(_signed_by_all(commitments, CommitmentRecord, study, keys)):
        if record.commitment != request.commitments[place]:
            raise InvalidInput(
                f"commitment of Compute {place + 1} must be the one that it signed, got another; ask again"
            )
    return request


@lru_cache(maxsize=64)
def _seed(study: bytes, analyst: bytes, keys: tuple[bytes, ...], data: bytes) -> str:
    """The seed that follows from a draw; the same draw is checked once, for however many clients."""
    draw = Draw.decode(data)
    request = _request(study, analyst, keys, draw.request, draw.commitments)
    reveals = _signed_by_all(draw.reveals, RevealRecord, study, keys)
    for place, record in enumerate(reveals):
        if record.request != digest(request):
            raise InvalidInput(
                f"reveal of Compute {place + 1} must be for this list and these commitments, got another's"
            )
        if commit(study, place, record.secret) != request.commitments[place]:
            raise InvalidInput(f"reveal of Compute {place + 1} must fit its commitment, got another; do not take part")
    secrets = (record.secret for record in reveals)
    return hashlib.sha256(pack(_SEED, study, digest(request), *secrets)).hexdigest()


S = TypeVar("S", CommitmentRecord, RevealRecord)


def _signed_by_all(signed: Sequence[bytes], kind: type[S], study: bytes, keys: Sequence[bytes]) -> list[S]:
    """The records, one of each Compute in their order and signed by it."""
    if len(signed) != len(keys):
        raise invalid("draw", f"signed by all {len(keys)} Computes", f"{len(signed)} signatures", "ask all of them")
    found = []
    for place, (data, key) in enumerate(zip(signed, keys, strict=True)):
        record, signature = read_signed(data, kind)
        check_signature(record, signature, key, f"study's Compute {place + 1}")
        if (record.study, record.compute) != (study, place):
            raise InvalidInput(f"draw must have the record of Compute {place + 1} in this study there, got another's")
        found.append(record)
    return found
