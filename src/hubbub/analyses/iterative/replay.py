"""A run repeated in public, with a likelihood whose answer is known: how far off is what is heard, and how often?

Positions follow the noise, so a regression on them finds curvatures that are too large, the more so the slower the
optimiser is beside the noise; and few steps leave a run short of its optimum. Both depend on optimiser, guide and noise
alone, all of them public. So the same run is made again with noise of the same size and a normal likelihood, once to
see by how much curvatures come out too large, and once more to see how wide intervals must be to hold the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.iterative.heard import Heard, heard, regression
from hubbub.arrays import Floats

Replay = Callable[[Heard, int, int], tuple[Floats, Floats]]
"""Of a likelihood, a number of runs and a seed: (runs, steps, d) positions and releases."""

_NUMBERS, _FEWEST, _MOST, _LEVEL = 640, 16, 64, 0.9


def calibrated(
    positions: Floats, releases: Floats, noise_std: float, sites: Sequence[NDArray[np.intp]], replay: Replay
) -> Heard:
    """What the releases say, corrected by what the same run says where the answer is known."""
    first = heard(positions, releases, noise_std, sites)
    runs = int(np.clip(_NUMBERS // len(first.centre), _FEWEST, _MOST))
    again = [regression(*run, noise_std, sites)[0].likeliest for run in zip(*replay(first, runs, 0), strict=True)]
    over, wider = np.ones(len(first.centre)), np.ones(len(first.centre))
    for site in sites:
        ratio = np.diag(np.mean(again, axis=0))[site].mean() / np.diag(first.curvature)[site].mean()
        over[site] = np.clip(ratio, 1.0, 5.0)
    found = heard(positions, releases, noise_std, sites, over)
    off, rng = [], np.random.default_rng(1)
    root = np.linalg.cholesky(np.linalg.inv(found.curvature))
    for run in zip(*replay(found, runs, 1), strict=True):
        said = heard(*run, noise_std, sites, over)
        truth = found.centre + root @ rng.standard_normal(len(over))
        off.append(np.abs(said.centre - truth) / np.sqrt(np.diag(said.covariance)))
    for site in sites:
        wider[site] = max(1.0, float(np.quantile(np.array(off)[:, site], _LEVEL)) / 1.645)
    return replace(found, covariance=found.covariance * np.outer(wider, wider), over=over, wider=wider)
