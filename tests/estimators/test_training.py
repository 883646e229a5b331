"""Estimators of many steps are scikit-learn's: parameters, clones, pickles, repr, and files of what was fitted."""

from __future__ import annotations

import json
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpyro.infer.autoguide import AutoMultivariateNormal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from analyses.iterative import models
from hubbub import (
    Budget,
    InvalidInput,
    LocalEngine,
    PrivateGaussianMixture,
    PrivateSGLD,
    PrivateSVI,
    TrustedAggregator,
    VariationalLogisticRegression,
)
from hubbub.errors import PrivacyLeakWarning

X, Y = models.logistic_data(400)
FRESH_NOISE = "every fit draws fresh noise from the operating system, so two fits of the same data may differ"
MAKE = {
    "svi": lambda **k: PrivateSVI(models.logistic, AutoMultivariateNormal, **{"steps": 40, "seed": 1, **k}),
    "sgld": lambda **k: PrivateSGLD(models.logistic, **{"steps": 20, "seed": 1, **k}),
    "logistic": lambda **k: VariationalLogisticRegression(**{"steps": 5, "seed": 1, **k}),
    "mixture": lambda **k: PrivateGaussianMixture(3, **{"steps": 5, "seed": 1, **k}),
}
LOAD = {
    "svi": lambda path: PrivateSVI.load(path, models.logistic, AutoMultivariateNormal),
    "sgld": lambda path: PrivateSGLD.load(path, models.logistic),
    "logistic": VariationalLogisticRegression.load,
    "mixture": PrivateGaussianMixture.load,
}


@pytest.fixture(scope="module")
def fitted():
    engine = TrustedAggregator(seed=3)
    return {name: make(engine=engine).fit(*((X,) if name == "mixture" else (X, Y))) for name, make in MAKE.items()}


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [VariationalLogisticRegression(), PrivateGaussianMixture()])
def test_scikit_learns_estimator_checks(estimator):
    """All pass but those that compare two fits. Estimators of a NumPyro model take none of these checks' data."""
    failures = dict.fromkeys(
        ("check_classifier_data_not_an_array", "check_supervised_y_2d", "check_fit_idempotent"), FRESH_NOISE
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(estimator, expected_failed_checks=failures, on_fail=None)
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []
    assert {r["check_name"] for r in results if r["status"] == "xfail"} <= set(failures)
    assert sum(r["status"] == "passed" for r in results) >= 35


@pytest.mark.parametrize("name", MAKE)
def test_parameters_are_those_of_init_and_are_checked_by_fit(name):
    model = MAKE[name](budget=Budget(2.0, 1e-6))
    again = clone(model)
    assert again is not model
    assert again.get_params().keys() == model.get_params().keys()
    assert again.get_params()["budget"] == Budget(2.0, 1e-6)
    assert again.set_params(steps=7).steps == 7
    assert f"{type(model).__name__}(budget=Budget(epsilon=2" in repr(model) or "budget=Budget(epsilon=2" in repr(model)
    with pytest.raises(InvalidInput, match="steps must be a whole number"):
        clone(model).set_params(steps=0).fit(*((X,) if name == "mixture" else (X, Y)))
    with pytest.raises(NotFittedError, match="must be fitted first"):
        model.summary()


def same(one, other) -> None:
    """Of the same fit: tables, reports and predictions."""
    assert one.summary().rows == other.summary().rows
    assert str(one.summary()) == str(other.summary())
    assert str(one.privacy_) == str(other.privacy_)
    assert one.privacy_.as_dict() == other.privacy_.as_dict()
    assert one.privacy_.is_guarantee == other.privacy_.is_guarantee
    mine, theirs = one.predict(X[:5]), other.predict(X[:5])
    for a, b in zip(mine.values(), theirs.values(), strict=True) if isinstance(mine, dict) else [(mine, theirs)]:
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", MAKE)
def test_a_fitted_one_survives_a_pickle_and_a_file(name, fitted, tmp_path: Path):
    model, path = fitted[name], tmp_path / "model.json"
    same(pickle.loads(pickle.dumps(model)), model)
    model.save(path)
    again = LOAD[name](path)
    same(again, model)
    assert (again.steps, again.seed, again.engine) == (model.steps, 1, None)
    again.save(tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text()) == json.loads(path.read_text())


DAMAGE = {
    "svi": [("flat", [1.0]), ("noise", {}), ("rows", [[[3], "x"]]), ("note", None)],
    "sgld": [("positions", [[1.0]]), ("step_size", [1]), ("rows", [])],
    "logistic": [("mean", [1.0]), ("covariance", np.diag([-1.0, 1, 1, 1]).tolist()), ("classes", [1, 1]), ("features", 3)],
    "mixture": [("weights", [float("nan")] * 3), ("variances", "none"), ("features", ["a", "a", "b"])],
}  # fmt: skip


@pytest.mark.parametrize("name", MAKE)
def test_damaged_files_are_one_line(name, fitted, tmp_path: Path):
    path = tmp_path / "model.json"
    fitted[name].save(path)
    content = json.loads(path.read_text())
    bad = [{**content, "found": {**content["found"], key: value}} for key, value in DAMAGE[name]]
    bad += [{**content, "format": "other"}, {**content, "privacy": {}}, {**content, "settings": {}}, [1]]
    for each in [*map(json.dumps, bad), "{", ""]:
        path.write_text(each)
        with pytest.raises(InvalidInput, match=r"must be") as error:
            LOAD[name](path)
        assert "\n" not in str(error.value)
    with pytest.raises(InvalidInput, match=r"model must be readable, got model=.*: No such file"):
        LOAD[name](tmp_path / "none.json")


def other(X, y=None):
    import numpyro
    import numpyro.distributions as dist

    v = numpyro.sample("v", dist.Normal(0.0, 1.0))
    with numpyro.plate("clients", X.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=X[:, 0] * v), obs=y)


def test_loading_with_another_model_or_guide_says_which_it_must_be(fitted, tmp_path: Path):
    path = tmp_path / "model.json"
    fitted["svi"].save(path)
    with pytest.raises(
        InvalidInput, match=r"model must be the one that was fitted, with sites .*'w'.*got one with .*'v'"
    ):
        PrivateSVI.load(path, other, AutoMultivariateNormal)
    with pytest.raises(InvalidInput, match="guide must be the one that was fitted, AutoMultivariateNormal"):
        PrivateSVI.load(path, models.logistic)
    with pytest.raises(InvalidInput, match=r"model must be a file written by PrivateSGLD\.save"):
        PrivateSGLD.load(path, models.logistic)


def test_labels_of_any_kind_columns_with_names_and_pipelines():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    engine = LocalEngine(seed=1)
    model = VariationalLogisticRegression(steps=5, engine=engine, classes=["no", "yes"])
    model.fit(frame, np.array(["no", "yes"])[Y])
    assert set(model.predict(frame)) <= {"no", "yes"}
    assert [row["name"] for row in model.summary().rows] == ["a", "b", "c", "intercept"]
    with pytest.warns(PrivacyLeakWarning, match="classes was taken from the data"):
        leaky = VariationalLogisticRegression(steps=5).fit(X, Y + 1)
    assert not leaky.privacy_.is_guarantee
    half = FunctionTransformer(np.tanh)  # a step without state: what it learned would be outside of the guarantee
    pipeline = make_pipeline(half, PrivateGaussianMixture(2, steps=5, engine=engine)).fit(X)
    assert pipeline.predict(X).shape == (400,)
