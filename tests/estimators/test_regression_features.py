"""What users expect of a regression: intercept, intervals, summary, ArviZ, prediction, refits at no cost."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from hubbub import Budget, Ledger, LocalEngine, PrivateLinearRegression, TrustedAggregator
from hubbub.analyses.linear.auto import LABELS
from hubbub.analyses.linear.release import RegressionRelease
from hubbub.analyses.linear.tuning import record
from hubbub.errors import UntrustworthyWarning


@pytest.fixture(scope="module")
def people() -> tuple[np.ndarray, np.ndarray]:
    """Age and dose, far from zero and on different scales; y = 100 + 0.5 age - 8 dose + noise of 5."""
    rng = np.random.default_rng(11)
    X = np.column_stack([50 + 12 * rng.standard_normal(8000), 2 + 0.5 * rng.standard_normal(8000)])
    return X, 100 + X @ [0.5, -8.0] + 5 * rng.standard_normal(8000)


def fitted(people, seed: int) -> PrivateLinearRegression:
    return PrivateLinearRegression(
        Budget(1.0, 1e-6), x_bound=[(0, 120), (0, 10)], y_bound=(0, 250), engine=LocalEngine(seed=seed)
    ).fit(*people)


@pytest.fixture(scope="module")
def model(people) -> PrivateLinearRegression:
    return fitted(people, 4)


def test_intercept_and_coefficients_in_the_units_of_the_data(model: PrivateLinearRegression, people):
    np.testing.assert_allclose(model.coef_, [0.5, -8.0], rtol=0.2)
    assert model.intercept_ == pytest.approx(100, rel=0.08)
    assert model.residual_variance_ == pytest.approx(25, rel=0.25)
    np.testing.assert_allclose(model.predict(people[0]).mean(), people[1].mean(), atol=1.0)


def test_predictive_intervals_hold_new_rows(model: PrivateLinearRegression, people):
    """90 % on average over releases; one release alone may misjudge the residual deviation by an eighth."""
    rng = np.random.default_rng(12)
    X = np.column_stack([50 + 12 * rng.standard_normal(3000), 2 + 0.5 * rng.standard_normal(3000)])
    y = 100 + X @ [0.5, -8.0] + 5 * rng.standard_normal(3000)
    ends = [each.predict_interval(X).T for each in (model, *(fitted(people, seed) for seed in range(10, 17)))]
    held = [np.mean((low < y) & (y < high)) for low, high in ends]
    assert 0.86 < np.mean(held) < 0.94
    assert min(held) > 0.75
    draws = model.sample_predictive(X[:50], 4000, seed=1)
    mean, std = model.predict(X[:50], return_std=True)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.5)
    np.testing.assert_allclose(draws.std(axis=0), std, rtol=0.1)


def test_summary_is_a_table_of_names_and_intervals(model: PrivateLinearRegression):
    summary = model.summary()
    table = summary.to_dict()
    assert list(table) == ["x0", "x1", "intercept", "residual deviation"]
    assert abs(table["x0"]["mean"] - 0.5) < 4 * table["x0"]["std"]
    assert table["x1"]["positive"] < 0.01
    assert "90% interval" in str(summary)
    assert "NOT A GUARANTEE" in str(summary)  # a seeded simulation
    assert "<table>" in summary._repr_html_()


def test_arviz_gets_chains_by_name_and_finds_what_the_summary_says(model: PrivateLinearRegression):
    arviz = pytest.importorskip("arviz")
    posterior = model.to_arviz().posterior
    assert posterior["beta"].shape == (4, 250, 2)
    assert list(posterior["feature"].values) == ["x0", "x1"]
    away = np.abs(posterior["beta"].mean(("chain", "draw")).values - model.coef_)
    assert (away < 0.25 * model.posterior_.std).all()
    np.testing.assert_allclose(posterior["beta"].std(("chain", "draw")), model.posterior_.std, rtol=0.2)
    assert float(posterior["sigma"].mean()) ** 2 == pytest.approx(model.residual_variance_, rel=0.05)
    table = model.summary().to_dict()
    ess, r_hat = arviz.ess(posterior), arviz.rhat(posterior)
    for j, name in enumerate(["x0", "x1"]):
        assert table[name]["ess"] == pytest.approx(float(ess["beta"][j]))
        assert table[name]["r_hat"] == pytest.approx(float(r_hat["beta"][j]))
    assert table["intercept"]["ess"] == pytest.approx(float(ess["intercept"]))
    assert table["residual deviation"]["ess"] == pytest.approx(float(ess["sigma"]))
    assert table["residual deviation"]["r_hat"] == pytest.approx(float(r_hat["sigma"]))
    assert "r_hat" in str(model.summary())


def test_only_a_sampled_posterior_has_diagnostics(people):
    quick = PrivateLinearRegression(
        Budget(1.0, 1e-6), [(0, 120), (0, 10)], (0, 250), posterior="shrinkage", engine=LocalEngine(seed=4)
    ).fit(*people)
    assert quick.posterior_.diagnostics is None
    assert "r_hat" not in str(quick.summary())
    assert "ess" not in quick.summary().to_dict()["x0"]


def test_bad_chains_are_warned_of_and_good_ones_are_not(model: PrivateLinearRegression):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UntrustworthyWarning)
        model.release_.posterior()
        few = model.release_.posterior(draws=100)  # sampling goes on until chains tell enough, however few are kept
    assert few.draws is not None
    assert few.diagnostics is not None
    assert (len(few.draws), few.diagnostics.ess_bulk[:-1].min() >= 100) == (100, True)
    rng = np.random.default_rng(1)
    X = rng.standard_normal((700, 66))
    wide = PrivateLinearRegression(Budget(1.0, 1e-6), 5.0, 20.0, engine=LocalEngine(seed=1))
    with pytest.warns(UntrustworthyWarning, match=r"for .* such in all\); take fewer features"):
        wide.fit(X, X[:, 0] + rng.standard_normal(700))


def test_refits_from_a_saved_release_cost_nothing(people, tmp_path: Path):
    ledger = Ledger(Budget(1.0, 1e-6))
    fitted = PrivateLinearRegression(
        Budget(1.0, 1e-6), x_bound=[(0, 120), (0, 10)], y_bound=(0, 250), engine=LocalEngine(seed=4), ledger=ledger
    ).fit(*people)
    spent = ledger.epsilon
    fitted.release_.save(tmp_path / "release.json")
    release = RegressionRelease.load(tmp_path / "release.json")
    np.testing.assert_array_equal(release.posterior().mean, fitted.coef_)
    tight = release.posterior(prior_scale=[1e-3, 1e-3])
    assert np.abs(tight.mean).max() < 0.01
    pulled = release.posterior(prior_scale=[1e-4, 1.0], prior_mean=[2.0, 0.0])
    assert pulled.mean[0] == pytest.approx(2.0, abs=0.01)
    assert ledger.epsilon == spent


def test_evidence_prefers_the_columns_that_matter():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((6000, 3))
    y = X[:, 0] - 0.8 * X[:, 1] + rng.standard_normal(6000)
    fitted = PrivateLinearRegression(Budget(2.0, 1e-6), 5.0, 6.0, engine=LocalEngine(seed=2)).fit(X, y)
    both, first, none, all_ = fitted.release_.compare([["x0", "x1"], ["x0"], [], ["x0", "x1", "x2"]])
    assert both + all_ > 0.99
    assert both > all_  # Occam
    assert first < 0.01
    assert none < 0.01


def test_unit_rows_are_bounded_by_their_length():
    """All columns far from zero: with the length bound their mean is found and taken off."""
    rng = np.random.default_rng(8)
    raw = np.array([3.0, -2.0, 1.0, 0.5]) + 0.6 * rng.standard_normal((3000, 4))
    X = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    y = (X - X.mean(axis=0)) @ [2.0, 0.0, -3.0, 1.0] + 0.3 * rng.standard_normal(3000)
    fitted = PrivateLinearRegression(Budget(2.0, 1e-6), x_norm=1.0, y_bound=4.0, engine=LocalEngine(seed=1)).fit(X, y)
    predicted = fitted.predict(X)
    assert np.corrcoef(predicted, y)[0, 1] > 0.9 * np.corrcoef((X - X.mean(axis=0)) @ [2.0, 0.0, -3.0, 1.0], y)[0, 1]
    assert [r.label for r in fitted.privacy_.rounds] == list(LABELS)


def test_no_intercept_goes_through_the_origin(people):
    X, y = people
    fitted = PrivateLinearRegression(Budget(1.0, 1e-6), 120.0, 250.0, engine=LocalEngine(seed=1), fit_intercept=False)
    fitted.fit(X, y)
    assert fitted.intercept_ == 0.0
    np.testing.assert_allclose(fitted.predict(np.zeros((1, 2))), 0.0)


def test_a_release_stores_the_numbers_it_was_made_with_and_older_files_still_load(model, tmp_path: Path):
    path = tmp_path / "release.json"
    model.release_.save(path)
    content = json.loads(path.read_text())
    assert content["tuning"] == record()
    content["tuning"]["version"] = 0  # as if released by an earlier hubbub
    path.write_text(json.dumps(content))
    RegressionRelease.load(path).save(path)
    assert json.loads(path.read_text())["tuning"]["version"] == 0  # and not by whoever saved it again
    del content["tuning"]  # as written before numbers were stored
    path.write_text(json.dumps(content))
    older = RegressionRelease.load(path)
    assert older.tuning == {}
    np.testing.assert_array_equal(older.posterior().mean, model.coef_)


@pytest.mark.parametrize(
    ("x_bound", "y_bound", "warned_of"),
    [
        ([(0, 120), 5], (-40, 60), []),
        ([(0, 30), 5], (-40, 60), ["x0"]),
        ([(0, 120), 5], (0, 2), ["y"]),
        ([(0, 120), (0, 1)], (-40, 60), []),  # the ends of 0 and 1 are where such values belong
    ],
)
def test_bounds_at_which_most_values_lie_are_warned_of(x_bound, y_bound, warned_of: list[str]):
    """Of 20 fits each none is wrong about it."""
    rng = np.random.default_rng(0)
    age, other = rng.normal(50, 10, 3000), rng.normal(0, 1, 3000)
    if x_bound[1] == (0, 1):
        other = (other > 1).astype(float)
    X, y = np.column_stack([age, other]), 0.2 * age + other + rng.standard_normal(3000)
    for seed in range(20):
        model = PrivateLinearRegression(
            Budget(1.0, 1e-5), x_bound, y_bound, posterior="shrinkage", engine=TrustedAggregator(seed)
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, y)
        said = [str(each.message) for each in caught if "bounds of" in str(each.message)]
        assert [text.split()[2] for text in said] == warned_of
        assert all(re.search(r"at least \d+% of them at .* or beyond; .* give wider bounds", text) for text in said)


def test_the_bound_of_a_target_is_looked_at_where_rows_have_a_norm():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 3))
    model = PrivateLinearRegression(
        Budget(1.0, 1e-5), x_norm=4.0, y_bound=(0, 0.2), posterior="shrinkage", engine=TrustedAggregator(0)
    )
    with pytest.warns(
        UntrustworthyWarning, match=r"bounds of y must hold most of its values, got at least \d+% of them at 0.2"
    ):
        model.fit(X, X[:, 0] + 3)
