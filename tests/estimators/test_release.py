"""A release is saved, loaded and fitted again as it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hubbub import Budget, InvalidInput, LocalEngine, PrivateLinearRegression
from hubbub.analyses.linear.release import RegressionRelease


@pytest.fixture
def release(regression_rows: np.ndarray) -> RegressionRelease:
    model = PrivateLinearRegression(Budget(5.0, 1e-5), 1.0, 1.0, posterior="shrinkage", engine=LocalEngine(3, seed=0))
    release: RegressionRelease = model.fit(regression_rows[:, :-1], regression_rows[:, -1]).release_
    return release


def test_round_trip(release: RegressionRelease, tmp_path: Path):
    release.save(tmp_path / "release.json")
    again = RegressionRelease.load(tmp_path / "release.json")
    assert (again.names, again.target, again.privacy) == (release.names, release.target, release.privacy)
    for name, part in release.noise_budget().items():
        np.testing.assert_array_equal(again.noise_budget()[name], part)


@pytest.fixture
def pure(regression_rows: np.ndarray) -> RegressionRelease:
    """The same rows under Laplace noise."""
    model = PrivateLinearRegression(
        Budget(10.0, 0.0), 1.0, 1.0, posterior="shrinkage",
        engine=LocalEngine(3, tolerate=20, seed=0, mechanism="discrete-laplace"),
    )  # fmt: skip
    release: RegressionRelease = model.fit(regression_rows[:, :-1], regression_rows[:, -1]).release_
    return release


def test_a_release_under_laplace_noise_says_so_and_is_fitted_as_that(pure: RegressionRelease, tmp_path: Path):
    """The law goes with the file, with fewer columns and with compared models; a file without it has normal noise."""
    path = tmp_path / "release.json"
    pure.save(path)
    again = RegressionRelease.load(path)
    shape = again.released.shape
    assert shape == pure.released.shape
    assert shape is not None
    assert 1 < shape < 1.2
    np.testing.assert_array_equal(again.posterior().draws, pure.posterior().draws)
    assert again.restricted(["x2", "x0"]).released.shape == shape
    assert sum(again.compare([["x0"], ["x0", "x1", "x2"]])) == pytest.approx(1)
    content = json.loads(path.read_text())
    del content["noise_shape"]
    path.write_text(json.dumps(content))
    older = RegressionRelease.load(path)
    assert older.released.shape is None
    assert not np.array_equal(older.posterior().draws, pure.posterior().draws)


@pytest.mark.parametrize("shape", [0, -1.0, 1e-3, 1e13, float("nan"), True, "1", [1.0]])
def test_a_shape_that_no_noise_has_is_refused(pure: RegressionRelease, tmp_path: Path, shape: object):
    path = tmp_path / "release.json"
    pure.save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), "noise_shape": shape}))
    with pytest.raises(InvalidInput, match="release must be a file written by `hubbub fit --release`") as error:
        RegressionRelease.load(path)
    assert "\n" not in str(error.value)


def test_restricted_is_the_regression_on_fewer_columns(release: RegressionRelease, regression_rows: np.ndarray):
    fewer = release.restricted(["x2", "x0"])
    assert fewer.names == ("x2", "x0")
    X, y = regression_rows[:, [2, 0]], regression_rows[:, -1]
    least_squares, squares, *_ = np.linalg.lstsq(np.column_stack([X, np.ones(len(y))]), y)
    posterior = fewer.posterior()
    np.testing.assert_allclose(posterior.mean, least_squares[:2], atol=0.1)
    assert posterior.residual_variance == pytest.approx(float(squares[0]) / len(y), rel=0.5)
    assert all(part.shape == (2,) for part in fewer.noise_budget().values())
    with pytest.raises(InvalidInput, match="features must be at least one name"):
        release.restricted([])


def test_restricted_to_all_is_the_same(release: RegressionRelease):
    np.testing.assert_array_equal(release.restricted(release.names).posterior().draws, release.posterior().draws)


def test_models_are_compared_under_the_given_prior(release: RegressionRelease):
    models = [["x0", "x1"], ["x0", "x1", "x2"]]
    assert sum(release.compare(models, prior_scale=1.0)) == pytest.approx(1)
    vague, tight = (release.compare(models, prior_scale=[1.0, 1.0, scale])[1] for scale in (100.0, 0.1))
    assert vague < tight  # a feature whose effect could be anything has to explain more


def test_noise_budget_shrinks_with_epsilon(regression_rows: np.ndarray):
    noise = []
    for epsilon in (1.0, 100.0):
        model = PrivateLinearRegression(
            Budget(epsilon, 1e-5), 1.0, 1.0, posterior="shrinkage", engine=LocalEngine(3, seed=0)
        )
        budget = model.fit(regression_rows[:, :-1], regression_rows[:, -1]).release_.noise_budget()
        assert set(budget) == {"sampling", "noise of X'y", "noise of XX'"}
        assert all((part > 0).all() and part.shape == (3,) for part in budget.values())
        noise.append(budget["noise of X'y"])
    assert (noise[1] < noise[0]).all()


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda r: r.posterior(kind="exact"), "kind must be one of noise-aware, shrinkage, got kind='exact'"),
        (lambda r: r.compare("x0"), "models must be 2 to 64 lists of features, got models='x0'"),
        (lambda r: r.compare(["x0", "x1"]), "features must be a list of names, got features='x0'"),
        (lambda r: r.compare(None), "models must be 2 to 64 lists of features, got models=None"),
        (lambda r: r.restricted(None), "features must be a list of names, got features=None"),
    ],
)
def test_bad_questions_are_one_line(release: RegressionRelease, call: Callable[[RegressionRelease], object], expected):
    with pytest.raises(InvalidInput) as error:
        call(release)
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


def test_a_fit_by_another_method_leaves_no_release_of_an_earlier_one(regression_rows: np.ndarray):
    X, y = regression_rows[:, :3], regression_rows[:, 3]
    model = PrivateLinearRegression(Budget(1.0, 1e-5), 1.0, 1.0, posterior="shrinkage").fit(X, y)
    assert model.release_.names == ("x0", "x1", "x2")
    model.set_params(method="plain", posterior="auto").fit(X, y)
    assert not hasattr(model, "release_")


def test_a_file_of_one_round_of_residuals_is_read_as_that(release: RegressionRelease, tmp_path: Path):
    path = tmp_path / "release.json"
    release.save(path)
    content = json.loads(path.read_text())
    first, _ = content.pop("later")
    path.write_text(json.dumps({**content, "format": "hubbub regression release 1", "second": first}))
    again = RegressionRelease.load(path)
    (look,) = again.released.later
    np.testing.assert_array_equal(look.sums.xx, release.released.later[0].sums.xx)
    path.write_text(json.dumps({**content, "format": "hubbub regression release 1", "second": None}))
    assert RegressionRelease.load(path).released.later == ()
