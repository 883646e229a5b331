"""The table of Wang 2018: published figures, the algorithm's formulas, and what is said about the default method."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub.experiments import adassp, baselines, catalogue
from hubbub.experiments.catalogue import Settings
from hubbub.plots import experiments as plots
from hubbub.privacy import Budget, GaussianEvent, epsilon_spent

BUDGET = Budget(1.0, 1e-6)
FALSE_ALARM = 1e-6


def test_published_figures_are_the_papers():
    table = [(p.trivial, p.non_private, p.best[0.1], p.best[1.0]) for p in adassp.PUBLISHED.values()]
    assert list(adassp.PUBLISHED) == ["airfoil", "concrete", "energy", "housing", "protein"]
    assert table == [
        (0.1033, 0.0533, 0.0912, 0.0588), (0.1274, 0.0445, 0.1125, 0.0637), (0.2352, 0.0232, 0.1477, 0.0429),
        (0.112, 0.0394, 0.0985, 0.0680), (0.1671, 0.1189, 0.1259, 0.1199),
    ]  # fmt: skip


def test_formulas_by_hand():
    """log(6e6) = 15.60727; its root 3.95060; with epsilon/3 = 1/3: 11.85181 and 46.82182.

    The ridge for d = 2 and rho = 0.05: log(8/0.05) = 5.07517, sqrt(2 * 15.60727 * 5.07517) * 3 = 37.75939.
    """
    assert baselines.ada_ssp_spread(BUDGET) == pytest.approx(11.85181, abs=1e-5)
    assert baselines.ada_ssp_lowest(100.0, BUDGET, 0.5) == pytest.approx(100 + 5.92590 - 46.82182, abs=1e-4)
    assert baselines.ada_ssp_lowest(10.0, BUDGET, 0.0) == 0.0
    assert baselines.ada_ssp_ridge(2, 0.0, BUDGET) == pytest.approx(37.7594, abs=1e-3)
    assert baselines.ada_ssp_ridge(2, 30.0, BUDGET) == pytest.approx(7.7594, abs=1e-3)
    assert baselines.ada_ssp_ridge(2, 40.0, BUDGET) == 0.0


class Given:
    """A generator whose normal numbers are known."""

    def __init__(self, *values: object) -> None:
        self.values = list(values)

    def normal(self, size: object = None) -> object:
        value = self.values.pop(0)
        assert np.shape(value) == (() if size is None else size if isinstance(size, tuple) else (size,))
        return value


def test_estimate_by_hand():
    """Noise where the paper adds it: the eigenvalue, the upper triangle mirrored, and X'y."""
    X = np.repeat([[1.0, 0.0], [0.0, 1.0]], [300, 100], axis=0)
    y = np.repeat([0.5, -0.5], [300, 100])
    noise = np.array([[1.0, -2.0], [99.0, 0.5]])  # what stands below the diagonal is not used
    found = baselines.ada_ssp(X, y, BUDGET, Given(0.5, noise, np.array([1.0, 2.0])))
    s = 11.85181
    gram = np.array([[300 + s, -2 * s], [-2 * s, 100 + 0.5 * s]])  # lowest eigenvalue 59 > 37.8: no ridge
    assert found == pytest.approx(np.linalg.solve(gram, [150 + s, -50 + 2 * s]), rel=1e-5)
    ridged = baselines.ada_ssp(X[:310], y[:310], BUDGET, Given(0.0, np.zeros((2, 2)), np.zeros(2)))
    assert ridged == pytest.approx([150 / (300 + 37.75939), -5 / (10 + 37.75939)], rel=1e-5)


def test_noise_has_the_stated_deviation():
    """Of 20000 numbers; the sample deviation is off by 4 % with probability below FALSE_ALARM."""
    rng, X = np.random.default_rng(0), np.full((1000, 1), 0.001)
    plenty = Budget(3000.0, 1e-6)  # X'X is then its ridge and noise, both small beside what is added to it here
    found = np.array(
        [baselines.ada_ssp(np.vstack([X, np.ones((1000, 1))]), np.zeros(2000), plenty, rng)[0] for _ in range(20_000)]
    )
    assert found.std() * 1000 == pytest.approx(baselines.ada_ssp_spread(plenty), rel=0.04)


