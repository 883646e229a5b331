"""`hubbub fit`."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hubbub.analyses.linear.forecast import advice, forecast
from hubbub.analyses.rounds import Engine
from hubbub.cli.cover import Cover
from hubbub.cli.model import plot_model, print_model
from hubbub.cli.output import PICTURES, check_distinct, check_writable, console, errors, print_json, progress
from hubbub.cli.table import CsvOrParquet, parse_numbers, parse_ranges, read_table
from hubbub.engines import LocalEngine
from hubbub.engines.spark.engine import SparkEngine
from hubbub.engines.spark.table import SparkTable
from hubbub.errors import InvalidInput, invalid
from hubbub.estimators.linear_regression import Method, PosteriorKind, PrivateLinearRegression
from hubbub.estimators.stored import StoredModel
from hubbub.privacy import Budget, Ledger

EngineName = Literal["local", "spark"]


@dataclass(frozen=True)
class _Data:
    """What the estimator is given: two arrays, or a table that stays in Spark and its target's name."""

    X: Any
    y: Any
    clients: int


def run(
    file: Path, target: str, epsilon: float, delta: float, x_bound: str | None, x_norm: float | None, y_bound: str,
    features: str | None, intercept: bool | None, computes: int, cover: Cover, method: Method,
    posterior: PosteriorKind, prior_scale: str | None, seal: bool, ledger: Path | None, total_epsilon: float | None,
    plot: Path | None, out: Path | None, release: Path | None, seed: int | None, json: bool,
    engine: EngineName = "local",
) -> None:  # fmt: skip
    """Read, fit, print."""
    started = time.perf_counter()
    budget = Budget(epsilon, delta)
    check_distinct(file=file, ledger=ledger, plot=plot, out=out, release=release)
    check_writable("--plot", plot, endings=PICTURES)
    check_writable("--out", out, endings=(".json",))
    check_writable("--release", release, endings=(".json",))
    _check_options(x_bound, x_norm, method, posterior, prior_scale, release)
    _check_engine(engine, method, seal)
    purse = _ledger(ledger, total_epsilon, budget)
    table = SparkTable.read(_address(file)) if engine == "spark" else read_table(file)
    names = _feature_names(features, target, table.columns if isinstance(table, SparkTable) else table.header)
    data = _in_spark(table, names, target) if isinstance(table, SparkTable) else _at_hand(table, names, target)
    not_counted = cover.population(data.clients).not_counted
    scales = None if prior_scale is None else parse_numbers(prior_scale, names, "prior_scale")

    x_ranges = None if x_bound is None else parse_ranges(x_bound, names)
    y_range = parse_ranges(y_bound, [target], "y_bound")
    _warn_if_hopeless(data.clients, len(names), budget, not_counted, method)

    with _running(engine, computes, cover, seal, seed) as where:
        model = PrivateLinearRegression(
            budget=budget,
            x_bound=x_ranges,
            x_norm=x_norm,
            y_bound=y_range,
            fit_intercept="auto" if intercept is None else intercept,
            prior_scale=scales,
            method=method,
            posterior=posterior,
            engine=where,
            ledger=purse,
        ).fit(data.X, data.y)
    stored = StoredModel.of(model, names, target)
    seconds = time.perf_counter() - started
    if release is not None:  # first of all: it was paid for
        replace(model.release_, names=tuple(names), target=target).save(release)
    if out is not None:
        stored.save(out)
    if json:
        print_json({**stored.summary(), "n": data.clients, "epsilon": epsilon, "delta": delta, "method": method,
                    "privacy": stored.privacy, "ledger": None if purse is None else purse.as_dict(),
                    "seconds": seconds})  # fmt: skip
    else:
        print_model(stored, assumed=method != "auto")
        console.print(str(model.privacy_), markup=False)
        if purse is not None:
            console.print(f"\n{purse}", markup=False)
    if plot is not None:
        title = f"{target}, {budget}-DP" + ("" if model.privacy_.is_guarantee else " (simulation, not a guarantee)")
        plot_model(plot, stored, title, scales, model.release_.noise_budget() if method == "auto" else None)


