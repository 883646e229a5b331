"""What docs/extending/ tells people to copy really works: it is installed as its pages say, and keeps every contract."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub.analyses import ANALYSES
from hubbub.engines import ENGINES
from hubbub.privacy import MECHANISMS
from hubbub.securesum import SECURE_SUMS
from hubbub.statistics import STATISTICS
from plugins.installing import TOYS, lay_down, on_the_path, points_in, sources_of

DOCS = Path(__file__).parent.parent / "docs" / "extending"
PAGES = {
    "statistic": "statistic",
    "mechanism": "mechanism",
    "secure_sum": "secure-sum",
    "engine": "engine",
    "analysis": "analysis",
}
"""The page of each seam."""


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (DOCS / f"{page}.md").read_text(), flags=re.S | re.M)


def code_of(page: str) -> str:
    (found,) = blocks(page, "python")
    return found


def points_of(page: str) -> dict[str, dict[str, str]]:
    (found,) = blocks(page, "toml")
    return tomllib.loads(found)["project"]["entry-points"]


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The package that the pages add up to."""
    sources = {"__init__": "", **{seam: code_of(page) for seam, page in PAGES.items()}}
    points = {group: names for page in PAGES.values() for group, names in points_of(page).items()}
    with on_the_path(lay_down(tmp_path_factory.mktemp("pages"), "hubbub_toys", sources, points)):
        yield


def found(registry: Any) -> Any:
    (name,) = [name for name in registry.names() if name.startswith("toy-")]
    return registry.find(name)


def test_the_pages_show_what_the_package_of_the_tests_has():
    sources = sources_of(TOYS / "hubbub_toys")
    assert {seam: code_of(page) for seam, page in PAGES.items()} == {seam: sources[seam] for seam in PAGES}
    points = points_in((TOYS / "pyproject.toml").read_text())
    assert {group: names for page in PAGES.values() for group, names in points_of(page).items()} == points


def test_statistic():
    from contracts.test_statistics import check_statistic

    check_statistic(found(STATISTICS)(2.0, 7.0))


def test_mechanism():
    from contracts.test_mechanisms import check_mechanism

    check_mechanism(found(MECHANISMS)())


def test_secure_sum():
    from contracts.test_secure_sums import check_secure_sum

    check_secure_sum(found(SECURE_SUMS)(3))


def test_engine():
    from contracts.test_engines import check_engine

    check_engine(lambda seed: found(ENGINES)(found(SECURE_SUMS)(3), seed=seed))


def test_analysis(rng: np.random.Generator):
    from contracts.test_analyses import check_analysis

    check_analysis(found(ANALYSES)(low=0.0, high=2.0), rng.uniform(0.0, 2.0, size=(200, 1)))


@pytest.mark.parametrize("page", [*PAGES.values(), "index"])
def test_links_lead_somewhere(page: str):
    for link in re.findall(r"\]\(([^)#]+)\)", (DOCS / f"{page}.md").read_text()):
        assert (DOCS / link).exists(), link
