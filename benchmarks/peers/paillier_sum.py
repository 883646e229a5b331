"""python-paillier: every client encrypts its numbers, anyone adds the ciphertexts, the holder of the key decrypts."""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np
from common import FRACTION_BITS, best_of, cell_from_arguments, make_rows, report
from phe import paillier

KEY_BITS = 2048
PRECISION = 2.0**-FRACTION_BITS  # one exponent for all: additions need no rescaling


def main() -> None:
    cell = cell_from_arguments()
    public, private = paillier.generate_paillier_keypair(n_length=KEY_BITS)

    def total(rows: np.ndarray) -> np.ndarray:
        encrypted = [[public.encrypt(number, precision=PRECISION) for number in row] for row in rows.tolist()]
        sums = [reduce(add, column) for column in zip(*encrypted, strict=True)]
        return np.array([private.decrypt(number) for number in sums])

    report(best_of(cell.repeats, total, make_rows(cell.clients, cell.dimension)))


if __name__ == "__main__":
    main()
