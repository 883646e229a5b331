"""The options of every command that says how many clients may be missing or false."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter, Token

if TYPE_CHECKING:
    from hubbub.privacy import Population


def whole_number(_: object, tokens: Sequence[Token]) -> int:
    """Whole numbers only: `--computes 2.5` is a mistake, not 2."""
    try:
        return int(tokens[0].value)
    except ValueError:
        raise ValueError(f"must be a whole number, got {tokens[0].value}") from None


Whole = Parameter(converter=whole_number)


@Parameter(name="*")
@dataclass(frozen=True)
class Cover:
    """Against how many clients the noise must hold."""

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
        """D."""
        return self._numbers()[0]

    @property
    def false(self) -> int:
        """C."""
        return self._numbers()[1]

    def _numbers(self) -> tuple[int, int]:
        from hubbub.privacy import covered

        return covered(self.tolerate, self.dropouts, self.colluders)

    def population(self, clients: int) -> Population:
        """So many clients with a sample each; refuses where no noise would be left to count on."""
        from hubbub.privacy import Population

        return Population(clients, self.missing, self.false)


NOBODY, FIVE = Cover(), Cover(tolerate=5)
"""Defaults of commands."""
