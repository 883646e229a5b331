"""Real numbers on the grid: signed at the edges, refused beyond them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hubbub.errors import InvalidInput
from hubbub.grid import Grid, choose_fraction_bits


@given(
    bits=st.integers(0, 40),
    values=hnp.arrays(np.float64, 5, elements=st.floats(-1e6, 1e6)),
)
def test_decode_undoes_encode_to_half_a_step(bits: int, values: np.ndarray):
    grid = Grid(bits)
    assert (np.abs(grid.decode(grid.encode(values)) - values) <= grid.step / 2).all()


@given(values=hnp.arrays(np.float64, (20, 3), elements=st.floats(-1000, 1000)))
def test_sum_of_codes_is_the_code_of_the_sum(values: np.ndarray):
    grid = Grid(20)
    on_grid = grid.decode(grid.encode(values))
    total = grid.encode(on_grid).sum(axis=0, dtype=np.uint64)
    assert (grid.decode(total) == on_grid.sum(axis=0)).all()


def test_negative_results_are_negative_at_the_edges():
    grid = Grid(0)
    edges = np.array([-(2.0**62), -1.0, 0.0, 1.0, 2.0**62])
    assert (grid.decode(grid.encode(edges)) == edges).all()
    assert grid.encode(np.array([-1.0]))[0] == 2**64 - 1


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 2.0**63, -(2.0**63), 1e300])
def test_what_does_not_fit_is_refused(value: float):
    with pytest.raises(InvalidInput, match="value must be finite and below .* to fit the ring at 0 fraction bits"):
        Grid(0).encode(np.array([0.0, value]))


@given(clients=st.integers(2, 10**9), magnitude=st.floats(1e-6, 1e6))
def test_chosen_grid_has_room_for_the_largest_sum_and_no_finer_one_has(clients: int, magnitude: float):
    bits = choose_fraction_bits(clients * magnitude, magnitude)
    assert clients * magnitude * 2.0**bits <= 2.0**62 * (1 + 1e-9)
    assert magnitude * 2.0**bits <= 2.0**52 * (1 + 1e-9)  # a double resolves single steps up to the largest value
    finer = magnitude * 2.0 ** (bits + 1)
    assert max(clients * finer / 2.0**62, finer / 2.0**52) > 1 - 1e-9


def test_wanted_grid_that_overflows_is_refused_and_the_largest_named():
    largest = choose_fraction_bits(1e5, 100.0)
    assert choose_fraction_bits(1e5, 100.0, largest) == largest
    with pytest.raises(
        InvalidInput, match=rf"fraction_bits must be at most {largest} .*got fraction_bits={largest + 1}; use {largest}"
    ):
        choose_fraction_bits(1e5, 100.0, largest + 1)


def test_absurd_grid_is_refused():
    with pytest.raises(InvalidInput, match="fraction_bits must be a whole number in -900..900"):
        Grid(1000)
