"""The pictures of the experiments: rows in, matplotlib figure out."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

Row = dict[str, Any]

STYLES = {
    "NP": ("black", "--", ""),
    "non-private": ("black", "--", ""),
    "mean": ("tab:gray", ":", ""),
    "input perturbation": ("tab:gray", ":", "v"),
    "TA": ("tab:orange", "-", "s"),
    "DDP": ("tab:red", "--", "o"),
    "proj TA": ("tab:cyan", "-", "s"),
    "proj DDP": ("tab:blue", "--", "o"),
    "hubbub": ("tab:green", "-", "D"),
    "gaussian": ("tab:orange", "-", "s"),
    "discrete-gaussian": ("tab:green", "--", "D"),
    "discrete-laplace": ("tab:purple", "-", "o"),
    "trivial": ("tab:gray", ":", ""),
    "AdaSSP": ("tab:orange", "-", "s"),
    "shrinkage": ("tab:purple", "-", "o"),
    "default": ("tab:green", "-", "D"),
    "published": ("tab:red", "", "x"),
}
COLUMNS = ("tab:green", "tab:orange", "tab:blue")
MARKS = {"non-private": ("black", "|"), "majority": ("tab:gray", "x"), "hubbub, epsilon=1": ("tab:orange", "o")}
PUBLISHED_SPLIT = "abalone, first"
SELECTED = ("NP", "proj TA", "proj DDP", "hubbub")


def fig1b(rows: Sequence[Row], banner: str | None) -> Figure:
    """The factor N/(N-T-1): lines computed, points measured."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    for colour, tolerated in enumerate(sorted({row["T"] for row in rows})):
        part = [row for row in rows if row["T"] == tolerated]
        n = np.array([row["N"] for row in part])
        fine = np.geomspace(n.min(), n.max(), 200)
        axes.plot(fine, fine / (fine - tolerated - 1), color=f"C{colour}", label=f"T={tolerated}")
        middle = np.array([row["measured"] for row in part])
        below, above = (np.abs(middle - [row[key] for row in part]) for key in ("low", "high"))
        axes.errorbar(n, middle, yerr=[below, above], fmt="o", ms=4, capsize=2, color=f"C{colour}")
    axes.set(xscale="log", xlabel="number of clients N", ylabel="variance over a trusted aggregator's")
    axes.set_ylim(0.9, 2.5)
    axes.legend(title="lines computed, points measured", title_fontsize=8, fontsize=8)
    return figure


def fig2(rows: Sequence[Row], banner: str | None) -> Figure:
    """One panel per data set: median error with quartiles against epsilon."""
    names = list(dict.fromkeys(row["dataset"] for row in rows))
    figure = Figure(figsize=(4.2 * len(names), 4.2), layout="constrained")
    for axes, name in zip(np.atleast_1d(figure.subplots(1, len(names))), names, strict=True):
        part = [row for row in rows if row["dataset"] == name]
        _lines(axes, part, "median", "q25", "q75")
        floor = min(row["median"] for row in part)
        axes.set(xscale="log", xlabel="epsilon", ylabel="mean absolute error", title=name.replace("_", " "))
        axes.set_ylim(0.9 * floor, 3.2 * floor)
    _finish(figure, banner)
    return figure


def mechanisms(rows: Sequence[Row], banner: str | None) -> Figure:
    """One panel per data set: median error with quartiles against epsilon, for each law of noise."""
    figure = fig2(rows, banner)
    for axes in figure.axes:
        middles = [value for line in axes.containers for value in line[0].get_ydata()]
        axes.set_ylim(0.95 * min(middles), 1.05 * max(middles))
    return figure


def fig3(rows: Sequence[Row], banner: str | None) -> Figure:
    """All methods, and the selected ones, against epsilon."""
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    spread = [{**row, "low": row["mean"] - row["std"], "high": row["mean"] + row["std"]} for row in rows]
    _lines(left, spread, "mean", "low", "high")
    _lines(right, [row for row in spread if row["method"] in SELECTED], "mean", "low", "high")
    for axes, title in ((left, "all methods"), (right, "selected methods")):
        axes.set(xlabel="epsilon", ylabel="mean Spearman correlation", title=f"drug sensitivity, {title}")
    _finish(figure, banner)
    return figure


