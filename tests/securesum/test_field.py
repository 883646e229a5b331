"""Arithmetic modulo p = 2^64 - 2^32 + 1 is that of Python's integers, at every edge."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from conftest import FALSE_ALARM
from hubbub.randomness import Randomness
from hubbub.securesum import field
from hubbub.securesum.field import (
    LARGEST,
    PRIME,
    add_to,
    expand_elements,
    fill_uniform,
    of_signed,
    reduced,
    subtract_from,
    sum_of_rows,
    times,
    to_signed,
    value_at,
    weights,
)
from hubbub.securesum.seeds import expand_seed

EDGES = sorted({
    value % 2**64
    for base in (0, 2**31, 2**32, 2**33, 2**62, 2**63, LARGEST, PRIME, PRIME - 2**32, 2**64 - 2**32, 2**64)
    for value in range(base - 3, base + 4)
})  # fmt: skip
WORDS = st.one_of(st.sampled_from(EDGES), st.integers(0, 2**64 - 1))
ELEMENTS = WORDS.map(lambda word: word % PRIME)


def pairs(values: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Every edge with every edge."""
    found = np.array(values, dtype=np.uint64)
    return np.repeat(found, found.size), np.tile(found, found.size)


def test_the_prime_is_one():
    """Its order is known: 7 generates the whole group, whose order p - 1 has these prime factors."""
    factors = (2, 3, 5, 17, 257, 65537)
    rest = PRIME - 1
    for factor in factors:
        while rest % factor == 0:
            rest //= factor
    assert rest == 1
    assert pow(7, PRIME - 1, PRIME) == 1
    assert all(pow(7, (PRIME - 1) // factor, PRIME) != 1 for factor in factors)


def test_every_operation_at_every_pair_of_edges():
    one, other = pairs(EDGES)
    assert times(one, other).tolist() == [int(a) * int(b) % PRIME for a, b in zip(one, other, strict=True)]
    one, other = pairs(sorted({value % PRIME for value in EDGES}))
    total, difference = one.copy(), one.copy()
    add_to(total, other)
    subtract_from(difference, other)
    assert total.tolist() == [(int(a) + int(b)) % PRIME for a, b in zip(one, other, strict=True)]
    assert difference.tolist() == [(int(a) - int(b)) % PRIME for a, b in zip(one, other, strict=True)]
    assert reduced(np.array(EDGES, dtype=np.uint64)).tolist() == [value % PRIME for value in EDGES]


@settings(max_examples=300, deadline=None)
@given(one=st.lists(WORDS, min_size=1, max_size=8), factor=WORDS)
def test_products_with_one_factor(one: list[int], factor: int):
    words = np.array(one, dtype=np.uint64)
    assert times(words, np.uint64(factor)).tolist() == [a * factor % PRIME for a in one]


@settings(max_examples=200, deadline=None)
@given(rows=st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=40))
def test_sums_of_rows(rows: list[tuple[int, int]]):
    words = np.array(rows, dtype=np.uint64)
    assert sum_of_rows(words).tolist() == [sum(column) % PRIME for column in zip(*rows, strict=True)]


def test_a_sum_of_very_many_of_the_largest_words():
    words = np.full((1 << 18, 2), 2**64 - 1, dtype=np.uint64)
    assert sum_of_rows(words).tolist() == [(2**64 - 1) * 2**18 % PRIME] * 2


@settings(max_examples=300, deadline=None)
@given(values=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20), total=st.integers(-LARGEST, LARGEST))
def test_a_total_of_signed_numbers_comes_back(values: list[int], total: int):
    """Whatever the numbers are and whatever their partial sums, where the total is within (p - 1)/2."""
    rest = total - sum(values)
    while rest:  # in as many numbers as it takes
        part = max(-(2**63), min(rest, 2**63 - 1))
        values, rest = [*values, part], rest - part
    words = np.array(values, dtype=np.int64).view(np.uint64)[:, None]
    assert (of_signed(words) < np.uint64(PRIME)).all()
    found = to_signed(sum_of_rows(of_signed(words)))
    assert found.view(np.int64).tolist() == [total]


