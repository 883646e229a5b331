"""Who takes part in a round, and how many of them the noise does without."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Literal, get_args

from hubbub.errors import invalid, whole

MOST_HELD = 10**12
"""Samples of one client: more would not be numbers that can be computed with."""
Unit = Literal["sample", "client"]
"""What the promise is about: any one sample, or all samples of any one client together."""


@dataclass(frozen=True)
class Population:
    """K clients, of whom D may be missing and C may collude, both at once.

    Every client adds one share of the noise to the sum of its samples' vectors, however many samples it holds. The
    shares that are counted on are those of the K - D - C - 1 clients who are left when D are missing, C tell their
    share (or add none), and one more, who is curious, subtracts its own. An adversary who chooses who goes missing
    therefore gains nothing.

    Parameters
    ----------
    clients : K, at least 2.
    dropouts : D. A round that lacks more clients is refused.
    colluders : C.
    samples : N, all samples together; K where it is left out.
    largest : the most samples that one client holds.
    unit : "sample" promises for any one sample; "client" for all samples of any one client, which moves the sum by
        up to `largest` times as much.
    theorem1 : count as the paper's Theorem 1 does: D = C = T clients collude *or* drop out, so that K - T - 1 shares
        are counted on. That covers T colluders only while nobody is missing.

    Raises InvalidInput where no share of noise would be left.
    """

    clients: int
    dropouts: int = 0
    colluders: int = 0
    samples: int | None = None
    largest: int = 1
    unit: Unit = "sample"
    theorem1: bool = False

    def __post_init__(self) -> None:
        whole("clients", self.clients, 2, "one client alone cannot hide; enrol more")
        whole("dropouts", self.dropouts, 0, "give the number of clients that may be missing")
        whole("colluders", self.colluders, 0, "give the number of clients that may tell their noise to others")
        whole("largest", self.largest, 1, "a client holds one sample at least", most=MOST_HELD)
        samples = self.clients if self.samples is None else self.samples
        object.__setattr__(self, "samples", whole("samples", samples, self.clients, "every client holds one at least"))
        if self.unit not in get_args(Unit):
            raise invalid("unit", "'sample' or 'client'", repr(self.unit), "use 'sample'")
        if self.theorem1 and self.dropouts != self.colluders:
            raise invalid("colluders", f"{self.dropouts}, as dropouts, under Theorem 1", self.colluders, "give one T")
        if self.shares < 1:
            self._refuse()

    def _refuse(self) -> None:
        if self.theorem1:
            raise invalid(
                "T", f"at most N - 2 = {self.clients - 2} for N={self.clients} clients", self.dropouts,
                "cover fewer or enrol more clients (Theorem 1 needs N - T - 1 >= 1)",
            )  # fmt: skip
        raise invalid(
            "dropouts + colluders", f"at most K - 2 = {self.clients - 2} for K={self.clients} clients",
            f"{self.dropouts} + {self.colluders}",
            "cover fewer or enrol more clients (K - D - C - 1 >= 1 shares of noise must be left)",
        )  # fmt: skip

    @classmethod
    def of_rows(cls, rows: int, holds: int, covered: tuple[int, int], unit: Unit, theorem1: bool = False) -> Population:
        """Clients that hold `holds` of these rows each, the last one perhaps fewer; `covered` is (D, C)."""
        return cls(-(-rows // holds), *covered, rows, min(holds, rows), unit, theorem1)

    @property
    def n(self) -> int:
        """N, all samples together."""
        assert self.samples is not None  # as __post_init__ has seen to
        return self.samples

    @property
    def not_counted(self) -> int:
        """Clients, besides the curious one, whose shares of noise are not counted on."""
        return self.dropouts if self.theorem1 else self.dropouts + self.colluders

    @property
    def shares(self) -> int:
        """How many shares of noise are counted on in the worst case."""
        return self.clients - self.not_counted - 1

    @property
    def spread(self) -> float:
        """How many times the deviation of a trusted aggregator's noise the sum of all clients' shares has."""
        return math.sqrt(self.clients / self.shares)

    @property
    def weight(self) -> int:
        """How many vectors one unit of privacy puts into the sum."""
        return self.largest if self.unit == "client" else 1

    def covered(self, missing: int) -> int:
        """Colluders that a release covers of which so many clients are missing."""
        return self.colluders - missing if self.theorem1 else self.colluders

    def colluding(self, missing: int) -> str:
        """Who may conspire with Computes in a release that lacks so many clients: the beginning of a sentence."""
        if not (covered := self.covered(missing)):
            return ""
        whoever = "" if self.theorem1 else ", who reveal their noise or add none, whoever goes missing,"
        return f"up to {covered} colluding client(s){whoever} together with "

    def beyond(self) -> str:
        """How many clients may misbehave at most."""
        if self.theorem1:
            return (
                f"more than T = {self.dropouts} colluders and dropouts together (Theorem 1 of the paper); an adversary "
                "who chooses who drops out should be covered by colluders and dropouts stated apart"
            )
        return (
            f"more than C = {self.colluders} colluding clients (rounds that lack more than D = {self.dropouts} clients "
            "are refused)"
        )

    def describe(self) -> dict[str, object]:
        """Canonical description, for the hash of what the parties agree on."""
        return {"hubbub": 2, "population": asdict(self)}

    def __str__(self) -> str:
        held = "" if self.n == self.clients else f" holding N = {self.n} samples"
        if self.theorem1:
            return f"N = {self.clients} clients{held}, of whom T = {self.dropouts} may collude or drop out (Theorem 1)"
        return (
            f"K = {self.clients} clients{held}, of whom D = {self.dropouts} may be missing and C = {self.colluders} "
            "may collude, both at once"
        )


def covered(tolerate: int, dropouts: int | None, colluders: int | None) -> tuple[int, int]:
    """(D, C): clients that may be missing and clients that may collude; `tolerate` stands for what is left out."""
    whole("tolerate", tolerate, 0, "give how many clients may be missing, and as many that may collude")
    missing = tolerate if dropouts is None else whole("dropouts", dropouts, 0, "give how many clients may be missing")
    false = tolerate if colluders is None else whole("colluders", colluders, 0, "give how many clients may collude")
    return missing, false


@dataclass(frozen=True)
class TrustedPopulation(Population):
    """One trusted party holds all samples and adds all the noise at once: one share is the whole of it."""

    @property
    def shares(self) -> int:
        """The aggregator's own."""
        return 1

    @property
    def spread(self) -> float:
        """No noise is added that is not counted on."""
        return 1.0