def dpvi(rows: Sequence[Row], banner: str | None) -> Figure:
    """Accuracy against epsilon, with one standard deviation over the splits."""
    figure = Figure(figsize=(6, 4.2), layout="constrained")
    axes = figure.add_subplot()
    spread = [{**row, "low": row["mean"] - row["std"], "high": row["mean"] + row["std"]} for row in rows]
    _lines(axes, spread, "mean", "low", "high")
    n, name = rows[0]["n"], rows[0]["dataset"]
    axes.set(xscale="log", xlabel="epsilon", ylabel="accuracy", title=f"{name}, logistic regression, {n} clients")
    _finish(figure, banner)
    return figure


def table1(rows: Sequence[Row], banner: str | None) -> Figure:
    """Seconds against N for each d, ours and the paper's; and against N d M, beside the limit."""
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    for colour, d in enumerate(sorted({row["d"] for row in rows})):
        part = sorted((row for row in rows if row["d"] == d), key=lambda row: row["N"])
        n = [row["N"] for row in part]
        left.plot(n, [row["seconds"] for row in part], "o-", color=f"C{colour}", label=f"d={d}")
        left.plot(n, [row["paper_seconds"] or np.nan for row in part], "x:", color=f"C{colour}")
    left.set(xscale="log", yscale="log", xlabel="number of clients N", ylabel="seconds")
    left.legend(title="hubbub solid, paper dotted", title_fontsize=8, fontsize=8)
    work = np.array([row["N"] * row["d"] * row["M"] for row in rows], dtype=float)
    seconds, limit = (np.array([row[key] for row in rows]) for key in ("seconds", "limit"))
    right.plot(work, seconds, "o", label="measured")
    order = np.argsort(work)
    right.plot(work[order], limit[order], color="grey", lw=0.8, label="limit of the primitives")
    large = work >= 1e6 * rows[0]["M"]
    if len(set(work[large])) > 2:
        power, offset = np.polyfit(np.log(work[large]), np.log(seconds[large]), 1)
        right.plot(work[large], np.exp(offset) * work[large] ** power, "C1", lw=1, label=f"slope {power:.2f}")
    right.set(xscale="log", yscale="log", xlabel="N d M", ylabel="seconds")
    right.legend(fontsize=8)
    return figure


def efficiency(rows: Sequence[Row], banner: str | None) -> Figure:
    """Distance against n, and the tails of Lemma 1 against their bound."""
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    for colour, kind in enumerate(("mean", "regression")):
        part = [row for row in rows if row["kind"] == kind]
        n, middle = (np.array([row[key] for row in part]) for key in ("n", "median"))
        quartiles = [np.abs(middle - [row[key] for row in part]) for key in ("q25", "q75")]
        exponent, offset = np.polyfit(np.log(n), np.log(middle), 1)
        left.errorbar(n, middle, yerr=quartiles, fmt="o", ms=4, capsize=2, color=f"C{colour}")
        left.plot(n, np.exp(offset) * n**exponent, color=f"C{colour}", label=f"{kind}: slope {exponent:.2f}")
    left.set(xscale="log", yscale="log", xlabel="n", ylabel="distance private - non-private (L1)")
    left.legend(fontsize=8)
    tails = [row for row in rows if row["kind"] == "lemma1"]
    right.plot([min(1, row["bound"]) for row in tails], [max(row["tail"], 1e-6) for row in tails], "o", ms=4)
    right.plot([1e-3, 1], [1e-3, 1], color="grey", lw=0.8)
    right.set(
        xscale="log",
        yscale="log",
        xlabel="bound of Lemma 1",
        ylabel="measured tail",
        title="Lemma 1: points lie below the line",
    )
    return figure


def coverage(rows: Sequence[Row], banner: str | None) -> Figure:
    """Coverage against n, a panel per epsilon: plug-in beside the default posterior."""
    epsilons = sorted({row["epsilon"] for row in rows})
    figure = Figure(figsize=(4 * len(epsilons), 4), layout="constrained")
    colours = {"plugin": "tab:red", "shrinkage": "tab:orange", "noise-aware": "tab:green"}
    for axes, epsilon in zip(np.atleast_1d(figure.subplots(1, len(epsilons), sharey=True)), epsilons, strict=True):
        for posterior, colour in colours.items():
            for d, line in zip(sorted({row["d"] for row in rows}), (":", "-", "--"), strict=False):
                for kind, marker in zip(dict.fromkeys(row["x"] for row in rows), "osv", strict=False):
                    part = [
                        r
                        for r in rows
                        if (r["epsilon"], r["posterior"], r["d"], r["x"]) == (epsilon, posterior, d, kind)
                    ]
                    n, found = ([row[name] for row in part] for name in ("n", "coverage"))
                    label = f"{posterior}, d={d}, {kind}"
                    axes.plot(n, found, color=colour, ls=line, marker=marker, ms=4, lw=1, label=label)
        axes.axhspan(0.87, 0.93, color="grey", alpha=0.25)
        axes.set(xscale="log", xlabel="n", title=f"epsilon={epsilon:g}", ylim=(0, 1))
    figure.axes[0].set_ylabel("coverage of 90 % intervals")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=7, frameon=False)
    return figure


