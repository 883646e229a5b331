"""Rounds run by somebody else give exactly what the estimator gives."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from hubbub import Budget, Ledger, LocalEngine, PrivateLinearRegression
from hubbub.analyses import ANALYSES
from hubbub.analyses.driver import run
from hubbub.analyses.linear.auto import LinearRegression
from hubbub.analyses.replay import Replay, same_steps
from hubbub.errors import InvalidInput
from hubbub.privacy import DEFAULT, GaussianMechanism
from hubbub.protocols import GaussianEvent, RoundSpec
from hubbub.statistics.preparation import prepare

BUDGET = Budget(2.0, 1e-5)
PLANS = {
    "box": LinearRegression(("a", "b", "c"), "y", (-1.0, 2.0), ((-1.0, 1.0), (-0.5, 1.0), (-1.0, 3.0))),
    "norm": LinearRegression(("a", "b", "c"), "y", (-1.0, 1.0), x_norm=1.2),
    "no intercept": LinearRegression(("a", "b", "c"), "y", (-1.0, 1.0), ((-1.0, 1.0),) * 3, intercept=False),
}


@pytest.mark.parametrize("name", PLANS)
def test_replayed_rounds_are_the_estimators_rounds(name: str, regression_rows: np.ndarray):
    """The public steps travel as JSON, and here somebody else takes them before the round."""
    analysis, engine, done = PLANS[name], LocalEngine(computes=3, seed=3), []
    replay = Replay(analysis, BUDGET, engine.population(len(regression_rows)))
    while (following := replay.next_round(done)) is not None:
        rows, _ = prepare(regression_rows, json.loads(json.dumps(following.steps)))
        done.append(engine.private_sum(rows, RoundSpec(following.label, following.statistic, following.mechanism)))
    found = replay.result(done)
    model = PrivateLinearRegression(
        BUDGET, x_bound=list(analysis.x_bound) or None, y_bound=analysis.y_bound, x_norm=analysis.x_norm,
        fit_intercept=analysis.intercept, engine=LocalEngine(computes=3, seed=3),
    ).fit(regression_rows[:, :-1], regression_rows[:, -1])  # fmt: skip
    sums, expected = found.release.released.sums, model.release_.released.sums
    np.testing.assert_allclose(sums.xx, expected.xx, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.posterior.mean, model.posterior_.mean, rtol=1e-6)
    assert found.privacy.as_dict()["rounds"] == model.privacy_.as_dict()["rounds"]
    assert found.release.names == analysis.features


@pytest.mark.parametrize("name", PLANS)
def test_telling_the_releases_again_gives_what_the_run_gave(name: str, regression_rows: np.ndarray):
    analysis, engine = PLANS[name], LocalEngine(computes=3, seed=3)
    result = run(analysis, regression_rows, engine, BUDGET)
    releases = [each.release for each in result.privacy.rounds]
    people = engine.population(len(regression_rows))
    again = Replay.of(json.loads(json.dumps(analysis.describe())), BUDGET, people, DEFAULT.name).result(releases)
    np.testing.assert_array_equal(again.release.released.sums.xx, result.release.released.sums.xx)
    np.testing.assert_array_equal(again.posterior.mean, result.posterior.mean)
    assert again.privacy.as_dict() == result.privacy.as_dict()


@pytest.mark.parametrize("name", PLANS)
def test_a_study_replayed_from_its_releases_asks_for_the_same_steps(name: str, regression_rows: np.ndarray):
    """Of all rounds, to the last digit: what was asked of clients must be what is read from their sums."""
    analysis, engine, asked = PLANS[name], LocalEngine(computes=3, seed=3), []

    class Recording(LocalEngine):
        def private_sum(self, rows: np.ndarray, spec: RoundSpec):
            asked.append(json.loads(json.dumps(spec.steps)))
            return super().private_sum(rows, spec)

    result = run(analysis, regression_rows, Recording(computes=3, seed=3), BUDGET)
    releases = [each.release for each in result.privacy.rounds]
    people = engine.population(len(regression_rows))
    replay = Replay.of(json.loads(json.dumps(analysis.describe())), BUDGET, people, DEFAULT.name)
    again = [replay.next_round(releases[:done]) for done in range(len(releases))]
    assert [json.loads(json.dumps(spec.steps)) for spec in again if spec is not None] == asked
    assert replay.next_round(releases) is None
    assert len(result.release.released.later) == 2
    for steps, look in zip(asked[2:], result.release.released.later, strict=True):
        of, unit = steps[-3:-1]
        assert of == {"step": "residual", "of": look.around.tolist()}
        assert unit["by"][-1] == look.unit


@pytest.mark.parametrize("name", PLANS)
def test_an_analysis_survives_a_study_file(name: str):
    assert ANALYSES.read(json.loads(json.dumps(PLANS[name].describe()))) == PLANS[name]


@pytest.mark.parametrize(
    "changes",
    [{"kind": "other"}, {"features": ["a", "a", "b"]}, {"x_bound": [[0, 1]]}, {"y_bound": [1, 0]}, {"y_bound": None}],
)
def test_a_damaged_description_is_refused(changes):
    with pytest.raises(InvalidInput):
        ANALYSES.read({**PLANS["box"].describe(), **changes})


def test_releases_that_were_not_planned_are_refused(regression_rows: np.ndarray):
    """A plan is what was charged: no further round, and none that costs something else."""
    analysis, engine = PLANS["box"], LocalEngine(computes=3, seed=3)
    replay = Replay(analysis, BUDGET, engine.population(len(regression_rows)))
    done = [each.release for each in run(analysis, regression_rows, engine, BUDGET).privacy.rounds]
    with pytest.raises(InvalidInput, match=f"rounds must number at most {len(done)}, as planned, got another"):
        replay.result([*done, done[-1]])
    with pytest.raises(InvalidInput, match="round 0 must cost what was planned"):
        replay.result([replace(done[0], event=GaussianEvent(0.01)), *done[1:]])


class Greedy(LinearRegression):
    """It plans as much noise as the budget needs, and asks for less."""

    def ask(self, state):
        spec = super().ask(state)
        return spec and replace(spec, mechanism=GaussianMechanism(0.01))


def test_an_analysis_that_asks_for_less_noise_than_it_planned_gets_nothing(regression_rows: np.ndarray):
    analysis = Greedy(("a", "b", "c"), "y", (-1.0, 1.0), ((-1.0, 1.0),) * 3)
    with Ledger(BUDGET) as ledger, pytest.raises(InvalidInput, match="round 0 must cost what was planned"):
        run(analysis, regression_rows, LocalEngine(computes=3), BUDGET)
    assert ledger.entries == ()


def test_steps_are_the_same_up_to_their_last_digits_only():
    """A version with another constant would centre, scale or explain a column otherwise: that must not pass."""
    steps = ({"step": "shift", "by": [1.0, -2.5]}, {"step": "residual", "of": [0.25]}, {"step": "repeat"})
    close = [{"step": "shift", "by": [1.0 + 1e-9, -2.5]}, {"step": "residual", "of": [0.25]}, {"step": "repeat"}]
    assert same_steps(steps, close)
    for other in (
        close[:2],
        [*close[:1], {"step": "residual", "of": [0.2501]}, close[2]],
        [close[0], close[0], close[2]],
    ):
        assert not same_steps(steps, other)
