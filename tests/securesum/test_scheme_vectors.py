"""The shares of all schemes are pinned: what a client sends, what a Compute makes of it, and what it refuses."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hubbub.errors import MalformedMessage
from hubbub.securesum import SECURE_SUMS, decode_share
from vectors.make_schemes_v1 import PATH, content, words_of

VECTORS = json.loads(PATH.read_text())


def test_everything_is_still_the_same_bytes():
    assert content() == VECTORS


def test_pinned_shares_add_up_to_the_words():
    """From their bytes alone, with the scheme as a study describes it."""
    groups: dict[tuple[str, str, int], dict[int, bytes]] = {}
    for vector in VECTORS["good"]:
        key = vector["scheme"], vector["client"], vector["dimension"]
        groups.setdefault(key, {})[vector["compute"]] = bytes.fromhex(vector["bytes"])
    for (name, client, dimension), shares in groups.items():
        scheme = SECURE_SUMS.read(VECTORS["schemes"][name])
        assert list(shares) == list(scheme.recipients(client))
        sums = {k: scheme.empty(dimension) for k in range(scheme.computes)}
        for compute, data in shares.items():
            scheme.accumulate(sums[compute], decode_share(data, scheme, dimension))
        if name.startswith("shamir"):  # totals of -2^63 and 2^63 - 1 lie beyond what its field tells apart
            found, expected = scheme.unshard(sums)[:2], words_of(dimension)[:2]
        else:
            found, expected = scheme.unshard(sums), words_of(dimension)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("vector", VECTORS["bad"], ids=lambda vector: f"{vector['scheme']}: {vector['name']}")
def test_damaged_shares_are_refused(vector: dict[str, object]):
    scheme = SECURE_SUMS.read(VECTORS["schemes"][vector["scheme"]])
    with pytest.raises(MalformedMessage):
        decode_share(bytes.fromhex(str(vector["bytes"])), scheme, 2)
