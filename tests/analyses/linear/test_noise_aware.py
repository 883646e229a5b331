"""The noise-aware posterior: calibrated to its own model by simulation, exact where there is no noise, sane where hopeless."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import kstest

from hubbub.analyses.linear.columns import Columns
from hubbub.analyses.linear.noise_aware import Prior, centre_of, sample_posterior
from hubbub.analyses.linear.pilot import pilot, turn_of
from hubbub.analyses.linear.released import LaterLook, Released, clipped_target
from hubbub.analyses.linear.sampler.chains import Effort, sweep, walks
from hubbub.analyses.linear.sampler.diagnostics import diagnose
from hubbub.analyses.linear.sampler.draw import Draw
from hubbub.analyses.linear.sampler.start import start
from hubbub.analyses.linear.sampler.target import Target
from hubbub.analyses.linear.tuning import TUNING
from hubbub.arrays import Floats
from hubbub.statistics import Ball, Gram
from linear_prior import drawn_counts, drawn_parameters, symmetric


def released(S, q, yy, n: int, noise: float, weight: float, radius: float, *, intercept: bool = False, y: float = 1e6,
             doubt: float = 0.3):  # fmt: skip
    d = len(q) - int(intercept)
    columns = Columns(np.zeros(d + 1), np.ones(d + 1), np.full(d + 1, doubt))
    return Released(Gram(S, q, yy), n, noise, Ball(radius, len(q), y=y, weight=weight), columns, intercept)


@dataclass
class Truth:
    """What the noise hides: parameters, and exact sums."""

    beta: Floats
    s2: float
    model: int
    S: Floats
    q: Floats
    square: float
    expected: float
    """Of the square, given q. Counts vary around that: it is the same residuals that make both vary."""

    def around(self, b: Floats) -> tuple[Floats, float, float]:
        """The sums with residuals in place of y: of u (y - u'b), and of its square; and what is expected of that."""
        change = float(b @ self.S @ b - 2 * self.q @ b)
        return self.q - self.S @ b, self.square + change, self.expected + change


def noise_of(rng: np.random.Generator, noise: float, weight: float, p: int, shape: float | None) -> Gram:
    """The noise of one round of sums: normal, or Laplace as normal noise of variances that were drawn."""
    loud = np.ones((p + 2, p + 2)) if shape is None else np.sqrt(rng.gamma(shape, 1 / shape, (p + 2, p + 2)))
    return Gram(
        noise * symmetric(rng, p) * (np.triu(loud) + np.triu(loud, 1).T)[:p, :p],
        noise / weight / np.sqrt(2) * rng.standard_normal(p) * loud[p, :p],
        float(noise / weight**2 * rng.standard_normal() * loud[-1, -1]),
    )


def simulate(
    rng: np.random.Generator, shape: Released, models: list[list[int]] | None = None
) -> tuple[Released, Truth]:
    """Everything drawn from the prior, then the noisy sums: what the posterior is exact for."""
    target = Target(shape, Prior(), models)
    p, n = target.p, target.n
    S, beta, s2, model = drawn_parameters(rng, target)
    q = S @ beta + np.sqrt(s2) * np.linalg.cholesky(S) @ rng.standard_normal(p)
    explained = float(q @ np.linalg.solve(S, q))
    square = explained + s2 * rng.chisquare(n - p)
    noise = noise_of(rng, shape.noise_std, shape.ball.weight, p, shape.shape)
    assert noise.yy is not None
    sums = Gram(S + noise.xx, q + noise.xy, square + noise.yy)
    return replace(shape, sums=sums), Truth(beta, s2, model, S, q, square, explained + s2 * (n - p))


def looked_again(
    rng: np.random.Generator, data: Released, truth: Truth, noise_std: float, *, turning: bool = False
) -> Released:
    """With a later round's sums and counts, around what those before it gave. Nothing is clipped."""
    look, p = pilot(data), truth.q.size
    turn = turn_of(replace(data, later=())) if turning else None
    A = np.eye(p) if turn is None else turn
    xy, square, expected = truth.around(look.around)
    noise = noise_of(rng, noise_std, data.ball.weight, p, data.shape)
    assert noise.yy is not None
    sums = Gram(A @ truth.S @ A.T + noise.xx, A @ xy / look.unit + noise.xy, square / look.unit**2 + noise.yy)
    loud = 10.0
    shortened = np.clip(float(data.shortening(truth.S[None])[0]), TUNING.least_shortening, 1.0)  # no row is lengthened
    deviation = np.sqrt(expected / data.n / shortened) / look.unit
    counts = drawn_counts(rng, deviation, data.n, loud)
    later = LaterLook(sums, noise_std, look.around, look.unit, counts, loud, left=1.0, turn=turn)
    return replace(data, later=(*data.later, later))


def weighted_draws(data: Released, draws: int, seed: int) -> tuple[Draw, Floats]:
    """What `sample_posterior` makes its draws from, with their weights: until chains agree, or it gives up."""
    target = Target(data, Prior(), None)
    effort = Effort.of(target.p)
    for walked in walks(np.random.default_rng(seed), target, effort, effort.attempts(draws)):
        weights = np.exp(walked.draws.log_weight - walked.draws.log_weight.max())
        rows = walked.chains(weights)
        judged = np.column_stack([walked.draws.beta, np.log(walked.draws.residual_variance)])[rows]
        if not diagnose(judged).bad.any():
            break
    return walked.draws, weights / weights.sum()


def ranks_of(data: Released, truth: Truth, seed: int) -> dict[str, float]:
    """The posterior probability of less than the truth, for coefficients, residual variance and S."""
    found, weights = weighted_draws(data, 400, seed)

    def share(draws: Floats, value: float) -> float:
        return float(weights @ (draws < value))

    return {
        "first": share(found.beta[:, 0], truth.beta[0]), "last": share(found.beta[:, -1], truth.beta[-1]),
        "length": share(np.sum(found.beta**2, axis=1), np.sum(truth.beta**2)),
        "residual": share(found.residual_variance, truth.s2),
        "last of S": share(found.S[:, -1, -1], truth.S[-1, -1]),
        "corner of S": share(found.S[:, 0, -1], truth.S[0, -1]),
        "size of S": share(np.linalg.slogdet(found.S)[1], np.linalg.slogdet(truth.S)[1]),
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("p", "n", "noise", "radius", "intercept", "studies", "doubt", "law", "later"),
    [(1, 300, 8.0, 0.7, False, 50, 0.3, None, ()), (2, 300, 8.0, 0.7, False, 40, 0.3, None, ()),
     (3, 300, 20.0, 0.99, True, 40, 0.6, None, ()), (3, 1000, 30.0, 1.4, True, 40, 0.3, 1.0, ()),
     pytest.param(3, 1000, 30.0, 1.4, True, 40, 0.3, None, (30.0, 25.0), marks=pytest.mark.long),
     pytest.param(2, 300, 8.0, 0.7, False, 300, 0.3, None, (12.0,), marks=pytest.mark.long),
     pytest.param(3, 300, 20.0, 0.99, True, 300, 0.6, None, (15.0, 15.0), marks=pytest.mark.long),
     pytest.param(3, 300, 20.0, 0.99, True, 200, 0.6, 2.5, (), marks=pytest.mark.long),
     pytest.param(6, 500, 15.0, 1.2, False, 200, 0.3, 1.0, (), marks=pytest.mark.long),
     pytest.param(3, 1000, 30.0, 1.4, True, 200, 0.3, 1.0, (18.0, 18.0), marks=pytest.mark.long),
     pytest.param(6, 500, 15.0, 1.2, False, 200, 0.3, None, (15.0, 9.0), marks=pytest.mark.long),
     pytest.param(4, 500, 20.0, 1.2, True, 200, 0.9, None, (20.0,), marks=pytest.mark.long)],
)  # fmt: skip
def test_ranks_of_the_truth_are_uniform(
    p: int, n: int, noise: float, radius: float, intercept: bool, studies: int, doubt: float, law: float | None,
    later: tuple[float, ...],
):  # fmt: skip
    """Simulation-based calibration: false alarm at 1e-4 for each of seven ranks.

    A plug-in posterior fails by tens of orders. With `later` there are later looks, with so much noise.
    """
    rng = np.random.default_rng([p, n])
    empty = released(np.eye(p), np.zeros(p), 1.0, n, noise, 1.3, radius, intercept=intercept, doubt=doubt)
    empty, ranks = replace(empty, shape=law), []
    for study in range(studies):
        data, truth = simulate(rng, empty)
        for last_noise in later:
            data = looked_again(rng, data, truth, last_noise)
        ranks.append(ranks_of(data, truth, study))
    p_values = {name: kstest([each[name] for each in ranks], "uniform").pvalue for name in ranks[0]}
    assert min(p_values.values()) > 1e-4, p_values
    inside = np.mean([0.05 < each[name] < 0.95 for each in ranks for name in ("first", "last")])
    assert 0.8 < inside < 0.98


@pytest.mark.slow
@pytest.mark.parametrize(
    ("p", "n", "noise", "radius", "intercept", "studies", "later"),
    [(3, 1000, 30.0, 1.4, True, 30, (30.0, 25.0)),
     pytest.param(6, 1000, 30.0, 1.7, True, 200, (30.0, 30.0), marks=pytest.mark.long),
     pytest.param(4, 2000, 20.0, 1.7, False, 150, (20.0, 20.0), marks=pytest.mark.long)],
)  # fmt: skip
def test_ranks_of_the_truth_are_uniform_where_rows_are_turned(
    p: int, n: int, noise: float, radius: float, intercept: bool, studies: int, later: tuple[float, ...]
):
    """As above, of the studies in which the first sums turn the rows of later ones: where some axes are hidden, not all."""
    rng, ranks, seen = np.random.default_rng([p, n, 7]), [], 0
    empty = released(np.eye(p), np.zeros(p), 1.0, n, noise, 1.3, radius, intercept=intercept)
    while len(ranks) < studies:
        data, truth = simulate(rng, empty)
        seen += 1
        if turn_of(data) is None:
            continue
        for last_noise in later:
            data = looked_again(rng, data, truth, last_noise, turning=True)
        ranks.append(ranks_of(data, truth, seen))
    assert seen < 6 * studies
    p_values = {name: kstest([each[name] for each in ranks], "uniform").pvalue for name in ranks[0]}
    assert min(p_values.values()) > 1e-4, p_values
    inside = np.mean([0.05 < each[name] < 0.95 for each in ranks for name in ("first", "last")])
    assert 0.8 < inside < 0.98


@pytest.mark.slow
def test_model_probabilities_are_calibrated():
    """Of models drawn from the prior, those given a probability p are the true ones in a share p of cases."""
    rng = np.random.default_rng(5)
    empty = released(np.eye(3), np.zeros(3), 1.0, 1000, 10.0, 1.3, 1.4)
    models = [[0], [0, 1, 2], [1]]
    given, true = [], []
    for study in range(40):
        data, truth = simulate(rng, empty, models)
        given.append(sample_posterior(data, draws=300, seed=study, models=models).models)
        true.append(np.eye(3)[truth.model])
    given, true = np.array(given), np.array(true)
    assert np.allclose(given.sum(axis=1), 1)
    gap = (true - given).mean(axis=0)
    error = np.sqrt((given * (1 - given)).mean(axis=0) / len(given))
    assert np.all(np.abs(gap) < 4 * error)
    assert (given * true).sum(axis=1).mean() > 0.5  # and they tell models apart


def test_without_noise_it_is_ordinary_bayesian_regression(rng: np.random.Generator):
    """Against the textbook: with almost no noise and a wide prior, least squares and s^2/n S^-1."""
    n, p = 5000, 4
    X = rng.uniform(-1, 1, size=(n, p)) * 0.5
    y = X @ np.array([1.0, -0.5, 0.25, 0.0]) + 0.5 * rng.standard_normal(n)
    S, q = X.T @ X, X.T @ y
    data = released(S, q, float(y @ y), n, 1e-3, 1.0, 1.0)
    draws = sample_posterior(data, Prior(np.full(p, 100.0)), draws=4000, seed=1)
    least = np.linalg.solve(S, q)
    s2 = (y @ y - q @ least) / (n - p)
    std = np.sqrt(np.diag(np.linalg.inv(S)) * s2)
    np.testing.assert_allclose(draws.coefficients.mean(axis=0), least, atol=0.15 * std.max())
    np.testing.assert_allclose(draws.coefficients.std(axis=0), std, rtol=0.1)
    assert np.mean(draws.residual_variance) * data.shortening(S[None])[0] == pytest.approx(s2, rel=0.05)


def test_a_strong_prior_wins_over_noise_and_its_mean_is_used(rng: np.random.Generator):
    data = released(np.eye(2) * 100, np.zeros(2), 100.0, 1000, 20.0, 1.0, 1.0)
    draws = sample_posterior(data, Prior(np.full(2, 0.01), np.array([3.0, -2.0])), seed=2)
    np.testing.assert_allclose(draws.coefficients.mean(axis=0), [3.0, -2.0], atol=0.01)
    np.testing.assert_allclose(draws.coefficients.std(axis=0), 0.01, rtol=0.15)


@pytest.mark.parametrize(("n", "p", "noise"), [(5, 2, 50.0), (20, 30, 50.0), (3, 1, 10.0)])
def test_hopeless_noise_gives_the_prior(n: int, p: int, noise: float, rng: np.random.Generator):
    """As far as 1000 draws of each tell: a half and 90 % of coefficients lie as far from zero as a priori.

    Walkers that were stuck where they started had a prior twenty times as wide at p = 30.
    """
    data = released(noise * symmetric(rng, p), noise * rng.standard_normal(p), noise, n, noise, 1.0, 0.3 * np.sqrt(p))
    draws, target = sample_posterior(data, seed=3), Target(data, Prior(), None)
    prior = np.array([drawn_parameters(rng, target)[1] for _ in range(1000)])
    assert np.isfinite(draws.coefficients).all()
    assert (draws.residual_variance > 0).all()
    found, expected = (np.quantile(np.abs(each), [0.5, 0.9]) for each in (draws.coefficients, prior))
    np.testing.assert_allclose(found, expected, rtol=0.35)
    middle = np.abs(np.median(draws.coefficients, axis=0))
    assert (middle < 0.3 * expected[1]).all()  # zero is in the middle


def test_where_no_row_fits_the_ball_the_trace_is_known(rng: np.random.Generator):
    """Every row (1, x) is longer than the radius: the sum of their squared lengths is n R^2, whatever the noise."""
    n, radius = 300, 0.9
    X = np.column_stack([np.ones(n), rng.standard_normal((n, 2))])
    u = X * (radius / np.linalg.norm(X, axis=1, keepdims=True))
    y = u @ np.array([0.0, 0.8, -0.8]) + 0.1 * rng.standard_normal(n)
    assert np.trace(u.T @ u) == pytest.approx(n * radius**2)
    noisy = u.T @ u - 30 * np.eye(3)  # the noise took away most of the two columns
    data = released(noisy, u.T @ y, float(y @ y), n, 25.0, 3.0, radius, intercept=True, doubt=0.9)
    target = Target(data, Prior(), None)
    state = start(rng, target, 40)
    for _ in range(60):
        state, _ = sweep(rng, state, target)
        np.testing.assert_allclose(np.trace(state.S, axis1=1, axis2=2), n * radius**2)
    found = sample_posterior(data, draws=2000, seed=1).coefficients
    loose = sample_posterior(replace(data, ball=replace(data.ball, radius=1.01)), draws=2000, seed=1).coefficients
    assert np.all(found.std(axis=0) < loose.std(axis=0))


def test_the_same_release_gives_the_same_posterior():
    data = released(np.eye(2) * 100, np.ones(2), 100.0, 1000, 5.0, 1.0, 1.0)
    np.testing.assert_array_equal(sample_posterior(data).coefficients, sample_posterior(data).coefficients)


@pytest.mark.parametrize("bound", [0.7, 1.2, 2.5])
def test_clipping_a_normal_target_is_undone(bound: float, rng: np.random.Generator):
    """Against simulation: the attenuation of a slope, and the variance before clipping."""
    x = rng.standard_normal(400_000)
    y = 0.6 * x + 0.8 * rng.standard_normal(400_000)
    clipped = np.clip(y, -bound, bound)
    attenuation, growth = clipped_target(np.array([np.mean(clipped**2)]), bound)
    assert attenuation[0] == pytest.approx(np.mean(x * clipped) / np.mean(x * y), rel=0.02)
    assert growth[0] * np.mean(clipped**2) == pytest.approx(1.0, rel=0.03)
    assert clipped_target(np.array([1e-4]), bound)[0][0] == 1.0


@pytest.mark.parametrize("scale", [1e-300, 1e8, 1e12, 1e300])
def test_any_prior_that_can_be_given_gives_a_posterior(scale: float, rng: np.random.Generator):
    S = 100 * np.eye(3)
    data = released(S, S @ [0.3, 0.0, -0.3], 60.0, 300, 5.0, 1.0, 1.4)
    for mean in (None, np.full(3, 1e300)):
        draws = sample_posterior(data, Prior(np.full(3, scale), mean), draws=100)
        assert np.isfinite(draws.coefficients).all()
    if scale > 1:
        flat = sample_posterior(data, Prior(np.full(3, scale)), draws=1000)
        np.testing.assert_allclose(flat.coefficients.mean(axis=0), [0.3, 0.0, -0.3], atol=0.1)


def test_the_centre_has_the_least_expected_error_of_predictions(rng: np.random.Generator):
    """Over draws of coefficients and sums together; no step away from it is better."""
    S = np.stack([each @ each.T for each in rng.standard_normal((200, 3, 5))])
    draws = Draw(rng.standard_normal((200, 3)), np.ones(200), S, np.zeros(200), np.zeros((200, 3)), S)
    weights = rng.dirichlet(np.ones(200))
    centre = centre_of(draws, weights, np.einsum("k,kij->ij", weights, S))

    def error(b: Floats) -> float:
        away = draws.beta - b
        return float(np.einsum("k,ki,kij,kj->", weights, away, S, away))

    assert all(error(centre) <= error(centre + 0.05 * step) for step in rng.standard_normal((50, 3)))


def test_a_draw_that_says_nothing_of_an_axis_does_not_move_the_centre_along_it():
    S = np.tile(np.eye(2), (1000, 1, 1))
    beta = np.tile([1.0, 0.0], (1000, 1))
    S[0, 1, 1], beta[0, 1] = 1e-6, 1e4  # flat along the second axis
    draws = Draw(beta, np.ones(1000), S, np.zeros(1000), beta, S)
    centre = centre_of(draws, np.full(1000, 1e-3), S.mean(axis=0))
    np.testing.assert_allclose(centre, [1.0, 0.0], atol=1e-4)
    assert beta.mean(axis=0)[1] == 10
