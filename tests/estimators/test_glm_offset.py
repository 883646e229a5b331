"""Exposures and offsets of estimators: rates, predictions with and without them, tables, and one line for bad input."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from sklearn.linear_model import PoissonRegressor

from hubbub import (
    Budget,
    InvalidInput,
    Ledger,
    PrivacyLeakWarning,
    PrivateGLM,
    PrivatePoissonRegression,
    TrustedAggregator,
)
from hubbub.protocols import Engine, Table

BUDGET, LARGE = Budget(1.0, 1e-6), Budget(1e4, 1e-6)


def insured(n: int = 4000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Age, years under contract (more for the old), and claims."""
    rng = np.random.default_rng(8)
    age = rng.normal(50, 12, (n, 1))
    years = np.clip(np.exp(rng.normal(0, 0.5, n) + 0.02 * (age[:, 0] - 50)), 0.1, 5.0)
    return age, years, rng.poisson(years * np.exp(-1 + 0.02 * age[:, 0]))


def model(**options) -> PrivatePoissonRegression:
    given = {"budget": LARGE, "x_bound": (0, 110), "y_bound": 20, "engine": TrustedAggregator(seed=1), "draws": 200}
    return PrivatePoissonRegression(**{**given, **options})


def test_rates_per_year():
    """As scikit-learn has them, by weights; and predictions for as many years as asked for, or for one."""
    X, years, y = insured()
    found = model(exposure_bound=(0.1, 5)).fit(X, y, exposure=years)
    least = PoissonRegressor(alpha=0, max_iter=1000).fit(X / 10, y / years, sample_weight=years)
    assert found.coef_[0] == pytest.approx(least.coef_[0] / 10, abs=3e-3)
    np.testing.assert_allclose(found.predict(X), least.predict(X / 10), rtol=0.05)
    np.testing.assert_allclose(found.predict(X, exposure=years), years * found.predict(X))
    np.testing.assert_allclose(
        found.predict_interval(X, exposure=years), years[:, None] * found.predict_interval(X), rtol=1e-9
    )
    same = PrivateGLM(
        "poisson", LARGE, (0, 110), 20, TrustedAggregator(seed=1), draws=200, offset_bound=np.log([0.1, 5])
    ).fit(X, y, offset=np.log(years))
    assert same.coef_ == pytest.approx(found.coef_, rel=1e-6)
    np.testing.assert_allclose(same.predict(X, offset=np.log(years)), found.predict(X, exposure=years), rtol=1e-6)
    with pytest.warns(PrivacyLeakWarning, match="score"):
        assert found.score(X, y, exposure=years) > 0.2
    assert found.get_params()["exposure_bound"] == (0.1, 5)


def test_a_bound_that_is_left_out_is_a_leak():
    X, years, y = insured(300)
    for exposure in (years, np.ones(300)):
        with pytest.warns(PrivacyLeakWarning, match="exposure_bound was taken from the data"):
            assert not model(budget=BUDGET).fit(X, y, exposure=exposure).privacy_.is_guarantee


class Names(Table):
    """A table of age, years and claims, as far as it is looked at before its rows are."""

    shape = (100, 3)

    @property
    def columns(self) -> tuple[str, ...]:
        return ("years", "age", "claims")

    def select(self, columns: Sequence[str]) -> Table:
        assert list(columns) == ["age", "years", "claims"]
        raise KeyError("selected")

    def engine(self) -> Engine:
        raise AssertionError


def test_of_a_table_it_is_a_column():
    with pytest.raises(KeyError, match="selected"):
        model(exposure_bound=(0.1, 5)).fit(Names(), "claims", exposure="years")
    with pytest.raises(InvalidInput, match="exposure must be the name of one of several columns"):
        model(exposure_bound=(0.1, 5)).fit(Names(), "claims", exposure="month")


@pytest.mark.parametrize(
    ("options", "given", "message"),
    [
        ({}, {"exposure": [1.0, np.nan, 1.0]}, r"exposure must be finite, got another in exposure\[1, 0\]"),
        ({}, {"exposure": [1.0, 71.7, np.inf]}, "exposure must be finite"),
        ({}, {"exposure": [1.0, -71.7, 1.0]}, "exposure must be above zero in every row"),
        ({}, {"exposure": [1.0, 0.0, 1.0]}, "exposure must be above zero in every row"),
        ({}, {"exposure": ["71x", 1, 1]}, "exposure must be numbers, got others"),
        ({}, {"exposure": [71j, 1, 1]}, "exposure must be numbers, got others"),
        ({}, {"exposure": [1.0, 71.7]}, "exposure must have a value for each of the 3 rows"),
        ({}, {"exposure": 71.7}, "exposure must have a value for each of the 3 rows"),
        ({}, {"exposure": [1.0] * 3, "offset": [0.0] * 3}, "must not both be given"),
        ({}, {"offset": [0.0] * 3}, "exposure must be given to fit where exposure_bound is"),
        ({}, {}, "exposure must be given to fit where exposure_bound is"),
        ({"exposure_bound": (0, 5)}, {"exposure": [1.0] * 3}, "exposure_bound must be above 0"),
        ({"exposure_bound": 5}, {"exposure": [1.0] * 3}, "exposure_bound must be above 0"),
        ({"exposure_bound": (5, 1)}, {"exposure": [1.0] * 3}, "exposure_bound must be"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_charged(options, given, message: str):
    with Ledger(Budget(10.0, 1e-3)) as ledger:
        fit = model(**{"budget": BUDGET, "exposure_bound": (0.1, 5), **options}).fit
        with pytest.raises(InvalidInput, match=message) as caught:
            fit([[1.0], [2.0], [0.0]], [0, 1, 2], **given)
    assert not ledger.entries
    assert "71" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_predictions_refuse_what_was_not_fitted():
    X, years, y = insured(300)
    plain = model(budget=BUDGET).fit(X, y)
    with pytest.raises(InvalidInput, match="exposure must be left out where the model was fitted without"):
        plain.predict(X, exposure=years)
    fitted = model(budget=BUDGET, exposure_bound=(0.1, 5)).fit(X, y, exposure=years)
    with pytest.raises(InvalidInput, match="offset must be left out where the model was fitted without"):
        fitted.predict(X, offset=years)
    with pytest.raises(InvalidInput, match="exposure must be above zero"):
        fitted.predict(X, exposure=-years)
    with pytest.raises(InvalidInput, match="exposure must be of a family with a log link"):
        PrivateGLM("bernoulli", BUDGET, (0, 110), exposure_bound=(0.1, 5)).fit(X, y > 0, exposure=years)
