"""What releases say of a model's sites: known answers, and how far a run that follows its noise is off."""

from __future__ import annotations

import numpy as np
import pytest

from analyses.iterative import models
from hubbub import Budget, PrivateSVI, TrustedAggregator
from hubbub.analyses.iterative.guides import flat_guide
from hubbub.analyses.iterative.heard import _positive_normal, heard
from hubbub.analyses.iterative.noise import MOST_REACH, expected_prior, noise_aware, note_on, sites_in
from hubbub.analyses.iterative.replay import calibrated
from hubbub.analyses.iterative.row_model import row_model
from hubbub.analyses.iterative.rows import as_rows
from hubbub.analyses.iterative.svi import VariationalInference, guided_model

H = np.array([[400.0, 120.0, 0.0], [120.0, 300.0, 0.0], [0.0, 0.0, 350.0]])
CENTRE = np.array([0.3, -0.2, 1.0])
SITES = [np.arange(3)]


def scattered(rng: np.random.Generator, noise: float, steps: int = 400, wide: float = 1.0):
    """Positions that do not follow the noise."""
    at = CENTRE + wide * rng.standard_normal((steps, 3))
    return at, -(at - CENTRE) @ H + noise * rng.standard_normal((steps, 3))


def followed(rng: np.random.Generator, runs: int, centre=CENTRE, curvature=H, noise: float = 300.0):
    """Runs of plain gradient steps, so slow that they wander with the noise."""
    at, found = np.zeros((runs, 3)), []
    for _ in range(300):
        asked = at + 0.05 * rng.standard_normal((runs, 3))
        release = -(asked - centre) @ curvature + noise * rng.standard_normal((runs, 3))
        found.append((asked, release))
        at = at + 5e-5 * release
    positions, releases = (np.stack(each, axis=1)[:, 75:] for each in zip(*found, strict=True))
    return positions, releases


def test_without_doubt_about_the_curvature_the_answer_is_in_closed_form():
    """Scattered widely, releases tell H to 1 %: covariance H^-1 + noise^2 H^-2 / K, off by less than 10 %."""
    found = heard(*scattered(np.random.default_rng(0), 50.0), 50.0, SITES)
    inverse = np.linalg.inv(H)
    expected = inverse + 50.0**2 / 400 * inverse @ inverse
    np.testing.assert_allclose(np.sqrt(np.diag(found.covariance)), np.sqrt(np.diag(expected)), rtol=0.1)
    assert found.covariance[0, 1] < 0 < -expected[0, 1]
    assert np.abs(found.centre - CENTRE).max() < 5 * 50 / np.sqrt(400) / 280
    assert found.doubt < 0.05


def test_the_centres_deviation_is_the_stated_one():
    """200 runs: the noise's part of the variance against what centres really do; within 25 % (chi-squared of 600)."""
    rng, noise, centres, stated = np.random.default_rng(1), 200.0, [], []
    for _ in range(200):
        found = heard(*scattered(rng, noise), noise, SITES)
        centres.append(found.centre - CENTRE)
        stated.append(np.diag(found.covariance) - np.diag(np.linalg.inv(found.curvature)))
    assert np.mean(np.square(centres)) == pytest.approx(np.mean(stated), rel=0.25)


def test_batches_count_as_noise_too():
    rng = np.random.default_rng(2)
    few, known = (heard(*scattered(rng, 300.0), noise, SITES) for noise in (0.0, 300.0))
    np.testing.assert_allclose(few.variance, 300.0**2, rtol=0.3)
    np.testing.assert_allclose(few.covariance.diagonal(), known.covariance.diagonal(), rtol=0.5)


def test_where_positions_follow_the_noise_the_replay_finds_by_how_much_curvature_is_too_large():
    rng = np.random.default_rng(3)
    runs = [heard(*run, 300.0, SITES) for run in zip(*followed(rng, 40), strict=True)]
    too_large = np.mean([np.trace(run.curvature) for run in runs]) / np.trace(H)
    assert too_large > 1.15

    def replay(likelihood, count, seed):
        return followed(np.random.default_rng(seed), count, likelihood.centre, likelihood.curvature)

    found = [calibrated(*(each[0] for each in followed(rng, 1)), 300.0, SITES, replay) for _ in range(3)]
    assert np.mean([run.over for run in found]) == pytest.approx(too_large, rel=0.25)
    assert all(np.min(run.wider) >= 1 for run in found)


