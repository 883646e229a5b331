"""Logistic regression on real data: rows as they are, public bounds, what is measured, and the claims."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub.errors import InvalidInput
from hubbub.experiments import catalogue, outcome_sets, outcomes
from hubbub.experiments.catalogue import Settings
from hubbub.experiments.outcome_sets import SOURCES, Source, read
from hubbub.plots import experiments as plots

SHAPES = {
    "saheart": (462, 9, 160), "pima": (768, 8, 268), "german": (1000, 50, 300), "australian": (690, 33, 307),
    "mammographic": (830, 10, 403), "wdbc": (569, 30, 212), "abalone": (4177, 9, 2081),
    "contraceptive": (1473, 11, 844), "stroke": (4981, 15, 248),
}  # fmt: skip


@pytest.mark.parametrize("name", SOURCES)
def test_rows_are_the_real_ones_and_bounds_are_round_numbers_that_hold_nearly_all(name: str):
    data = read(name)
    low, high = np.array(data.x_bounds).T
    assert (*data.X.shape, int(data.y.sum())) == SHAPES[name]
    assert np.isfinite(data.X).all()
    assert len(set(data.names)) == len(data.names) == len(low)
    assert np.mean((low <= data.X) & (high >= data.X), axis=0).min() > 0.99
    assert all(float(f"{end:.2g}") == end for end in np.array(data.x_bounds).flat)
    category = np.array(["=" in column for column in data.names])
    scaled = np.where(category, data.X, np.clip((2 * data.X - low - high) / (high - low), -1, 1))
    assert np.linalg.norm(scaled, axis=1).max() <= data.norm


def test_the_point_that_the_file_has_lost_is_put_back():
    assert [outcome_sets._with_point(age) for age in (2208.0, 335.0, 25.0)] == [22.08, 33.5, 25.0]
    age = read("australian").X[:, 1]
    assert (age.min(), age.max()) == (13.75, 80.25)


def test_levels_become_columns_and_unknown_ones_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    path.write_text("kind,size,answer\nb,1.5,yes\na,2,no\nc,3,yes\n")
    monkeypatch.setattr(outcome_sets, "data_file", lambda name: tmp_path / name)
    columns = {"kind": ("a", "b", "c"), "left out": None}
    source = Source("rows.csv", columns, "yes".__eq__, "three rows", header=True)
    monkeypatch.setitem(SOURCES, "three", source)
    read.cache_clear()
    data = read("three")
    assert data.names == ("kind=b", "kind=c")
    assert data.X.tolist() == [[1, 0], [0, 0], [0, 1]]
    assert data.y.tolist() == [1, 0, 1]
    assert data.norm == 1
    monkeypatch.setitem(SOURCES, "two", Source("rows.csv", {"kind": ("a", "b")}, "yes".__eq__, "", header=True))
    with pytest.raises(InvalidInput, match="two: kind must be one of"):
        read("two")
    with pytest.raises(InvalidInput, match="name must be one of"):
        read("none")
    read.cache_clear()


def test_scores_of_known_answers():
    y = np.array([0.0, 0.0, 1.0, 1.0])
    assert outcomes.scores(np.array([0.2, 0.6, 0.4, 0.9]), y) == {
        "accuracy": 0.5,
        "auc": 0.75,
        "log_loss": pytest.approx(-np.log([0.8, 0.4, 0.4, 0.9]).mean()),
    }
    assert outcomes.scores(np.full(4, 0.3), y)["auc"] == 0.5


def test_the_fit_without_privacy_is_in_raw_units(rng: np.random.Generator):
    X = rng.normal([10.0, -3.0], [5.0, 0.1], (4000, 2))
    y = (rng.random(4000) < 1 / (1 + np.exp(-0.2 * (X[:, 0] - 10)))).astype(float)
    coefficients, probability = outcomes.logistic(X, y, outcomes.PLAIN)
    assert coefficients[0] == pytest.approx(0.2, abs=0.03)
    odds = [np.log(p / (1 - p)) for p in probability(np.array([[10.0, -3.0], [11.0, -3.0]]))]
    assert odds[1] - odds[0] == pytest.approx(coefficients[0])


@pytest.fixture(scope="module")
def result():
    """One split of the smallest set, and one draw of the noise, at one epsilon each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outcomes, "EPSILONS", (3.0,))
        patch.setattr(outcomes, "INTERVALS", 1)
        patch.setattr(outcomes, "PUBLISHED", {0.936: 0.7543})
        return outcomes.summarise([outcomes.run_split("saheart", 0, 0), outcomes.run_published(0, 0)], "sound", 1)


