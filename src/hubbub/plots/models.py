"""Pictures of fitted models: coefficients, where their width comes from, and how well they do on rows of one's own.

A model is anything with `summary(level)`, as hubbub's estimators have it, or with `table(level)`, as the results of
families have it. Every function returns a matplotlib Figure, which a notebook shows, and writes it to `path` if that is
given (.png, .svg or .pdf).
"""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from os import PathLike
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from hubbub.errors import InvalidInput, invalid, warn_of_rows
from hubbub.plots.coefficients import lines, plain

AS_THEY_ARE = "from these rows as they are: outside the privacy guarantee"
MOST_BARS = 30
_DEVIATIONS = 1.6448536269514722  # of a normal law, that hold 90 %
Path = str | PathLike[str]


class Picture(Figure):
    """A matplotlib Figure that a notebook shows whether or not pyplot has been imported there."""

    def _repr_png_(self) -> bytes:
        buffer = BytesIO()
        self.savefig(buffer, format="png", dpi=100)
        return buffer.getvalue()


def forest(models: Any, level: float = 0.9, *, intercept: bool = False, path: Path | None = None) -> Figure:
    """Coefficients with their credible intervals, of one model or of several side by side: {"name": model, ..}."""
    several = models if isinstance(models, Mapping) else {"": models}
    found = {str(name): {row["name"]: row for row in _rows(model, level, intercept)} for name, model in several.items()}
    names = list(dict.fromkeys(name for rows in found.values() for name in rows))
    if not names:
        raise InvalidInput('models must be a fitted model or several of them, got none; give {"name": model}')
    figure = Picture(figsize=(7, 1.2 + len(names) * (0.2 + 0.15 * len(found))), layout="constrained")
    axes = figure.add_subplot()
    height = dict(zip(names, lines(axes, names), strict=True))
    for number, (label, rows) in enumerate(found.items()):
        place = [height[name] + 0.6 * ((len(found) - 1) / 2 - number) / len(found) for name in rows]
        ends = np.array([[row["low"], row["high"]] for row in rows.values()])
        axes.hlines(place, ends[:, 0], ends[:, 1], color=f"C{number}", lw=2)
        axes.plot([row["mean"] for row in rows.values()], place, "o", color=f"C{number}", label=plain(label))
    axes.set_xlabel(f"posterior mean and {level:.0%} interval")
    if len(found) > 1:
        axes.legend(fontsize=8)
    return _finished(figure, path)


def noise_sources(model: Any, level: float = 0.9, *, intercept: bool = False, path: Path | None = None) -> Figure:
    """How much of each interval's width is sampling and prior, and how much the privacy noise adds.

    The first is the width that one expects had the exact sums been released, `sqrt(1 - posterior_.noise_share)` of what
    it is; what bounding the rows costs is in it. Only posteriors that count the noise can tell: others are refused.
    """
    rows, posterior = _rows(model, level, intercept), getattr(model, "posterior_", getattr(model, "posterior", None))
    share = getattr(posterior, "noise_share", None)
    if share is None:
        raise InvalidInput(
            f"noise_sources must be given a model that knows which part of its variance is noise, got "
            f"{type(model).__name__} with {type(posterior).__name__}; use a regression with the posterior noise-aware, "
            "or Bernoulli, Categorical, or a Gaussian whose bound clips next to nothing"
        )
    names = [row["name"] for row in rows]
    left = 100 * np.sqrt(np.clip(1 - share[: len(rows)], 0, 1))
    figure = Picture(figsize=(8, 1.7 + 0.35 * len(rows)), layout="constrained")
    axes = figure.add_subplot()
    height = lines(axes, names)
    axes.barh(height, left, height=0.6, color="tab:blue", label="sampling and prior")
    axes.barh(height, 100 - left, left=left, height=0.6, color="tab:red", label="added by the privacy noise")
    for row, place in zip(rows, height, strict=True):
        axes.text(101, place, f"{row['high'] - row['low']:.3g}", va="center", fontsize=8)
    axes.set(xlim=(0, 110), xlabel=f"% of the width of the {level:.0%} interval; at the right its width")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=2, fontsize=8, frameon=False)
    return _finished(figure, path)


def calibration(model: Any, X: Any, y: Any, bins: int = 10, *, path: Path | None = None) -> Figure:
    """How often y is 1 (or the second class) where the model says with which probability; bars hold 90 %.

    It is computed from the rows as they are: of private rows it is outside the privacy guarantee, as a
    PrivacyLeakWarning says. Bins hold about as many rows each.
    """
    if not 2 <= bins <= 1000:
        raise invalid("bins", "in 2..1000", bins, "10 is usual")
    p = np.asarray(model.predict_proba(X)[:, 1] if hasattr(model, "predict_proba") else model.predict(X))
    given, classes = _column(y, len(p)), getattr(model, "classes_", np.array([0, 1]))
    if not (np.isin(given, classes).all() and len(classes) == 2 and (p >= 0).all() and (p <= 1).all()):
        raise InvalidInput(
            f"model must be of two classes, and y one of them in each row, got others with {type(model).__name__}; "
            "see predictive_check for other models"
        )
    warn_of_rows("calibration")
    edges = np.unique(np.quantile(p, np.linspace(0, 1, bins + 1)))[1:-1]
    where = np.searchsorted(edges, p, side="right")
    size = np.bincount(where)
    size, chosen = size[size > 0], np.flatnonzero(size)
    said, seen = (np.bincount(where, values)[chosen] / size for values in (p, given == classes[1]))
    low, high = _wilson(seen, size)
    figure, axes = _figure_of_rows()
    axes.plot([0, 1], [0, 1], color="grey", lw=0.8)
    axes.errorbar(said, seen, yerr=[seen - low, high - seen], fmt="o-", ms=4, capsize=2, lw=1)
    axes.set(xlabel="probability that the model gives", ylabel=f"share of {plain(str(classes[1]))} in these rows")
    return _finished(figure, path)


