"""The experiment on generalised linear models: its data, its arithmetic and its claims."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import nbinom
from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor

from hubbub.experiments import catalogue, glm
from hubbub.plots import experiments as plots


@pytest.mark.parametrize("kind", glm.FEATURES)
def test_columns_have_the_stated_centre_and_deviation(kind: str, rng: np.random.Generator):
    centre, scale, (low, high) = glm.UNITS[kind]
    x = glm.columns(kind, 100_000, 1, rng)
    assert x.mean() == pytest.approx(centre, rel=0.02)
    assert x.std() == pytest.approx(scale, rel=0.02)
    assert np.mean((x >= low) & (x <= high)) > 0.999


@pytest.mark.parametrize("family", ["bernoulli", "poisson", "gamma"])
def test_the_baseline_is_maximum_likelihood(family: str, rng: np.random.Generator):
    X, y, _ = glm.study_of(family, 3000, 3, "skewed", rng)
    X = (X - 2) / 2
    settings = {"alpha": 0, "tol": 1e-8, "max_iter": 10_000}
    model = {
        "poisson": PoissonRegressor(**settings), "gamma": GammaRegressor(**settings), "bernoulli": LogisticRegression(C=1e10)
    }[family]  # fmt: skip
    np.testing.assert_allclose(glm.maximum_likelihood(family, X, y), model.fit(X, y).coef_.ravel(), atol=1e-3)


def test_the_baseline_of_overdispersed_counts_is_maximum_likelihood(rng: np.random.Generator):
    """No one else's to hand: its likelihood, with the intercept at its best, falls wherever one goes."""
    X, y, _ = glm.study_of("negative-binomial", 3000, 3, "skewed", rng)
    X = (X - 2) / 2
    assert y.var() > 2 * y.mean()

    def likelihood(b: np.ndarray) -> float:
        def fixed(intercept: float) -> float:
            mean = np.exp(X @ b + intercept)
            shape = 1 / glm.DISPERSION
            return -float(nbinom.logpmf(y, shape, shape / (shape + mean)).sum())

        return -float(minimize_scalar(fixed, bracket=(0.0, 1.0)).fun)

    found = glm.maximum_likelihood("negative-binomial", X, y)
    at = likelihood(found)
    for way in np.vstack([np.eye(3), -np.eye(3)]):
        assert likelihood(found + 0.003 * way) < at


@pytest.mark.parametrize("family", glm.FAMILIES)
def test_one_setting(family: str):
    parts = [glm.run_part(family, 1000, 3, "normal", 0, first, last) for first, last in ((0, 2), (2, 3))]
    result = glm.summarise(parts, "sound", 3)
    assert [row["epsilon"] for row in result.rows] == list(glm.EPSILONS)
    assert all(row["intervals"] == 9 and 0 <= row["coverage"] <= 1 for row in result.rows)
    assert result.rows[0]["width"] > result.rows[-1]["width"] > 0
    assert len(result.claims) == 2
    assert plots.glm(result.rows, None).axes


def test_claims_hold_where_they_should():
    def rows(hits: float, error: float) -> list[list[dict[str, object]]]:
        return [
            [{"family": family, "n": 10_000, "d": 3, "x": "normal", "epsilon": 1.0, "hits": hits, "width": 1.0,
              "error": error, "least_error": 1.0, "intervals": 1000}]
            for family in glm.FAMILIES
        ]  # fmt: skip

    assert [claim.holds for claim in glm.summarise(rows(900, 2.0), "sound", 1).claims] == [True] * 8
    assert [claim.holds for claim in glm.summarise(rows(800, 2.0), "sound", 1).claims] == [False, True] * 4
    assert [claim.holds for claim in glm.summarise(rows(900, 2.5), "sound", 1).claims] == [True, False] * 4


def test_more_repeats_go_on_from_fewer(tmp_path: Path):
    few, many = ({cell.key for cell in glm.cells("sound", 0, repeats)} for repeats in (10, 20))
    assert few < many
    cells, repeats = catalogue.plan("glm", catalogue.Settings(tmp_path))
    assert repeats == glm.DEFAULT_REPEATS
    assert sum(cell.arguments[-1] - cell.arguments[-2] for cell in cells) == 4 * 4 * 3 * 4 * repeats
