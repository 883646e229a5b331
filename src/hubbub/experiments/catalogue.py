"""Which experiments there are, and how one is run from its name to its files."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hubbub.errors import InvalidInput, invalid
from hubbub.experiments import (
    adassp,
    coverage,
    dpvi,
    efficiency,
    fig1b,
    fig2,
    fig3,
    glm,
    mechanisms,
    others,
    outcomes,
    real,
    table1,
)
from hubbub.experiments.modes import Mode
from hubbub.experiments.outcome import Outcome
from hubbub.experiments.real_sets import Half
from hubbub.experiments.runner import Cell, run_cells

EXPERIMENTS = {
    "fig1b": fig1b,
    "fig2": fig2,
    "fig3": fig3,
    "table1": table1,
    "efficiency": efficiency,
    "coverage": coverage,
    "glm": glm,
    "others": others,
    "mechanisms": mechanisms,
    "dpvi": dpvi,
    "adassp": adassp,
    "real": real,
    "outcomes": outcomes,
}
OF_THE_PAPER = ("fig1b", "fig2", "fig3", "table1", "efficiency")
DEPENDS_ON_MODE = ("fig2", "fig3")
DATA_VARIABLE = "HUBBUB_DATA"
FOLDERS = {"fig3": ("gdsc", "drug-sensitivity files"), "adassp": ("adassp", "files energy.txt and housing.txt")}
"""Experiments whose data comes in no package: the subfolder where it may stand, and what it is."""


@dataclass(frozen=True)
class Settings:
    """What the user chose; None means the experiment's own default."""

    out: Path
    repeats: int | None = None
    seed: int = 0
    jobs: int | None = None
    mode: Mode = "sound"
    data: Path | None = None
    sets: Half = "choosing"

    def __post_init__(self) -> None:
        if self.repeats is not None and self.repeats < 1:
            raise invalid("repeats", "at least 1", self.repeats, "leave it out for the paper's number")
        if self.jobs is not None and self.jobs < 1:
            raise invalid("jobs", "at least 1", self.jobs, "leave it out for one per core")
        if self.seed < 0:
            raise invalid("seed", "a whole number >= 0", self.seed, "give for example 0")


def plan(name: str, settings: Settings) -> tuple[list[Cell], int]:
    """The cells of an experiment and its number of repeats."""
    experiment = EXPERIMENTS[name]
    repeats = settings.repeats or experiment.DEFAULT_REPEATS
    mode = mode_of(name, settings)
    return experiment.cells(mode, settings.seed, repeats, *_more(name, settings)), repeats


def _more(name: str, settings: Settings) -> tuple[Path | Half, ...]:
    """What some experiments are told beyond mode, seed and repeats: where their data is, or which half of it to use."""
    if name in FOLDERS:
        return (data_folder(settings, *FOLDERS[name]),)
    return (settings.sets,) if name == "real" else ()


def mode_of(name: str, settings: Settings) -> Mode:
    """The mode, for the experiments in which the noise is calibrated to a budget."""
    return settings.mode if name in DEPENDS_ON_MODE else "sound"


def data_folder(settings: Settings, subfolder: str, what: str) -> Path:
    """--data, or the variable HUBBUB_DATA (itself, or its subfolder of that name)."""
    if settings.data is not None:
        return settings.data
    named = os.environ.get(DATA_VARIABLE)
    if not named:
        raise InvalidInput(f"data must name the folder of the {what}, got none; give --data DIR or set {DATA_VARIABLE}")
    return Path(named) / subfolder if (Path(named) / subfolder).is_dir() else Path(named)


def run(name: str, settings: Settings, tick: Callable[[int], object] = lambda _: None) -> Outcome:
    """Run (or resume) an experiment and write its rows, pictures and result into the folder."""
    try:
        settings.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"out must be a folder, got out={settings.out}: {error.strerror}; choose another") from None
    cells, repeats = plan(name, settings)
    jobs = 1 if name == "table1" else settings.jobs or os.cpu_count() or 1  # timed cells run alone
    results = run_cells(cells, settings.out / "cells", jobs, tick)
    result: Outcome = EXPERIMENTS[name].summarise(results, mode_of(name, settings), repeats)
    write(result, settings.out)
    return result


def write(result: Outcome, out: Path) -> None:
    """Rows as CSV, the result as JSON, the picture as PNG and SVG."""
    from hubbub.plots import experiments as plots

    columns = list(dict.fromkeys(key for row in result.rows for key in row))
    with open(out / f"{result.name}.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(result.rows)
    (out / f"{result.name}.json").write_text(json.dumps(result.as_dict(), indent=1) + "\n")
    banner = None
    if any(row.get("guarantee") is False for row in result.rows):
        banner = f"computed as {result.mode}: points marked with a cross are NOT A VALID GUARANTEE"
    figure = getattr(plots, result.experiment)(result.rows, banner)
    for ending in ("png", "svg"):
        figure.savefig(out / f"{result.name}.{ending}", dpi=150)
