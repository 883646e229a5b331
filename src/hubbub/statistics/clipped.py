"""What an installed program computes from one sample at a public state, say a gradient, clipped in length.

A study names the program and carries the state; it never carries code. A client evaluates the program that *it* has
installed under that fingerprint, or refuses. A Compute needs to know length and bound only.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hubbub.arrays import Floats
from hubbub.errors import InvalidInput, NotFiniteWarning, invalid
from hubbub.protocols import Statistic
from hubbub.statistics.bounds import positive


class Program(Protocol):
    """Samples and public numbers in, one vector for each sample out; nothing is bounded yet."""

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    def fingerprint(self) -> str:
        """A hash of what it computes: trainer and client must have the same."""
        ...

    @property
    def columns(self) -> int:
        """How many numbers one sample has."""
        ...

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        ...

    @property
    def at_once(self) -> int:
        """How many samples are best computed together."""
        ...

    def vectors(self, state: Floats, rows: Floats) -> Floats:
        """(n, dimension) fresh numbers, of which any may be infinite or NaN."""
        ...


@dataclass(frozen=True, eq=False)
class Clipped(Statistic):
    """x -> v min(1, clip/|v|_2) with v = program(state, x); a vector that is not finite becomes zero.

    `probability` below 1 is a self-selected batch: in every round each client flips a coin of its own, and sends
    zero (with its share of noise) where it lost. The roles flip it, from the randomness that draws the noise.
    """

    program: Program
    state: Floats
    clip: float
    probability: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "clip", positive("clip", self.clip))
        if not 0 < self.probability <= 1:
            raise invalid("probability", "in (0, 1]", self.probability, "use the batch over the number of clients")

    @property
    def columns(self) -> int:
        """Those of the program."""
        return self.program.columns

    @property
    def dimension(self) -> int:
        """That of the program."""
        return self.program.dimension

    @property
    def at_once(self) -> int:
        """How many samples are best computed together."""
        return self.program.at_once

    @property
    def magnitude(self) -> float:
        """No coordinate is longer than the vector."""
        return self.clip

    @property
    def sensitivity(self) -> float:
        """Two opposite vectors of full length."""
        return 2 * self.clip

    @property
    def sensitivity_l1(self) -> float:
        """The same by Cauchy-Schwarz."""
        return 2 * self.clip * float(np.sqrt(self.dimension))

    def vectors(self, rows: Floats) -> Floats:
        """The program's vectors, none longer than the clip."""
        vectors = self.program.vectors(self.state, rows)
        squares = np.einsum("ij,ij->i", vectors, vectors)
        if not np.isfinite(squares.sum()):
            bad = ~np.isfinite(squares)
            vectors[bad], squares[bad] = 0.0, 0.0
            if bad.any():
                warnings.warn(
                    f"{self.program.name} must be finite for every client, got NaN or infinity for {int(bad.sum())} of "
                    f"{bad.size} at once; each of them sends zero (known to the client alone, not to the trainer)",
                    NotFiniteWarning,
                    stacklevel=2,
                )
        length = np.sqrt(squares)
        if length.size and length.max() > self.clip:
            vectors *= (self.clip / np.maximum(length, self.clip))[:, None]
        return vectors

    def describe(self) -> dict[str, object]:
        """The program's name and fingerprint, the bound and the state, for the study."""
        return {
            "statistic": KIND, "program": self.program.name, "fingerprint": self.program.fingerprint,
            "columns": self.columns, "dimension": self.dimension, "clip": self.clip,
            "probability": self.probability, "state": [float(value) for value in self.state],
        }  # fmt: skip


KIND = "clipped program"
_INSTALLED: dict[str, Program] = {}


def install(program: Program) -> None:
    """Let this process take part in studies that name this program; only what is installed is ever run."""
    _INSTALLED[program.fingerprint] = program


@dataclass(frozen=True)
class MissingProgram:
    """A program that a study names and this machine does not have: enough to add up, not to take part."""

    name: str
    fingerprint: str
    columns: int
    dimension: int
    at_once: int = 1

    def vectors(self, state: Floats, rows: Floats) -> Floats:
        """Refused."""
        raise InvalidInput(
            f"program must be installed at the client, got program={self.name!r} ({self.fingerprint[:12]}), which is "
            "not; install it from a source that you trust (a study never brings code along)"
        )


def installed(name: str, fingerprint: str, columns: int, dimension: int) -> Program:
    """The installed program, or a placeholder that knows its length only."""
    found = _INSTALLED.get(fingerprint)
    if found is None or (found.name, found.columns, found.dimension) != (name, columns, dimension):
        return MissingProgram(name, fingerprint, columns, dimension)
    return found