@pytest.mark.parametrize("total", [LARGEST, -LARGEST, 2**62, -(2**62), 0, -1])
def test_the_edges_of_a_total(total: int):
    word = np.array([total], dtype=np.int64).view(np.uint64)
    assert to_signed(of_signed(word)).view(np.int64).tolist() == [total]


@pytest.mark.parametrize("total", [LARGEST + 1, -LARGEST - 1])
def test_beyond_the_edge_a_total_is_off_by_p(total: int):
    word = np.array([total], dtype=np.int64).view(np.uint64)
    assert to_signed(of_signed(word)).view(np.int64).tolist() == [total - PRIME if total > 0 else total + PRIME]


@settings(max_examples=60, deadline=None)
@given(coefficients=st.lists(ELEMENTS, min_size=1, max_size=6), at=st.integers(0, 1000), data=st.data())
def test_values_of_a_polynomial(coefficients: list[int], at: int, data: st.DataObject):
    degree = len(coefficients)
    places = data.draw(st.lists(st.integers(0, 1000), min_size=degree, max_size=degree, unique=True))

    def polynomial(x: int) -> int:
        return sum(c * pow(x, power, PRIME) for power, c in enumerate(coefficients)) % PRIME

    values = [np.array([polynomial(place)], dtype=np.uint64) for place in places]
    assert value_at(at, places, values).tolist() == [polynomial(at)]
    assert sum(weights(tuple(places), at)) % PRIME == 1  # a constant is found again


class Scripted(Randomness):
    """Draws what it is told to."""

    def __init__(self, *draws: list[int]) -> None:
        super().__init__(bytes(32), "script")
        self._draws = list(draws)

    def fill_words(self, out: np.ndarray) -> None:
        out.reshape(-1)[:] = np.array(self._draws.pop(0), dtype=np.uint64)


def test_words_that_are_no_elements_are_drawn_again():
    out = np.empty((2, 2), dtype=np.uint64)
    fill_uniform(out, Scripted([1, PRIME, PRIME - 1, 2**64 - 1], [PRIME + 5, 7], [0]))
    assert out.tolist() == [[1, 0], [PRIME - 1, 7]]


def test_a_seed_expands_to_its_first_words_that_are_elements(monkeypatch: pytest.MonkeyPatch):
    stream = [5, PRIME, 6, 2**64 - 1, *range(100, 200)]
    asked = []

    def expand(seed: bytes, dimension: int, generator: str) -> np.ndarray:
        asked.append(dimension)
        return np.array(stream[:dimension], dtype=np.uint64)

    monkeypatch.setattr(field, "expand_seed", expand)
    assert expand_elements(bytes(32), 4, "SHAKE-128").tolist() == [5, 6, 100, 101]
    assert len(asked) == 2
    assert expand_elements(bytes(32), 1, "SHAKE-128").tolist() == [5]


@pytest.mark.parametrize("generator", ["AES-128-CTR", "SHAKE-128"])
def test_a_longer_expansion_begins_with_the_shorter_one(generator: str):
    """Otherwise client and Compute could come to different elements of one seed."""
    seed = bytes(range(28)) + (2).to_bytes(4, "big")
    for shorter, longer in ((1, 17), (64, 80), (1000, 1016)):
        assert (expand_seed(seed, longer, generator)[:shorter] == expand_seed(seed, shorter, generator)).all()


def test_elements_are_uniform():
    """400000 elements in 256 equal parts of 0..p-1, and by their last byte: chi-squared, false alarm FALSE_ALARM each."""
    out = np.empty(400_000, dtype=np.uint64)
    fill_uniform(out, Randomness.simulation(3))
    parts = [value * 256 // PRIME for value in out.tolist()]
    for counts in (np.bincount(parts, minlength=256), np.bincount((out & np.uint64(255)).astype(int), minlength=256)):
        assert stats.chisquare(counts).pvalue > FALSE_ALARM
