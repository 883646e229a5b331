"""CrypTen: the parties, one process each, share the rows they hold, add up and open the sum."""

from __future__ import annotations

import sys
import time
import types

import numpy as np
import torch
from common import WARM_UP, Cell, cell_from_arguments, error_of, make_rows, report


def _import_crypten() -> types.ModuleType:
    """CrypTen 0.4.1 asks PyTorch for a registry that is gone; only its import of ONNX models would use it."""
    gone = types.ModuleType("torch.onnx._internal.registration")
    gone.registry = None
    sys.modules.setdefault(gone.__name__, gone)
    import crypten

    return crypten


crypten = _import_crypten()


def my_blocks(rows: np.ndarray, parties: int) -> list[torch.Tensor]:
    """One block of rows per party: this party's own, and for the others a placeholder of the same size."""
    rank = crypten.communicator.get().get_rank()
    blocks = np.array_split(rows, parties)
    return [torch.from_numpy(block if i == rank else np.zeros_like(block)) for i, block in enumerate(blocks)]


def total(blocks: list[torch.Tensor]) -> torch.Tensor:
    """Party i shares the i-th block; sums are local, opening them is not."""
    sums = [crypten.cryptensor(block, src=source).sum(0) for source, block in enumerate(blocks)]
    return sum(sums[1:], sums[0]).get_plain_text()


def party(cell: Cell) -> dict[str, float]:
    """What one party runs, timed; a small sum first lets all of them come up."""
    torch.set_num_threads(1)  # the parties outnumber the cores
    total(my_blocks(make_rows(*WARM_UP), cell.parties))
    rows = make_rows(cell.clients, cell.dimension)
    blocks, seconds = my_blocks(rows, cell.parties), []
    for _ in range(cell.repeats):
        crypten.communicator.get().barrier()
        started = time.perf_counter()
        result = total(blocks)
        seconds.append(time.perf_counter() - started)
    return {"seconds": min(seconds), "error": error_of(np.asarray(result), rows)}


def main() -> None:
    cell = cell_from_arguments()
    results = crypten.mpc.run_multiprocess(world_size=cell.parties)(party)(cell)
    if results is None:
        sys.exit("a party failed")
    report({key: max(result[key] for result in results) for key in results[0]})


if __name__ == "__main__":
    main()
