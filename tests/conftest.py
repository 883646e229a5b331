"""Shared pieces of the tests. Statistical tests use fixed seeds; FALSE_ALARM is the chance that a right
implementation would fail one of them under a fresh seed."""

from __future__ import annotations

import numpy as np
import pytest

FALSE_ALARM = 1e-6


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261115)


@pytest.fixture
def regression_rows(rng: np.random.Generator) -> np.ndarray:
    """400 clients with three features in [-1, 1] and a target."""
    X = rng.uniform(-1, 1, size=(400, 3))
    y = X @ [0.5, -0.3, 0.1] + 0.1 * rng.standard_normal(400)
    return np.column_stack([X, np.clip(y, -1, 1)])
