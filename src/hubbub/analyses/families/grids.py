"""Grids of one or two numbers that close in on where a density lies, and what weight each of their points has."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hubbub.arrays import Floats

FAR = 10.0  # deviations of a normal prior, and bounds, that a mean or rate is looked for in
FAR_OUT = 1e7  # bounds that a mean or rate is looked for in where its prior is none of the user's
_GRID = 48  # points of a window
_DROPS = (22.5, 8.0, 2.0)  # in log weight, around which grids get finer and finer


def line(
    log_weight: Callable[[Floats], Floats], low: float, high: float, rough: Callable[[Floats], Floats]
) -> tuple[Floats, Floats]:
    """Numbers between two ends, in order, and their weights.

    `rough` is nearly the same density, cheap, and finite everywhere: it finds where to look.
    """
    window = _closed(lambda x: rough(x[0])[None], np.array([low]), np.array([high]), 2 * _DROPS[0])
    windows = []
    for drop in _DROPS:
        window = _closed(lambda x: log_weight(x[0])[None], *window, drop)
        windows.append(window)
    points = np.sort(np.concatenate([np.linspace(*ends, _GRID)[:, 0] for ends in windows]))
    log = log_weight(points) + np.log(_widths(points))
    weights = np.exp(log - log.max())
    return points, weights / weights.sum()


def plane(
    log_weight: Callable[[Floats, Floats], Floats],
    low: float,
    high: float,
    second: Callable[[Floats], tuple[Floats, Floats]],
) -> tuple[Floats, Floats, Floats]:
    """Pairs of numbers and their weights: one between two ends, the logarithm of another within `second(one)`.

    Every first number has a window of its own for the second: together they often lie on a thin ridge.
    """

    def weighed(first: Floats) -> tuple[Floats, Floats]:
        """A grid of second numbers for each first one, and the log weights of its points."""
        column = first[:, None]
        windows = [second(first)]
        for drop in _DROPS:
            windows.append(_closed(lambda log: log_weight(column, log), *windows[-1], drop))
        # even in the logarithm, for a flat tail toward nothing, and even as they are, as the noise leaves them
        grids = [np.linspace(low, high, _GRID, axis=-1) for low, high in windows[1:]]
        grids += [np.log(np.linspace(np.exp(low), np.exp(high), _GRID, axis=-1)) for low, high in windows[1:]]
        points = np.sort(np.concatenate(grids, axis=-1), axis=-1)
        return points, log_weight(column, points) + np.log(_widths(points))

    def of_first(first: Floats) -> Floats:
        return np.asarray(np.logaddexp.reduce(weighed(first[0])[1], axis=1)[None])

    windows = [(np.array([low]), np.array([high]))]
    for drop in _DROPS:
        windows.append(_closed(of_first, *windows[-1], drop))
    first = np.unique(np.concatenate([np.linspace(*ends, _GRID)[:, 0] for ends in windows[1:]]))
    points, log = weighed(first)
    log += np.log(_widths(first))[:, None]
    log -= log.max()
    held = log >= -_DROPS[0]
    weights = np.exp(log[held])
    return np.broadcast_to(first[:, None], log.shape)[held], points[held], weights / weights.sum()


def _closed(log_weight: Callable[[Floats], Floats], low: Floats, high: Floats, drop: float) -> tuple[Floats, Floats]:
    """The windows, one a row, closed in on where the log weight is at most `drop` below its highest."""
    rows = np.arange(low.size)
    for _ in range(60):
        points = np.linspace(low, high, _GRID, axis=-1)
        log = log_weight(points)
        kept = log >= log.max(axis=1, keepdims=True) - drop
        first = np.maximum(kept.argmax(axis=1) - 2, 0)
        last = np.minimum(_GRID + 1 - kept[:, ::-1].argmax(axis=1), _GRID - 1)
        wide = last - first > _GRID / 2
        if wide.all():
            break
        low, high = np.where(wide, low, points[rows, first]), np.where(wide, high, points[rows, last])
    return low, high


def _widths(points: Floats) -> Floats:
    """What each point of a grid stands for, along the last axis."""
    gaps = np.maximum(np.diff(points, axis=-1), 1e-300)
    zero = np.zeros((*points.shape[:-1], 1))
    return np.asarray(np.concatenate([gaps, zero], axis=-1) + np.concatenate([zero, gaps], axis=-1)) / 2
