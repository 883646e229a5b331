"""Wire format v1, pinned by vectors; bad bytes are refused, never guessed at."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from hubbub.errors import MalformedMessage
from hubbub.securesum import (
    Additive,
    Report,
    decode_report,
    decode_share,
    encode_report,
    encode_share,
    expand_seed,
    pack,
)
from hubbub.securesum.additive import SEEDS, expanded
from hubbub.securesum.wire.codec import unpack
from seams import masked, seeded

SCHEME = Additive(3)
V1 = Path(__file__).parent.parent / "vectors" / "v1"
SHARES = json.loads((V1 / "shares.json").read_text())
REPORTS = json.loads((V1 / "reports.json").read_text())
LATER = json.loads((V1 / "extensions.json").read_text())
EXPANSION = json.loads((V1 / "expansion.json").read_text())


def name(vector: dict[str, object]) -> str:
    return str(vector.get("name", ""))


@pytest.mark.parametrize("vector", EXPANSION)
def test_seed_expansion_vectors(vector: dict[str, object]):
    seed = bytes.fromhex(str(vector["seed"]))
    words = expand_seed(seed, 5)
    assert [f"{w:016x}" for w in words.tolist()] == vector["words"]
    stream = Cipher(algorithms.AES128(seed[:16]), modes.CTR(seed[16:])).encryptor().update(bytes(40))
    assert [int.from_bytes(stream[i : i + 8], "little") for i in range(0, 40, 8)] == words.tolist()


@pytest.mark.parametrize("vector", SHARES["good"], ids=name)
def test_good_share_vectors(vector: dict[str, object]):
    data = bytes.fromhex(str(vector["bytes"]))
    share = decode_share(data, SCHEME, int(str(vector["dimension"])))
    assert [f"{w:016x}" for w in expanded(share).tolist()] == vector["words"]
    assert encode_share(share) == data


@pytest.mark.parametrize("vector", SHARES["bad"], ids=name)
def test_bad_share_vectors(vector: dict[str, object]):
    with pytest.raises(MalformedMessage, match="share"):
        decode_share(bytes.fromhex(str(vector["bytes"])), SCHEME, int(str(vector["dimension"])))


@pytest.mark.parametrize("vector", REPORTS["good"], ids=name)
def test_good_report_vectors(vector: dict[str, object]):
    data = bytes.fromhex(str(vector["bytes"]))
    report = decode_report(data)
    assert (report.study.hex(), report.round, report.client, report.compute, report.sealed.hex()) == tuple(
        vector[key] for key in ("study", "round", "client", "compute", "sealed")
    )
    assert encode_report(report) == data


@pytest.mark.parametrize("vector", REPORTS["bad"], ids=name)
def test_bad_report_vectors(vector: dict[str, object]):
    with pytest.raises(MalformedMessage):
        decode_report(bytes.fromhex(str(vector["bytes"])))


def test_shares_of_a_hashed_seed():
    data = bytes.fromhex(LATER["share"]["bytes"])
    share = decode_share(data, SCHEME, LATER["share"]["dimension"])
    assert share.form == SEEDS["SHAKE-128"]
    assert [f"{w:016x}" for w in expanded(share).tolist()] == LATER["share"]["words"]
    assert encode_share(share) == data
    for bad in LATER["bad_shares"]:
        with pytest.raises(MalformedMessage, match="share"):
            decode_share(bytes.fromhex(bad), SCHEME, LATER["share"]["dimension"])


def test_reports_in_a_session():
    data = bytes.fromhex(LATER["report"]["bytes"])
    report = decode_report(data)
    assert (report.opening.hex(), report.sealed.hex()) == (LATER["report"]["opening"], LATER["report"]["sealed"])
    assert encode_report(report) == data
    for bad in LATER["bad_reports"]:
        with pytest.raises(MalformedMessage):
            decode_report(bytes.fromhex(bad))


@given(
    study=st.binary(min_size=32, max_size=32), number=st.integers(0, 2**32 - 1),
    client=st.text(min_size=1, max_size=20).filter(lambda s: len(s.encode("utf-8", "ignore")) == len(s.encode("utf-8", "replace"))),
    compute=st.integers(0, 2**16 - 1), sealed=st.binary(max_size=200), opening=st.binary(max_size=50),
)  # fmt: skip
def test_reports_survive_the_wire(study: bytes, number: int, client: str, compute: int, sealed: bytes, opening: bytes):
    report = Report(study, number, client, compute, sealed, opening)
    assert decode_report(encode_report(report)) == report


@given(words=st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20))
def test_shares_survive_the_wire(words: list[int]):
    share = masked(np.array(words, dtype=np.uint64))
    assert expanded(decode_share(encode_share(share), SCHEME, len(words))).tolist() == words


@given(data=st.binary(max_size=300))
def test_arbitrary_bytes_never_crash_the_decoders(data: bytes):
    for decode in (decode_report, lambda d: decode_share(d, SCHEME, 3)):
        try:
            decode(data)
        except MalformedMessage as error:
            assert "\n" not in str(error)


@given(parts=st.lists(st.binary(max_size=20), min_size=1, max_size=5))
def test_pack_is_unambiguous(parts: list[bytes]):
    assert unpack(pack(*parts), len(parts)) == parts


def test_upload_is_8d_and_32_per_further_compute():
    """Six bytes of header apart, an upload is 8d + 32(M-1) bytes and not 8dM."""
    long, short = masked(np.zeros(77, dtype=np.uint64)), seeded(bytes(32), 77)
    assert len(encode_share(long)) == 6 + 8 * 77
    assert len(encode_share(short)) == 6 + 32


def test_report_shows_nothing_of_the_sealed_share():
    assert "secret" not in repr(Report(bytes(32), 0, "a", 0, b"secret"))
