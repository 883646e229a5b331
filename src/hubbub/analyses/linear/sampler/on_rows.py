"""Coefficients as they predict for a row of the caller's, whose S is one and the same for all draws.

A draw is a pair of S and coefficients. Where noise hides an axis of S, a draw whose S is nearly flat along it may have
coefficients of any size there: in such a world hardly any row lies along that axis. The rows that a caller asks
about come from the one real world. So a draw predicts for a row x what it would for the row that stands in the place
of x in its own world: the one that the optimal transport from the mean of S to the draw's S takes x to. The expected
square of what a draw adds to a prediction, over all rows, is then what it is in the draw's own world.
"""

from __future__ import annotations

import numpy as np

from hubbub.arrays import Floats

_LEAST = 1e-12  # of the largest eigenvalue: what a root is taken of


def on_rows(beta: Floats, S: Floats, mean_S: Floats, centre: Floats) -> Floats:
    """(k, p): the coefficients of each draw, with their distance from the centre moved from its S to the mean of S."""
    root = _root(mean_S)
    back = np.linalg.inv(root)
    moves = back @ _root(root @ S @ root) @ back
    return np.asarray(centre + np.einsum("kij,kj->ki", moves, beta - centre))


def _root(matrices: Floats) -> Floats:
    """The symmetric square root of positive definite matrices."""
    values, axes = np.linalg.eigh(matrices)
    values = np.maximum(values, _LEAST * values[..., -1:])
    return np.asarray((axes * np.sqrt(values)[..., None, :]) @ np.swapaxes(axes, -1, -2))
