"""PrivateLinearRegression as scikit-learn users expect it, with the budget charged for each fit."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from joblib import parallel_backend
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from hubbub import (
    Budget,
    BudgetExceeded,
    InvalidInput,
    Ledger,
    LocalEngine,
    PrivacyLeakWarning,
    PrivateLinearRegression,
    TrustedAggregator,
)

BUDGET = Budget(1.0, 1e-5)

FRESH_NOISE = "every fit draws fresh noise from the operating system, so two fits of the same data must differ"
EXPECTED_FAILURES = {
    "check_regressor_data_not_an_array": FRESH_NOISE,
    "check_supervised_y_2d": FRESH_NOISE,
    "check_regressors_int": FRESH_NOISE,
    "check_fit_idempotent": FRESH_NOISE,
}


def model(**kwargs) -> PrivateLinearRegression:
    kwargs = {"budget": BUDGET, "x_bound": 1.0, "y_bound": 1.0, **kwargs}
    return PrivateLinearRegression(**kwargs)


@pytest.fixture
def data(regression_rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return regression_rows[:, :-1], regression_rows[:, -1]


@pytest.mark.parametrize("posterior", ["shrinkage", pytest.param("noise-aware", marks=pytest.mark.long)])
def test_scikit_learns_estimator_checks(posterior: str):
    """All pass but four, which compare two fits of the same data; those must fail, or noise were reused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator = PrivateLinearRegression(posterior=posterior)
        results = check_estimator(estimator, expected_failed_checks=EXPECTED_FAILURES, on_fail=None)
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(EXPECTED_FAILURES)
    assert sum(r["status"] == "passed" for r in results) >= 40


def test_the_readmes_example(data):
    X, y = data
    fitted = PrivateLinearRegression(
        budget=Budget(epsilon=1.0, delta=1e-5), x_bound=7.5, y_bound=7.5, method="projected",
        engine=LocalEngine(computes=3, tolerate=5),
    ).fit(X, y)  # fmt: skip
    mean, std = fitted.predict(X, return_std=True)
    assert mean.shape == std.shape == (400,)
    assert (std >= 1.0).all()
    assert fitted.posterior_.sample(1000).shape == (1000, 3)
    assert fitted.privacy_.is_guarantee
    assert fitted.privacy_.epsilon == pytest.approx(1.0, rel=1e-6)
    assert "D = 5 may be missing and C = 5 may collude, both" in str(fitted.privacy_)


@pytest.mark.parametrize("method", ["plain", "projected"])
@pytest.mark.parametrize("posterior", ["plugin", "regularised"])
@pytest.mark.parametrize("engine", [LocalEngine(seed=3), TrustedAggregator(seed=3)], ids=["local", "trusted"])
def test_with_a_generous_budget_the_coefficients_are_found(method, posterior, engine, data):
    fitted = model(budget=Budget(1e4, 1e-3), method=method, posterior=posterior, engine=engine).fit(*data)
    np.testing.assert_allclose(fitted.coef_, [0.5, -0.3, 0.1], atol=0.1)


def test_one_budget_is_spent_whatever_the_method(data):
    for method, rounds in (("plain", 1), ("projected", 2)):
        with Ledger(BUDGET) as ledger:
            model(method=method).fit(*data)
        assert len(ledger.entries) == rounds
        assert ledger.epsilon == pytest.approx(1.0, rel=1e-6)


def test_pipeline(data):
    pipeline = make_pipeline(FunctionTransformer(np.tanh), model())
    assert pipeline.fit(*data).predict(data[0]).shape == (400,)


@pytest.mark.filterwarnings("ignore::hubbub.errors.PrivacyLeakWarning")
def test_grid_search_charges_every_fit(data):
    """2 settings x 2 folds + 1 refit = 5 fits of one round each."""
    ledger = Ledger(Budget(3.0, 1e-5))
    search = GridSearchCV(model(ledger=ledger, method="plain"), {"prior_precision": [0.5, 2.0]}, cv=2)
    search.fit(*data)
    assert len(ledger.entries) == 5
    one = Ledger(BUDGET)
    model(ledger=one, method="plain").fit(*data)
    assert 1.0 < one.epsilon * 1.0001 < ledger.epsilon < 3.0


