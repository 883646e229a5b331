"""A stored model predicts what the fitted one does, and a damaged file is one line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hubbub import Budget, InvalidInput, PrivateLinearRegression
from hubbub.analyses.linear.stored import StoredModel


@pytest.fixture
def stored(regression_rows: np.ndarray) -> tuple[PrivateLinearRegression, StoredModel]:
    fitted = PrivateLinearRegression(Budget(1.0, 1e-5), x_bound=1.0, y_bound=1.0)
    fitted.fit(regression_rows[:, :-1], regression_rows[:, -1])
    return fitted, fitted.stored(["a", "b", "c"], "y")


def test_round_trip(stored, tmp_path: Path, regression_rows: np.ndarray):
    fitted, model = stored
    model.save(tmp_path / "model.json")
    again = StoredModel.load(tmp_path / "model.json")
    X = regression_rows[:, :-1]
    for mine, theirs in zip(again.predict(X), fitted.predict(X, return_std=True), strict=True):
        np.testing.assert_allclose(mine, theirs)
    assert again.privacy["guarantee"] is True
    assert again.names == ["a", "b", "c"]


def test_coefficients_have_their_intervals(stored):
    fitted, model = stored
    row = model.coefficients()["b"]
    assert row["mean"] == pytest.approx(fitted.coef_[1])
    assert row["low"] < row["mean"] < row["high"]


@pytest.mark.parametrize("change", [
    {"format": "other"}, {"mean": [1.0]}, {"covariance": "none"}, {"names": ["a"]}, {"residual_variance": None},
    {"residual_variance": 0}, {"residual_variance": 10**400}, {"mean": [float("nan")] * 4},
    {"covariance": np.diag([-1.0, 1.0, 1.0, 1.0]).tolist()}, {"privacy": []},
    {"rows_covariance": np.diag([-1.0, 1.0, 1.0, 1.0]).tolist()}, {"rows_covariance": [[1.0]]}, {"rows_covariance": "none"},
    {"rows_covariance": np.full((4, 4), np.nan).tolist()}, {"covariance": [[1.0]]},
])  # fmt: skip
def test_damaged_file_is_one_line(stored, tmp_path: Path, change: dict[str, object]):
    path = tmp_path / "model.json"
    stored[1].save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(InvalidInput, match="model must be a file written by `hubbub fit --out`"):
        StoredModel.load(path)


def test_missing_file_is_one_line(tmp_path: Path):
    with pytest.raises(InvalidInput, match="model must be readable, got model=.*: No such file"):
        StoredModel.load(tmp_path / "none.json")


def test_a_file_of_before_has_one_covariance_for_coefficients_and_predictions(stored, tmp_path: Path):
    path = tmp_path / "model.json"
    stored[1].save(path)
    content = json.loads(path.read_text())
    del content["rows_covariance"]
    path.write_text(json.dumps(content))
    again = StoredModel.load(path).posterior
    assert again.rows_covariance is None
    row = np.array([[1.0, 0.0, 0.0]])
    expected = again.joint.covariance[0, 0] + 2 * again.joint.covariance[0, -1] + again.joint.covariance[-1, -1]
    assert again.predict(row)[1][0] ** 2 == pytest.approx(expected + again.residual_variance)
