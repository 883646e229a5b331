"""A noisy XX' may be indefinite: what to put in the place of its eigenvalues."""

from __future__ import annotations

from typing import Literal

import numpy as np

from hubbub.arrays import Floats
from hubbub.errors import invalid

Repair = Literal["flip", "ridge"]


def repaired(eigenvalues: Floats, repair: Repair, noise_std: float | Floats) -> Floats:
    """Eigenvalues (in the last axis) that a precision matrix may have.

    flip:  negative ones change sign, as in the paper's program.
    ridge: negative ones become zero, then all grow by the spectral norm that a noise matrix of this size
           has (2 noise_std sqrt(d)): directions drowned in noise shrink toward the prior (after Wang 2018).
    """
    if repair == "flip":
        return np.abs(eigenvalues)
    if repair == "ridge":
        ridge: Floats = 2 * np.asarray(noise_std)[..., None] * np.sqrt(eigenvalues.shape[-1])
        return ridge + np.maximum(eigenvalues, 0.0)
    raise invalid("repair", "'flip' or 'ridge'", repr(repair), "use 'ridge'")


def repaired_matrix(matrix: Floats, repair: Repair, noise_std: float) -> Floats:
    """The symmetric matrix with its eigenvalues repaired."""
    values, vectors = np.linalg.eigh(matrix)
    result: Floats = (vectors * repaired(values, repair, noise_std)) @ vectors.T
    return result
