"""Fingerprints cover what they stand for, and a study that is not the expected one is refused in one line."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from hubbub.errors import InvalidInput
from hubbub.securesum import PublicKey
from hubbub.service.wire.fingerprints import (
    Pins,
    analyst_fingerprint,
    compute_fingerprint,
    fingerprints,
    read_fingerprint,
    study_fingerprint,
)
from service.test_records import COMPUTES, STUDY


def test_a_fingerprint_is_the_beginning_of_the_studys_name_in_groups():
    found = study_fingerprint(STUDY)
    assert re.fullmatch("([0-9a-f]{4} ){9}[0-9a-f]{4}", found)
    assert STUDY.id.startswith(found.replace(" ", ""))
    assert len({found, analyst_fingerprint(STUDY.analyst), *map(compute_fingerprint, COMPUTES)}) == 5
    assert fingerprints(STUDY)["computes"] == {each.name: compute_fingerprint(each) for each in COMPUTES}


def test_a_computes_fingerprint_covers_the_key_that_shares_are_sealed_to():
    """With the verify key alone, a study could name an honest Compute and have shares sealed to somebody else."""
    other = replace(COMPUTES[0], key=PublicKey("X25519", bytes([99]) * 32))
    assert other.verify_key == COMPUTES[0].verify_key
    assert compute_fingerprint(other) != compute_fingerprint(COMPUTES[0])
    assert compute_fingerprint(replace(COMPUTES[0], url="https://elsewhere.example")) == compute_fingerprint(
        COMPUTES[0]
    )


@pytest.mark.parametrize("change", [str.upper, lambda text: text.replace(" ", ":"), lambda text: text.replace(" ", "")])
def test_fingerprints_are_read_as_people_write_them(change):
    found = study_fingerprint(STUDY)
    assert read_fingerprint("expect_study", f" {change(found)} ") == found


@pytest.mark.parametrize("text", ["", "ab12", "x" * 40, "ab12 " * 9, STUDY.id])
def test_what_is_no_whole_fingerprint_is_refused(text: str):
    with pytest.raises(InvalidInput, match="expect_study must be 40 hexadecimal digits"):
        Pins.of(text, None, ())


def test_another_study_analyst_or_compute_is_refused():
    analyst, computes = analyst_fingerprint(STUDY.analyst), [compute_fingerprint(each) for each in COMPUTES]
    Pins.of(study_fingerprint(STUDY), analyst, computes[:2]).check(STUDY)
    Pins().check(STUDY)
    swapped = replace(STUDY, analyst=bytes(32), computes=COMPUTES[:2], scheme={})
    for pins, message in (
        (Pins(study=study_fingerprint(STUDY)), "study must be .* as you expect, got .*; do not take part"),
        (Pins(analyst=analyst), "analyst must be .* as you expect"),
        (Pins(computes=(computes[0], computes[2])), f"study must name the Compute {computes[2]}, got only others"),
    ):
        with pytest.raises(InvalidInput, match=message):
            pins.check(swapped)