@pytest.mark.parametrize(("mean", "deviation"), [(3.0, 1.0), (0.0, 2.0), (-4.0, 1.0), (-40.0, 1.0), (1e4, 1.0)])
def test_a_normal_number_that_is_known_to_be_positive(mean: float, deviation: float):
    from scipy.stats import truncnorm

    found = _positive_normal(mean, deviation)
    law = truncnorm(-mean / deviation, np.inf, loc=mean, scale=deviation)
    assert found[0] == pytest.approx(law.mean(), rel=1e-4)
    assert found[0] > 0
    assert found[1] >= 0


def test_the_posterior_of_a_normal_prior_is_in_closed_form():
    """The prior of `models.logistic` is N(0, 1): precisions add up."""
    X, y = models.logistic_data()
    model = row_model(models.logistic, as_rows((X, y))[1], {})
    at, releases = scattered(np.random.default_rng(4), 3000.0)
    found = noise_aware(
        model, lambda mean, root: expected_prior(model, mean, root), at, releases, 3000.0,
        lambda likelihood, count, seed: tuple(np.stack(each) for each in zip(
            *(scattered(np.random.default_rng((seed, i)), 3000.0) for i in range(count)), strict=True)),
    )  # fmt: skip
    precision = np.linalg.inv(found.heard.covariance)
    np.testing.assert_allclose(found.covariance, np.linalg.inv(precision + np.eye(3)), rtol=0.02, atol=1e-4)
    np.testing.assert_allclose(found.mean, found.covariance @ precision @ found.heard.centre, atol=0.01)
    assert [list(site) for site in sites_in(model)] == [[0, 1, 2]]
    assert flat_guide(model, None, 0).start.size == 6


def test_the_summary_says_in_plain_words_what_is_left_out():
    X, y = models.logistic_data()

    def said(**settings):
        engine = TrustedAggregator(seed=1)
        fitted = PrivateSVI(models.logistic, **{"engine": engine, "steps": 30, "seed": 0, **settings}).fit(X, y)
        assert fitted.result_.note in str(fitted.summary())
        assert (fitted.noise_ is None) == ("LEAVE OUT" in fitted.result_.note or "no noise" in fitted.result_.note)
        return fitted.result_.note

    assert "NOT what clipping gradients has changed" in said(budget=Budget(30.0, 1e-5))
    assert "LEAVE OUT the privacy noise: it is counted for normal guides" in said(guide=models.own_guide)
    assert "LEAVE OUT the privacy noise: there are too few steps" in said(steps=5)
    assert "no noise was added" in said(noise_multiplier=0.0)
    assert "LEAVE OUT" in note_on(None)
    assert MOST_REACH > 1


def test_replays_are_the_same_run_with_another_likelihood():
    """Without noise and with the answer at its start, positions stay around it and releases are those of the likelihood."""
    X, y = models.logistic_data()
    model = guided_model(models.logistic, None, as_rows((X, y))[1], _public(), 300)
    analysis = VariationalInference(model, steps=60)
    flat, optimiser = model.guide.start, analysis._optimiser(60)
    normal = np.zeros(3), 1000.0 * np.eye(3), np.zeros(3)
    import jax

    positions, releases = model.again(
        optimiser, 60, np.asarray(flat, np.float32), normal, 300.0, jax.random.split(jax.random.PRNGKey(0), 4)
    )
    assert positions.shape == releases.shape == (4, 60, 3)
    np.testing.assert_allclose(releases, -1000 * positions, rtol=1e-3, atol=1e-2)
    assert np.abs(positions[:, -10:]).max() < 0.5


def _public():
    from hubbub.analyses.iterative.public import Public

    return Public()
