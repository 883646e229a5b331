"""What a run has been through, step by step, without copies: a longer trace shares all of the shorter one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hubbub.arrays import Floats


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """Vectors of equal length, one for each step; never changes, so that an earlier state stays what it was."""

    length: int = 0
    last: Floats | None = None
    before: Trace | None = None

    def added(self, vector: Floats) -> Trace:
        """One vector longer."""
        return Trace(self.length + 1, vector, self)

    def array(self) -> Floats:
        """(length, size), the oldest first."""
        found, at = [], self
        while at.last is not None and at.before is not None:
            found.append(at.last)
            at = at.before
        return np.array(found[::-1])
