"""Where the drug-sensitivity data stands, if it does."""

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