@pytest.mark.filterwarnings("ignore::hubbub.errors.PrivacyLeakWarning")
def test_grid_search_stops_at_the_budget(data):
    ledger = Ledger(Budget(1.5, 1e-5))
    search = GridSearchCV(
        model(ledger=ledger, method="plain"), {"prior_precision": [0.5, 2.0]}, cv=3, error_score="raise"
    )
    with pytest.raises(BudgetExceeded):
        search.fit(*data)
    assert ledger.epsilon <= 1.5


@pytest.mark.filterwarnings("ignore::hubbub.errors.PrivacyLeakWarning")
def test_cross_validation_in_two_processes_shares_a_ledger_file(data, tmp_path):
    ledger = Ledger(Budget(3.0, 1e-5), tmp_path / "ledger.json")
    cross_val_score(model(ledger=ledger, method="plain"), *data, cv=4, n_jobs=2)
    assert len(Ledger.open(tmp_path / "ledger.json").entries) == 4


@pytest.mark.filterwarnings("ignore::hubbub.errors.PrivacyLeakWarning")
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_enclosing_ledger_is_charged_by_every_worker(backend: str, data, tmp_path):
    with Ledger(Budget(3.0, 1e-5), tmp_path / "ledger.json") as ledger, parallel_backend(backend, n_jobs=2):
        cross_val_score(model(method="plain"), *data, cv=4)
    assert len(Ledger.open(ledger.path).entries) == 4


def test_enclosing_ledger_in_memory_refuses_other_processes(data):
    with Ledger(Budget(3.0, 1e-5)), pytest.raises(InvalidInput, match="ledger must live in a file"):
        pickle.dumps(model())
    fitted = model().fit(*data)
    with Ledger(BUDGET):
        pickle.dumps(fitted)  # a fitted model is only a result


def test_score_is_a_leak(data):
    fitted = model().fit(*data)
    with pytest.warns(PrivacyLeakWarning, match="score is computed from the rows as they are"):
        assert fitted.score(*data) < 1


def test_clone_keeps_the_same_purse_and_engine_settings():
    ledger = Ledger(BUDGET)
    original = model(ledger=ledger, engine=LocalEngine(computes=5, tolerate=2))
    copied = clone(original)
    assert copied.ledger is ledger
    assert copied.engine == original.engine


def test_fitted_model_survives_a_pickle(data):
    fitted = model().fit(*data)
    again = pickle.loads(pickle.dumps(fitted))
    assert (again.predict(data[0]) == fitted.predict(data[0])).all()
    assert str(again.privacy_) == str(fitted.privacy_)


def test_bounds_from_the_data_are_a_leak(data):
    with pytest.warns(PrivacyLeakWarning) as caught:
        fitted = PrivateLinearRegression(budget=BUDGET).fit(*data)
    assert [str(w.message).split()[0] for w in caught] == ["x_bound", "y_bound"]
    assert not fitted.privacy_.is_guarantee
    assert "x_bound was taken from the data" in str(fitted.privacy_)