def test_rows_say_what_was_measured(result):
    assert [(row["dataset"], row["method"], row["n"], row["d"], row["delta"]) for row in result.rows] == [
        *(("saheart", method, 308, 9, 1e-5) for method in ("non-private", "majority", "hubbub")),
        *((outcomes.FIRST, method, 3341, 9, 1e-3) for method in ("non-private", "published", "hubbub")),
    ]
    plain, majority, ours, published_plain, published, private = result.rows
    assert (ours["intervals"], ours["guarantee"], plain["coverage"], plain["warned"]) == (9, True, None, None)
    assert 0 <= ours["warned"] <= 1
    assert majority["auc"] == 0.5 < ours["auc"] < plain["auc"] + 0.02
    assert published["accuracy"] == 0.7543
    assert published_plain["accuracy"] == pytest.approx(0.7763, abs=1e-4)
    assert 0.6 < private["accuracy"] < 0.8
    assert len(plots.outcomes(result.rows, None).axes) == 4


def _rows(**changes: float) -> list[dict[str, object]]:
    """Of one large and one small set, and the published split, where every claim just holds."""
    good = {"accuracy": 0.79, "auc": 0.8, "log_loss": 0.5, "coverage": 0.9} | changes
    shared = {"n": 1, "d": 1, "delta": 1e-5, "repeats": 1}
    return [
        shared | {"dataset": name, "rows": rows, "epsilon": epsilon, "method": method} | found
        for name, rows in (("abalone", 4177), ("saheart", 462), (outcomes.FIRST, 4177))
        for epsilon in (1.0, 3.0)
        for method, found in (
            ("non-private", {"accuracy": 0.8}),
            ("majority", {"log_loss": 0.6}),
            ("published", {"accuracy": 0.75}),
            ("hubbub", good),
        )
    ]


@pytest.mark.parametrize(
    ("changes", "fails"),
    [
        ({"accuracy": 0.7901}, []),
        ({"accuracy": 0.785}, [0]),
        ({"accuracy": 0.74}, [0, 3]),
        ({"log_loss": 0.61, "accuracy": 0.8}, [1]),
        ({"coverage": 0.93, "accuracy": 0.8}, [2]),
        ({"coverage": 0.79, "accuracy": 0.8}, [2]),
    ],
)
def test_claims_fail_where_they_should(changes: dict[str, float], fails: list[int]):
    found = outcomes.claims(_rows(**changes))
    assert [number for number, claim in enumerate(found) if not claim.holds] == fails


def test_a_claim_that_fails_says_where():
    near = outcomes.claims(_rows(accuracy=0.785))[0]
    assert "1 of 2 points; not abalone at 3 (1.5 less)" in near.measured
    rows = _rows(accuracy=0.8)
    low = [row | {"coverage": 0.7} if row["dataset"] == "saheart" and row["epsilon"] == 3 else row for row in rows]
    assert "not median at 3 (80.0%), saheart at 3 (70.0%)" in outcomes.claims(low)[2].measured


def test_more_repeats_go_on_from_fewer(tmp_path):
    few, many = ({cell.key for cell in outcomes.cells("sound", 0, repeats)} for repeats in (1, 2))
    assert few < many
    assert len(few) == len(SOURCES) + outcomes.DRAWS
    cells, repeats = catalogue.plan("outcomes", Settings(tmp_path))
    assert repeats == outcomes.DEFAULT_REPEATS
    assert len({cell.key for cell in cells}) == repeats * len(few)
    assert "outcomes" not in catalogue.OF_THE_PAPER
