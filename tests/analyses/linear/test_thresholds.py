"""The grid search on auxiliary data: public, cached, and it trades clipping against noise."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub.analyses.linear.thresholds import GRID, _search, find_thresholds


def test_grid_is_the_papers():
    assert (GRID[0], GRID[-1], GRID.size) == (0.1, 2.1, 20)


def test_little_noise_clips_little_and_much_noise_clips_much():
    wide = find_thresholds(2000, 5, 1e-4)
    tight = find_thresholds(2000, 5, 30.0)
    assert min(wide) > 1.8
    assert max(tight) < 1.0


def test_noise_of_the_search_is_the_noise_that_the_pair_implies():
    """The published program's mistake (noise scaled by Delta^4) would drive the thresholds to the bottom."""
    p_x, p_y = find_thresholds(3000, 8, 1.0)
    assert p_x > 0.3
    assert p_y > 0.3


def test_result_is_deterministic_and_cached():
    _search.cache_clear()
    first = find_thresholds(500, 3, 2.0)
    assert find_thresholds(502, 3, 2.0) == first  # about as many clients: the same search
    assert _search.cache_info()[:2] == (1, 1)
    _search.cache_clear()
    assert find_thresholds(500, 3, 2.0) == first


def test_more_clients_clip_less():
    few, many = find_thresholds(200, 5, 3.0), find_thresholds(100_000, 5, 3.0)
    assert np.mean(many) > np.mean(few)


@pytest.mark.parametrize("formula", ["tight", "paper"])
def test_either_formula_works(formula):
    assert set(find_thresholds(300, 2, 2.0, formula=formula)) <= set(GRID.tolist())


def test_published_slip_drives_the_thresholds_down():
    sound, published = (find_thresholds(3000, 8, 0.5, noise_power=power) for power in (1, 4))
    assert max(published) < 0.5 < min(sound)
