"""hubbub's local engine on the same rows: clipping, noise, fixed point, shares, the Computes' sums, decoding.

For small rounds the same once more with every share sealed (HPKE) and every client on its own, as in a network.
"""

from __future__ import annotations

import numpy as np
from common import Cell, best_of, cell_from_arguments, make_rows, report

from hubbub.engines import LocalEngine
from hubbub.privacy import Release, gaussian_round
from hubbub.statistics import Means

NOISE_MULTIPLIER = 1.0
MOST_SEALED = 10_000  # shares; above that sealing every one of them takes too long for a comparison
STANDARD_DEVIATIONS = 8.0  # an error beyond that is no noise


def total(rows: np.ndarray, engine: LocalEngine) -> Release:
    return engine.private_sum(rows, gaussian_round(Means((1.0,) * rows.shape[1]), NOISE_MULTIPLIER))


def measure(engine: LocalEngine, cell: Cell, rows: np.ndarray) -> dict[str, float]:
    """The clock of the peers, on one engine."""
    return best_of(cell.repeats, lambda data: total(data, engine).value, rows)


def main() -> None:
    cell = cell_from_arguments()
    rows = make_rows(cell.clients, cell.dimension)
    engine = LocalEngine(computes=cell.parties)
    engine.warm_up()
    measured = measure(engine, cell, rows)
    measured["tolerance"] = STANDARD_DEVIATIONS * total(rows, engine).noise_std
    if cell.clients * cell.parties <= MOST_SEALED:
        sealed = measure(LocalEngine(computes=cell.parties, seal=True), cell, rows)
        measured |= {"sealed_seconds": sealed["seconds"], "error": max(measured["error"], sealed["error"])}
    report(measured)


if __name__ == "__main__":
    main()