def _at_hand(table: CsvOrParquet, names: list[str], target: str) -> _Data:
    """Arrays in this process."""
    rows = table.numbers([*names, target])  # at once, so that the file is read once
    return _Data(np.ascontiguousarray(rows[:, :-1]), rows[:, -1].copy(), len(rows))


def _in_spark(table: SparkTable, names: list[str], target: str) -> _Data:
    """Rows that Spark reads where they are; they are only counted here."""
    chosen = table.select([*names, target])
    return _Data(chosen, target, chosen.shape[0])


@contextmanager
def _running(kind: EngineName, computes: int, cover: Cover, seal: bool, seed: int | None) -> Iterator[Engine]:
    """The engine; with Spark, a bar shows its tasks."""
    if kind == "local":
        yield LocalEngine(computes=computes, seal=seal, seed=seed, dropouts=cover.missing, colluding=cover.false)
        return
    with progress() as bar:
        task = bar.add_task("Spark tasks", total=None)

        def tick(done: int, known: int) -> None:
            bar.update(task, completed=done, total=known)

        yield SparkEngine(computes=computes, seed=seed, tick=tick, dropouts=cover.missing, colluding=cover.false)


def _check_engine(engine: EngineName, method: Method, seal: bool) -> None:
    """Refuse what the Spark engine does not do."""
    if engine == "spark" and method != "auto":
        raise invalid("method", "auto for the engine spark", method, "use --method auto")
    if engine == "spark" and seal:
        raise InvalidInput("seal must be left out for the engine spark, got --seal; nothing leaves the cluster")


def _address(file: Path) -> str:
    """The path as it was typed: `s3a://bucket/key` has lost a slash on its way through Path."""
    return re.sub(r"^([a-z][a-z0-9+.-]+):/(?!/)", r"\1://", str(file))


def _warn_if_hopeless(clients: int, features: int, budget: Budget, not_counted: int, method: Method) -> None:
    """Said before anything is spent, on standard error."""
    if method == "auto" and forecast(clients, features, budget, not_counted).hopeless:
        better = "; or ".join(advice(clients, features, budget, not_counted))
        errors.print(
            f"Take care: with {clients} clients, {features} features and {budget} too little can be learned. "
            f"Better with {better}.",
            markup=False,
        )


def _check_options(
    x_bound: str | None, x_norm: float | None, method: Method, posterior: PosteriorKind, prior_scale: str | None,
    release: Path | None,
) -> None:  # fmt: skip
    """Refuse options that do not go together, before any budget is spent."""
    if (x_bound is None) == (x_norm is None):
        what = "neither" if x_bound is None else "both"
        raise InvalidInput(f"x-bound or x-norm must be given, one of the two, got {what}; give e.g. --x-bound 7.5")
    if method != "auto":
        for option, value in (("x-norm", x_norm), ("prior-scale", prior_scale), ("release", release)):
            if value is not None:
                raise invalid(option, f"left out for method {method}", value, "use --method auto")
    if posterior == "shrinkage" and prior_scale is not None:
        raise invalid("prior-scale", "left out for posterior shrinkage", prior_scale, "use --posterior noise-aware")


def _feature_names(features: str | None, target: str, header: Sequence[str]) -> list[str]:
    if target not in header:
        raise InvalidInput(f"target must be one of {', '.join(header)}, got target={target}; check the spelling")
    if features is None:
        names = [name for name in header if name != target]
    else:
        names = [name.strip() for name in features.split(",") if name.strip()]
    if not names or target in names or len(set(names)) != len(names):
        raise invalid("features", "at least one distinct column besides the target", features, "name the columns")
    return names


def _ledger(path: Path | None, total_epsilon: float | None, budget: Budget) -> Ledger | None:
    if path is None:
        if total_epsilon is not None:
            raise invalid("total-epsilon", "given together with --ledger", total_epsilon, "add --ledger FILE")
        return None
    if path.exists() and total_epsilon is None:
        return Ledger.open(path)
    if total_epsilon is None:
        raise InvalidInput(f"total-epsilon must be given for a new ledger, got ledger={path}; add --total-epsilon E")
    return Ledger(Budget(total_epsilon, budget.delta), path)
