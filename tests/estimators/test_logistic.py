"""Logistic regression says when most rows were shortened: they keep their class, so the coefficients mislead."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from hubbub import Budget, Ledger, LocalEngine, VariationalLogisticRegression
from hubbub.analyses.iterative.logistic import JaakkolaProgram
from hubbub.errors import UntrustworthyWarning

N = 3000


def patients(centre: float = 0.0, scale: float = 1.0, n: int = N) -> tuple[np.ndarray, np.ndarray]:
    """Age (around 50) and whether they smoke; +0.03 a year."""
    rng = np.random.default_rng(8)
    age, smokes = rng.normal(50, 12, n), rng.random(n) < 0.3
    y = rng.random(n) < 1 / (1 + np.exp(2.0 - 0.03 * age - 0.5 * smokes))
    return np.column_stack([(age - centre) / scale, smokes]), y.astype(float)


def fitted(x: np.ndarray, y: np.ndarray, seed: int = 1, **kwargs) -> VariationalLogisticRegression:
    return VariationalLogisticRegression(
        **{"budget": Budget(1.0, 1e-5), "engine": LocalEngine(seed=seed), **kwargs}
    ).fit(x, y)


def test_raw_units_are_confidently_wrong_and_it_is_said_loudly():
    """Age in years and x_norm = 3: the coefficient has the wrong sign and a tight interval around it."""
    with pytest.warns(
        UntrustworthyWarning, match=r"do not trust these coefficients: about \d+ % .* x_norm=3"
    ) as caught:
        model = fitted(*patients())
    low, high = model.posterior_.interval(0.9)[0]
    assert low < high < 0 < 0.03
    assert len(caught) == 1
    assert model.shortened_[0] == pytest.approx(1.0, abs=0.06)
    for text in (str(model.summary()), repr(model), " ".join(str(model.privacy_).split())):
        assert "do not trust these coefficients" in text
    assert model.privacy_.as_dict()["caution"] == model.caution_


@pytest.mark.parametrize("batch", [None, 300])
def test_standardised_columns_are_not_warned_of_and_the_share_is_told(batch: int | None):
    x, y = patients(50.0, 12.0)
    truth = np.mean(np.linalg.norm(np.column_stack([x, np.ones(N)]), axis=1) > 2.0)
    assert 0.05 < truth < 0.3
    z = []
    with warnings.catch_warnings():
        warnings.simplefilter("error", UntrustworthyWarning)
        for seed in range(20):
            model = fitted(x, y, seed, x_norm=2.0, batch=batch, steps=5)
            z.append((model.shortened_[0] - truth) / model.shortened_[1])
    assert model.caution_ is None
    assert "of the rows were shortened" in str(model.summary())
    assert "Take care" not in str(model.privacy_)
    assert 0.4 < np.sqrt(np.mean(np.square(z))) < 1.7  # chi-squared of 20: about 2 in 10^5 outside


def test_where_noise_hides_the_share_that_is_said_too():
    with pytest.warns(UntrustworthyWarning, match="it cannot be told whether these coefficients can be trusted"):
        model = fitted(*patients(50.0, 12.0, n=40))
    assert "it cannot be told" in str(model.summary())


def test_the_mark_is_within_the_stated_sensitivity_and_costs_half_a_per_cent_of_noise():
    """All pairs of 600 hard rows at several states; the largest distance comes close to what is stated."""
    rng, program = np.random.default_rng(0), JaakkolaProgram(2, 3.0)
    x = rng.standard_normal((600, 2)) * np.exp(2 * rng.standard_normal((600, 1)))
    x[:200] *= np.sqrt(8) * rng.choice([0.999999, 1.000001], (200, 1)) / np.linalg.norm(x[:200], axis=1, keepdims=True)
    rows = np.column_stack([x, rng.integers(0, 2, 600)])
    widest = 0.0
    for scale in (1e-6, 0.1, 1.0, 30.0):
        state = scale * np.eye(3).ravel()
        vectors = program.vectors(state, rows)
        assert np.linalg.norm(vectors, axis=1).max() <= program.bound * (1 + 1e-12)
        apart = np.linalg.norm(vectors[:, None] - vectors[None], axis=2).max()
        widest = max(widest, float(apart))
    assert 0.5 * program.bound < widest <= 2 * program.bound
    assert program.bound == pytest.approx(np.hypot(9 / 8, 3 / 2) * np.sqrt(1.01))
    long = np.linalg.norm(np.column_stack([x, np.ones(600)]), axis=1) > 3.0
    assert (np.sign(vectors[:, 0]) == np.where(long, 1, -1)).all()


def test_the_count_is_inside_the_budget():
    ledger = Ledger(Budget(1.0, 1e-5))
    model = fitted(*patients(50.0, 12.0), engine=LocalEngine(), ledger=ledger)
    report = model.privacy_
    assert report.is_guarantee
    assert report.epsilon <= 1.0
    assert report.last.protection.sensitivity >= 2 * JaakkolaProgram(2, 3.0).bound
    assert len(ledger.entries) == 1
