"""A package that knows hubbub's public names alone can bring all five seams, and a study between parties runs on it."""

from __future__ import annotations

import ast
import csv
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hubbub
import hubbub.protocols
from hubbub import Budget, InvalidInput, LocalEngine, run
from hubbub.analyses import ANALYSES
from hubbub.cli import main
from hubbub.engines import ENGINES
from hubbub.privacy import MECHANISMS, Population, gaussian_round
from hubbub.securesum import SECURE_SUMS
from hubbub.service.devnet import LocalComputes
from hubbub.statistics import STATISTICS, Means
from plugins.installing import TOYS, gone, lay_down, on_the_path, points_in, sources_of

SOURCES = sources_of(TOYS / "hubbub_toys")
POINTS = points_in((TOYS / "pyproject.toml").read_text())
BUDGET = Budget(1.0, 1e-5)
REGISTRIES = {
    "statistic": STATISTICS, "mechanism": MECHANISMS, "secure_sum": SECURE_SUMS, "engine": ENGINES, "analysis": ANALYSES,
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the package lies, installed for the tests of this file."""
    place = lay_down(tmp_path_factory.mktemp("installed"), "hubbub_toys", SOURCES, POINTS)
    with on_the_path(place):
        yield place


@pytest.fixture
def toys(folder: Path) -> dict[str, Any]:
    """The five classes, as hubbub finds them, by the name of their module."""
    return {
        seam: registry.find(next(iter(POINTS[registry.group])))
        for seam, registry in REGISTRIES.items()
    }  # fmt: skip


@pytest.mark.parametrize("name", SOURCES)
def test_of_hubbub_a_plug_in_needs_public_names_only(name: str):
    for node in ast.walk(ast.parse(SOURCES[name])):
        if isinstance(node, ast.Import):
            assert not [each.name for each in node.names if each.name.split(".")[0] == "hubbub"]
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "hubbub":
            assert node.module in ("hubbub", "hubbub.protocols")
            assert {each.name for each in node.names} <= set(import_module(node.module).__all__)


def test_all_five_are_found_by_their_entry_points_and_name_their_package(toys: dict[str, Any]):
    for seam, registry in REGISTRIES.items():
        (name,) = POINTS[registry.group]
        assert name in registry.names()
        assert toys[seam].__module__ == f"hubbub_toys.{seam}"
    for seam in ("statistic", "mechanism", "secure_sum", "analysis"):
        assert toys[seam]().describe()["package"] == "hubbub-toys"


def test_statistic(toys: dict[str, Any]):
    from contracts.test_statistics import check_statistic

    for ends in ((0.0, 1.0), (-3.0, -1.0), (5.0, 1000.0)):
        check_statistic(toys["statistic"](*ends))


def test_mechanism(toys: dict[str, Any]):
    from contracts.test_mechanisms import check_mechanism

    check_mechanism(toys["mechanism"]())


@pytest.mark.parametrize("computes", [3, 4])
def test_secure_sum(toys: dict[str, Any], computes: int):
    from contracts.test_secure_sums import check_secure_sum

    check_secure_sum(toys["secure_sum"](computes))


def test_engine(toys: dict[str, Any]):
    from contracts.test_engines import check_engine

    check_engine(lambda seed: toys["engine"](toys["secure_sum"](), dropouts=1, colluding=1, seed=seed))


def test_analysis(toys: dict[str, Any], rng: np.random.Generator):
    from contracts.test_analyses import check_analysis

    check_analysis(toys["analysis"](), rng.random((200, 1)))


def test_a_fit_with_toys_alone(toys: dict[str, Any], rng: np.random.Generator):
    rows = rng.uniform(2.0, 4.0, size=(300, 1))
    engine = toys["engine"](toys["secure_sum"](3), dropouts=2, colluding=1)
    found = run(toys["analysis"](low=0.0, high=5.0), rows, engine, BUDGET, mechanism=toys["mechanism"]())
    assert abs(found.mean - rows.mean()) < 6 * found.std
    assert 0 < found.std < 0.5
    assert found.privacy.is_guarantee
    assert "of whom at most 1 may pool what they hold" in " ".join(str(found.privacy).split())
    assert "2 of the 3 Computes pool their shares" in " ".join(str(found.privacy).split())


@pytest.mark.parametrize("seal", [False, True])
@pytest.mark.parametrize("holds", [1, 4])
def test_toys_in_the_engines_of_hubbub(toys: dict[str, Any], rng: np.random.Generator, seal: bool, holds: int):
    rows = rng.uniform(2.0, 4.0, size=(120, 1))
    engine = LocalEngine(secure_sum=toys["secure_sum"](4), seal=seal, holds=holds, tolerate=1)
    found = run(toys["analysis"](low=0.0, high=5.0), rows, engine, Budget(4.0, 1e-5), mechanism=toys["mechanism"]())
    assert abs(found.mean - rows.mean()) < 6 * found.std
    assert found.privacy.is_guarantee


def test_toys_in_worker_processes(toys: dict[str, Any]):
    """A scheme whose sums are longer than the vectors: every worker adds up its part, and the parts are merged."""
    rows = np.arange(2.0**15 * 40).reshape(-1, 40) % 100
    engine = LocalEngine(secure_sum=toys["secure_sum"](3), workers=2)
    engine.warm_up()
    plan = engine.settle(gaussian_round(Means((100.0,) * 40), 0.0), rows.shape[0])
    found = engine._sums_of_workers(plan, rows)
    assert found is not None
    assert engine.private_sum(rows, gaussian_round(plan.statistic, 0.0)).value.tolist() == rows.sum(axis=0).tolist()

    assert (
        engine.private_sum(rows, gaussian_round(Means((100.0,) * 40), 0.0)).value.tolist() == rows.sum(axis=0).tolist()
    )


def test_analyses_of_hubbub_run_on_the_toy_law(toys: dict[str, Any], rng: np.random.Generator):
    rows = (rng.random((500, 1)) < 0.3).astype(float)
    found = run(hubbub.Bernoulli(), rows, LocalEngine(), Budget(2.0, 1e-5), mechanism=toys["mechanism"]())
    assert abs(found.posterior.mean - rows.mean()) < 6 * found.posterior.std


def test_who_lacks_the_package_is_told_its_name(toys: dict[str, Any], folder: Path):
    described = {seam: toys[seam]().describe() for seam in ("statistic", "mechanism", "secure_sum", "analysis")}
    with gone(folder):
        for seam, description in described.items():
            with pytest.raises(InvalidInput, match="of the package 'hubbub-toys', which is not; install that"):
                REGISTRIES[seam].read(description)
    for seam, description in described.items():
        assert REGISTRIES[seam].read(description).describe() == description


STUDY = """
title = "a study on toys"
epsilon = 4.0
delta = 1e-5
computes = {urls}
parties = {{ north = 60, east = 40, south = 50 }}
privacy = {{ mechanism = "{mechanism}" }}
sum = {{ scheme = "{scheme}" }}

[analysis]
kind = "{kind}"
"""
TOY_ANALYSIS = {"kind": 'toy-mean"\nlow = 0.0\nhigh = 5.0\ncolumn = "height'}
ALL_TOYS = {"mechanism": "toy-rounded", "scheme": "toy-ring", **TOY_ANALYSIS}


class Parties:
    """An analyst and three data holders at the command line."""

    def __init__(self, place: Path, urls: tuple[str, ...], capsys: pytest.CaptureFixture[str], **names: str) -> None:
        self.place, self.study, self.capsys = place, place / "study.json", capsys
        self.rows = np.random.default_rng(1).uniform(2.0, 4.0, size=(150, 1))
        (place / "study.toml").write_text(STUDY.format(urls=json.dumps(urls), **names))
        for name, part in zip(("north", "east", "south"), np.split(self.rows, [60, 100]), strict=True):
            np.savetxt(place / f"{name}.csv", part, header="height", comments="")

    def create(self) -> None:
        self.pin = self.run("study", "create", self.place / "study.toml")["fingerprints"]["study"]
        with open(self.place / "study.tokens.csv") as file:
            self.tokens = {row["client"]: row["token"] for row in csv.DictReader(file)}

    def command_of(self, client: str) -> list[object]:
        known = ["--token", self.tokens[client], "--expect-study", self.pin, "--client", client, "--yes"]
        return ["contribute", self.study, self.place / f"{client}.csv", *known]

    def run(self, *arguments: object) -> dict[str, Any]:
        code = main([*map(str, arguments), "--json"])
        captured = self.capsys.readouterr()
        assert code == 0, captured.err
        found: dict[str, Any] = json.loads(captured.out)
        return found

    def failed(self, *arguments: object) -> str:
        assert main([*map(str, arguments)]) == 2
        return " ".join(self.capsys.readouterr().err.split())


@pytest.fixture(scope="module")
def computes(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalComputes]:
    """Three Compute processes that have the package."""
    with LocalComputes(tmp_path_factory.mktemp("computes"), 3) as found:
        yield found


@pytest.fixture(scope="module")
def bare(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalComputes]:
    """Three Compute processes that do not have it."""
    with gone(folder):
        found = LocalComputes(tmp_path_factory.mktemp("bare"), 3)
        found.__enter__()
    yield found
    found.__exit__(None, None, None)


@pytest.mark.slow
def test_a_study_on_live_nodes_with_toys_alone(
    folder: Path, computes: LocalComputes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    parties = Parties(tmp_path, computes.urls, capsys, **ALL_TOYS)
    parties.create()
    assert parties.run("study", "open", parties.study)["label"] == "toy sum"
    with gone(folder):
        assert "scheme='toy-ring' of the package 'hubbub-toys', which is not" in parties.failed(
            *parties.command_of("north")
        )
    for client in parties.tokens:
        assert parties.run(*parties.command_of(client))["rounds"][0]["label"] == "toy sum"
    closed = parties.run("study", "close", parties.study)
    assert (closed["n"], closed["next"]) == (150, None)
    found = parties.run("study", "result", parties.study)
    mean = found["quantities"]["mean"]
    assert abs(mean["mean"] - parties.rows.mean()) < 6 * mean["std"]
    assert found["privacy"]["guarantee"] is True
    assert found["privacy"]["epsilon"] == pytest.approx(4.0, rel=0.01)
    assert main(["study", "result", str(parties.study)]) == 0
    assert "1 of the 3 Computes" in " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"mechanism": "toy-rounded", "scheme": "additive", "kind": 'bernoulli"\ncolumn = "height'}, "mechanism='toy-rounded'"),
        ({"mechanism": "gaussian", "scheme": "additive", **TOY_ANALYSIS}, "kind='toy-mean'"),
    ],
)  # fmt: skip
def test_a_client_without_the_package_stays_away_in_one_line(
    folder: Path, computes: LocalComputes, tmp_path: Path, capsys: pytest.CaptureFixture[str], names: dict[str, str], message: str
):  # fmt: skip
    parties = Parties(tmp_path, computes.urls, capsys, **names)
    parties.create()
    parties.run("study", "open", parties.study)
    with gone(folder):
        said = parties.failed(*parties.command_of("north"))
    assert f"{message} of the package 'hubbub-toys', which is not; install that" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "message"),
    [
        (ALL_TOYS, "scheme='toy-ring'"),
        ({**ALL_TOYS, "scheme": "additive"}, "statistic='toy-range'"),
        ({"mechanism": "toy-rounded", "scheme": "additive", "kind": 'bernoulli"\ncolumn = "height'}, "mechanism='toy-rounded'"),
    ],
)  # fmt: skip
def test_computes_without_the_package_refuse_the_study_or_the_round_in_one_line(
    bare: LocalComputes, tmp_path: Path, capsys: pytest.CaptureFixture[str], names: dict[str, str], message: str
):  # fmt: skip
    parties = Parties(tmp_path, bare.urls, capsys, **names)
    parties.create()
    said = parties.failed("study", "open", parties.study)
    assert f"{message} of the package 'hubbub-toys', which is not; install that" in said


def test_population_is_what_a_mechanism_is_told(toys: dict[str, Any]):
    """The share of a client grows with how many of them are not counted on."""
    few, many = (toys["mechanism"]().settled(toys["statistic"](), Population(20, each)) for each in (0, 10))
    assert many.sigma_client / few.sigma_client == pytest.approx(np.sqrt(19 / 9), rel=1e-3)
