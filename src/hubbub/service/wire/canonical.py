"""Records as canonical JSON: the same record is the same bytes everywhere, and only those bytes are read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar, Protocol, Self, TypeVar

from hubbub.errors import InvalidInput, invalid
from hubbub.service.wire.signing import SIGNATURE_BYTES, SigningKey, verified

Content = Mapping[str, Any]


class Record(Protocol):
    """Something that parties sign: its content is plain JSON."""

    LABEL: ClassVar[bytes]

    def content(self) -> dict[str, Any]:
        """Plain JSON values."""
        ...

    @classmethod
    def of(cls, content: Content) -> Self:
        """The record, or InvalidInput."""
        ...


R = TypeVar("R", bound=Record)
_DIGEST = "_digest"


def canonical(content: object) -> bytes:
    """Sorted keys, no spaces, ASCII, no NaN."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def digest(record: Record) -> bytes:
    """SHA-256 of the canonical bytes: the record's name. Records never change, so each keeps its own."""
    known: dict[str, Any] = vars(record)
    if _DIGEST not in known:
        known[_DIGEST] = hashlib.sha256(canonical(record.content())).digest()
    return bytes(known[_DIGEST])


def sign_record(record: Record, key: SigningKey) -> bytes:
    """The record with its signature, as canonical bytes."""
    content = record.content()
    signature = key.sign(record.LABEL, canonical(content))
    return canonical({"record": content, "signature": signature.hex()})


def read_signed(data: bytes, kind: type[R]) -> tuple[R, bytes]:
    """The record and its signature, not yet verified; refuses anything that is not canonical in content."""
    parsed = read_json(data)
    if not isinstance(parsed, dict) or set(parsed) != {"record", "signature"}:
        raise InvalidInput("record must be an object with the fields record and signature; send the signed file")
    return read_record(parsed["record"], kind), hexed("signature", parsed["signature"], SIGNATURE_BYTES)


def read_record(content: object, kind: type[R]) -> R:
    """The record of exactly this content: unknown fields and other spellings of a value are refused."""
    if not isinstance(content, dict):
        raise InvalidInput("record must be a JSON object; send the file that hubbub wrote")
    try:
        record = kind.of(content)
        same = canonical(record.content()) == canonical(content)
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(
            f"record must have every field in its own type, got a wrong {error}; make it again"
        ) from None
    except InvalidInput:
        raise
    except (RecursionError, OverflowError, ValueError):
        raise InvalidInput("record must be plain JSON, got a nesting or a number out of range; make it again") from None
    if not same:
        raise InvalidInput("record must have the fields of this version and no others; use the same version of hubbub")
    return record


def check_signature(record: Record, signature: bytes, key: bytes, signer: str) -> None:
    """Refuse a record that this key did not sign."""
    if not verified(key, signature, record.LABEL, canonical(record.content())):
        raise InvalidInput(f"signature must be the {signer}'s, got another one; take the record from its source")


def read_json(data: bytes) -> Any:
    """Parsed JSON, or InvalidInput; NaN and duplicate keys are refused."""
    try:
        return json.loads(data, parse_constant=_refuse, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        raise InvalidInput("message must be JSON without NaN or repeated fields; send it again") from None


def _refuse(_: str) -> None:
    raise ValueError


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


def hexed(field: str, value: object, size: int) -> bytes:
    """Lower-case hexadecimal of exactly `size` bytes."""
    try:
        data = bytes.fromhex(value) if isinstance(value, str) else b""
    except ValueError:
        data = b""
    if len(data) != size or data.hex() != value:
        raise invalid(field, f"{size} bytes in lower-case hexadecimal", repr(value)[:80], "copy it whole")
    return data


def text(field: str, value: object, most: int) -> str:
    """One line of at most this many bytes."""
    if not isinstance(value, str) or not value.isprintable() or not 0 < len(value.encode()) <= most:
        raise invalid(field, f"one line of 1 to {most} bytes", repr(value)[:80], "shorten it")
    return value


def instant(field: str, value: object) -> datetime:
    """RFC 3339 in UTC to the second, such as 2026-11-15T12:00:00Z."""
    try:
        found = datetime.strptime(str(value), "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        raise invalid(field, "a time such as 2026-11-15T12:00:00Z", repr(value)[:80], "give it in UTC") from None
    return found


def stamp(seconds: float) -> str:
    """The inverse of `instant`, from seconds since 1970."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
