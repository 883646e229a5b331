"""Shares: any M-1 are uniform, all M add up exactly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from conftest import FALSE_ALARM
from hubbub.errors import InvalidInput
from hubbub.randomness import Randomness
from hubbub.securesum import Additive
from hubbub.securesum.additive import MASKED, expanded, long_share_at


def byte_p_value(words: np.ndarray) -> float:
    counts = np.bincount(np.frombuffer(words.tobytes(), dtype=np.uint8), minlength=256)
    return float(stats.chisquare(counts).pvalue)


def bit_p_value(words: np.ndarray) -> float:
    """Every one of the 64 bit positions is set half of the time."""
    bits = np.unpackbits(np.frombuffer(words.tobytes(), dtype=np.uint8)).reshape(-1, 64)
    z = (bits.sum(axis=0) - len(bits) / 2) / np.sqrt(len(bits) / 4)
    return float(stats.chi2(64).sf(np.sum(z**2)))


def combined(scheme: Additive, shares) -> np.ndarray:
    """Each Compute adds the one share that it gets, and the combiner adds up the sums."""
    sums = {}
    for k, share in enumerate(shares):
        sums[k] = scheme.empty(share.dimension)
        scheme.accumulate(sums[k], share)
    return scheme.unshard(sums)


@pytest.mark.parametrize("computes", range(2, 21))
def test_all_shares_add_up_exactly(computes: int, rng: np.random.Generator):
    secret = rng.integers(0, 2**64, size=33, dtype=np.uint64)
    scheme = Additive(computes)
    shares = scheme.shard_at(secret, computes // 2, Randomness.system())
    assert len(shares) == computes
    assert (combined(scheme, shares) == secret).all()
    assert [share.form == MASKED for share in shares].index(True) == computes // 2
    assert sum(share.form == MASKED for share in shares) == 1


def test_the_masked_vectors_are_spread_evenly_over_the_computes_by_the_clients_names():
    """3000 names among 3 Computes: chi-squared, false alarm FALSE_ALARM."""
    scheme, secret = Additive(3), np.zeros(1, dtype=np.uint64)
    counts = np.bincount([long_share_at(f"client-{i}", 3) for i in range(3000)])
    assert stats.chisquare(counts).pvalue > FALSE_ALARM
    for client in ("client-0", "client-1", "Ada", "\N{SNOWMAN}"):
        forms = [share.form for share in scheme.shard(secret, client, Randomness.system())]
        assert forms.index(MASKED) == long_share_at(client, 3)


@settings(max_examples=50, deadline=None)
@given(computes=st.integers(2, 6), values=st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=9))
def test_splitting_loses_nothing(computes: int, values: list[int]):
    secret = np.array(values, dtype=np.uint64)
    scheme = Additive(computes)
    assert (combined(scheme, scheme.shard_at(secret, 0, Randomness.system())) == secret).all()


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_any_m_minus_1_shares_are_uniform(missing: int):
    """2000 clients share the same tell-tale vector of zeros; whoever lacks one share sees uniform words.

    Each share on its own and the sum of the ones held are tested: bytes by chi-squared, bits one by one.
    Seven tests, each with a false alarm rate of FALSE_ALARM.
    """
    randomness = Randomness.simulation(11)
    secret = np.zeros(40, dtype=np.uint64)
    seen: list[list[np.ndarray]] = [[], []]
    for client in range(2000):
        shares = Additive(3).shard_at(secret, client, randomness)
        for words, share in zip(seen, (s for k, s in enumerate(shares) if k != missing), strict=True):
            words.append(expanded(share))
    first, second = np.concatenate(seen[0]), np.concatenate(seen[1])
    for words in (first, second, first + second):
        assert byte_p_value(words) > FALSE_ALARM
        assert bit_p_value(words) > FALSE_ALARM
    signs = np.corrcoef(first.view(np.int64).astype(float), second.view(np.int64).astype(float))[0, 1]
    assert abs(signs) < stats.norm.isf(FALSE_ALARM / 2) / np.sqrt(first.size)


@pytest.mark.parametrize("masks", ["raw", "seeds"])
@pytest.mark.parametrize("computes", [2, 3, 10])
def test_every_computes_sum_is_uniform(computes: int, masks: str):
    """Each of the M sums over clients who all send zeros, over 1000 rounds: bytes and bits uniform."""
    randomness = Randomness.simulation(12)
    sums = []
    for _ in range(1000):
        tally = Additive(computes, masks).tally(16, randomness)
        vectors = np.zeros((2 * computes + 1, 16), dtype=np.uint64)
        for rows, columns in tally.blocks(len(vectors)):
            tally.add(vectors[rows, columns].copy(), columns)
        sums.append(tally.sums)
    for k in range(computes):
        words = np.stack([s[k] for s in sums])
        assert byte_p_value(words) > FALSE_ALARM
        assert bit_p_value(words) > FALSE_ALARM
    others = np.stack([s[1:].sum(axis=0, dtype=np.uint64) for s in sums])  # what M-1 Computes can form
    assert byte_p_value(others) > FALSE_ALARM


def test_the_tests_above_can_fail():
    """A vector that is merely shifted by a constant would be caught."""
    words = np.zeros(80_000, dtype=np.uint64) + np.uint64(0x0123456789ABCDEF)
    assert byte_p_value(words) < 1e-300
    assert bit_p_value(words) < 1e-300


def test_shares_never_show_their_content():
    secret = np.array([0x1234567890ABCDEF], dtype=np.uint64)
    for share in Additive(2).shard_at(secret, 0, Randomness.system()):
        assert repr(share) == f"Share(form={share.form}, dimension=1)"
        assert str(expanded(share)[0]) not in f"{share} {share!r}"
        assert repr(share.body) not in f"{share} {share!r}"


@pytest.mark.parametrize("computes", [-1, 0, 1, 2.5, 1001])
def test_fewer_than_two_computes_is_one_line(computes: int):
    with pytest.raises(InvalidInput, match="computes must be a whole number in 2..1000, got computes="):
        Additive(computes)
