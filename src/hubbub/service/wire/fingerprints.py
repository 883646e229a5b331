"""Fingerprints: what people compare by another way (telephone, paper) to know that they mean the same study and keys.

A fingerprint is the first 160 bits of a SHA-256, as ten groups of four hexadecimal digits. 80 bits would keep others
from making a second study or key with a given fingerprint, but not an analyst from making two studies with one
fingerprint, say one to show to a review board and another to send: that takes only the square root of the work. With
160 bits it takes 2^80 hashes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from hubbub.errors import InvalidInput, invalid
from hubbub.securesum import PublicKey, pack
from hubbub.service.wire.canonical import digest
from hubbub.service.wire.records import ComputeRecord, StudyRecord

_DIGITS, _GROUP = 40, 4


def study_fingerprint(study: StudyRecord) -> str:
    """The beginning of the study's name. It covers all the study says: analyst, Computes, budget and analysis, too."""
    return _grouped(digest(study))


def analyst_fingerprint(key: bytes) -> str:
    """Of the key that signs the study and its rounds."""
    return _grouped(hashlib.sha256(pack(b"hubbub analyst fingerprint v1", key)).digest())


def key_fingerprint(key: PublicKey, verify_key: bytes) -> str:
    """Of both keys of a Compute: with the one that verifies alone, shares could be sealed to somebody else's key."""
    parts = b"hubbub compute fingerprint v1", key.suite.encode(), key.data, verify_key
    return _grouped(hashlib.sha256(pack(*parts)).digest())


def compute_fingerprint(compute: ComputeRecord) -> str:
    """Of both keys of a Compute of a study."""
    return key_fingerprint(compute.key, compute.verify_key)


def fingerprints(study: StudyRecord) -> dict[str, object]:
    """All of a study, for JSON."""
    return {
        "study": study_fingerprint(study), "analyst": analyst_fingerprint(study.analyst),
        "computes": {compute.name: compute_fingerprint(compute) for compute in study.computes},
    }  # fmt: skip


def read_fingerprint(field: str, text: str) -> str:
    """A fingerprint as somebody typed it: spaces, colons, hyphens and capitals do not matter."""
    plain = "".join(text.split()).replace(":", "").replace("-", "").lower()
    if len(plain) != _DIGITS or set(plain) - set("0123456789abcdef"):
        raise invalid(field, f"{_DIGITS} hexadecimal digits, a fingerprint", repr(text)[:80], "copy it whole")
    return _spaced(plain)


@dataclass(frozen=True)
class Pins:
    """Fingerprints that the data holder was told by another way than the study file."""

    study: str | None = None
    analyst: str | None = None
    computes: tuple[str, ...] = ()

    @classmethod
    def of(cls, study: str | None, analyst: str | None, computes: Sequence[str]) -> Pins:
        """As they were typed, or InvalidInput."""
        return cls(
            None if study is None else read_fingerprint("expect_study", study),
            None if analyst is None else read_fingerprint("expect_analyst", analyst),
            tuple(read_fingerprint("expect_compute", each) for each in computes),
        )

    def check(self, study: StudyRecord) -> None:
        """Refuse a study that is not the one expected, by another analyst, or without one of the Computes expected."""
        _same("study", self.study, study_fingerprint(study))
        _same("analyst", self.analyst, analyst_fingerprint(study.analyst))
        there = {compute_fingerprint(compute) for compute in study.computes}
        for expected in self.computes:
            if expected not in there:
                raise InvalidInput(f"study must name the Compute {expected}, got only others; {_DO_NOT}")


_DO_NOT = "do not take part: ask whoever told you the fingerprint"


def _same(what: str, expected: str | None, found: str) -> None:
    if expected not in (None, found):
        raise InvalidInput(f"{what} must be {expected}, as you expect, got {found}; {_DO_NOT}")


def _grouped(data: bytes) -> str:
    return _spaced(data.hex()[:_DIGITS])


def _spaced(digits: str) -> str:
    return " ".join(digits[start : start + _GROUP] for start in range(0, _DIGITS, _GROUP))
