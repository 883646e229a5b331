"""Generalised linear models as scikit-learn users expect them: raw units, labels of any kind, one line for bad input."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor
from sklearn.model_selection import cross_val_score
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
    PrivateGLM,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivatePoissonRegression,
    TrustedAggregator,
)
from hubbub.errors import UntrustworthyWarning

BUDGET = Budget(1.0, 1e-6)
LARGE = Budget(1e4, 1e-6)
BOUND = {"age": (0, 110), "smoker": (0, 1)}
FRESH_NOISE = "every fit draws fresh noise from the operating system, so two fits of the same data must differ"
EXPECTED_FAILURES = {
    "check_classifier_data_not_an_array": FRESH_NOISE,
    "check_supervised_y_2d": FRESH_NOISE,
    "check_fit_idempotent": FRESH_NOISE,
}


@pytest.fixture
def people():
    """Age and whether they smoke, a claim (yes or no) and visits (counts)."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(8)
    n = 4000
    frame = pandas.DataFrame({"age": rng.normal(50, 12, n), "smoker": (rng.random(n) < 0.3).astype(int)})
    eta = -2.0 + 0.03 * frame["age"] + 0.5 * frame["smoker"]
    frame["claim"] = (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(int)
    frame["visits"] = rng.poisson(np.exp(0.02 * frame["age"] + 0.4 * frame["smoker"]))
    return frame


@pytest.mark.slow
def test_scikit_learns_estimator_checks():
    """All pass but three, which compare the predictions of two fits; these may agree by chance, as labels are few."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator = PrivateLogisticRegression(draws=100)
        results = check_estimator(estimator, expected_failed_checks=EXPECTED_FAILURES, on_fail=None)
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []
    assert {r["check_name"] for r in results if r["status"] == "xfail"} <= set(EXPECTED_FAILURES)
    assert sum(r["status"] == "passed" for r in results) >= 45


def test_a_data_frame_in_raw_units(people):
    model = PrivateLogisticRegression(BUDGET, BOUND, LocalEngine(seed=2)).fit(people[["age", "smoker"]], people.claim)
    least = LogisticRegression(C=np.inf, max_iter=1000).fit(people[["age", "smoker"]].to_numpy(), people.claim)
    low, high = model.posterior_.interval(0.99)[0]
    assert 0 < low < least.coef_[0, 0] < high
    assert model.coef_.shape == (1, 2)
    assert model.posterior_.sample(7, seed=1).shape == (7, 2)
    assert [row["name"] for row in model.summary().rows] == ["age", "smoker", "intercept"]
    assert {"ess", "r_hat"} <= set(model.summary().rows[0])
    assert model.feature_names_in_.tolist() == ["age", "smoker"]
    assert model.privacy_.as_dict()["epsilon"] == pytest.approx(1.0, rel=1e-6)


def test_probabilities_are_averaged_over_the_posterior(people):
    X = people[["age", "smoker"]]
    model = PrivateLogisticRegression(BUDGET, BOUND, LocalEngine(seed=2)).fit(X, people.claim)
    far = np.array([[110.0, 1.0], [0.0, 0.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no names of columns
        proba = model.predict_proba(far)
    draws = model.posterior_.sample_all(4000, seed=1)
    expected = (1 / (1 + np.exp(-(draws[:, :-1] @ far.T + draws[:, -1:])))).mean(axis=0)
    np.testing.assert_allclose(proba[:, 1], expected, atol=0.01)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    decision = model.decision_function(X)
    np.testing.assert_allclose(1 / (1 + np.exp(-decision)), model.predict_proba(X)[:, 1])
    np.testing.assert_array_equal(model.predict(X), (decision > 0).astype(int))
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(model.predict_proba(X)))


@pytest.mark.parametrize("labels", [("no", "yes"), (False, True), (-1, 1), (3, 7)])
def test_labels_of_any_two_kinds(labels, people):
    y = np.asarray(labels)[people.claim]
    X = people[["age", "smoker"]].to_numpy()
    given = PrivateLogisticRegression(LARGE, [(0, 110), (0, 1)], TrustedAggregator(seed=1), classes=labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)
        given.fit(X, y)
    assert given.classes_.tolist() == list(labels)
    assert set(given.predict(X)) <= set(labels)
    turned = PrivateLogisticRegression(LARGE, [(0, 110), (0, 1)], TrustedAggregator(seed=1), classes=labels[::-1])
    np.testing.assert_allclose(turned.fit(X, y).coef_, -given.coef_, atol=0.02)
    if labels == (False, True):  # the same as 0 and 1
        return
    with pytest.warns(PrivacyLeakWarning, match="classes was taken from the data"):
        found = PrivateLogisticRegression(LARGE, [(0, 110), (0, 1)], TrustedAggregator(seed=1)).fit(X, y)
    assert not found.privacy_.is_guarantee


@pytest.mark.parametrize("x_bound", [[(0, 110), (0, 1)], np.array([[0, 110], [0, 1]]), BOUND])
def test_counts(x_bound, people):
    X = people[["age", "smoker"]]
    model = PrivatePoissonRegression(LARGE, x_bound, 30, TrustedAggregator(seed=1)).fit(X, people.visits)
    least = PoissonRegressor(alpha=0, max_iter=1000).fit(X.to_numpy() / [10, 1], people.visits)
    np.testing.assert_allclose(model.coef_, least.coef_ / [10, 1], rtol=0.1)
    np.testing.assert_allclose(model.predict(X), least.predict(X.to_numpy() / [10, 1]), rtol=0.1)
    low, high = model.predict_interval(X, 0.9).T
    assert ((low < model.predict(X)) & (model.predict(X) < high)).all()
    same = PrivateGLM("poisson", LARGE, x_bound, 30, TrustedAggregator(seed=1)).fit(X, people.visits)
    np.testing.assert_array_equal(same.coef_, model.coef_)


def test_positive_numbers_of_any_unit(people):
    """Costs in cents: as scikit-learn finds them where noise is negligible, with about the right dispersion."""
    X, rng = people[["age", "smoker"]], np.random.default_rng(3)
    y = np.exp(0.02 * people["age"] + 0.4 * people["smoker"] + 9) * rng.gamma(2.0, 0.5, len(people))
    model = PrivateGLM("gamma", LARGE, BOUND, 300_000, TrustedAggregator(seed=1)).fit(X, y)
    least = GammaRegressor(alpha=0, max_iter=1000).fit(X.to_numpy() / [10, 1], y)
    np.testing.assert_allclose((model.coef_ - least.coef_ / [10, 1]) / model.posterior_.std, 0, atol=3)
    np.testing.assert_allclose(model.predict(X), least.predict(X.to_numpy() / [10, 1]), rtol=0.1)
    low, high = model.posterior_.dispersion.interval(0.99)
    assert low < 0.5 < high < 0.7


def test_the_gaussian_family_is_a_linear_regression(people):
    """The same numbers as PrivateLinearRegression's, and its own intervals of new y in `linear_`."""
    X = people[["age", "smoker"]]
    y = 2.0 + 0.1 * people["age"] - people["smoker"] + np.random.default_rng(3).normal(0, 0.5, len(people))
    linear = PrivateLinearRegression(BUDGET, [(0, 110), (0, 1)], (0, 20), engine=TrustedAggregator(seed=1)).fit(X, y)
    model = PrivateGLM("gaussian", BUDGET, [(0, 110), (0, 1)], (0, 20), TrustedAggregator(seed=1)).fit(X, y)
    np.testing.assert_array_equal(model.coef_, linear.coef_)
    np.testing.assert_allclose(model.predict(X), linear.predict(X), rtol=1e-9)
    np.testing.assert_array_equal(model.linear_.predict_interval(X), linear.predict_interval(X))
    expected, new = model.predict_interval(X), linear.predict_interval(X)
    assert (np.diff(expected) < 0.2 * np.diff(new)).all()
    assert model.posterior_.dispersion.value == pytest.approx(0.25, abs=0.05)
    assert [row["name"] for row in model.summary().rows] == ["age", "smoker", "intercept"]
    assert model.privacy_.as_dict()["epsilon"] == pytest.approx(1.0, rel=1e-6)
    with pytest.raises(InvalidInput, match="exposure must be left out"):
        model.predict(X, exposure=np.ones(len(X)))


def test_priors_are_in_the_units_of_the_data(people):
    X = people[["age", "smoker"]]
    narrow = PrivateGLM("bernoulli", BUDGET, BOUND, engine=TrustedAggregator(seed=1), prior_scale=[1e-4, 1e-3])
    narrow.fit(X, people.claim)
    assert (np.abs(narrow.coef_) < [3e-4, 3e-3]).all()
    elsewhere = narrow.result_.sampled(prior_scale=[1e-4, 1e-3], prior_mean=[0.04, 0.5])
    np.testing.assert_allclose(elsewhere.mean, [0.04, 0.5], atol=3e-3)
    assert narrow.result_.sampled(prior_scale=10.0).mean[0] == pytest.approx(0.03, abs=0.03)


def test_bounds_that_are_left_out_are_a_leak(people):
    with pytest.warns(PrivacyLeakWarning) as caught:
        model = PrivatePoissonRegression(engine=TrustedAggregator(seed=1)).fit(people[["age", "smoker"]], people.visits)
    assert [str(w.message).split()[0] for w in caught if w.category is PrivacyLeakWarning] == ["x_bound", "y_bound"]
    assert not model.privacy_.is_guarantee
    with pytest.warns(PrivacyLeakWarning, match="score is computed from the rows"):
        assert model.score(people[["age", "smoker"]], people.visits) > 0


def test_clone_pickle_pipeline_and_ledger(people):
    X, y = people[["age", "smoker"]].to_numpy(), people.claim.to_numpy()
    model = PrivateLogisticRegression(Budget(0.5, 1e-6), [(0, 110), (0, 1)], TrustedAggregator(seed=1))
    assert clone(model).get_params()["x_bound"] == [(0, 110), (0, 1)]
    assert "family" not in PrivatePoissonRegression().get_params()
    with Ledger(Budget(1.0, 1e-5)) as ledger:
        pipeline = make_pipeline(FunctionTransformer(), model).fit(X, y)
        assert len(ledger.entries) == 4
        again = pickle.loads(pickle.dumps(pipeline))
        np.testing.assert_array_equal(again.predict_proba(X), pipeline.predict_proba(X))
        with pytest.raises(BudgetExceeded), pytest.warns(PrivacyLeakWarning, match="score"):
            cross_val_score(model, X, y, cv=5, error_score="raise")


BAD = {
    "one class": ({}, [[1.0]] * 4, [1, 1, 1, 1], "y must have two classes, got one class only"),
    "three classes": ({}, [[1.0]] * 4, [0, 1, 2, 0], "y must have two classes, got more"),
    "unknown label": ({"classes": ["a", "b"]}, [[1.0]] * 3, ["a", "b", "secret"], "y must be one of the two classes"),
    "same classes": ({"classes": [1, 1]}, [[1.0]] * 3, [0, 1, 1], "classes must be two distinct labels"),
    "NaN": ({}, [[1.0], [np.nan], [2.0]], [0, 1, 0], r"X must be finite, got another in X\[1, 0\]"),
    "bound by name": ({"x_bound": {"age": 1}}, [[1.0]] * 3, [0, 1, 0], "x_bound must be given for x0"),
    "budget": ({"budget": 1.0}, [[1.0]] * 3, [0, 1, 0], "budget must be a Budget"),
    "prior": ({"prior_scale": -1.0}, [[1.0]] * 3, [0, 1, 0], "prior_scale must be a positive number"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_of_a_classifier_is_one_line_and_nothing_is_charged(case: str):
    options, X, y, message = BAD[case]
    with Ledger(BUDGET) as ledger, pytest.raises(InvalidInput, match=message) as caught:
        PrivateLogisticRegression(**{"x_bound": 3.0, **options}).fit(X, y)
    assert not ledger.entries
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({"family": "poisson", "y_bound": 9}, [0, 1, -717], "y must be a whole number >= 0 for the family poisson"),
        ({"family": "poisson", "y_bound": 9}, [0, 1, 717.5], "y must be a whole number >= 0"),
        ({"family": "poisson", "y_bound": -1.0}, [0, 1, 2], "y_bound must be positive and finite"),
        ({"family": "poisson", "y_bound": (2, 9)}, [0, 1, 2], r"y_bound must be \(0, B\) for counts"),
        ({"family": "bernoulli"}, [0, 1, 717], "y must be 0 or 1 for the family bernoulli"),
        ({"family": "bernoulli", "y_bound": 3}, [0, 1, 1], "y_bound must be left out for bernoulli"),
        ({"family": "negative-binomial", "y_bound": 9}, [0, 1, 717.5], "y must be a whole number >= 0"),
        ({"family": "gamma", "y_bound": 9}, [0, 1, 717], "y must be a number > 0 for the family gamma"),
        ({"family": "gamma", "y_bound": (1, 9)}, [2, 1, 1], r"y_bound must be \(0, B\) for positive numbers"),
        ({"family": "gaussian", "y_bound": -9}, [2, 1, 1], "y_bound must be positive"),
        ({"family": "gaussian", "y_bound": 9}, [2, np.nan, 1], "y.* must be finite"),
        (
            {"family": "gaussian", "offset_bound": (0, 1)},
            [2, 1, 1],
            "offset and exposure must be left out for gaussian",
        ),
        ({"family": "cauchy"}, [0, 1, 1], "family must be one of bernoulli, probit, poisson"),
        ({"family": "probit", "engine": LocalEngine}, [0, 1, 1], "engine must be an engine"),
    ],
)
def test_bad_input_of_a_model_is_one_line_and_nothing_is_charged(options, y, message: str):
    with Ledger(BUDGET) as ledger, pytest.raises(InvalidInput, match=message) as caught:
        PrivateGLM(**{"x_bound": 3.0, **options}).fit([[1.0], [2.0], [0.0]], y)
    assert not ledger.entries
    assert "717" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("model", [
    PrivateGLM("bernoulli", x_bound=3.0, draws=100), PrivateGLM("probit", x_bound=3.0, draws=100),
    PrivateLogisticRegression(x_bound=3.0, classes=[0, 1], draws=100),
])  # fmt: skip
def test_outcomes_of_one_kind_are_outcomes_like_any_other(model):
    """One other row would make the difference: if it decided whether a fit fails, no noise would cover it."""
    X = np.random.default_rng(0).normal(size=(200, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UntrustworthyWarning)
        assert model.fit(X, np.zeros(200, dtype=int)).privacy_.as_dict()["guarantee"] is True


@pytest.mark.parametrize("model", [
    PrivateGLM("bernoulli", x_bound=3.0), PrivatePoissonRegression(x_bound=3.0, y_bound=9.0),
    PrivateLogisticRegression(x_bound=3.0), PrivateLinearRegression(x_bound=3.0, y_bound=9.0),
], ids=lambda model: type(model).__name__)  # fmt: skip
@pytest.mark.parametrize(("X", "y"), [
    (np.array([[1.0], ["71x"], [2.0]], dtype=object), [0, 1, 0]), (np.array([71.7, 1.0, 2.0]), [0, 1, 0]),
    (np.array([[71.7j], [1.0], [2.0]]), [0, 1, 0]), (71.7, [0, 1, 0]),
], ids=["text", "one column", "complex", "a number"])  # fmt: skip
def test_what_scikit_learn_refuses_is_said_without_the_values_it_quotes(model, X, y):
    with pytest.raises(InvalidInput) as caught:
        model.fit(X, y)
    assert "71" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("model", [PrivateGLM("bernoulli"), PrivateLinearRegression(y_bound=9.0)])
def test_a_bound_that_is_read_off_the_data_is_told_to_nobody(model):
    X = np.array([[1.0], [7.1e60], [2.0]])
    with warnings.catch_warnings(), pytest.raises(InvalidInput, match="x_bound must be given") as caught:
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        model.fit(X, [0, 1, 0])
    assert "7.1" not in str(caught.value)
