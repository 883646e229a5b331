"""What the decimal module leaves out: pi, and numbers with a bound for their error."""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import lru_cache


@lru_cache(maxsize=16)
def pi(digits: int) -> Decimal:
    """pi, right to so many digits: 16 arctan(1/5) - 4 arctan(1/239), after Machin, in whole numbers."""
    one = 10 ** (digits + 10)
    scaled = 16 * _arctan_of_inverse(5, one) - 4 * _arctan_of_inverse(239, one)
    with localcontext() as context:
        context.prec = digits + 10
        found: Decimal = Decimal(scaled) / one
        return found


def _arctan_of_inverse(n: int, one: int) -> int:
    total = term = one // n
    k = 1
    while term:
        term //= -n * n
        k += 2
        total += term // k
    return total


def around(value: Decimal, digits: int) -> tuple[Decimal, Decimal]:
    """The numbers within one part in 10^(digits - 5) of a positive value that was computed with so many digits."""
    error = value.scaleb(5 - digits)
    return value - error, value + error
