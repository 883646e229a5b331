"""Forest plot: coefficients with their credible intervals."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray


def forest_plot(
    path: str | PathLike[str],
    names: Sequence[str],
    mean: NDArray[np.float64],
    interval: NDArray[np.float64],
    title: str,
    level: float = 0.9,
) -> None:
    """Write a picture with one line per coefficient."""
    figure = Figure(figsize=(7, 1.2 + 0.35 * len(names)), layout="constrained")
    axes = figure.add_subplot()
    height = np.arange(len(names))[::-1]
    axes.hlines(height, interval[:, 0], interval[:, 1], color="tab:blue", lw=2)
    axes.plot(mean, height, "o", color="tab:blue")
    axes.axvline(0.0, color="grey", lw=0.8)
    axes.set_yticks(height, [name.replace("$", r"\$") for name in names])  # no mathematics in names
    axes.set_xlabel(f"coefficient (posterior mean and {level:.0%} interval)")
    axes.set_title(title.replace("$", r"\$"), fontsize=10)
    figure.savefig(path, dpi=150)
