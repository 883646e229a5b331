"""Databases of both kinds, and live Compute processes, started once per test session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.postgres import PrivatePostgres, available
from service.stage import M, Stage, make_stage


@pytest.fixture(scope="session")
def postgres() -> Iterator[PrivatePostgres]:
    if not available():
        pytest.skip("initdb and pg_ctl are not installed")
    server = PrivatePostgres()
    yield server
    server.remove()


@pytest.fixture(params=["sqlite", "postgresql"])
def urls(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    if request.param == "sqlite":
        return [f"sqlite:///{tmp_path}/compute-{k}.db" for k in range(M)]
    return [request.getfixturevalue("postgres").database() for _ in range(M)]


@pytest.fixture
def stage(urls: list[str]) -> Iterator[Stage]:
    made = make_stage(urls)
    made.register()
    yield made
    for node in made.nodes:
        node.store.close()
