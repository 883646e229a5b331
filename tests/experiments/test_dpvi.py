"""The experiment of private variational inference: rows as elsewhere, and its claim at epsilon = 1."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub.experiments import catalogue, dpvi
from hubbub.experiments.catalogue import Settings
from hubbub.plots import experiments as plots


@pytest.mark.slow
def test_accuracy_at_epsilon_1_is_within_3_points_of_the_non_private_one(tmp_path, monkeypatch):
    """One split, fixed seed."""
    monkeypatch.setattr(dpvi, "EPSILONS", (1.0,))
    result = catalogue.run("dpvi", Settings(tmp_path, repeats=1, jobs=1))
    rows = {row["method"]: row for row in result.rows}
    assert set(rows) == {"NP", "TA", "DDP"}
    assert {"epsilon", "method", "mean", "std", "repeats"} <= set(rows["DDP"])
    assert rows["DDP"]["mean"] > rows["NP"]["mean"] - 0.03
    assert result.claims[0].holds
    assert (tmp_path / "dpvi.png").exists()
    assert (tmp_path / "dpvi.csv").exists()


def test_picture_of_given_rows():
    rows = [
        {"dataset": "abalone", "epsilon": e, "method": m, "mean": 0.8, "std": 0.01, "n": 3000, "guarantee": True}
        for e in dpvi.EPSILONS
        for m in dpvi.METHODS
    ]
    assert len(plots.dpvi(rows, None).axes) == 1


def test_columns_are_scaled_by_public_values_near_one():
    X, y = dpvi.data()
    assert X.shape == (4177, 8)
    assert np.abs(X.mean(axis=0)).max() < 0.5
    assert 0.5 < y.mean() < 0.8
