"""Shared pieces of the tests. Statistical tests use fixed seeds; FALSE_ALARM is the chance that a right
implementation would fail one of them under a fresh seed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from hubbub.service.devnet import LocalComputes

FALSE_ALARM = 1e-6
_TOGETHER = {"spark": "spark", "test_svi": "svi", "iterative": "jax", "dpvi": "jax", "gradients": "jax"}
_BY_FILE = ("tests/experiments/", "tests/service/test_draw_live.py")


class Together(LoadScopeScheduling):
    """Tests of Spark run in one process, tests of JAX in two: starting them costs more than most tests.

    So does what some files prepare for all of their tests.
    """

    def _split_scope(self, nodeid: str) -> str:
        own = nodeid.split("::")[0] if nodeid.startswith(_BY_FILE) else nodeid
        return next((group for part, group in _TOGETHER.items() if part in nodeid), own)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Together:
    return Together(config, log)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261115)


@pytest.fixture
def regression_rows(rng: np.random.Generator) -> np.ndarray:
    """400 clients with three features in [-1, 1] and a target."""
    X = rng.uniform(-1, 1, size=(400, 3))
    y = X @ [0.5, -0.3, 0.1] + 0.1 * rng.standard_normal(400)
    return np.column_stack([X, np.clip(y, -1, 1)])


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalComputes]:
    """Three Compute processes, started once per test process; they take simulations."""
    from hubbub.service.devnet import LocalComputes
    from hubbub.service.node.compute import Limits

    with LocalComputes(tmp_path_factory.mktemp("live"), 3, limits=Limits(simulation=True, studies=10_000)) as computes:
        yield computes
