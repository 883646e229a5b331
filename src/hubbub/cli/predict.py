"""`hubbub predict`: predictions of a fitted model for the rows of a file."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from hubbub.cli.options import Json
from hubbub.cli.output import check_distinct, check_writable, errors, print_json
from hubbub.errors import InvalidInput

if TYPE_CHECKING:
    from hubbub.analyses.saved import AnyModel
    from hubbub.arrays import Floats
    from hubbub.cli.table import CsvOrParquet


@Parameter(name="*")
@dataclass(frozen=True)
class PredictOptions:
    """The arguments and options of `hubbub predict`."""

    model: Annotated[Path, Parameter(help="A model written by `hubbub fit --out`.")]
    file: Annotated[Path, Parameter(help="CSV file with the model's columns.")]
    _: KW_ONLY
    out: Annotated[Path | None, Parameter(help="Write the predictions here [default: standard output].")] = None
    json: Json = False


def predict(options: PredictOptions) -> None:
    """Predict with a fitted model, one line per row.

    `prediction,std` of a linear regression; of a generalised linear model `probability,low,high` for a yes or no
    (of 1, or of the second of its classes) and `expected,low,high` for others: averages over the posterior, and the
    ends of their 90 % intervals; for the file's exposure, or where it has none for an exposure of 1. These are of the
    probability or the mean, not of a single outcome.

    Spends no budget: the model is already released. Predictions tell of the rows that they are for, and where the file
    has the target the exact error is printed, too: keep both to yourself where rows are private.

    For example:

        hubbub predict model.json new.csv > predictions.csv
        hubbub predict model.json new.csv --json
    """
    run(options)


def run(options: PredictOptions) -> None:
    """Read the model and the file, and print one prediction for each row."""
    import numpy as np

    from hubbub.analyses.saved import load_model
    from hubbub.cli.table import read_table

    file, out = options.file, options.out
    check_distinct(model=options.model, file=file, out=out)
    check_writable("--out", out)
    stored = load_model(options.model)
    table = read_table(file)
    found = _predicted(stored, table)
    if not all(np.isfinite(column).all() for column in found.values()):
        raise InvalidInput(f"columns must hold numbers of a sensible size, got overflow in {file}; check the units")
    short, words = stored.error_name
    error: float | None = None
    if stored.target in table.header:
        with contextlib.suppress(InvalidInput):  # a target that is empty or text is simply not compared with
            error = stored.error(next(iter(found.values())), _target(table, stored))
    lines = [",".join(found), *(",".join(f"{v:.8g}" for v in row) for row in zip(*found.values(), strict=True))]
    if out is not None:
        out.write_text("\n".join(lines) + "\n")
    if options.json:
        of = {} if stored.classes is None else {"classes": list(stored.classes)}
        print_json({"target": stored.target, **of, **found, short: error, "privacy": stored.privacy})
        return
    if out is None:
        sys.stdout.write("\n".join(lines) + "\n")
    if error is not None:
        errors.print(
            f"{words} against column {stored.target}: {error:.4g} (exact, so for public rows only)", markup=False
        )


def _predicted(stored: AnyModel, table: CsvOrParquet) -> dict[str, Floats]:
    """Return the predictions by name, with the file's exposure (or offset) where it has that column."""
    from hubbub.analyses.glm.stored import StoredGLM
    from hubbub.estimators.offsets import added

    if not isinstance(stored, StoredGLM) or stored.offset is None or stored.offset.column not in table.header:
        return stored.predictions(table.numbers(stored.names))
    field, rows = (
        "exposure" if stored.offset.exposure else "offset",
        table.numbers([*stored.names, stored.offset.column]),
    )
    return stored.predictions(rows[:, :-1], added(stored.offset, {field: rows[:, -1]}, len(rows)))


def _target(table: CsvOrParquet, stored: AnyModel) -> Floats:
    """Return the target's column as it was fitted: of a yes or no 0 or 1."""
    from hubbub.cli.table import coded

    if stored.classes is not None:
        return coded(table, stored.target, stored.classes)
    return table.numbers([stored.target])[:, 0]
