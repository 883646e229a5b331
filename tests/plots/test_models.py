"""Pictures of fitted models: the numbers that they draw, what they refuse, and that they warn of rows."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.axes import Axes
from scipy import stats

from hubbub import (
    Bernoulli,
    Budget,
    Categorical,
    GaussianMean,
    InvalidInput,
    LocalEngine,
    PrivacyLeakWarning,
    PrivateGLM,
    PrivateLinearRegression,
    PrivateLogisticRegression,
)
from hubbub.plots import calibration, forest, noise_sources, predictive_check
from hubbub.plots.models import AS_THEY_ARE, MOST_BARS

MAGIC = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


def model(names: list[str], mean: list[float], **more: object) -> SimpleNamespace:
    """A regression with an intercept of 9, whose intervals reach 1 below and 2 above."""
    rows = [
        {"name": n, "mean": m, "low": m - 1, "high": m + 2}
        for n, m in zip([*names, "intercept"], [*mean, 9.0], strict=True)
    ]
    return SimpleNamespace(summary=lambda level: SimpleNamespace(rows=rows), n_features_in_=len(names), **more)


def labels(axes: Axes) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]


def drawn(axes: Axes, number: int) -> tuple[list[float], list[float], np.ndarray]:
    """Means, heights and intervals of one model."""
    points = [line for line in axes.lines if line.get_marker() == "o"][number]
    ends = np.array([line[:, 0] for line in axes.collections[number].get_segments()])
    return list(points.get_xdata()), list(points.get_ydata()), ends


def test_forest_of_one_model_has_its_coefficients_in_order():
    (axes,) = forest(model(["age", "dose $"], [0.5, -3.0])).axes
    assert labels(axes) == ["age", r"dose \$"]
    mean, height, ends = drawn(axes, 0)
    assert (mean, height) == ([0.5, -3.0], [1, 0])
    np.testing.assert_allclose(ends, [[-0.5, 2.5], [-4.0, -1.0]])
    assert axes.get_legend() is None
    (axes,) = forest(model(["a"], [0.5]), intercept=True).axes
    assert labels(axes) == ["a", "intercept"]
    assert drawn(axes, 0)[0] == [0.5, 9.0]


def test_a_column_that_is_called_intercept_is_a_column():
    (axes,) = forest(model(["intercept", "b"], [4.0, 5.0])).axes
    assert drawn(axes, 0)[0] == [4.0, 5.0]


def test_forest_of_several_models_puts_each_beside_the_others():
    (axes,) = forest({"one": model(["a", "b"], [1.0, 2.0]), "two": model(["b", "c"], [3.0, 4.0])}).axes
    assert labels(axes) == ["a", "b", "c"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["one", "two"]
    (first, above, _), (second, below, _) = drawn(axes, 0), drawn(axes, 1)
    assert (first, second) == ([1.0, 2.0], [3.0, 4.0])
    assert above[1] > below[0] > 0.5  # both at b, which is at 1, the first model above
    assert abs((above[1] + below[0]) / 2 - 1) < 1e-9


@pytest.mark.parametrize("ending", MAGIC)
def test_pictures_are_written_and_shown_in_notebooks(tmp_path: Path, ending: str):
    figure = forest(model(["a"], [1.0]), path=tmp_path / f"plot.{ending}")
    assert (tmp_path / f"plot.{ending}").read_bytes().startswith(MAGIC[ending])
    assert figure._repr_png_().startswith(MAGIC["png"])


def test_noise_sources_are_shares_of_the_width():
    posterior = SimpleNamespace(noise_share=np.array([0.0, 0.75, 1.0]))
    figure = noise_sources(model(["a", "b"], [1.0, 2.0], posterior_=posterior), intercept=True)
    (axes,) = figure.axes
    left, added = ([bar.get_width() for bar in container] for container in axes.containers)
    np.testing.assert_allclose(left, [100, 50, 0])  # a quarter of the variance is half of the width
    np.testing.assert_allclose(added, [0, 50, 100])
    assert [bar.get_x() for bar in axes.containers[1]] == left
    assert labels(axes) == ["a", "b", "intercept"]
    assert [text.get_text() for text in axes.texts] == ["3"] * 3
    assert len(noise_sources(model(["a", "b"], [1.0, 2.0], posterior_=posterior)).axes[0].texts) == 2


@pytest.fixture(scope="module")
def rows() -> SimpleNamespace:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(2500, 2))
    p = 1 / (1 + np.exp(-2 * X[:, 0]))
    return SimpleNamespace(X=X, p=p, yes=rng.random(2500) < p, y=X[:, 0] + rng.normal(size=2500))


def test_calibration_draws_shares_of_bins_and_their_intervals(rows: SimpleNamespace):
    """A model that is right, and one that says what is twice as sure; bins counted by hand."""
    twice = 1 / (1 + np.exp(-4 * rows.X[:, 0]))
    for said in (rows.p, twice):
        labels = np.where(rows.yes, "yes", "no")
        given = SimpleNamespace(
            predict_proba=lambda X, said=said: np.column_stack([1 - said, said]), classes_=np.array(["no", "yes"])
        )
        with pytest.warns(PrivacyLeakWarning, match="calibration is computed from the rows as they are"):
            (axes,) = calibration(given, rows.X, labels, bins=10).axes
        assert axes.get_title() == AS_THEY_ARE
        assert axes.get_ylabel() == "share of yes in these rows"
        line = next(each for each in axes.lines if each.get_marker() == "o")
        parts = np.array_split(np.argsort(said, kind="stable"), 10)
        np.testing.assert_allclose(line.get_xdata(), [said[part].mean() for part in parts], atol=2e-3)
        seen = [rows.yes[part].mean() for part in parts]
        np.testing.assert_allclose(line.get_ydata(), seen, atol=0.005)
        bars = np.array([each[:, 1] for each in axes.collections[0].get_segments()])
        by_hand = stats.binomtest(int(rows.yes[parts[3]].sum()), 250).proportion_ci(0.9, method="wilson")
        np.testing.assert_allclose(bars[3], by_hand, atol=0.005)
    assert abs(seen[2] - twice[parts[2]].mean()) > 0.1  # the second one is off, and shows it


def test_calibration_of_few_different_probabilities_has_a_bin_for_each():
    said, y = np.repeat([0.2, 0.7], 5), np.array([0, 0, 0, 0, 1] * 2)
    with pytest.warns(PrivacyLeakWarning):
        (axes,) = calibration(SimpleNamespace(predict=lambda X: said), None, y).axes
    line = next(each for each in axes.lines if each.get_marker() == "o")
    assert (list(np.round(line.get_xdata(), 9)), list(line.get_ydata())) == ([0.2, 0.7], [0.2, 0.2])
    bars = np.array([each[:, 1] for each in axes.collections[0].get_segments()])
    np.testing.assert_allclose(bars[0], stats.binomtest(1, 5).proportion_ci(0.9, method="wilson"), atol=1e-9)


def test_predictive_check_counts_rows_and_draws():
    """Two rows in three are 0 and one is 2; the model draws 1 for half of the rows."""
    y = np.tile([0, 0, 2], 100)
    told = np.tile([0, 1], (100, 150))
    given = SimpleNamespace(sample_predictive=lambda X, draws, seed: told)
    with pytest.warns(PrivacyLeakWarning, match="predictive_check is computed from the rows as they are"):
        (axes,) = predictive_check(given, None, y, draws=100).axes
    assert axes.get_title() == AS_THEY_ARE
    bars, points = axes.containers
    assert [bar.get_height() for bar in bars] == [200, 0, 100]
    assert [round(bar.get_x() + bar.get_width() / 2, 9) for bar in bars] == [0, 1, 2]
    np.testing.assert_allclose(points[0].get_ydata(), [150, 150, 0])


def test_predictive_check_of_numbers_holds_what_the_model_draws(rows: SimpleNamespace):
    rng = np.random.default_rng(0)
    for wrong in (0.0, 1.0):
        given = SimpleNamespace(
            sample_predictive=lambda X, draws, seed, wrong=wrong: rows.X[:, 0] + wrong + rng.normal(size=(draws, 2500))
        )
        with pytest.warns(PrivacyLeakWarning):
            (axes,) = predictive_check(given, rows.X, rows.y).axes
        bars, points = axes.containers
        seen = np.array([bar.get_height() for bar in bars])
        assert (len(seen), seen.sum()) == (MOST_BARS, 2500)
        low, high = np.array([each[:, 1] for each in axes.collections[0].get_segments()]).T
        held = np.mean((low <= seen) & (seen <= high))
        assert held > 0.7 if wrong == 0 else held < 0.6
        np.testing.assert_allclose(points[0].get_ydata().sum(), 2500, rtol=0.02)


def test_all_of_hubbubs_regressions_and_families(rows: SimpleNamespace, tmp_path: Path):
    options = {"budget": Budget(1.0, 1e-5), "engine": LocalEngine(seed=1), "draws": 200}
    line = PrivateLinearRegression(x_bound=5.0, y_bound=6.0, **options).fit(rows.X, rows.y)
    glm = PrivateGLM("probit", x_bound=5.0, **options).fit(rows.X, rows.yes.astype(int))
    classes = PrivateLogisticRegression(x_bound=5.0, classes=[True, False], **options).fit(rows.X, rows.yes)
    answers = Categorical(3).fit(np.arange(900) % 3, budget=Budget(0.5, 1e-5), engine=LocalEngine(seed=1))
    (axes,) = forest({"linear": line, "probit": glm, "classes": classes}).axes
    assert labels(axes) == ["x0", "x1"]
    np.testing.assert_allclose(drawn(axes, 1)[0], glm.coef_, rtol=1e-9)
    np.testing.assert_allclose(drawn(axes, 1)[2], glm.posterior_.interval(0.9), rtol=1e-9)
    assert labels(forest(answers).axes[0]) == [f"probability of {k}" for k in range(3)]
    for each, share in ((line, line.posterior_.noise_share), (classes, classes.posterior_.noise_share),
                        (answers, answers.posterior.noise_share)):  # fmt: skip
        (axes,) = noise_sources(each).axes
        left = [bar.get_width() for bar in axes.containers[0]]
        np.testing.assert_allclose(left, 100 * np.sqrt(1 - share[: len(left)]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        for each, y in ((line, rows.y), (glm, rows.yes.astype(int)), (classes, rows.yes)):
            axes = predictive_check(each, rows.X, y).axes[0]
            assert sum(bar.get_height() for bar in axes.containers[0]) == 2500
        calibration(glm, rows.X, rows.yes.astype(int), path=tmp_path / "plot.png")
        points = next(p for p in calibration(classes, rows.X, rows.yes).axes[0].lines if p.get_marker() == "o")
    assert axes.get_xticklabels()[0].get_text() == "True"
    assert np.corrcoef(points.get_xdata(), points.get_ydata())[0, 1] > 0.95


def test_what_cannot_be_drawn_is_refused_in_one_line_and_without_a_value(rows: SimpleNamespace):
    options = {"budget": Budget(1.0, 1e-5), "engine": LocalEngine(seed=1), "draws": 200}
    line = PrivateLinearRegression(x_bound=5.0, y_bound=6.0, posterior="shrinkage", **options).fit(rows.X, rows.y)
    mean = GaussianMean(5.0, variance=1.0).fit(rows.y, budget=Budget(1.0, 1e-5), engine=LocalEngine(seed=1))
    classes = PrivateLogisticRegression(x_bound=5.0, classes=["no", "yes"], **options)
    classes.fit(rows.X, np.where(rows.yes, "yes", "no"))
    count = Bernoulli().fit(rows.yes, budget=Budget(1.0, 1e-5), engine=LocalEngine(seed=1))
    bad = {
        "noise_sources must be given a model that knows": lambda: noise_sources(line),
        "got FamilyFit with GridPosterior": lambda: noise_sources(mean),
        "model must be of two classes": lambda: calibration(line, rows.X, rows.y),
        "y must have a value for each of the 2500 rows, got 3": lambda: calibration(
            classes, rows.X, ["no", "yes", "no"]
        ),
        "y one of them in each row": lambda: calibration(classes, rows.X, ["secret717"] * 2500),
        "y must be one of the two classes": lambda: predictive_check(classes, rows.X, ["secret717"] * 2500),
        "y must be numeric": lambda: predictive_check(line, rows.X, ["secret717"] * 2500),
        "y must be finite": lambda: predictive_check(line, rows.X, np.append(rows.y[1:], np.nan)),
        "model must be a regression with sample_predictive": lambda: predictive_check(count, rows.X, rows.y),
        "bins must be in 2..1000, got bins=0": lambda: calibration(classes, rows.X, rows.yes, bins=0),
        "draws must be in 10..100000": lambda: predictive_check(line, rows.X, rows.y, draws=1),
        "model must be a fitted model, got model=int": lambda: forest(3),
        "models must be a fitted model or several of them": lambda: forest({}),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)  # nothing is drawn, so nothing is warned of
        for message, attempt in bad.items():
            with pytest.raises(InvalidInput, match=message) as caught:
                attempt()
            assert "717" not in str(caught.value)
            assert "\n" not in str(caught.value)
