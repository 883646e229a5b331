"""`hubbub fit`."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from rich.table import Table as RichTable
from rich.text import Text

from hubbub.arrays import Floats
from hubbub.cli.output import PICTURES, check_distinct, check_writable, console, print_json
from hubbub.cli.table import parse_bounds, read_table
from hubbub.engines import LocalEngine
from hubbub.errors import InvalidInput, invalid
from hubbub.estimators.linear_regression import Method, PosteriorKind, PrivateLinearRegression
from hubbub.estimators.stored import StoredModel
from hubbub.privacy import Budget, Ledger, check_population


def run(
    file: Path, target: str, epsilon: float, delta: float, x_bound: str, y_bound: float, features: str | None,
    computes: int, tolerate: int, method: Method, posterior: PosteriorKind,
    seal: bool, ledger: Path | None, total_epsilon: float | None, plot: Path | None, out: Path | None,
    seed: int | None, json: bool,
) -> None:  # fmt: skip
    """Read, fit, print."""
    started = time.perf_counter()
    budget = Budget(epsilon, delta)
    check_distinct(file=file, ledger=ledger, plot=plot, out=out)
    check_writable("--plot", plot, endings=PICTURES)
    check_writable("--out", out, endings=(".json",))
    purse = _ledger(ledger, total_epsilon, budget)
    table = read_table(file)
    names = _feature_names(features, target, table.header)
    y = table.numbers([target])[:, 0]
    X = table.numbers(names)
    check_population(len(y), tolerate)
    _check_constant(names, X)

    model = PrivateLinearRegression(
        budget=budget,
        x_bound=parse_bounds(x_bound, names),
        y_bound=y_bound,
        method=method,
        posterior=posterior,
        engine=LocalEngine(computes=computes, tolerated=tolerate, seal=seal, seed=seed),
        ledger=purse,
    ).fit(X, y)
    stored = StoredModel.of(model, names, target)
    seconds = time.perf_counter() - started
    if json:
        print_json({**stored.summary(), "n": len(y), "epsilon": epsilon, "delta": delta, "method": method,
                    "privacy": stored.privacy, "ledger": None if purse is None else purse.as_dict(),
                    "seconds": seconds})  # fmt: skip
    else:
        _print(stored, str(model.privacy_), purse)
    if out is not None:
        stored.save(out)
    if plot is not None:
        from hubbub.plots.coefficients import forest_plot

        title = f"{target}, {budget}-DP" + ("" if model.privacy_.is_guarantee else " (simulation, not a guarantee)")
        forest_plot(plot, names, stored.mean, stored.posterior.interval(0.9), title)


def _print(stored: StoredModel, privacy: str, purse: Ledger | None) -> None:
    table = RichTable("coefficient", "mean", "std", "90 % interval *")
    for name, row in stored.coefficients().items():
        interval = f"{row['low']:.4g} .. {row['high']:.4g}"
        table.add_row(Text(name), f"{row['mean']:.4g}", f"{row['std']:.3g}", interval)
    console.print(table)
    console.print(f"* {stored.intervals}\n", markup=False)
    console.print(privacy, markup=False)
    if purse is not None:
        console.print(f"\n{purse}", markup=False)


def _feature_names(features: str | None, target: str, header: tuple[str, ...]) -> list[str]:
    if target not in header:
        raise InvalidInput(f"target must be one of {', '.join(header)}, got target={target}; check the spelling")
    if features is None:
        names = [name for name in header if name != target]
    else:
        names = [name.strip() for name in features.split(",") if name.strip()]
    if not names or target in names or len(set(names)) != len(names):
        raise invalid("features", "at least one distinct column besides the target", features, "name the columns")
    return names


def _check_constant(names: list[str], X: Floats) -> None:
    constant = np.flatnonzero(np.ptp(X, axis=0) == 0)
    if constant.size:
        name = names[constant[0]]
        raise InvalidInput(f"column {name} must vary, got one value throughout; leave it out with --features")


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
