"""Pictures are written, in each format, and show what they should."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import same_color
from matplotlib.figure import Figure

from hubbub.plots.coefficients import NOT_PRIVATE, beside_non_private, forest_plot
from hubbub.plots.demo import demo_plot

MAGIC = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
NAMES = ["age", "dose"]
MEAN = np.array([0.1, -0.2])
INTERVAL = np.array([[0.0, 0.2], [-0.4, 0.1]])
BUDGET = {"sampling": np.array([1.0, 2.0]), "noise of X'y": np.array([1.0, 1.0]), "noise of XX'": np.array([2.0, 1.0])}


def labels(axes: Axes) -> list[str]:
    """Names of the lines, from the top."""
    return [label.get_text() for label in axes.get_yticklabels()]


def segments(axes: Axes, number: int) -> np.ndarray:
    """(lines, 2): the ends of the horizontal lines that were drawn together."""
    return np.array([line[:, 0] for line in axes.collections[number].get_segments()])


@pytest.mark.parametrize("ending", MAGIC)
def test_forest_plot(tmp_path: Path, ending: str):
    path = tmp_path / f"plot.{ending}"
    forest_plot(path, NAMES, MEAN, INTERVAL, "title")
    assert path.read_bytes().startswith(MAGIC[ending])
    assert path.stat().st_size > 3000


def test_forest_plot_shows_means_and_intervals(tmp_path: Path):
    figure = forest_plot(tmp_path / "plot.png", NAMES, MEAN, INTERVAL, "cost in $")
    (axes,) = figure.axes
    assert labels(axes) == NAMES
    assert axes.get_title() == r"cost in \$"
    np.testing.assert_allclose(segments(axes, 0), INTERVAL)
    (points,) = [line for line in axes.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(points.get_xdata(), MEAN)
    assert list(points.get_ydata()) == [1, 0]  # the first name is at the top


@pytest.mark.parametrize("ending", MAGIC)
def test_noise_budget_is_a_second_panel_of_bars_that_add_up(tmp_path: Path, ending: str):
    path = tmp_path / f"plot.{ending}"
    figure = forest_plot(path, NAMES, MEAN, INTERVAL, "title", budget=BUDGET)
    assert path.read_bytes().startswith(MAGIC[ending])
    left, right = figure.axes
    assert labels(left) == labels(right) == NAMES
    assert left.get_ylim() == right.get_ylim()  # so that a bar lies beside its coefficient
    assert figure.get_suptitle() == "title"
    assert right.get_title() == "noise budget by source"
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == list(BUDGET)
    widths = [[bar.get_width() for bar in container] for container in right.containers]
    np.testing.assert_allclose(widths, [[25, 50], [25, 25], [50, 25]])
    starts = [[bar.get_x() for bar in container] for container in right.containers]
    np.testing.assert_allclose(starts, [[0, 0], [25, 50], [50, 75]])


def test_no_variance_at_all_gives_empty_bars(tmp_path: Path):
    figure = forest_plot(
        tmp_path / "plot.png", NAMES, MEAN, INTERVAL, "title", budget={name: np.zeros(2) for name in BUDGET}
    )
    assert all(bar.get_width() == 0 for bar in figure.axes[1].patches)


def test_a_wide_prior_is_grey_and_does_not_change_the_scale(tmp_path: Path):
    wide = np.array([[-100.0, 100.0], [-50.0, 50.0]])
    alone = forest_plot(tmp_path / "alone.png", NAMES, MEAN, INTERVAL, "title").axes[0]
    with_prior = forest_plot(tmp_path / "prior.png", NAMES, MEAN, INTERVAL, "title", prior=wide).axes[0]
    np.testing.assert_allclose(segments(with_prior, 1), wide)
    assert same_color(with_prior.collections[1].get_color(), "lightgrey")
    assert with_prior.get_xlim() == alone.get_xlim()


def test_beside_non_private_draws_both_and_says_what_it_is():
    axes = Figure().add_subplot()
    beside_non_private(axes, NAMES, MEAN, INTERVAL, MEAN + 0.1, INTERVAL + 0.1, "wine")
    assert axes.get_title() == f"wine\n{NOT_PRIVATE}"
    assert NOT_PRIVATE == "not private: for simulations only"
    assert labels(axes) == NAMES
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["private", "not private"]
    np.testing.assert_allclose(segments(axes, 0), INTERVAL)
    np.testing.assert_allclose(segments(axes, 1), INTERVAL + 0.1)
    for name, mean in (("private", MEAN), ("not private", MEAN + 0.1)):
        (points,) = [line for line in axes.lines if line.get_label() == name]
        np.testing.assert_allclose(points.get_xdata(), mean)


@pytest.mark.parametrize("ending", MAGIC)
def test_beside_non_private_writes_a_file(tmp_path: Path, ending: str):
    path = tmp_path / f"plot.{ending}"
    beside_non_private(path, NAMES, MEAN, INTERVAL, MEAN, INTERVAL, "wine")
    assert path.read_bytes().startswith(MAGIC[ending])
    if ending == "svg":
        assert NOT_PRIVATE in path.read_text()


def test_demo_plot(tmp_path: Path, rng: np.random.Generator):
    errors = {"nonprivate": rng.random(20), "distributed": rng.random(20)}
    demo_plot(tmp_path / "demo.png", errors, rng.random(256) + 9, rng.random(256) + 1, "title")
    assert (tmp_path / "demo.png").stat().st_size > 10_000
