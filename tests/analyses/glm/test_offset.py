"""Exposures and offsets: the same coefficients as where all rows were watched for as long, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub import Budget, TrustedAggregator, run
from hubbub.analyses.glm.analysis import GLM
from hubbub.analyses.glm.offset import Offset
from hubbub.analyses.replay import written_analysis
from hubbub.errors import InvalidInput
from hubbub.privacy import DEFAULT
from hubbub.statistics import bounded_vectors

YEARS = Offset("years", (0.1, 5.0), exposure=True)
NAMES, BOUNDS = ("age", "dose"), ((0.0, 110.0), (0.0, 20.0))


def model(family: str, offset: Offset) -> GLM:
    return GLM(NAMES, "y", (0.0, 1.0 if family in ("bernoulli", "probit") else 20.0), BOUNDS, family, offset)


def rows_of(family: str, n: int, seed: int, offset: Offset = YEARS) -> tuple[np.ndarray, np.ndarray]:
    """Rows as a client has them, and the truth, the intercept last. Long exposures are those of the old."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(50, 12, n), rng.exponential(2, n)])
    added = np.clip(rng.normal(0, 0.7, n) + 0.03 * (X[:, 0] - 50), *offset.ends)
    truth = np.array([0.03, -0.2, -1.0])
    eta = X @ truth[:-1] + truth[-1] + added
    if family == "bernoulli":
        y = rng.random(n) < 1 / (1 + np.exp(-eta))
    else:
        mean = np.exp(eta) * (1 if family == "poisson" else rng.gamma(2.0, 0.5, n))
        y = mean if family == "gamma" else rng.poisson(mean)
    return np.column_stack([X, np.exp(added) if offset.exposure else added, y]), truth


@pytest.mark.parametrize(
    ("family", "offset"),
    [("poisson", YEARS), ("negative-binomial", YEARS), ("gamma", YEARS), ("bernoulli", Offset("score", (-2.0, 2.0)))],
)
def test_coefficients_are_those_of_the_rate(family: str, offset: Offset):
    """Exposures go with age, so that without them the coefficient of age would be 0.06 and not 0.03.
    FALSE_ALARM: 6 numbers beyond 4 deviations, 4e-4 for each family."""
    for seed in range(2):
        rows, truth = rows_of(family, 20_000, seed, offset)
        found = run(model(family, offset), rows, TrustedAggregator(seed=seed), Budget(5.0, 1e-5)).posterior
        mean = np.append(found.mean, found.intercept)
        std = np.sqrt(np.diag(found.linear.joint.covariance))
        np.testing.assert_allclose((mean - truth) / std, 0, atol=4)
        assert (std < [0.003, 0.02, 0.15]).all()


def test_an_exposure_beyond_its_bounds_counts_as_the_bound():
    rows, _ = rows_of("poisson", 2000, 0)
    rows[:5, 2], rows[5:10, 2] = [1e9, 7.0, 5.1, 1e100, 6.0], [1e-9, 0.05, 0.0, -3.0, 1e-300]
    clipped = rows.copy()
    clipped[:, 2] = np.clip(rows[:, 2], 0.1, 5.0)
    one, other = (
        run(model("poisson", YEARS), each, TrustedAggregator(seed=1), Budget(2.0, 1e-5)) for each in (rows, clipped)
    )
    assert one.as_dict() == other.as_dict()


def test_hostile_rows_have_a_bounded_vector():
    """Whatever a client puts into its exposure, its vector is finite and within the sensitivity of every other."""
    analysis, engine = model("negative-binomial", YEARS), TrustedAggregator(seed=1)
    plan = analysis.plan(Budget(1.0, 1e-5), engine.population(2000), DEFAULT)
    state, rows = analysis.start(plan), rows_of("negative-binomial", 2000, 3)[0]
    values = np.array([0.0, -1.0, 1e-300, 1.0, 1e300, -1e300, np.nan, np.inf])
    hostile = np.stack(np.meshgrid([50.0, -1e300, np.inf], [2.0, 1e308], values, [0.0, 7.0, 1e300, 0.5, np.nan]), -1)
    while (spec := analysis.ask(state)) is not None:
        vectors, _ = bounded_vectors(spec.statistic, hostile.reshape(-1, 4), spec.steps)
        assert np.isfinite(vectors).all()
        distances = np.linalg.norm(vectors[:, None] - vectors[None], axis=-1)
        assert distances.max() <= spec.statistic.sensitivity * (1 + 1e-9)
        state = analysis.tell(state, engine.private_sum(rows, spec))


def test_as_it_is_written_in_a_study():
    settings = {
        "kind": "glm", "features": ["age", "dose"], "target": "y", "x_bound": "age=0:110,dose=0:20", "y_bound": "0:20",
        "family": "poisson",
    }  # fmt: skip
    found = written_analysis({**settings, "exposure": "years", "exposure_bound": "0.1:5"})
    assert found.describe() == model("poisson", YEARS).describe()
    assert found.columns == ("age", "dose", "years", "y")
    plain = written_analysis({**settings, "offset": "log_years", "offset_bound": "-2:2"})
    assert plain.describe() == model("poisson", Offset("log_years", (-2.0, 2.0))).describe()
    assert "offset" not in written_analysis(settings).describe()
    for change, message in (
        ({"exposure": "years"}, "exposure_bound must be given with exposure"),
        ({"exposure_bound": "0.1:5"}, "exposure must name a column where exposure_bound is given"),
        ({"exposure": "years", "exposure_bound": "0:5"}, "exposure_bound must be above 0"),
        ({"exposure": "years", "exposure_bound": "5"}, "exposure_bound must be above 0"),
        ({"exposure": "age", "exposure_bound": "0.1:5"}, "features and target must be distinct names"),
        ({"exposure": "a", "exposure_bound": "1:5", "offset": "b", "offset_bound": "1:5"}, "must not both be given"),
        (
            {"exposure": "a", "exposure_bound": "1:5", "family": "bernoulli", "y_bound": "0:1"},
            "exposure must be of a family",
        ),
    ):
        with pytest.raises(InvalidInput, match=message) as caught:
            written_analysis({**settings, **change})
        assert "\n" not in str(caught.value)
