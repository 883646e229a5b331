"""The default method on other data sets: real rows, public bounds, and what is measured on them."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub.experiments import catalogue, others
from hubbub.experiments.catalogue import Settings
from hubbub.plots import experiments as plots

SHAPES = {
    "diabetes": (442, 11), "fish_toxicity": (908, 7), "concrete": (1030, 9), "medical_cost": (1338, 6),
    "airfoil": (1503, 6), "weather": (1461, 10), "computer_activity": (8192, 22), "power_plant": (9568, 5),
    "power_grid": (10_000, 13), "protein": (45_730, 10),
}  # fmt: skip


@pytest.mark.parametrize("name", others.DATASETS)
def test_rows_are_the_real_ones_and_bounds_are_round_numbers_that_hold_them(name: str):
    other = others.DATASETS[name]
    data, ends = other.read(), np.array(list(other.bounds.values()))
    assert data.shape == SHAPES[name]
    assert np.isfinite(data).all()
    assert ends.shape == (data.shape[1], 2)
    assert np.mean((data >= ends[:, 0]) & (data <= ends[:, 1]), axis=0).min() > 0.99
    for end in ends.flat:
        assert float(f"{end:.2g}") == end or end == 1050  # two digits: not read off the data
    assert [*other.x, other.y] == list(other.bounds.values())


def test_bounds_are_wider_than_the_data_where_they_are_not_what_a_column_can_be():
    """An end that is a value of the data is a natural one: 0, a coded group, a full share, the top of a scale."""
    for other in others.DATASETS.values():
        data = other.read()
        for column, (name, (_, high)) in zip(data.T, other.bounds.items(), strict=True):
            if column.max() >= high:
                assert name in ("sex", "smoker", "frequency (Hz)", "humidity (%)")


@pytest.mark.parametrize(("rows", "expected"), [(442, (294, 148)), (9568, (6378, 2000)), (45_730, (10_000, 2000))])
def test_sizes_and_budgets(rows: int, expected: tuple[int, int]):
    assert others.sizes(rows) == expected
    assert others.budget(1.0, rows).delta == (1e-4 if rows < 1000 else 1e-5)


@pytest.fixture(scope="module")
def result():
    """Two splits of two data sets at epsilon = 1 alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(others, "EPSILONS", (1.0,))
        found = [others.run_split(name, split, 0) for split in range(2) for name in ("airfoil", "power_plant")]
        assert others.run_split("airfoil", 0, 0) == found[0]
    return others.summarise(found, "sound", 2)


def test_default_is_between_non_private_and_the_mean(result):
    assert len(result.rows) == 2 * len(others.METHODS)
    for name in ("airfoil", "power_plant"):
        errors = {row["method"]: row["median"] for row in result.rows if row["dataset"] == name}
        assert 0.95 * errors["non-private"] < errors["hubbub"] < 0.9 * errors["mean"]
        assert errors["hubbub"] < errors["proj DDP"]


def test_rows_say_what_was_measured(result):
    for row in result.rows:
        assert row["q25"] <= row["median"] <= row["q75"]
        assert (row["coverage"] is None) == (row["method"] in ("proj DDP", "mean"))
        assert row["guarantee"] is (True if row["method"] in others.PRIVATE else None)
    for ratio in ("ratio", "rms_ratio"):
        assert {row[ratio] for row in result.rows if row["method"] == "non-private"} == {1.0}
        assert all(0.95 < row[ratio] < 1.2 for row in result.rows if row["method"] == "hubbub")
    assert {(row["dataset"], row["n"], row["d"]) for row in result.rows} == {
        ("airfoil", 1002, 5),
        ("power_plant", 6378, 4),
    }


def test_claims_list_where_they_fail(result):
    assert [claim.holds for claim in result.claims][1]
    rows = [{**row} for row in result.rows]
    for row in rows:
        if (row["dataset"], row["method"]) == ("airfoil", "hubbub"):
            row |= {"ratio": 1.5, "median": 99.0, "rms_ratio": 2.1, "coverage": 0.5}
    near, useful, twice, held = others.claims(rows)
    assert [near.holds, useful.holds, twice.holds, held.holds] == [False] * 4
    assert "not airfoil (2.10)" in twice.measured
    assert "not airfoil (1.50)" in near.measured
    assert "1 of 2 sets" in useful.measured
    assert "airfoil at 1 (50.0%)" in held.measured


def test_picture_has_a_panel_for_each_set_and_one_for_coverage(result):
    assert [axes.get_title() for axes in plots.others(result.rows, None).axes] == [
        "airfoil (n=1002)",
        "power plant (n=6378)",
        "hubbub",
    ]


def test_one_cell_per_set_and_split_and_not_part_of_all(tmp_path):
    cells, repeats = catalogue.plan("others", Settings(tmp_path, seed=3))
    assert repeats == 10
    assert len({cell.key for cell in cells}) == 10 * len(others.DATASETS)
    assert "others" not in catalogue.OF_THE_PAPER
