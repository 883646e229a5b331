"""Files of generalised linear models: they predict what was fitted, take other priors, and a damaged one is one line."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub import Budget, GLMRelease, InvalidInput, PrivateGLM, PrivateLogisticRegression, TrustedAggregator
from hubbub.analyses.glm.families import FAMILIES
from hubbub.analyses.glm.stored import StoredGLM
from hubbub.analyses.linear.stored import StoredModel
from hubbub.analyses.saved import load_model, load_release

NAMES = ["age", "dose"]


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(50, 12, 3000), rng.random(3000)])
    return X, (rng.random(3000) < 1 / (1 + np.exp(2.0 - 0.04 * X[:, 0]))).astype(float)


@pytest.fixture(scope="module")
def fitted(rows) -> PrivateLogisticRegression:
    X, y = rows
    model = PrivateLogisticRegression(
        Budget(3.0, 1e-5), [(0, 110), (0, 1)], TrustedAggregator(5), classes=["no", "yes"], draws=400
    )
    return model.fit(X, np.where(y == 1, "yes", "no"))


def test_a_stored_model_predicts_what_the_fitted_one_does(fitted, rows, tmp_path: Path):
    fitted.stored(NAMES, "claim").save(tmp_path / "model.json")
    again, X = load_model(tmp_path / "model.json"), rows[0][:50]
    assert isinstance(again, StoredGLM)
    found = again.predictions(X)
    assert list(found) == ["probability", "low", "high"]
    np.testing.assert_array_equal(found["probability"], fitted.predict_proba(X)[:, 1])
    np.testing.assert_array_equal(found["low"], fitted.posterior_.expected_interval(X)[:, 0])
    assert (found["low"] < found["probability"]).all()
    assert (found["probability"] < found["high"]).all()
    assert (again.names, again.target, again.classes, again.family) == (NAMES, "claim", ("no", "yes"), "bernoulli")
    assert again.coefficients() == fitted.stored(NAMES, "claim").coefficients()
    assert again.privacy == fitted.privacy_.as_dict()


def test_a_release_gives_the_same_posterior_and_others(fitted, tmp_path: Path):
    fitted.release_.save(tmp_path / "release.json")
    again = GLMRelease.load(tmp_path / "release.json")
    assert again.labels == ("no", "yes")
    np.testing.assert_array_equal(again.posterior(draws=400).draws, fitted.posterior_.draws)
    narrow = again.posterior(prior_scale=1e-4, draws=400)
    assert narrow.std == pytest.approx([1e-4, 1e-4], rel=0.2)


@pytest.mark.parametrize("family", FAMILIES)
def test_files_of_every_family(family: str, rows, tmp_path: Path):
    X, y = rows
    bound = None if FAMILIES[family].yes_no else 10.0
    model = PrivateGLM(family, Budget(50.0, 1e-5), [(0, 110), (0, 1)], bound, TrustedAggregator(1), draws=200)
    model.fit(X[:500], 1 + y[:500] if family == "gamma" else y[:500])
    model.stored(NAMES, "y").save(tmp_path / "model.json")
    model.release_.save(tmp_path / "release.json")
    again = load_model(tmp_path / "model.json").predictions(X[:9])
    np.testing.assert_array_equal(next(iter(again.values())), model.predict(X[:9]))
    release = load_release(tmp_path / "release.json")
    assert isinstance(release, GLMRelease)
    for field in fields(release.stepped):  # nothing that a posterior is made of is left out
        np.testing.assert_equal(
            as_plain(getattr(release.stepped, field.name)), as_plain(getattr(model.release_.stepped, field.name))
        )
    np.testing.assert_array_equal(release.posterior(draws=200).draws, model.posterior_.draws)


def as_plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [as_plain(each) for each in value]
    return asdict(value) if is_dataclass(value) else value


def damaged(path: Path, change: dict[str, object]) -> Path:
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    return path


MODELS = [
    {"format": "other"}, {"names": ["a"]}, {"names": "ab"}, {"names": ["a", "a"]}, {"mean": [1.0]}, {"draws": None},
    {"draws": []}, {"draws": [[1.0, 2.0]]}, {"draws": [[1.0, 2.0, 3.0, float("nan")]]}, {"draws": [[1, 2, 3, 10**400]]},
    {"draws": [[1.0], [1.0, 2.0]]}, {"family": "other"}, {"family": ["bernoulli"]},
    {"labels": ["no"]}, {"labels": ["no", "no"]}, {"labels": 1}, {"privacy": []}, {"mean": "none"},
]  # fmt: skip


@pytest.mark.parametrize("change", MODELS)
def test_a_damaged_model_is_one_line(fitted, tmp_path: Path, change: dict[str, object]):
    fitted.stored(NAMES, "claim").save(path := tmp_path / "model.json")
    with pytest.raises(InvalidInput, match=r"^model must be a file written by `hubbub fit --out`, got model=.*json;"):
        load_model(damaged(path, change))


RELEASES = [
    {"format": None}, {"names": ["a"]}, {"family": "other"}, {"n": 1}, {"n": float("inf")}, {"n": 10**400},
    {"noise_std": -1}, {"noise_std": None}, {"noise_std": float("nan")}, {"noise_shape": -1}, {"radius": 0},
    {"information": [[1.0]]}, {"information": np.full((3, 3), np.nan).tolist()}, {"score": [1.0]}, {"ratio": 0},
    {"information": [[1, 2, 3], [0, 1, 2], [0, 0, 1]]}, {"information": (1e9 * np.eye(3)).tolist()},
    {"looks": []}, {"looks": [{}]}, {"looks": [{"around": [0, 0, 0], "score": [0, 0, 0], "noise_std": 0}]},
    {"looks": [{"around": [0, 0, 1e40], "score": [0, 0, 0], "noise_std": 1}]}, {"scale": [1, 0, 1]},
    {"scale": [1e300] * 3}, {"centre": [0.0]}, {"doubt": [-1, 0, 0]}, {"privacy": []}, {"labels": ["no"]},
]  # fmt: skip


@pytest.mark.parametrize("change", RELEASES)
def test_a_damaged_release_is_one_line(fitted, tmp_path: Path, change: dict[str, object]):
    fitted.release_.save(path := tmp_path / "release.json")
    with pytest.raises(InvalidInput, match=r"^release must be a file written by `hubbub fit --release`, got release="):
        load_release(damaged(path, change))


def test_a_file_of_another_kind_is_called_so(fitted, tmp_path: Path):
    fitted.release_.save(path := tmp_path / "release.json")
    with pytest.raises(InvalidInput, match="must be a 'hubbub linear regression 2', got model=hubbub generalised"):
        StoredModel.load(path)
    with pytest.raises(InvalidInput, match="model must be readable, got model=.*none.json: No such file"):
        load_model(tmp_path / "none.json")
