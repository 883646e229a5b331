"""The demo's picture: errors of the methods, and the bytes that one Compute sees."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray


def demo_plot(
    path: str | PathLike[str],
    errors: Mapping[str, NDArray[np.float64]],
    seen: NDArray[np.float64],
    hidden: NDArray[np.float64],
    title: str,
) -> None:
    """Write the picture."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    names = list(errors)
    left.boxplot([errors[name] for name in names], tick_labels=[name.replace("_", "\n") for name in names])
    left.set_ylabel("mean absolute error")
    left.set_title(title, fontsize=10)
    right.plot(hidden / hidden.mean(), color="tab:orange", lw=1, label="bytes of the clients' vectors")
    right.plot(seen / seen.mean(), color="tab:blue", lw=1, label="bytes that the Compute sees")
    right.set_yscale("log")
    right.set_xlabel("byte value")
    right.set_ylabel("frequency relative to uniform")
    right.legend(fontsize=8)
    figure.savefig(path, dpi=150)
