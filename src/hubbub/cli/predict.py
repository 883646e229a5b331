"""`hubbub predict`."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import numpy as np

from hubbub.cli.output import check_distinct, check_writable, errors, print_json
from hubbub.cli.table import read_table
from hubbub.errors import InvalidInput


def run(model: Path, file: Path, out: Path | None, json: bool) -> None:
    """Read the model and the file, print one prediction per row."""
    from hubbub.estimators.stored import StoredModel

    check_distinct(model=model, file=file, out=out)
    check_writable("--out", out)
    stored = StoredModel.load(model)
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
    if json:
        print_json({"target": stored.target, "prediction": mean, "std": std, "mae": error, "privacy": stored.privacy})
        return
    if out is None:
        sys.stdout.write("\n".join(lines) + "\n")
    if error is not None:
        errors.print(
            f"mean absolute error against column {stored.target}: {error:.4g} (exact, so for public rows only)",
            markup=False,
        )