def glm(rows: Sequence[Row], banner: str | None) -> Figure:
    """Coverage against n, a panel for each family and epsilon; a colour for each kind of columns."""
    families, epsilons = (list(dict.fromkeys(row[name] for row in rows)) for name in ("family", "epsilon"))
    shape = (len(families), len(epsilons))
    figure = Figure(figsize=(4 * shape[1], 3 * shape[0]), layout="constrained")
    panels = np.reshape(figure.subplots(*shape, sharex=True, sharey=True), shape)
    for (i, family), (j, epsilon) in itertools.product(enumerate(families), enumerate(epsilons)):
        axes = panels[i, j]
        part = [row for row in rows if (row["family"], row["epsilon"]) == (family, epsilon)]
        for d, line in zip(sorted({row["d"] for row in part}), (":", "-", "--"), strict=False):
            for kind, colour in zip(dict.fromkeys(row["x"] for row in part), COLUMNS, strict=False):
                mine = [row for row in part if (row["d"], row["x"]) == (d, kind)]
                n, found = ([row[name] for row in mine] for name in ("n", "coverage"))
                axes.plot(n, found, color=colour, ls=line, marker="o", ms=4, lw=1, label=f"d={d}, {kind}")
        axes.axhspan(0.87, 0.93, color="grey", alpha=0.25)
        axes.set(xscale="log", xlabel="n", title=f"{family}, epsilon={epsilon:g}", ylim=(0.5, 1))
    figure.supylabel("coverage of 90 % intervals")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=7, frameon=False)
    return figure


