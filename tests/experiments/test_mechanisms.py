"""Laws of noise side by side: the splits of Figure 2, budgets of their own, and what is claimed of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hubbub.cli import main
from hubbub.experiments import catalogue, fig2, mechanisms
from hubbub.experiments.catalogue import Settings
from hubbub.plots import experiments as plots


@pytest.fixture(scope="module")
def splits():
    """Two splits of abalone at epsilon = 1 alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mechanisms, "EPSILONS", (1.0,))
        return [mechanisms.run_split("abalone", split, 0) for split in range(2)]


@pytest.fixture(scope="module")
def result(splits):
    return mechanisms.summarise(splits, "sound", 2)


def test_every_law_is_near_the_non_private_error(result):
    assert [row["method"] for row in result.rows] == list(mechanisms.METHODS)
    for row in result.rows:
        assert row["q25"] <= row["median"] <= row["q75"]
        assert 0.98 < row["ratio"] < 1.25
    assert {row["method"]: (row["delta"], row["guarantee"]) for row in result.rows} == {
        "non-private": (None, None), "gaussian": (1e-4, True), "discrete-gaussian": (1e-4, True),
        "discrete-laplace": (0.0, True),
    }  # fmt: skip


def test_splits_are_those_of_figure_2_and_rows_follow_from_the_seed(splits, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(mechanisms, "EPSILONS", (1.0,))
    monkeypatch.setattr(fig2, "EPSILONS", (1.0,))
    monkeypatch.setattr(fig2, "METHODS", ("NP",))
    assert mechanisms.run_split("abalone", 0, 0) == splits[0]
    (paper,) = fig2.run_split("abalone", 0, "sound", 0)
    assert splits[0][0]["error"] == paper["error"]
    assert mechanisms.run_split("abalone", 0, 1) != splits[0]


def rows_of(errors: dict[str, float], coverage: float = 0.9) -> list[list[dict[str, object]]]:
    """Ten splits of made-up errors, a little apart, at epsilon = 1."""
    return [
        [
            {"dataset": name, "epsilon": 1.0, "method": method, "error": error + 1e-3 * split, "coverage": coverage}
            for name in fig2.DATASETS
            for method, error in errors.items()
        ]
        for split in range(10)
    ]


SAME = {"non-private": 1.0, "gaussian": 1.1, "discrete-gaussian": 1.1, "discrete-laplace": 1.2}


def test_claims_hold_where_they_should_and_only_there():
    same, price, covers = mechanisms.summarise(rows_of(SAME), "sound", 10).claims
    assert (same.holds, price.holds, covers.holds) == (True, True, True)
    assert same.claim == "(ours) discrete-gaussian is indistinguishable from gaussian"
    assert "red_wine 1.09" in price.measured
    worse = {**SAME, "discrete-gaussian": 1.3, "discrete-laplace": 1.9}
    same, price, covers = mechanisms.summarise(rows_of(worse, 0.8), "sound", 10).claims
    assert (same.holds, price.holds, covers.holds) == (False, False, False)
    assert "discrete-laplace from 80.0% to 80.0%" in covers.measured


def test_picture_has_a_panel_for_each_set_and_shows_every_law(result):
    figure = plots.mechanisms(mechanisms.summarise(rows_of(SAME), "sound", 10).rows, None)
    assert [axes.get_title() for axes in figure.axes] == ["red wine", "abalone", "white wine"]
    for axes in figure.axes:
        assert axes.get_legend_handles_labels()[1] == list(mechanisms.METHODS)
        low, high = axes.get_ylim()
        assert low < 1.0
        assert high > 1.2


def test_one_cell_per_set_and_split_and_not_part_of_all(tmp_path: Path):
    cells, repeats = catalogue.plan("mechanisms", Settings(tmp_path, seed=3))
    assert repeats == 25
    assert len({cell.key for cell in cells}) == 25 * len(fig2.DATASETS)
    assert "mechanisms" not in catalogue.OF_THE_PAPER


def test_command_writes_a_page_and_goes_on_from_its_cells(tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(mechanisms, "DATASETS", {"abalone": fig2.DATASETS["abalone"]})
    monkeypatch.setattr(mechanisms, "EPSILONS", (1.0,))
    command = ["experiment", "mechanisms", "--out", str(tmp_path), "--repeats", "1", "--jobs", "1", "--json"]
    assert main(command) == 0
    content = json.loads(capsys.readouterr().out)
    assert [row["method"] for row in content["rows"]] == list(mechanisms.METHODS)
    assert all(np.isfinite(row["median"]) for row in content["rows"])
    assert "Laws of noise side by side" in (tmp_path / "report.html").read_text()
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "cells").iterdir()}
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out) == content
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "cells").iterdir()} == stamps
