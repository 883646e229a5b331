"""Options that several commands share, each with its help text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter, Token

if TYPE_CHECKING:
    from hubbub.privacy import Population


def whole_number(_: object, tokens: Sequence[Token]) -> int:
    """Convert an argument to an int, and refuse `2.5` where cyclopts would take it for 2."""
    try:
        return int(tokens[0].value)
    except ValueError:
        raise ValueError(f"must be a whole number, got {tokens[0].value}") from None


Whole = Parameter(converter=whole_number)

Json = Annotated[bool, Parameter(name="--json", negative="", help="Print one JSON object to standard output.")]
Epsilon = Annotated[float, Parameter(help="Privacy budget epsilon > 0; 1 is common, above 5 protects little.")]
Delta = Annotated[
    float, Parameter(help="Privacy budget delta, below 1/N; 0 is pure differential privacy (discrete-laplace).")
]
Noise = Annotated[
    str | None,
    Parameter(
        help="The law of the noise: discrete-gaussian (the default), discrete-laplace (pure epsilon), skellam, or "
        "gaussian (continuous, as in the paper); or one that another package brings."
    ),
]
Computes = Annotated[int, Whole, Parameter(help="M, the number of Computes (at least 2).")]
Seed = Annotated[int | None, Whole, Parameter(help="Reproducible simulation; protects nobody, and the report says so.")]

Method = Annotated[
    Literal["auto", "projected", "plain"],
    Parameter(help="auto: scaled columns in a ball. projected: the paper's. plain: one round."),
]
XBound = Annotated[
    str | None,
    Parameter(
        allow_leading_hyphen=True,
        help="Public bounds of the features: 7.5 is -7.5:7.5; 0:120 for all, 0:1,5,-3:3 for each, or age=0:120,dose=3.",
    ),
]
PriorScale = Annotated[
    str | None,
    Parameter(
        help="Prior deviation of the coefficients, in units of the data: 2, or one per feature [default: learned]."
    ),
]

ModelOut = Annotated[Path | None, Parameter(help="Write the model here, for `hubbub predict`.")]
ReleaseOut = Annotated[Path | None, Parameter(help="Write the released sums here, for `hubbub refit`.")]
CoefficientsPlot = Annotated[Path | None, Parameter(help="Write a plot of the coefficients here.")]
Picture = Annotated[Path | None, Parameter(help="Also write the picture here (png, svg or pdf).")]

StudyFile = Annotated[Path, Parameter(help="The signed study that `hubbub study create` wrote.")]
KeyFile = Annotated[Path | None, Parameter(help="The analyst's key [default: beside the study].")]
Without = Annotated[
    tuple[str, ...],
    Parameter(negative="", help="Name of a Compute whose sum is wrong, to be left out; can be given several times."),
]
Authority = Annotated[Path | None, Parameter(help="PEM file that the Computes' certificates are checked with.")]


@Parameter(name="*")
@dataclass(frozen=True)
class Cover:
    """How many clients may be missing or collude while the noise still protects the others."""

    tolerate: Annotated[
        int, Whole, Parameter(help="T: short for --dropouts T --colluders T, where one of them is left out.")
    ] = 0
    dropouts: Annotated[
        int | None, Whole, Parameter(help="D, how many clients may be missing; a round that lacks more is refused.")
    ] = None
    colluders: Annotated[
        int | None, Whole, Parameter(help="C, how many clients may tell their noise to others, whoever is missing.")
    ] = None

    @property
    def missing(self) -> int:
        """The number D of clients that may be missing."""
        return self._numbers()[0]

    @property
    def false(self) -> int:
        """The number C of clients that may collude."""
        return self._numbers()[1]

    def _numbers(self) -> tuple[int, int]:
        from hubbub.privacy import covered

        return covered(self.tolerate, self.dropouts, self.colluders)

    def population(self, clients: int) -> Population:
        """A population of this many clients with one sample each.

        It is refused if too few clients would be left whose noise can be counted on.
        """
        from hubbub.privacy import Population

        return Population(clients, self.missing, self.false)


NOBODY, FIVE = Cover(), Cover(tolerate=5)
"""What a command takes by default: nobody may be missing or collude, or five clients may."""