def predictive_check(
    model: Any, X: Any, y: Any, draws: int = 200, level: float = 0.9, *, seed: int | None = 0, path: Path | None = None
) -> Figure:
    """How y is spread in these rows (bars), beside what the model draws for them (medians and intervals).

    It is computed from the rows as they are: of private rows it is outside the privacy guarantee, as a
    PrivacyLeakWarning says. Values far out count in the last bar.
    """
    if not hasattr(model, "sample_predictive"):
        kind = type(model).__name__
        raise InvalidInput(f"model must be a regression with sample_predictive, got {kind}; give a fitted regression")
    if not (10 <= draws <= 100_000 and 0 < level < 1):
        raise InvalidInput(f"draws must be in 10..100000 and level in 0..1, got {draws} and {level}; give 200 and 0.9")
    drawn = np.asarray(model.sample_predictive(X, draws, seed))
    given, classes = _column(y, drawn.shape[1]), getattr(model, "classes_", None)
    if classes is not None:
        if not np.isin(given, classes).all():
            raise InvalidInput("y must be one of the two classes, got other labels; give the labels of fit")
        given, drawn = (np.asarray(each == classes[1], dtype=float) for each in (given, drawn))
    elif given.dtype.kind not in "buif":
        raise InvalidInput("y must be numeric, got another type; convert or drop what is not a number")
    given = given.astype(float)
    warn_of_rows("predictive_check")
    edges = _edges(given, drawn)
    seen, told = _counts(given, edges), np.array([_counts(each, edges) for each in drawn])
    low, middle, high = np.quantile(told, [(1 - level) / 2, 0.5, (1 + level) / 2], axis=0)
    figure, axes = _figure_of_rows()
    centres = (edges[1:] + edges[:-1]) / 2
    axes.bar(centres, seen, width=0.9 * np.diff(edges), color="lightgrey", label="these rows")
    bars = [middle - low, high - middle]
    axes.errorbar(centres, middle, yerr=bars, fmt="o", ms=3, capsize=2, label=f"drawn by the model, {level:.0%}")
    if classes is not None:
        axes.set_xticks([0, 1], [plain(str(each)) for each in classes])
    axes.set(xlabel="y", ylabel="rows")
    axes.legend(fontsize=8)
    return _finished(figure, path)


def _rows(model: Any, level: float, intercept: bool) -> list[dict[str, Any]]:
    """Rows of the model's table: of a regression the coefficients, and the intercept if it is asked for."""
    if hasattr(model, "summary"):
        rows, features = list(model.summary(level).rows), getattr(model, "n_features_in_", None)
    elif hasattr(model, "table"):
        rows, features = model.table(level), len(getattr(model, "names", ())) or None
    else:
        raise invalid("model", "a fitted model", type(model).__name__, 'or several: {"name": model}')
    if features is None:
        return rows
    return rows[:features] + [row for row in rows[features:] if intercept and row["name"] == "intercept"]


def _column(y: Any, rows: int) -> NDArray[Any]:
    found = np.asarray(y).reshape(-1)
    if len(found) != rows:
        raise InvalidInput(f"y must have a value for each of the {rows} rows, got {len(found)}; check them")
    if found.dtype.kind in "fc" and not np.isfinite(found).all():
        raise InvalidInput("y must be finite, got others; drop such rows")
    return found


def _wilson(share: NDArray[np.float64], size: NDArray[np.int_]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """90 % intervals of probabilities, of which so many of so many were seen (Wilson's score interval)."""
    z2 = _DEVIATIONS**2
    middle = (share + z2 / (2 * size)) / (1 + z2 / size)
    half = _DEVIATIONS * np.sqrt(share * (1 - share) / size + z2 / (4 * size**2)) / (1 + z2 / size)
    return np.minimum(middle - half, share), np.maximum(middle + half, share)


def _edges(given: NDArray[Any], drawn: NDArray[Any]) -> NDArray[np.float64]:
    """Of bars: around whole numbers where all values are whole and not too many, or else even ones."""
    low, high = (float(np.quantile(drawn, share)) for share in (0.002, 0.998))
    low, high = min(low, float(given.min())), max(high, float(given.max()))
    if (given == np.round(given)).all() and (drawn == np.round(drawn)).all():
        low, high = np.floor(low), np.ceil(high)
        step = np.ceil((high - low + 1) / MOST_BARS)
        return np.asarray(np.arange(low - 0.5, high + step, step))
    return np.linspace(low, high if high > low else low + 1, MOST_BARS + 1)


def _counts(values: NDArray[Any], edges: NDArray[np.float64]) -> NDArray[np.int_]:
    return np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0]


def _figure_of_rows() -> tuple[Figure, Axes]:
    figure = Picture(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(AS_THEY_ARE, fontsize=9)
    return figure, axes


def _finished(figure: Figure, path: Path | None) -> Figure:
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure
