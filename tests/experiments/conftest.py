"""Where the data stands that comes in no package, if it does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def gdsc_folder() -> Path:
    places = [Path(os.environ.get("HUBBUB_DATA", "")) / "gdsc", Path(__file__).parents[3] / "shared" / "data" / "gdsc"]
    for place in places:
        if (place / "expression.csv.gz").is_file():
            return place
    pytest.skip("the drug-sensitivity data is not here: set HUBBUB_DATA or put it into ../shared/data/gdsc")


@pytest.fixture(scope="session")
def adassp_folder() -> Path:
    places = [Path(os.environ.get("HUBBUB_DATA", "")), Path(__file__).parents[3] / "shared" / "data"]
    for place in places:
        if (place / "adassp" / "energy.txt").is_file():
            return place / "adassp"
    pytest.skip(
        "the files of the table of Wang 2018 are not here: set HUBBUB_DATA or put them into ../shared/data/adassp"
    )
