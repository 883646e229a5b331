"""The rows that `hubbub fit` fits, and the engine that runs the clients and Computes over them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.cli.fit_model import labels
from hubbub.cli.output import progress
from hubbub.cli.table import CsvOrParquet, coded, read_table
from hubbub.engines import ENGINES, LocalEngine
from hubbub.engines.spark.engine import SparkEngine
from hubbub.engines.spark.table import SparkTable
from hubbub.errors import InvalidInput, invalid
from hubbub.protocols import Engine

if TYPE_CHECKING:
    from hubbub.cli.fit import FitOptions


@dataclass(frozen=True)
class FitData:
    """What the estimator is given: two arrays, or a table that stays in Spark and the name of its target."""

    X: Any
    y: Any
    clients: int
    names: list[str]
    """The names of the features, in the order of X's columns."""
    more: dict[str, Any] = field(default_factory=dict)
    """What else the estimator's `fit` takes: the exposure, or its column."""
    labels: tuple[str, str] | None = None
    """The labels that y has as 0 and 1, where it is a yes or no."""


def read_data(options: FitOptions) -> FitData:
    """Read the file's columns into this process, or let Spark read them where they are."""
    if options.engine == "spark":
        return _in_spark(SparkTable.read(_address(options.file)), options)
    return _at_hand(read_table(options.file), options)


def _at_hand(table: CsvOrParquet, options: FitOptions) -> FitData:
    """Return arrays in this process."""
    names = _feature_names(options, table.header)
    two, more = labels(options), _exposure(options)
    target = [] if two is not None else [options.target]
    rows = table.numbers([*names, *more.values(), *target])  # at once, so that the file is read once
    y = rows[:, -1].copy() if two is None else coded(table, options.target, two)
    given = {name: rows[:, len(names)].copy() for name in more}
    return FitData(np.ascontiguousarray(rows[:, : len(names)]), y, len(rows), names, given, two)


def _exposure(options: FitOptions) -> dict[str, str]:
    """Return the column of the exposure, where there is one."""
    return {} if options.exposure is None else {"exposure": options.exposure}


def _in_spark(table: SparkTable, options: FitOptions) -> FitData:
    """Return a table whose rows Spark reads where they are; here they are only counted."""
    names = _feature_names(options, table.columns)
    more = _exposure(options)
    chosen = table.select([*names, *more.values(), options.target])
    return FitData(chosen, options.target, chosen.shape[0], names, more, labels(options))


def _feature_names(options: FitOptions, header: Sequence[str]) -> list[str]:
    target, features = options.target, options.features
    if target not in header:
        raise InvalidInput(f"target must be one of {', '.join(header)}, got target={target}; check the spelling")
    if features is None:
        names = [name for name in header if name not in (target, options.exposure)]
    else:
        names = [name.strip() for name in features.split(",") if name.strip()]
    if not names or {target, options.exposure} & set(names) or len(set(names)) != len(names):
        raise invalid("features", "at least one distinct column besides the target", features, "name the columns")
    if options.exposure == target:
        raise invalid("exposure", "another column than the target", target, "name that of the exposure")
    return names


def _address(file: Path) -> str:
    """Return the path as it was typed: `s3a://bucket/key` has lost a slash on its way through Path."""
    return re.sub(r"^([a-z][a-z0-9+.-]+):/(?!/)", r"\1://", str(file))


@contextmanager
def running_engine(options: FitOptions) -> Iterator[Engine]:
    """Make the engine that was asked for; with Spark, a bar shows its tasks."""
    computes, seed = options.computes, options.seed
    dropouts, colluding = options.cover.missing, options.cover.false
    if options.engine == "local":
        yield LocalEngine(computes=computes, seal=options.seal, seed=seed, dropouts=dropouts, colluding=colluding)
        return
    if options.engine != "spark":
        yield _foreign(options.engine)
        return
    with progress() as bar:
        task = bar.add_task("Spark tasks", total=None)

        def tick(done: int, known: int) -> None:
            bar.update(task, completed=done, total=known)

        yield SparkEngine(computes=computes, seed=seed, tick=tick, dropouts=dropouts, colluding=colluding)


def _foreign(name: str) -> Engine:
    """Make an engine that another package brings, with its own defaults."""
    make: Any = ENGINES.find(name)
    try:
        engine: Engine = make()
    except TypeError as error:
        raise InvalidInput(
            f"engine must be one that can be made without arguments here, got engine={name}: {error}; use it in Python"
        ) from None
    return engine