@pytest.mark.parametrize("epsilon", adassp.EPSILONS)
def test_published_noise_keeps_the_budget_at_the_sensitivity_of_adding_a_row(epsilon: float):
    spread = baselines.ada_ssp_spread(Budget(epsilon, adassp.DELTA))
    assert epsilon_spent([GaussianEvent(2 * spread)] * 3, adassp.DELTA) <= epsilon  # 2z: GaussianEvent is replace-one


def test_rows_are_prepared_as_in_the_paper():
    X = np.random.default_rng(1).normal([5, -3], [2, 40], size=(50, 2))
    rows = adassp.prepared(np.column_stack([X, X[:, 0] * 7]))
    assert np.linalg.norm(rows[:, :-1], axis=1) == pytest.approx(np.ones(50))
    assert rows[:, -1].mean() == pytest.approx(0, abs=1e-12)
    assert np.abs(rows[:, -1]).max() == 1.0


SHAPES = {
    "airfoil": (1503, 6),
    "concrete": (1030, 9),
    "energy": (768, 9),
    "housing": (506, 14),
    "protein": (45_730, 10),
}


@pytest.mark.parametrize("name", adassp.PUBLISHED)
def test_trivial_and_non_private_errors_are_near_the_published_ones(name: str, adassp_folder):
    """The data, its target and its preparation are the paper's, or these would be far off."""
    rows = adassp.rows(name, str(adassp_folder))
    assert rows.shape == SHAPES[name]
    X, y, paper = rows[:, :-1], rows[:, -1], adassp.PUBLISHED[name]
    assert np.mean(y**2) == pytest.approx(paper.trivial, rel=0.02)
    assert np.mean((y - X @ np.linalg.lstsq(X, y)[0]) ** 2) == pytest.approx(
        paper.non_private, rel=0.1
    )  # in-sample here


def test_every_row_is_held_out_once():
    data = np.arange(46.0).reshape(23, 2)
    parts = list(adassp.folds(data, np.random.default_rng(0).permutation(23)))
    assert len(parts) == 10
    assert sorted(np.vstack([test for _, test in parts])[:, 0]) == sorted(data[:, 0])
    for train, test in parts:
        assert len(train) + len(test) == 23
        assert not set(train[:, 0]) & set(test[:, 0])


@pytest.fixture(scope="module")
def outcome(adassp_folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adassp, "FOLDS", 2)
        found = [adassp.run_folding("airfoil", str(adassp_folder), repeat, 0) for repeat in range(2)]
        assert adassp.run_folding("airfoil", str(adassp_folder), 0, 0) == found[0]
    return adassp.summarise(found, "sound", 2)


def test_rows_for_each_epsilon_and_method(outcome):
    assert [(row["epsilon"], row["method"]) for row in outcome.rows] == [
        (e, m) for e in adassp.EPSILONS for m in adassp.METHODS
    ]
    mse = {(row["epsilon"], row["method"]): row["mse"] for row in outcome.rows}
    assert mse[0.1, "published"] == 0.0912
    for method in ("AdaSSP", "default", "shrinkage"):
        assert mse[1.0, "non-private"] < mse[1.0, method] < mse[1.0, "trivial"]
        assert mse[1.0, method] < mse[0.1, method]
    assert len(plots.adassp(outcome.rows, None).axes) == 1


def test_claims_list_where_they_fail(outcome):
    rows = [{**row} for row in outcome.rows]
    for row in rows:
        if row["method"] == "default":
            row["mse"] = 0.0589 if row["epsilon"] == 1.0 else 0.1
    best, trivial = adassp.claims(rows)
    assert (best.holds, trivial.holds) == (False, True)
    assert "not airfoil (1.002)" in best.measured
    for row in rows:
        if row["method"] == "default":
            row["mse"] = 0.0588 if row["epsilon"] == 1.0 else 0.11
    best, trivial = adassp.claims(rows)
    assert (best.holds, trivial.holds) == (True, False)


def test_one_cell_per_set_and_folding(tmp_path, adassp_folder):
    cells, repeats = catalogue.plan("adassp", Settings(tmp_path, repeats=2, data=adassp_folder))
    assert (len({cell.key for cell in cells}), repeats) == (10, 2)
    assert "adassp" not in catalogue.OF_THE_PAPER
