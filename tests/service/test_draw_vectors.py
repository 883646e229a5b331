"""The records of a draw, its seed and its proofs are pinned, and checked against plain readings of the documents."""

from __future__ import annotations

import hashlib
import json

import pytest

from hubbub.errors import InvalidInput
from hubbub.service.wire.draw import Draw, checked_request, drawn_study
from hubbub.service.wire.merkle import Proof, Tree, root_from
from hubbub.service.wire.records import read_study
from vectors.make_draw_v1 import PATH, content

VECTORS = json.loads(PATH.read_text())
STUDY = read_study(VECTORS["study"].encode())


def packed(*parts: bytes) -> bytes:
    """docs/protocol.md: a length of four bytes before each part."""
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def test_everything_is_still_the_same_bytes():
    assert json.loads(json.dumps(content())) == VECTORS


def test_the_seed_is_the_hash_that_the_protocol_says():
    parts = [b"hubbub draw v1", bytes.fromhex(VECTORS["study_digest"]), bytes.fromhex(VECTORS["request_digest"])]
    seed = hashlib.sha256(packed(*parts, *map(bytes.fromhex, VECTORS["secrets"]))).hexdigest()
    assert seed == VECTORS["seed"] == drawn_study(STUDY, VECTORS["draw"].encode()).seed


def test_a_commitment_is_the_hash_that_the_protocol_says():
    request = checked_request(STUDY, Draw.decode(VECTORS["draw"].encode()))
    study = bytes.fromhex(VECTORS["study_digest"])
    for k, secret in enumerate(map(bytes.fromhex, VECTORS["secrets"])):
        parts = b"hubbub commit v1", study, k.to_bytes(2, "big"), secret
        assert request.commitments[k] == hashlib.sha256(packed(*parts)).digest()


@pytest.mark.parametrize("name", VECTORS["bad"])
def test_everybody_refuses_these(name: str):
    reason = VECTORS["bad"][name]["reason"].replace("Compute 1", "Compute 2")  # messages count from 1, vectors from 0
    with pytest.raises(InvalidInput, match=reason):
        drawn_study(STUDY, VECTORS["bad"][name]["draw"].encode())


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[]", b"null", b'{"request":1,"commitments":[],"reveals":[]}',
             b'{"request":["x"],"commitments":[],"reveals":[]}', b'{"request":"x","commitments":[1],"reveals":[]}',
             b'{"request":"x","commitments":[],"reveals":[]}', b'{"request":"\\ud800","commitments":[],"reveals":[]}'],
)  # fmt: skip
def test_what_is_no_draw_is_refused_in_one_line(data: bytes):
    with pytest.raises(InvalidInput):
        drawn_study(STUDY, data)


def plain_root(leaves: list[bytes]) -> bytes:
    """MTH of RFC 6962, section 2.1, word for word."""
    if len(leaves) == 1:
        return hashlib.sha256(b"\0" + leaves[0]).digest()
    k = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\1" + plain_root(leaves[:k]) + plain_root(leaves[k:])).digest()


@pytest.mark.parametrize("size", VECTORS["trees"])
def test_roots_and_proofs_are_those_of_the_standard(size: str):
    pinned, samples = VECTORS["trees"][size], {f"client-{i}": 1 + i for i in range(int(size))}
    leaves = [packed(name.encode(), samples[name].to_bytes(4, "big")) for name in sorted(samples)]
    tree = Tree.over(samples)
    assert tree.root == plain_root(leaves) == bytes.fromhex(pinned["root"])
    proof = Proof.of(pinned)
    assert root_from(proof, int(size), pinned["client"], pinned["samples"]) == tree.root
    for name, count in samples.items():
        found = tree.proof(name)
        assert found is not None
        assert root_from(found, int(size), name, count) == tree.root
        assert len(found.hashes) <= (int(size) - 1).bit_length()
    assert tree.proof("nobody") is None


def test_an_inner_node_passes_for_no_client():
    """Without different first bytes, two hashes side by side could be given out as a client's bytes."""
    tree = Tree.over({"a": 1, "b": 1})
    assert tree.root != hashlib.sha256(b"".join(tree.levels[0])).digest()
    assert tree.root == hashlib.sha256(b"\1" + b"".join(tree.levels[0])).digest()


def test_who_serves_whom_is_pinned():
    drawn = drawn_study(STUDY, VECTORS["draw"].encode())
    found = {name: list(drawn.secure_sum.recipients(name)) for name in VECTORS["clients"]}
    assert found == VECTORS["serving"]