@dataclass(frozen=True)
class EarlyPopulation(Population):
    """As hubbub 0.1 counted: every sample for a client, colluders or dropouts (T), and T counted in samples.

    `held` is the most samples, and so shares of the noise, in one hand. Only for reading studies that 0.1 made: one
    false client that holds k samples uses up k of T.
    """

    held: int = 1

    @property
    def shares(self) -> int:
        """How many shares of noise are counted on in the worst case."""
        return self.clients - self.dropouts - self.held

    def colluding(self, missing: int) -> str:
        """Who may conspire with Computes: counted in the samples that they hold."""
        return f"colluding clients who together hold up to {self.covered(missing)} samples, together with "

    def beyond(self) -> str:
        """How many shares of noise may be missing or told at most."""
        return (
            f"more than T = {self.dropouts} samples' shares of noise that are missing or told: one client who holds k "
            "samples uses up k of them; an adversary who chooses who is missing uses them up twice"
        )

    def describe(self) -> dict[str, object]:
        """Canonical description, as 0.1 wrote it."""
        return {"hubbub": 1, "clients": self.clients, "tolerated": self.dropouts}

    def __str__(self) -> str:
        return (
            f"N = {self.clients} samples, of whose shares of noise T = {self.dropouts} may be missing or told (counted "
            "in samples, as hubbub 0.1 did)"
        )
