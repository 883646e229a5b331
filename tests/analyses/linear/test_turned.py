"""Looks at turned rows: the same sums in other units, with noise that differs from axis to axis."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hubbub import Budget, InvalidInput, LocalEngine, PrivateLinearRegression
from hubbub.analyses.driver import run
from hubbub.analyses.linear.auto import LinearRegression
from hubbub.analyses.linear.columns import Columns
from hubbub.analyses.linear.pilot import pilot, turn_of
from hubbub.analyses.linear.release import RegressionRelease
from hubbub.analyses.linear.released import LaterLook, Released
from hubbub.analyses.linear.residuals import EDGES
from hubbub.analyses.linear.sampler.state import FIXED, Sums
from hubbub.analyses.linear.sampler.target import Prior, Target
from hubbub.analyses.linear.shrinkage import shrinkage_posterior
from hubbub.analyses.linear.turned import choose_turn, pool, turned
from hubbub.analyses.replay import Replay
from hubbub.arrays import Floats
from hubbub.privacy import DEFAULT
from hubbub.statistics import Ball, Gram

N, D = 500, 4
P = D + 1
WEIGHT, UNITS = 1.3, (1.1, 0.7)
NOISES = (20.0, 14.0, 17.0)
BETA = np.array([0.2, 1.0, -0.8, 0.3, 0.0])
AROUND = (np.array([0.3, 0.2, 0.1, -0.6, 0.0]), np.array([0.1, 0.5, -0.4, 0.2, 0.3]))


def rows() -> tuple[Floats, Floats]:
    """The first two columns are nearly the same."""
    rng = np.random.default_rng(4)
    X = np.column_stack([np.ones(N), rng.standard_normal((N, D))])
    X[:, 2] = X[:, 1] + 0.1 * X[:, 2]
    return X, X @ BETA + rng.standard_normal(N)


def gram(X: Floats, r: Floats) -> Gram:
    return Gram(X.T @ X, X.T @ r, float(r @ r))


def noisy(rng: np.random.Generator, sums: Gram, noise: float) -> Gram:
    p = sums.xy.size
    normal = rng.standard_normal((p, p))
    assert sums.yy is not None
    return Gram(
        sums.xx + noise * (normal + normal.T) / 2, sums.xy + noise / np.sqrt(2) / WEIGHT * rng.standard_normal(p),
        sums.yy + noise / WEIGHT**2 * rng.standard_normal(),
    )  # fmt: skip


def looked(turn: Floats | None, noises: tuple[float, ...] = NOISES, rng: np.random.Generator | None = None) -> Released:
    """Three looks, the later ones at turned rows, exact without a generator. Nothing is clipped or shortened."""
    X, y = rows()
    A = np.eye(P) if turn is None else turn
    exact = [gram(X, y), *(gram(X @ A.T, (y - X @ b) / unit) for b, unit in zip(AROUND, UNITS, strict=True))]
    first, *rest = exact if rng is None else [noisy(rng, *each) for each in zip(exact, noises, strict=True)]
    later = tuple(
        LaterLook(sums, noise, b, unit, np.zeros(len(EDGES) + 1), 1.0, left=1.0, turn=turn)
        for sums, noise, b, unit in zip(rest, noises[1:], AROUND, UNITS, strict=True)
    )
    columns = Columns(np.zeros(P), np.ones(P), np.full(P, 0.3))
    return Released(first, N, noises[0], Ball(9.0, P, y=1e6, weight=WEIGHT), columns, True, None, later)


def the_turn() -> Floats:
    X, _ = rows()
    turn = choose_turn(X.T @ X, NOISES[0], N)
    assert turn is not None
    return turn


def test_a_turn_is_symmetric_and_rounded_and_makes_axes_alike():
    X, _ = rows()
    S, turn = X.T @ X, the_turn()
    np.testing.assert_array_equal(turn, turn.T)
    assert all(float(f"{value:.6g}") == value for value in turn.ravel())
    values, after = np.linalg.eigvalsh(S), np.linalg.eigvalsh(turn @ S @ turn)
    assert after[-1] / after[0] < values[-1] / values[0] / 10
    assert np.trace(turn @ S @ turn) == pytest.approx(min(np.trace(S), P * N), rel=1e-3)  # as many rows are shortened
    # the weakest axis is below the noise, and stretched no further than one at its edge
    floor = np.sqrt(2 * P) * NOISES[0]
    assert values[0] < floor
    stretch = np.linalg.eigvalsh(turn)
    assert stretch[-1] / stretch[0] == pytest.approx(np.sqrt(values[-1] / floor), rel=1e-4)


def test_columns_in_another_order_are_turned_the_same():
    X, _ = rows()
    order = [3, 0, 4, 2, 1]
    again = choose_turn((X.T @ X)[np.ix_(order, order)], NOISES[0], N)
    np.testing.assert_allclose(again, the_turn()[np.ix_(order, order)], rtol=2e-6, atol=1e-9)


def test_nothing_is_turned_where_every_axis_is_seen_or_it_would_not_be_understood():
    X, _ = rows()
    assert choose_turn(X.T @ X, 0.1, N) is None
    data = replace(looked(None), later=())
    assert turn_of(data) is not None
    for other in (
        replace(data, shape=1.0), replace(data, n=4 * P - 1), replace(data, ball=replace(data.ball, radius=1.0)),
    ):  # fmt: skip
        assert turn_of(other) is None


@pytest.mark.parametrize("noise", [0.0, 1e-9, 1.0])
def test_equal_columns_are_turned_so_far_that_six_digits_do(noise: float):
    X = rows()[0][:, [0, 1, 1, 3]]
    turn = choose_turn(X.T @ X, noise, N)
    assert turn is not None
    stretch = np.linalg.eigvalsh(turn)
    assert 0 < stretch[-1] < 1.01e3 * stretch[0]
    assert choose_turn(-np.eye(3), noise, N) is None


def test_without_noise_turned_looks_give_the_sums_exactly():
    """Whatever noise they are taken to have."""
    X, y = rows()
    found = looked(the_turn()).evidence
    np.testing.assert_allclose(found.xx, X.T @ X, rtol=1e-9, atol=1e-6)
    for look, b in zip(found.looks, (np.zeros(P), *AROUND), strict=True):
        np.testing.assert_allclose(look.xy, X.T @ (y - X @ b), rtol=1e-9, atol=1e-6)
    xy, square = found.together()
    r = y - X @ AROUND[-1]
    np.testing.assert_allclose(xy, X.T @ r, rtol=1e-9, atol=1e-5)
    assert square == pytest.approx(float(r @ r))


def test_noise_of_all_looks_together(monkeypatch: pytest.MonkeyPatch):
    """By simulation: of XX' and u'y in the axes of the turn, 3000 draws each; 7 % are more than five errors."""
    X, _ = rows()
    turn, rng, drawn = the_turn(), np.random.default_rng(1), []
    monkeypatch.setattr("hubbub.analyses.linear.turned._BISECTIONS", 0)  # the first look is taken as it is
    found = looked(turn).evidence
    assert found.uneven is not None
    along = found.uneven.axes.along
    for _ in range(3000):
        seen = looked(turn, NOISES, rng).evidence
        xy, _ = replace(seen, xx=X.T @ X).together()  # the noise of XX' counts on its own
        drawn.append([*(along.T @ seen.xx @ along * np.sqrt(2 - np.eye(P))).ravel(), *(along.T @ xy)])
    expected = [*found.uneven.xx.ravel(), *found.uneven.xy_together]
    np.testing.assert_allclose(np.std(drawn, axis=0), expected, rtol=0.07)
    plain = looked(None).evidence  # along the weakest axis there is less noise, and more along the strongest
    assert found.uneven.xx[-1, -1] < plain.noise_std < found.uneven.xx[0, 0]


def test_the_likelihood_is_that_of_every_look():
    """Against the sum over looks, of matrices S and of products q, up to a constant."""
    rng, turn = np.random.default_rng(2), the_turn()
    data = looked(turn, NOISES, rng)
    target, seen = Target(data, Prior(), None), data.evidence
    more = data._pooled.more  # the first look is taken for so much noisier, so that looks agree
    normal = rng.standard_normal((6, P, P))
    S = data.sums.xx + 8 * (normal + np.swapaxes(normal, -1, -2)) + 30 * np.eye(P)
    direct = -0.5 * np.sum((data.sums.xx - S) ** 2, axis=(-1, -2)) / (NOISES[0] ** 2 + more**2)
    for look in data.later:
        direct = direct - 0.5 * np.sum((look.sums.xx - turn @ S @ turn) ** 2, axis=(-1, -2)) / look.noise_std**2
    np.testing.assert_allclose(np.diff(target.log_density(S, FIXED)), np.diff(direct), rtol=1e-7)
    q, precision = 50 * rng.standard_normal(P), np.linalg.inv(target.q_covariance)
    together, apart = target._seen(S)
    found = apart - 0.5 * np.einsum("ci,ij,cj->c", together - q, precision, together - q)
    direct = np.zeros(len(S))
    for look, A in zip(seen.looks, (np.eye(P), turn, turn), strict=True):
        gap = (look.xy - (q + S @ (AROUND[-1] - look.around))) @ A.T
        direct -= 0.5 * np.sum(gap**2, axis=-1) / look.xy_noise**2
    np.testing.assert_allclose(found, direct, rtol=1e-7)


def test_a_turn_that_turns_nothing_changes_nothing():
    """Of the target, up to a constant, of its normal approximation, and nearly of the closed form."""
    rng = np.random.default_rng(3)
    plain, same = (looked(turn) for turn in (None, np.eye(P)))
    one, other = (Target(data, Prior(), None) for data in (plain, same))
    np.testing.assert_allclose(other.terms_noise, one.noise, rtol=1e-9)
    normal = rng.standard_normal((5, P, P))
    sums = Sums.of(plain.sums.xx + 3 * (normal + np.swapaxes(normal, -1, -2)))
    hyper, model = np.column_stack([np.full(5, np.log(2 * N)), *rng.standard_normal((2, 5))]), np.zeros(5, int)
    laws = [t.log_likelihood(sums, hyper, model, FIXED) + t.log_density(sums.S, FIXED) for t in (one, other)]
    np.testing.assert_allclose(np.diff(laws[0]), np.diff(laws[1]), rtol=1e-6, atol=1e-6)
    quick = [shrinkage_posterior(data).coefficients for data in (plain, same)]
    np.testing.assert_allclose(quick[1].mean, quick[0].mean, atol=0.1)
    np.testing.assert_allclose(quick[1].std, quick[0].std, rtol=0.25)


def test_the_closed_form_is_least_squares_where_noise_is_next_to_nothing():
    """And rows are a hundred times as many, so that the prior has no say."""
    X, y = rows()
    data, least = looked(the_turn(), (0.3, 0.3, 0.3)), np.linalg.lstsq(X, y)[0]

    def more(sums: Gram) -> Gram:
        assert sums.yy is not None
        return Gram(100 * sums.xx, 100 * sums.xy, 100 * sums.yy)

    later = tuple(replace(look, sums=more(look.sums)) for look in data.later)
    found = shrinkage_posterior(replace(data, sums=more(data.sums), later=later, n=100 * N))
    variance = np.mean((y - X @ least) ** 2)
    std = np.sqrt(np.diag(np.linalg.inv(X.T @ X)) * variance / 100)
    np.testing.assert_allclose(found.coefficients.mean, least, atol=0.3 * std.max())
    np.testing.assert_allclose(found.coefficients.std, std, rtol=0.15)
    assert found.residual_variance == pytest.approx(variance, rel=0.05)


@pytest.mark.parametrize("kept", [[0, 2], [0, 1, 3, 4]])
def test_restricted_looks_are_the_sums_of_the_columns_that_are_left(kept: list[int]):
    X, y = rows()
    found = looked(the_turn()).restricted(kept)
    np.testing.assert_allclose(found.evidence.xx, X[:, kept].T @ X[:, kept], rtol=1e-9, atol=1e-6)
    for look in found.evidence.looks:
        np.testing.assert_allclose(look.xy, X[:, kept].T @ (y - X[:, kept] @ look.around), rtol=1e-9, atol=1e-6)
    again, once = looked(the_turn()).restricted([0, 1, 2, 4]).restricted([0, 2]), looked(the_turn()).restricted([0, 2])
    for one, other in zip(again.later, once.later, strict=True):
        np.testing.assert_allclose(one.sums.xx, other.sums.xx)
        np.testing.assert_allclose(one.sums.xy, other.sums.xy)


def test_restricted_looks_bear_the_noise_that_they_say_or_less():
    """By simulation: that of XX' is exact, alike in all directions; that of u'y is overstated, where terms come back."""
    data, rng, kept, drawn = looked(the_turn()), np.random.default_rng(2), [0, 2, 3], []
    look = data.later[-1]
    for _ in range(3000):
        left = replace(look, sums=noisy(rng, look.sums, NOISES[2])).restricted(kept, 1.0)
        drawn.append([*(left.sums.xx * np.sqrt(2 - np.eye(3))).ravel(), *(left.sums.xy * UNITS[1])])
    found = data.restricted(kept).evidence.looks[-1]
    np.testing.assert_allclose(np.std(drawn, axis=0)[:9], NOISES[2], rtol=0.07)
    of_xy = np.std(drawn, axis=0)[9:]
    assert np.all(of_xy < 1.05 * found.xy_noise)
    assert of_xy.max() > found.xy_noise / 2


def test_where_looks_saw_other_matrices_the_first_is_taken_for_noisier():
    """Rows were shortened otherwise: what the two differ by is then within the noise that they are taken to have."""
    X, _ = rows()
    S, turn, rng = X.T @ X, the_turn(), np.random.default_rng(6)
    calm = np.mean([pool(noisy(rng, Gram(S, S[0], 1.0), 20.0).xx, 20.0, turn, [S], [5.0]).more for _ in range(200)])
    assert calm < 0.35 * 20.0  # it happens by chance, too, and costs little then
    found = pool(1.3 * S, 20.0, turn, [S], [5.0])
    assert found.more > 50.0
    away = np.outer(found.axes.stretch, found.axes.stretch)
    gap = found.axes.along.T @ (0.3 * S) @ found.axes.along * np.sqrt(2 - np.eye(P))
    law = 20.0**2 + found.more**2 + (5.0 / away) ** 2
    assert np.sum(np.triu(gap**2 / law)) == pytest.approx(P * (P + 1) / 2, rel=1e-6)
    assert np.all(found.noise < 5.0 / away + 1e-9)
    data = looked(turn)
    other = replace(data, sums=Gram(1.3 * data.sums.xx, data.sums.xy, data.sums.yy))
    quiet, loud = (each.evidence.looks[0].xy_noise for each in (data, other))
    assert loud**2 - quiet**2 == pytest.approx(other._pooled.more**2 / 2 * float(AROUND[-1] @ AROUND[-1]))


ANALYSES = {
    "box": LinearRegression(("a", "b", "c"), "y", (-3.0, 3.0), ((-1.0, 1.0),) * 3),
    "norm": LinearRegression(("a", "b", "c"), "y", (-3.0, 3.0), x_norm=1.8),
    "no intercept": LinearRegression(("a", "b", "c"), "y", (-3.0, 3.0), ((-1.0, 1.0),) * 3, intercept=False),
}


def collinear() -> Floats:
    rng = np.random.default_rng(8)
    X = rng.uniform(-1, 1, (600, 3))
    X[:, 1] = 0.95 * X[:, 0] + 0.05 * X[:, 1]
    return np.column_stack([X, X @ [1.0, 0.5, -0.5] + 0.2 * rng.standard_normal(600)])


@pytest.mark.parametrize("name", ANALYSES)
def test_a_study_with_turned_rows_is_replayed_saved_and_loaded(name: str, tmp_path: Path):
    analysis, engine, asked = ANALYSES[name], LocalEngine(computes=3, seed=3), []

    class Recording(LocalEngine):
        def private_sum(self, rows, spec):
            asked.append(json.loads(json.dumps(spec.steps)))
            return super().private_sum(rows, spec)

    budget = Budget(3.0, 1e-5)
    result = run(analysis, collinear(), Recording(computes=3, seed=3), budget)
    people, releases = engine.population(600), [each.release for each in result.privacy.rounds]
    replay = Replay.of(json.loads(json.dumps(analysis.describe())), budget, people, DEFAULT.name)
    again = [replay.next_round(releases[:done]) for done in range(len(releases))]
    assert [json.loads(json.dumps(spec.steps)) for spec in again if spec is not None] == asked
    first, second = result.release.released.later
    assert first.turn is not None
    np.testing.assert_array_equal(first.turn, second.turn)
    for steps in asked[2:]:
        assert [step["step"] for step in steps[-4:]] == ["residual", "scale", "turn", "repeat"]
        assert steps[-2]["by"] == first.turn.tolist()
    assert not any(step["step"] == "turn" for step in asked[1])

    path = tmp_path / "release.json"
    result.release.save(path)
    loaded = RegressionRelease.load(path)
    np.testing.assert_array_equal(loaded.released.later[1].turn, second.turn)
    for part, other in zip(loaded.noise_budget().values(), result.release.noise_budget().values(), strict=True):
        np.testing.assert_array_equal(part, other)
        assert (part > 0).all()
    np.testing.assert_array_equal(
        loaded.posterior(kind="shrinkage").mean, result.release.posterior(kind="shrinkage").mean
    )
    assert np.isfinite(loaded.restricted(["c", "a"]).posterior(draws=200).mean).all()
    content = json.loads(path.read_text())
    for wrong in (
        (2 * first.turn + np.triu(first.turn)).tolist(), first.turn[:2].tolist(), "x", (0 * first.turn).tolist(),
        (2 * first.turn).tolist(), None,
    ):  # fmt: skip
        later = [content["later"][0], {**content["later"][1], "turn": wrong}]
        path.write_text(json.dumps({**content, "later": later}))
        with pytest.raises(InvalidInput, match="release must be a file written by"):
            RegressionRelease.load(path)


def test_laplace_noise_turns_nothing():
    data = collinear()
    model = PrivateLinearRegression(
        Budget(10.0, 0.0), 1.0, 3.0, posterior="shrinkage",
        engine=LocalEngine(3, tolerate=20, seed=0, mechanism="discrete-laplace"),
    ).fit(data[:, :3], data[:, 3])  # fmt: skip
    assert all(look.turn is None for look in model.release_.released.later)


def test_many_columns_go_through_the_closed_form():
    rng, p, n = np.random.default_rng(9), 60, 5000
    X = rng.standard_normal((n, p))
    X[:, 1] = X[:, 0] + 0.1 * X[:, 1]
    y = X @ np.full(p, 0.1) + rng.standard_normal(n)
    columns = Columns(np.zeros(p + 1), np.ones(p + 1), np.full(p + 1, 0.3))
    data = Released(noisy(rng, gram(X, y), 30.0), n, 30.0, Ball(20.0, p, y=9.0, weight=WEIGHT), columns, False)
    turn, look = turn_of(data), pilot(data)
    assert turn is not None
    exact = turned(gram(X, (y - X @ look.around) / look.unit), turn)
    later = LaterLook(
        noisy(rng, exact, 30.0), 30.0, look.around, look.unit, np.ones(len(EDGES) + 1), 9.0, left=1.0, turn=turn
    )
    found = shrinkage_posterior(replace(data, later=(later,)))
    error = found.coefficients.mean - 0.1
    assert np.sqrt(np.mean(error**2)) < 1.3 * np.sqrt(np.mean(found.coefficients.std**2))
