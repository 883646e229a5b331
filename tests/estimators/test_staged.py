"""Rounds run by somebody else give exactly what the estimator gives."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hubbub.estimators.staged import RegressionPlan

from hubbub import Budget, LocalEngine, PrivateLinearRegression
from hubbub.errors import InvalidInput
from hubbub.privacy import gaussian_round
from hubbub.statistics.preparation import prepare

BUDGET = Budget(2.0, 1e-5)
PLANS = {
    "box": RegressionPlan(("a", "b", "c"), "y", (-1.0, 2.0), ((-1.0, 1.0), (-0.5, 1.0), (-1.0, 3.0))),
    "norm": RegressionPlan(("a", "b", "c"), "y", (-1.0, 1.0), x_norm=1.2),
    "no intercept": RegressionPlan(("a", "b", "c"), "y", (-1.0, 1.0), ((-1.0, 1.0),) * 3, intercept=False),
}


@pytest.mark.parametrize("name", PLANS)
def test_staged_rounds_are_the_estimators_rounds(name: str, regression_rows: np.ndarray):
    plan, engine, done = PLANS[name], LocalEngine(computes=3, seed=3), []
    while (following := plan.next_round(BUDGET, len(regression_rows), done)) is not None:
        steps = json.loads(json.dumps(following.steps))
        rows = prepare(regression_rows, steps)
        done.append(engine.private_sum(rows, gaussian_round(following.statistic, following.noise_multiplier)))
    release, report = plan.result(BUDGET, len(regression_rows), done)
    model = PrivateLinearRegression(
        BUDGET, x_bound=list(plan.x_bound) or None, y_bound=plan.y_bound, x_norm=plan.x_norm,
        fit_intercept=plan.intercept, engine=LocalEngine(computes=3, seed=3),
    ).fit(regression_rows[:, :-1], regression_rows[:, -1])  # fmt: skip
    np.testing.assert_allclose(release.released.sums.xx, model.release_.released.sums.xx, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(release.posterior().mean, model.posterior_.mean, rtol=1e-6)
    assert report.as_dict()["rounds"] == model.privacy_.as_dict()["rounds"]
    assert release.names == plan.features


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_survives_a_study_file(name: str):
    assert RegressionPlan.of(json.loads(json.dumps(PLANS[name].content()))) == PLANS[name]


@pytest.mark.parametrize(
    "changes",
    [{"kind": "other"}, {"features": ["a", "a", "b"]}, {"x_bound": [[0, 1]]}, {"y_bound": [1, 0]}, {"y_bound": None}],
)
def test_a_damaged_plan_is_refused(changes):
    with pytest.raises(InvalidInput):
        RegressionPlan.of({**PLANS["box"].content(), **changes})