def test_one_bound_per_column(data):
    fitted = model(x_bound=[1.0, 0.5, 2.0], method="plain").fit(*data)
    assert fitted.result_.bound.x == (1.0, 0.5, 2.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y_bound": 0.0}, "y_bound must be positive and finite, got y_bound=0.0"),
        ({"y_bound": -1}, "y_bound must be positive and finite, got y_bound=-1.0"),
        ({"x_bound": [1.0, 2.0]}, "x_bound must be one entry or 3 of them, got x_bound=2 entries"),
        ({"x_bound": [1.0, -2.0, 1.0]}, "x_bound must be positive and finite, got x_bound=-2.0"),
        ({"method": "magic"}, "method must be one of auto, projected, plain, got method='magic'"),
        ({"posterior": "magic"}, "posterior must be one of auto, regularised, plugin for method 'plain'"),
        (
            {"method": "auto", "posterior": "plugin"},
            "posterior must be one of auto, noise-aware, shrinkage for method 'auto'",
        ),
        ({"prior_precision": 0.0}, "prior_precision must be positive"),
        ({"noise_precision": float("nan")}, "noise_precision must be positive"),
        ({"budget": 1.0}, "budget must be a Budget, got budget=1.0"),
        ({"ledger": "l.json"}, "ledger must be a Ledger, got ledger='l.json'"),
        ({"engine": "local"}, "engine must be an engine, got engine='local'"),
        ({"engine": LocalEngine}, "engine must be an engine"),
        ({"x_bound": {"a": 1}}, "x_bound must be given for "),
        ({"prior_precision": "a"}, "prior_precision must be positive"),
        ({"x_bound": (2.0, 1.0)}, "x_bound must be a pair .low, high. with low < high"),
        ({"fit_intercept": True}, "fit_intercept must be left out for method 'plain'"),
        ({"x_norm": 1.0}, "x_norm must be left out for method 'plain'"),
        ({"method": "auto", "x_norm": 1.0}, "x_norm must be given without x_bound"),
        ({"method": "auto", "x_bound": None, "x_norm": -1.0}, "x_norm must be positive"),
        ({"method": "auto", "prior_scale": -1.0}, "prior_scale must be a positive number"),
        (
            {"method": "auto", "prior_scale": [1.0, 2.0]},
            "prior_scale must be a positive number, or one for each of the 3",
        ),
        (
            {"method": "auto", "posterior": "shrinkage", "prior_scale": 1.0},
            "prior_scale must be left out for posterior 'shrinkage'",
        ),
        ({"method": "auto", "draws": 5}, "draws must be a whole number >= 100"),
        ({"method": "auto", "fit_intercept": "yes"}, "fit_intercept must be True, False or 'auto'"),
        ({"engine": LocalEngine(tolerate=399)}, r"dropouts \+ colluders must be at most K - 2 = 398"),
        ({"engine": LocalEngine(fraction_bits=52)}, "fraction_bits must be at most"),
    ],
)
def test_bad_parameters_are_one_line_and_cost_nothing(change, message: str, data):
    ledger = Ledger(BUDGET)
    with pytest.raises(InvalidInput, match=message) as caught:
        model(**{"method": "plain", "ledger": ledger, **change}).fit(*data)
    assert "\n" not in str(caught.value)
    assert ledger.entries == ()


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("where", ["X", "y"])
def test_bad_values_are_one_line_and_cost_nothing(where: str, value: float, data):
    X, y = (a.copy() for a in data)
    {"X": X, "y": y[:, None]}[where][5, -1] = value
    ledger = Ledger(BUDGET)
    with pytest.raises(InvalidInput, match=rf"{where} must be finite, got another in {where}\[5, .\];"):
        model(ledger=ledger).fit(X, y)
    assert ledger.entries == ()


@pytest.mark.parametrize("change", [{}, {"fit_intercept": False}, {"method": "plain"}, {"method": "projected"}])
def test_a_constant_column_is_a_column_like_any_other(change, data):
    """A refusal would say that it is constant: with one cell of 1e-300 in place of 0 the fit would go through."""
    X, y = data
    for value in (0.0, 1.0):
        constant = np.column_stack([X, np.full(400, value)])
        other = constant.copy()
        other[7, 3] += 1e-300
        plain = model(engine=LocalEngine(seed=3), budget=Budget(50.0, 1e-5), **change)
        for table in (constant, other):
            fitted = clone(plain).fit(table, y)
            np.testing.assert_allclose(fitted.coef_[:3], [0.5, -0.3, 0.1], atol=0.1)
            assert np.isfinite(fitted.predict(table, return_std=True)).all()


def test_predict_refuses_what_is_not_finite(data):
    fitted = model().fit(*data)
    with pytest.raises(InvalidInput, match="X must be finite"):
        fitted.predict(np.array([[0.0, np.nan, 0.0]]))
