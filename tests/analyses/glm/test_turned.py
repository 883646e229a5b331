"""A last Newton step at turned rows: the same sums in other units, with noise that differs from axis to axis."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hubbub import Budget, InvalidInput, LocalEngine, TrustedAggregator, run
from hubbub.analyses.glm.analysis import GLM
from hubbub.analyses.glm.look import InterceptPrior, Step, estimate, looks, stepped, still_to_go, turn_after
from hubbub.analyses.glm.offset import Offset
from hubbub.analyses.glm.release import GLMRelease
from hubbub.analyses.linear.columns import Columns
from hubbub.analyses.linear.sampler.state import Sums
from hubbub.analyses.linear.sampler.target import Prior, Target
from hubbub.analyses.replay import Replay
from hubbub.arrays import Floats
from hubbub.privacy import DEFAULT

N = 4000
TRUTH = np.array([0.2, 0.8, -0.5])
STATES = (np.zeros(3), np.array([0.1, 0.6, -0.3]), np.array([0.2, 0.7, -0.6]))
NOISE = 15.0


def rows() -> tuple[Floats, Floats]:
    """The two features are nearly the same."""
    rng = np.random.default_rng(4)
    u = np.column_stack([np.ones(N), rng.standard_normal((N, 2))])
    u[:, 2] = u[:, 1] + 0.1 * u[:, 2]
    return u, (rng.random(N) < 1 / (1 + np.exp(-u @ TRUTH))).astype(float)


def steps(turn: Floats | None, noise: float = NOISE) -> list[Step]:
    """Exact sums, said to be noisy; the last one at turned rows."""
    u, y = rows()
    found = []
    for b in STATES:
        A = turn if turn is not None and b is STATES[-1] else None
        v, mean = u if A is None else u @ A.T, 1 / (1 + np.exp(-u @ b))
        S = (v * (mean * (1 - mean))[:, None]).T @ v
        found.append(Step(b, v.T @ (y - mean), noise, S, noise, float(np.trace(S)), noise, 1.0, turn=A))
    return found


def the_turn() -> Floats:
    turn = turn_after(steps(None)[1], N, None)
    assert turn is not None
    return turn


def standard() -> Columns:
    return Columns(np.zeros(3), np.ones(3), np.full(3, 0.3))


def test_it_is_turned_where_an_axis_is_hidden_and_noise_is_normal():
    step = steps(None)[1]
    turn = turn_after(step, N, None)
    assert turn is not None
    values = np.linalg.eigvalsh(turn @ step.information @ turn)
    assert values[-1] / values[0] < np.linalg.cond(step.information)
    assert turn_after(step, N, 1.0) is None
    assert turn_after(step, 20, None) is None
    assert turn_after(replace(step, noise=1e-3), N, None) is None


def test_sums_of_turned_rows_say_the_same_in_the_units_of_rows():
    turn = the_turn()
    plain, turned = steps(None), steps(turn)
    np.testing.assert_allclose(turned[-1].of_rows, plain[-1].information, rtol=1e-9)
    np.testing.assert_allclose(turned[-1].at, plain[-1].at)
    np.testing.assert_allclose(turned[-1].by_constant, turn @ plain[-1].information[:, 0], rtol=1e-9)
    np.testing.assert_allclose(turn @ turned[-1].away(TRUTH), TRUTH - STATES[-1], atol=1e-12)
    for (one, _), (other, _) in [(looks(plain), looks(turned)), (looks(plain, TRUTH), looks(turned, TRUTH))]:
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a.xy, b.xy, rtol=1e-8)
            np.testing.assert_array_equal(a.around, b.around)
    np.testing.assert_allclose(
        still_to_go([*plain[:2], replace(plain[-1], score_noise=1e-6)], STATES[-1] + 0.5),
        still_to_go([*turned[:2], replace(turned[-1], score_noise=1e-6)], STATES[-1] + 0.5), rtol=1e-6,
    )  # fmt: skip


def test_without_noise_the_closed_form_finds_the_maximum_of_the_likelihood_with_turned_rows():
    u, y = rows()
    found = estimate(steps(the_turn(), 1e-4), N, InterceptPrior())
    score = u.T @ (y - 1 / (1 + np.exp(-u @ found)))
    S = steps(None)[-1].information
    assert score @ np.linalg.solve(S, score) < 1, "in squared standard errors, of which the truth has three"


def test_stated_deviations_are_those_of_noise_along_every_axis():
    """Sums of nothing but noise, of three looks: the score that each makes of the last one varies as it says.

    FALSE_ALARM: nine standard deviations from 3000 draws, each within 8 % of the truth: 6 of its own, below 1e-7."""
    rng, turn = np.random.default_rng(5), the_turn()
    values, along = np.linalg.eigh(turn)
    exact, drawn = steps(turn), []

    def symmetric() -> Floats:
        normal = rng.standard_normal((3, 3))
        return (normal + normal.T) / 2

    for _ in range(3000):
        noisy = [
            replace(
                each, score=NOISE * rng.standard_normal(3), information=1e6 * np.eye(3) + NOISE * symmetric(), at=at
            )
            for each, at in zip(exact, (np.zeros(3), np.zeros(3), np.zeros(3)), strict=True)
        ]
        noisy[:2] = [replace(each, information=np.linalg.inv(turn) @ noisy[-1].information @ np.linalg.inv(turn))
                     for each in noisy[:2]]  # fmt: skip
        seen, deviations = looks(noisy)
        drawn.append(np.array([along.T @ look.xy for look in seen]))
    np.testing.assert_allclose(np.std(drawn, axis=0), deviations, rtol=0.08)
    np.testing.assert_allclose(deviations[-1], NOISE / values, rtol=1e-9)
    np.testing.assert_allclose(deviations[0], NOISE, rtol=1e-9)


def test_the_sampler_sees_the_law_of_turned_sums():
    """The density of the noisy information is that of independent terms in the units of turned rows."""
    turn = the_turn()
    found = stepped(steps(turn), TRUTH, N, standard(), None)
    law, rng = Target(found, Prior(), None), np.random.default_rng(1)
    others = []
    for _ in range(4):
        tilt = rng.standard_normal((3, 3)) * 5
        others.append(found.sums.xx + tilt @ tilt.T)
    S = np.array(others)
    gaps = turn @ (found.sums.xx - S) @ turn
    expected = -0.5 * np.sum(gaps**2, axis=(-1, -2)) / NOISE**2
    from hubbub.analyses.linear.sampler.state import FIXED

    np.testing.assert_allclose(law.log_density(S, FIXED), expected, rtol=1e-8)
    assert np.isfinite(law.log_likelihood(Sums.of(S), np.zeros((4, 3)), np.zeros(4, int), FIXED)).all()


def collinear(n: int = 6000, seed: int = 0) -> tuple[Floats, GLM, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.normal(50, 10, (n, 1)) + rng.standard_normal((n, 3)) * [1.0, 1.0, 10.0]
    truth = np.array([0.1, -0.1, 0.05])
    y = rng.random(n) < 1 / (1 + np.exp(-(X - 50) @ truth))
    model = GLM(("a", "b", "c"), "y", (0.0, 1.0), ((0.0, 100.0),) * 3)
    return np.column_stack([X, y]), model, truth


def test_a_fit_turns_its_last_step_and_is_replayed_from_its_releases():
    data, model, truth = collinear()
    engine = LocalEngine(computes=2, seed=3)
    plan = model.plan(Budget(2.0, 1e-5), engine.population(len(data)), DEFAULT)
    state, steps_of = model.start(plan), []
    while (spec := model.ask(state)) is not None:
        steps_of.append([step["step"] for step in spec.steps])
        state = model.tell(state, engine.private_sum(data, spec))
    assert ["turn" in each for each in steps_of] == [False, False, False, True]
    replay = Replay.of(json.loads(json.dumps(model.describe())), plan.budget, plan.population, DEFAULT.name)
    assert replay.result(state.done).as_dict() == model.result(state).as_dict()
    interval = model.result(state).posterior.interval(0.99)
    assert (interval[:, 0] < truth).all()
    assert (truth < interval[:, 1]).all()


def test_an_offset_stays_as_it_is():
    data, model, truth = collinear(seed=1)
    rng = np.random.default_rng(2)
    offset = rng.normal(0, 1, len(data))
    eta = (data[:, :3] - 50) @ truth + offset
    y = rng.random(len(data)) < 1 / (1 + np.exp(-eta))
    with_offset = replace(model, offset=Offset("o", (-5.0, 5.0)))
    found = run(with_offset, np.column_stack([data[:, :3], offset, y]), TrustedAggregator(4), Budget(2.0, 1e-5))
    assert found.stepped.uneven is not None
    interval = found.posterior.interval(0.99)
    assert (interval[:, 0] < truth).all()
    assert (truth < interval[:, 1]).all()


def test_a_release_with_turned_rows_is_saved_and_loaded_and_refused_where_damaged(tmp_path: Path):
    data, model, _ = collinear()
    found = run(model, data, TrustedAggregator(3), Budget(2.0, 1e-5))
    assert found.stepped.uneven is not None
    path = tmp_path / "release.json"
    found.release.save(path)
    again = GLMRelease.load(path)
    np.testing.assert_array_equal(again.posterior().mean, found.release.posterior().mean)
    content = json.loads(path.read_text())
    for name, value in {
        "along": np.ones((4, 4)).tolist(), "stretch": [1.0, 1.0, 1.0, 0.0], "information_noise": [[1.0]],
        "score_noise": [[1.0] * 4], "nothing": None,
    }.items():  # fmt: skip
        damaged = {**content, "uneven": {**content["uneven"], name: value}}
        if name == "nothing":
            damaged = {key: each for key, each in content.items() if key != "uneven"}
        path.write_text(json.dumps(damaged))
        with pytest.raises(InvalidInput, match="release must be a file written by"):
            GLMRelease.load(path)
