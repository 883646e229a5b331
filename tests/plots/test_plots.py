"""Pictures are written, in each format, and are not empty."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hubbub.plots.coefficients import forest_plot
from hubbub.plots.demo import demo_plot

MAGIC = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.mark.parametrize("ending", MAGIC)
def test_forest_plot(tmp_path: Path, ending: str):
    path = tmp_path / f"plot.{ending}"
    forest_plot(path, ["age", "dose"], np.array([0.1, -0.2]), np.array([[0.0, 0.2], [-0.4, 0.1]]), "title")
    assert path.read_bytes().startswith(MAGIC[ending])
    assert path.stat().st_size > 3000


def test_demo_plot(tmp_path: Path, rng: np.random.Generator):
    errors = {"nonprivate": rng.random(20), "distributed": rng.random(20)}
    demo_plot(tmp_path / "demo.png", errors, rng.random(256) + 9, rng.random(256) + 1, "title")
    assert (tmp_path / "demo.png").stat().st_size > 10_000
