"""Coefficients with their credible intervals: alone, with what makes them uncertain, beside non-private ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

NOT_PRIVATE = "not private: for simulations only"


def forest_plot(
    path: str | PathLike[str],
    names: Sequence[str],
    mean: NDArray[np.float64],
    interval: NDArray[np.float64],
    title: str,
    level: float = 0.9,
    *,
    prior: NDArray[np.float64] | None = None,
    budget: Mapping[str, NDArray[np.float64]] | None = None,
) -> Figure:
    """Write a picture with one line per coefficient; returns the figure.

    `prior` are (d, 2) intervals, drawn in light grey and cut off at the edge. `budget` is the variance of each
    coefficient by source: a second panel shows the shares.
    """
    figure = Figure(figsize=(7, 1.2 + 0.35 * len(names)), layout="constrained")
    if budget is None:
        left = figure.add_subplot()
        left.set_title(plain(title), fontsize=10)
    else:
        figure.set_size_inches(11, 2.0 + 0.35 * len(names))
        left, right = figure.subplots(1, 2, width_ratios=(3, 2))
        left.set_title("coefficients", fontsize=10)
        figure.suptitle(plain(title), fontsize=10)
        _shares(right, names, budget)
        figure.legend(*right.get_legend_handles_labels(), loc="outside lower right", ncols=3, fontsize=8, frameon=False)
    height = lines(left, names)
    left.hlines(height, interval[:, 0], interval[:, 1], color="tab:blue", lw=2)
    left.plot(mean, height, "o", color="tab:blue")
    left.set_xlabel(f"coefficient (posterior mean and {level:.0%} interval)")
    if prior is not None:
        left.set_xlim(left.get_xlim())  # a wide prior must not turn the posterior into dots
        left.hlines(height, prior[:, 0], prior[:, 1], color="lightgrey", lw=7, zorder=0, label=f"prior, {level:.0%}")
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower left", fontsize=8, frameon=False)
    figure.savefig(path, dpi=150)
    return figure


def beside_non_private(
    path_or_axes: str | PathLike[str] | Axes,
    names: Sequence[str],
    private_mean: NDArray[np.float64],
    private_interval: NDArray[np.float64],
    reference_mean: NDArray[np.float64],
    reference_interval: NDArray[np.float64],
    title: str,
) -> None:
    """Draw private beside non-private coefficients, which show the data: on these axes, or into this file."""
    if not isinstance(path_or_axes, Axes):
        figure = Figure(figsize=(7, 1.6 + 0.45 * len(names)), layout="constrained")
        values = (private_mean, private_interval, reference_mean, reference_interval)
        beside_non_private(figure.add_subplot(), names, *values, title)
        figure.savefig(path_or_axes, dpi=150)
        return
    axes, height = path_or_axes, lines(path_or_axes, names)
    for label, mean, interval, place, colour, marker in (
        ("private", private_mean, private_interval, height + 0.15, "tab:blue", "o"),
        ("not private", reference_mean, reference_interval, height - 0.15, "black", "s"),
    ):
        axes.hlines(place, interval[:, 0], interval[:, 1], color=colour, lw=2)
        axes.plot(mean, place, marker, color=colour, label=label)
    axes.set_xlabel("coefficient (mean and interval)")
    axes.set_title(f"{plain(title)}\n{NOT_PRIVATE}", fontsize=10)
    axes.legend(fontsize=8)


def _shares(axes: Axes, names: Sequence[str], budget: Mapping[str, NDArray[np.float64]]) -> None:
    """For each coefficient a bar of 100 %, divided by source."""
    total = np.sum(list(budget.values()), axis=0)
    height, start = lines(axes, names), np.zeros(len(names))
    for (source, part), colour in zip(budget.items(), ("tab:blue", "tab:orange", "tab:red"), strict=True):
        share = 100 * part / np.where(total > 0, total, 1.0)
        axes.barh(height, share, left=start, height=0.6, color=colour, label=source)
        start = start + share
    axes.set(xlim=(0, 100), xlabel="share of the variance (%)")
    axes.set_title("noise budget by source", fontsize=10)


def lines(axes: Axes, names: Sequence[str]) -> NDArray[np.int_]:
    """Name one line per coefficient, from the top, and mark zero; returns the heights."""
    height = np.arange(len(names))[::-1]
    axes.set_yticks(height, [plain(name) for name in names])
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.axvline(0.0, color="grey", lw=0.8)
    return height


def plain(text: str) -> str:
    """Text as it is, with no mathematics in it."""
    return text.replace("$", r"\$")
