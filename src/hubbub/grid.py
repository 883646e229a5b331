"""Real numbers as words of Z/2^64: value * 2^f, rounded, two's complement."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hubbub.arrays import Floats, Words
from hubbub.errors import InvalidInput, invalid, whole

_DOUBLE_BITS = 52  # a double resolves no finer than this below its largest value
_HEADROOM_BITS = 1
_LARGEST = 900  # 2^f itself must stay an ordinary double


@dataclass(frozen=True)
class Grid:
    """A grid of step 2^-fraction_bits in the ring Z/2^64, read as signed."""

    fraction_bits: int

    def __post_init__(self) -> None:
        whole("fraction_bits", self.fraction_bits, -_LARGEST, "leave it to hubbub", most=_LARGEST)

    @property
    def step(self) -> float:
        """The distance between neighbouring points of the grid."""
        return 2.0**-self.fraction_bits

    def encode(self, values: Floats, out: Floats | None = None) -> Words:
        """Round to the grid; refuses what is not finite or does not fit into a word. `out` is room for the words."""
        scaled = np.multiply(values, 2.0**self.fraction_bits, out=out)
        np.rint(scaled, out=scaled)
        low, high = scaled.min(initial=0.0), scaled.max(initial=0.0)
        if not -(2.0**63) < low <= high < 2.0**63:  # written so that NaN is refused too
            raise InvalidInput(
                f"value must be finite and below {2.0 ** (63 - self.fraction_bits):.4g} to fit the ring at "
                f"{self.fraction_bits} fraction bits; bound the sample, or use fewer fraction bits"
            )
        words = scaled.view(np.int64)
        np.copyto(words, scaled, casting="unsafe")  # in place
        return words.view(np.uint64)

    def decode(self, words: Words) -> Floats:
        """Back to real numbers, signed."""
        return words.view(np.int64).astype(np.float64) * self.step


def choose_fraction_bits(total: float, one: float, wanted: int | None = None) -> int:
    """The finest safe grid, or the wanted one, which is refused where it is not safe.

    On a safe grid a sum up to `total` cannot leave the ring, and a double resolves single terms up to `one`.
    """
    ring = 63 - _HEADROOM_BITS - math.log2(total)
    largest = math.floor(min(ring, _DOUBLE_BITS - math.log2(one)))
    if wanted is not None and Grid(wanted).fraction_bits > largest:
        raise invalid(
            "fraction_bits", f"at most {largest} for a sum up to {total:.4g} in Z/2^64", wanted,
            f"use {largest} or leave it out",
        )  # fmt: skip
    return largest if wanted is None else wanted
