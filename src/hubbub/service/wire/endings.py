"""What the parties sign when a round ends: close, rosters, agreements, refusals, requests for a sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from hubbub.errors import InvalidInput, whole
from hubbub.service.wire.canonical import Content, hexed, instant, text
from hubbub.service.wire.records import VERSION, check_client_name, check_version

MOST_AGREEMENT = 100_000
"""Of a signed agreement, which holds a digest of 64 characters for each Compute."""


def _place_of(record: RosterRecord | AgreementRecord | RefusalRecord) -> dict[str, Any]:
    """What every record begins with that a Compute signs at the end of a round."""
    return {
        "hubbub": VERSION, "study": record.study.hex(), "round": record.round.hex(), "number": record.number,
        "compute": record.compute, "event": record.event,
    }  # fmt: skip


def _read_place(content: Content) -> tuple[bytes, bytes, int, int]:
    """Study, round, number and Compute."""
    check_version(content)
    return (
        hexed("study", content["study"], 32), hexed("round", content["round"], 32),
        whole("number", content["number"], 0, "count rounds from 0"),
        whole("compute", content["compute"], 0, "count Computes from 0"),
    )  # fmt: skip


@dataclass(frozen=True)
class CloseRecord:
    """The analyst ends a round before its deadline."""

    LABEL: ClassVar[bytes] = b"hubbub close v1"
    study: bytes
    round: bytes
    """The digest of the round's record."""

    def content(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"hubbub": VERSION, "study": self.study.hex(), "round": self.round.hex()}

    @classmethod
    def of(cls, content: Content) -> Self:
        """The record, or InvalidInput."""
        check_version(content)
        return cls(hexed("study", content["study"], 32), hexed("round", content["round"], 32))


@dataclass(frozen=True)
class RosterRecord:
    """The clients whose reports a Compute holds when the round ends: signed once, and never another one."""

    LABEL: ClassVar[bytes] = b"hubbub roster v1"
    study: bytes
    round: bytes
    number: int
    compute: int
    clients: tuple[str, ...]
    event: str
    """Of the signing Compute's audit log."""

    def content(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**_place_of(self), "clients": list(self.clients)}

    @classmethod
    def of(cls, content: Content) -> Self:
        """The record, or InvalidInput."""
        clients = tuple(map(check_client_name, content["clients"]))
        if list(clients) != sorted(set(clients)):
            raise InvalidInput("clients must be distinct and sorted, got others; sign the roster again")
        return cls(*_read_place(content), clients, text("event", content["event"], 64))


@dataclass(frozen=True)
class AgreementRecord:
    """What a Compute would release over: signed rosters, of all M Computes or of a quorum, and what follows."""

    LABEL: ClassVar[bytes] = b"hubbub agreement v1"
    study: bytes
    round: bytes
    number: int
    compute: int
    rosters: tuple[bytes, ...]
    """Digests of the Computes' roster records, in their order; empty for a Compute without which the others go on."""
    roster: bytes
    """Digest of the clients that all of them hold."""
    samples: int
    """That these clients hold together."""
    event: str
    """Of the signing Compute's audit log."""

    def content(self) -> dict[str, Any]:
        """Plain JSON values."""
        rosters = [each.hex() for each in self.rosters]
        return {**_place_of(self), "rosters": rosters, "roster": self.roster.hex(), "samples": self.samples}

    @classmethod
    def of(cls, content: Content) -> Self:
        """The record, or InvalidInput."""
        rosters = tuple(b"" if each == "" else hexed("rosters", each, 32) for each in content["rosters"])
        roster, samples = hexed("roster", content["roster"], 32), whole("samples", content["samples"], 0, "count them")
        return cls(*_read_place(content), rosters, roster, samples, text("event", content["event"], 64))

    @property
    def places(self) -> tuple[int, ...]:
        """The Computes whose rosters it is on."""
        return tuple(place for place, each in enumerate(self.rosters) if each)

    def same(self, other: AgreementRecord) -> bool:
        """True where both Computes would release over the same."""
        return (self.rosters, self.roster, self.samples) == (other.rosters, other.roster, other.samples)


@dataclass(frozen=True)
class RefusalRecord:
    """A Compute states that it has refused a round: it has not released its sum and never will."""

    LABEL: ClassVar[bytes] = b"hubbub refusal v1"
    study: bytes
    round: bytes
    """The digest of the round's record."""
    number: int
    compute: int
    reason: str
    event: str
    """Of the signing Compute's audit log."""

    def content(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**_place_of(self), "reason": self.reason}

    @classmethod
    def of(cls, content: Content) -> Self:
        """The record, or InvalidInput."""
        reason = text("reason", content["reason"], 64)
        return cls(*_read_place(content), reason, text("event", content["event"], 64))


@dataclass(frozen=True)
class SumRequestRecord:
    """The analyst asks one Compute for its sum, at the time stated; no other Compute takes it."""

    LABEL: ClassVar[bytes] = b"hubbub sum request v1"
    study: bytes
    round: bytes
    """The digest of the round's record."""
    compute: int
    time: str

    def __post_init__(self) -> None:
        instant("time", self.time)

    def content(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "hubbub": VERSION, "study": self.study.hex(), "round": self.round.hex(), "compute": self.compute,
            "time": self.time,
        }  # fmt: skip

    @classmethod
    def of(cls, content: Content) -> Self:
        """The record, or InvalidInput."""
        check_version(content)
        compute = whole("compute", content["compute"], 0, "count Computes from 0")
        return cls(hexed("study", content["study"], 32), hexed("round", content["round"], 32), compute, content["time"])
