"""`hubbub predict`: predictions of a fitted model for the rows of a file."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hubbub.cli.options import Json
from hubbub.cli.output import check_distinct, check_writable, errors, print_json
from hubbub.errors import InvalidInput


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
    """Predict with a fitted model: one line `prediction,std` per row.

    Costs no privacy: the model is already released.

    For example:

        hubbub predict model.json new.csv > predictions.csv
        hubbub predict model.json new.csv --json
    """
    run(options)


def run(options: PredictOptions) -> None:
    """Read the model and the file, and print one prediction for each row."""
    import numpy as np

    from hubbub.analyses.linear.stored import StoredModel
    from hubbub.cli.table import read_table

    file, out = options.file, options.out
    check_distinct(model=options.model, file=file, out=out)
    check_writable("--out", out)
    stored = StoredModel.load(options.model)
    table = read_table(file)
    mean, std = stored.predict(table.numbers(stored.names))
    if not (np.isfinite(mean).all() and np.isfinite(std).all()):
        raise InvalidInput(f"columns must hold numbers of a sensible size, got overflow in {file}; check the units")
    error: float | None = None
    if stored.target in table.header:
        with contextlib.suppress(InvalidInput):  # a target that is empty or text is simply not compared with
            error = float(np.abs(mean - table.numbers([stored.target])[:, 0]).mean())
    lines = ["prediction,std", *(f"{m:.8g},{s:.8g}" for m, s in zip(mean, std, strict=True))]
    if out is not None:
        out.write_text("\n".join(lines) + "\n")
    if options.json:
        print_json({"target": stored.target, "prediction": mean, "std": std, "mae": error, "privacy": stored.privacy})
        return
    if out is None:
        sys.stdout.write("\n".join(lines) + "\n")
    if error is not None:
        errors.print(
            f"mean absolute error against column {stored.target}: {error:.4g} (exact, so for public rows only)",
            markup=False,
        )
