"""`hubbub predict`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from hubbub.cli.output import check_writable, errors, print_json
from hubbub.cli.table import read_table


def run(model: Path, file: Path, out: Path | None, json: bool) -> None:
    """Read the model and the file, print one prediction per row."""
    from hubbub.estimators.stored import StoredModel

    check_writable("--out", out)
    stored = StoredModel.load(model)
    table = read_table(file)
    mean, std = stored.predict(table.numbers(stored.names))
    error: float | None = None
    if stored.target in table.header:
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
        errors.print(f"mean absolute error against column {stored.target}: {error:.4g}")