def others(rows: Sequence[Row], banner: str | None) -> Figure:
    """One panel per data set, up to a little above the error of the mean; coverage of the intervals in the last."""
    names = list(dict.fromkeys(row["dataset"] for row in rows))
    columns = min(4, len(names) + 1)
    lines = -(-(len(names) + 1) // columns)
    figure = Figure(figsize=(3.6 * columns, 3.2 * lines), layout="constrained")
    panels = list(figure.subplots(lines, columns, squeeze=False).flat)
    for axes, name in zip(panels, names, strict=False):
        part = [row for row in rows if row["dataset"] == name]
        _lines(axes, part, "median", "q25", "q75")
        floor = min(row["median"] for row in part)
        ceiling = max(row["median"] for row in part if row["method"] == "mean")
        axes.set(xscale="log", xlabel="epsilon", ylabel="mean absolute error")
        axes.set(title=f"{name.replace('_', ' ')} (n={part[0]['n']})", ylim=(0.9 * floor, 1.3 * ceiling))
    last = panels[len(names)]
    for name in names:
        part = [row for row in rows if row["dataset"] == name and row["method"] == "hubbub"]
        epsilon, found = ([row[key] for row in part] for key in ("epsilon", "coverage"))
        last.plot(epsilon, found, marker="D", ms=3, lw=1, label=name.replace("_", " "))
    last.axhspan(0.85, 0.95, color="grey", alpha=0.25)
    last.set(xscale="log", xlabel="epsilon", ylabel="coverage of 90 % intervals", title="hubbub")
    last.set_ylim(top=1.0)
    last.legend(fontsize=6, ncols=2, loc="lower right")
    for axes in panels[len(names) + 1 :]:
        axes.remove()
    _finish(figure, banner)
    return figure


def adassp(rows: Sequence[Row], banner: str | None) -> Figure:
    """One panel per data set: mean squared error against epsilon, the published ones as crosses."""
    names = list(dict.fromkeys(row["dataset"] for row in rows))
    figure = Figure(figsize=(3.2 * len(names), 3.6), layout="constrained")
    for axes, name in zip(np.atleast_1d(figure.subplots(1, len(names))), names, strict=True):
        part = [row for row in rows if row["dataset"] == name]
        _lines(axes, part, "mse", "low", "high")
        trivial = max(row["mse"] for row in part if row["method"] == "trivial")
        axes.set(xscale="log", xlabel="epsilon", ylabel="mean squared error", title=name, ylim=(0, 1.3 * trivial))
    _finish(figure, banner)
    return figure


def real(rows: Sequence[Row], banner: str | None) -> Figure:
    """Against epsilon, a line per data set: error over least squares, and coverage of both kinds of intervals."""
    figure = Figure(figsize=(12, 4.2), layout="constrained")
    panels = (
        ("over_ols", "error over that of least squares", None),
        ("coverage", "coverage of predictions", (0.85, 0.95)),
        ("coefficients", "coverage of coefficients", (0.88, 0.92)),
    )
    for axes, (key, title, band) in zip(figure.subplots(1, 3), panels, strict=True):
        for name in dict.fromkeys(row["dataset"] for row in rows):
            part = [row for row in rows if row["dataset"] == name]
            axes.plot([row["epsilon"] for row in part], [row[key] for row in part], color="tab:gray", lw=0.7)
        epsilons = sorted({row["epsilon"] for row in rows})
        medians = [np.median([row[key] for row in rows if row["epsilon"] == epsilon]) for epsilon in epsilons]
        axes.plot(epsilons, medians, color="tab:green", marker="D", ms=4, label="median over the sets")
        if band:
            axes.axhspan(*band, color="grey", alpha=0.25)
        axes.set(xscale="log", xlabel="epsilon", title=title)
    _finish(figure, banner)
    return figure


def outcomes(rows: Sequence[Row], banner: str | None) -> Figure:
    """A line of marks per data set: accuracy, area under the curve and coverage; and the published split by epsilon."""
    names = [name for name in dict.fromkeys(row["dataset"] for row in rows) if not name.startswith(PUBLISHED_SPLIT)]
    figure = Figure(figsize=(14, 4.4), layout="constrained")
    *panels, last = figure.subplots(1, 4)
    for axes, (key, title) in zip(
        panels, (("accuracy", "accuracy"), ("auc", "AUC"), ("coverage", "coverage")), strict=True
    ):
        part = [row for row in rows if row["dataset"] in names and row[key] is not None]
        for label in dict.fromkeys(map(_mark, part)):
            mine = [row for row in part if _mark(row) == label]
            places = [names.index(row["dataset"]) for row in mine]
            colour, marker = MARKS.get(label, ("tab:green", "D"))
            axes.plot([row[key] for row in mine], places, marker, color=colour, ms=5, label=label)
        axes.set(title=title)
        axes.set_yticks(range(len(names)), [name if axes is panels[0] else "" for name in names])
        axes.grid(axis="y", lw=0.3)
    panels[2].axvspan(0.88, 0.92, color="grey", alpha=0.25)
    panels[2].axvline(0.8, color="grey", lw=0.8)
    published = [row for row in rows if row["dataset"] not in names]
    for method in dict.fromkeys(row["method"] for row in published):
        mine = [row for row in published if row["method"] == method]
        colour, line, marker = STYLES[method]
        epsilon, found = ([row[key] for row in mine] for key in ("epsilon", "accuracy"))
        last.plot(
            epsilon, found, color=colour, ls=line, marker=marker, ms=4, label=method.replace("published", "DP-VI")
        )
    last.set(xscale="log", xlabel="epsilon", title=f"accuracy, {published[0]['dataset']}" if published else "not run")
    if published:
        last.legend(fontsize=8)
    _finish(figure, banner)
    return figure


def _mark(row: Row) -> str:
    """The method, with epsilon where that matters."""
    return f"{row['method']}, epsilon={row['epsilon']:g}" if row["method"] == "hubbub" else str(row["method"])


def _lines(axes: Axes, rows: Sequence[Row], middle: str, low: str, high: str) -> None:
    for offset, method in enumerate(m for m in STYLES if any(row["method"] == m for row in rows)):
        part = sorted((row for row in rows if row["method"] == method), key=lambda row: row["epsilon"])
        colour, line, marker = STYLES[method]
        epsilon = np.array([row["epsilon"] for row in part]) * (1 + 0.012 * (offset - 3))  # so that bars stand apart
        value = np.array([row[middle] for row in part])
        bars = np.abs(value - np.array([[row[key] for row in part] for key in (low, high)]))
        axes.errorbar(
            epsilon, value, yerr=bars, color=colour, ls=line, marker=marker, ms=4, lw=1.2, elinewidth=0.7, label=method
        )
        invalid = np.array([row["guarantee"] is False for row in part])
        if invalid.any():
            axes.plot(epsilon[invalid], value[invalid], "x", color="black", ms=8, mew=1.5, zorder=9)


def _finish(figure: Figure, banner: str | None) -> None:
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8, frameon=False)
    if banner:
        figure.suptitle(banner, color="firebrick", fontsize=9)
