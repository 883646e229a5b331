"""Messages as bytes: versioned, every length checked, no leftover bytes.

A share's payload (what gets sealed):   version form dimension body
A report (what a client sends):         version "report" and length-prefixed parts; in a session, its opening too
A batch (reports of several clients):   version "reports" and the reports, each with its length before it
All integers are big-endian, the words of a masked vector little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from hubbub.errors import MalformedMessage, invalid
from hubbub.protocols import SecureSum, Share

VERSION = 1
SHARE_HEADER = 6
"""Bytes before a share's body: version, form and dimension."""
_REPORT, _SESSION_REPORT, _BATCH = b"hubbub report", b"hubbub session report", b"hubbub reports"
MOST_CLIENT_BYTES = 128
MOST_REPORTS = 1000
"""In one body."""


@dataclass(frozen=True)
class Report:
    """One client's message to one Compute for one round; the share inside is sealed."""

    study: bytes
    round: int
    client: str
    compute: int
    sealed: bytes = field(repr=False)
    opening: bytes = field(default=b"", repr=False)
    """Of the session it is sealed in; empty where it is sealed to the Compute's key."""

    def __post_init__(self) -> None:
        if not 0 < len(self.client.encode()) <= MOST_CLIENT_BYTES:
            size = len(self.client.encode())
            raise invalid("client", f"1 to {MOST_CLIENT_BYTES} bytes long", f"{size} bytes", "choose another name")


def pack(*parts: bytes) -> bytes:
    """Parts with their lengths before them, so that no two lists of parts give the same bytes."""
    return b"".join([piece for part in parts for piece in (len(part).to_bytes(4, "big"), part)])


_LENGTH = struct.Struct(">I")


def unpack(data: bytes, count: int) -> list[bytes]:
    """Exactly `count` parts and nothing behind them."""
    parts, end = _parts(data, count)
    if end != len(data) or len(parts) != count:
        raise _misfit(end, len(data))
    return parts


def unpack_all(data: bytes) -> list[bytes]:
    """All parts, however many."""
    parts, end = _parts(data, len(data))
    if end != len(data):
        raise _misfit(end, len(data))
    return parts


def _parts(data: bytes, most: int) -> tuple[list[bytes], int]:
    """At most so many parts, and where the last one ends: beyond the data where that is cut off."""
    parts, end, size = list[bytes](), 0, len(data)
    while end < size and len(parts) < most:
        start = end + 4
        end = start + (_LENGTH.unpack_from(data, end)[0] if start <= size else 0)
        parts.append(data[start:end])
    return parts, end


def _misfit(end: int, size: int) -> MalformedMessage:
    if end < size:
        return MalformedMessage(f"message has {size - end} bytes too many; send it again")
    return MalformedMessage("message is truncated; send it again whole")


def encode_share(share: Share) -> bytes:
    """version (1), form (1), dimension (4), then the body."""
    return _share_head(share.form, share.dimension) + share.body


def _share_head(form: int, dimension: int) -> bytes:
    return bytes([VERSION, form]) + dimension.to_bytes(4, "big")


def decode_share(data: bytes, scheme: SecureSum, dimension: int) -> Share:
    """The share, if it has a form of the study's scheme and exactly the length that its dimension demands."""
    if len(data) < SHARE_HEADER:
        raise MalformedMessage("share is truncated; send it again whole")
    version, form, claimed = data[0], data[1], int.from_bytes(data[2:6], "big")
    if version != VERSION:
        raise MalformedMessage(f"share must be of version {VERSION}, got version={version}; update hubbub")
    if claimed != dimension:
        raise MalformedMessage(f"share must have dimension {dimension}, got dimension={claimed}; check the study")
    forms = scheme.forms(dimension)
    if form not in forms:
        known = f"{min(forms)} to {max(forms)}"
        raise MalformedMessage(f"share must be of kind {known}, got kind={form}; update hubbub")
    body = data[SHARE_HEADER:]
    if len(body) != forms[form]:
        raise MalformedMessage(f"share must have {forms[form]} bytes of body, got {len(body)}; send it again")
    return Share(form, dimension, bytes(body))


def share_sizes(scheme: SecureSum, dimension: int) -> dict[bytes, int]:
    """How long a share is in bytes, for each header that it may have."""
    return {_share_head(form, dimension): SHARE_HEADER + size for form, size in scheme.forms(dimension).items()}


def encode_report(report: Report) -> bytes:
    """The bytes that travel."""
    parts = (report.client.encode(), report.compute.to_bytes(2, "big"), report.sealed)
    if report.opening:
        return session_head(report.study, report.round) + pack(*parts, report.opening)
    return bytes([VERSION]) + pack(_REPORT, report.study, report.round.to_bytes(4, "big"), *parts)


def session_head(study: bytes, number: int) -> bytes:
    """What every report of a round begins with that is sealed in a session; the client's name comes next."""
    return bytes([VERSION]) + pack(_SESSION_REPORT, study, number.to_bytes(4, "big"))


def join_reports(reports: Sequence[bytes]) -> bytes:
    """Reports of several clients in one body."""
    return reports[0] if len(reports) == 1 else bytes([VERSION]) + pack(_BATCH, *reports)


def split_reports(data: bytes) -> list[bytes]:
    """The reports in a body, each as its client encoded it; one that is no batch stands for itself."""
    if data[5 : 5 + len(_BATCH)] != _BATCH or data[:1] != bytes([VERSION]):
        return [data]
    label, *reports = unpack_all(data[1:])
    if label != _BATCH or not 1 < len(reports) <= MOST_REPORTS:
        raise MalformedMessage(f"batch must hold 2 to {MOST_REPORTS} reports, got {len(reports)}; send fewer at once")
    return reports


def decode_report(data: bytes) -> Report:
    """The report, or MalformedMessage."""
    if not data or data[0] != VERSION:
        version = data[0] if data else "nothing"
        raise MalformedMessage(f"report must be of version {VERSION}, got version={version}; update hubbub")
    in_session = data[5 : 5 + len(_SESSION_REPORT)] == _SESSION_REPORT
    label, study, number, client, compute, sealed, *rest = unpack(data[1:], 7 if in_session else 6)
    sizes_ok = len(study) == 32 and len(number) == 4 and len(compute) == 2 and all(rest)
    label_ok = label == (_SESSION_REPORT if in_session else _REPORT)
    if not label_ok or not sizes_ok or not 0 < len(client) <= MOST_CLIENT_BYTES:
        raise MalformedMessage("report has a part of the wrong kind or length; send it again")
    try:
        name = client.decode()
    except UnicodeDecodeError:
        raise MalformedMessage("report has a client name that is not UTF-8; rename the client") from None
    return Report(study, int.from_bytes(number, "big"), name, int.from_bytes(compute, "big"), sealed, *rest)
