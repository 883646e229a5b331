"""MPyC: the parties, one process each, share the rows they hold as secure fixed-point arrays, add up and open the sum.

Started as `python mpyc_sum.py N d parties repeats -M parties`: MPyC takes -M off the command line, starts the
other parties and throws their output away.
"""

from __future__ import annotations

import time

import numpy as np
from common import FRACTION_BITS, WARM_UP, cell_from_arguments, error_of, make_rows, report
from mpyc.runtime import mpc

SecFxp = mpc.SecFxp(64, FRACTION_BITS)


def my_rows(rows: np.ndarray) -> np.ndarray:
    """This party's share of the clients. All arrays of one input must be of one size: zeros fill up the last."""
    parties = len(mpc.parties)
    mine = rows[mpc.pid :: parties]
    missing = -(-rows.shape[0] // parties) - mine.shape[0]
    return np.pad(mine, ((0, missing), (0, 0)))


async def total(mine: np.ndarray) -> np.ndarray:
    """Every party is a sender; the column sums are local, opening them is not."""
    shared = mpc.input(SecFxp.array(mine))
    return await mpc.output(sum(mpc.np_sum(block, axis=0) for block in shared))


async def main() -> None:
    cell = cell_from_arguments()
    rows = make_rows(cell.clients, cell.dimension)
    mine = my_rows(rows)
    seconds = []
    async with mpc:
        await total(my_rows(make_rows(*WARM_UP)))  # also a barrier: all parties are up
        for _ in range(cell.repeats):
            started = time.perf_counter()
            result = await total(mine)
            seconds.append(time.perf_counter() - started)
    if mpc.pid == 0:
        report({"seconds": min(seconds), "error": error_of(result, rows)})


if __name__ == "__main__":
    mpc.run(main())
