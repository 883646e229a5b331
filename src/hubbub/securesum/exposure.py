"""What groups of Computes see where each client uses k of M, and when the sums tell no more than the total."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import comb

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import invalid, whole
from hubbub.securesum.additive import check_computes

_ROWS = 64  # Computes whose ways are counted at the same time


def hold_together(ties: NDArray[np.int64], each: int, colluding: int) -> bool:
    """True where no k - 1 Computes and no so many clients cut the other Computes into groups without common clients.

    `ties` counts the clients that two Computes have in common. From i to j there are ties[i, j] direct ways, and
    min(ties[i, l], ties[l, j]) by way of each other Compute l. A Compute that is taken away takes those through itself;
    a client that is taken away takes one at most from each of k - 1 of these numbers, since it uses k Computes. So i
    and j stay connected if the direct ways and those through other Computes, but for the k - 1 with most of them, are
    more than (k - 1) times the colluding clients.

    Those with fewest clients are looked at first, since it is mostly they who are loose.
    """
    direct, least = ties.copy(), (each - 1) * colluding
    np.fill_diagonal(direct, 0)
    heights = [0, *np.unique(direct[direct > 0]).tolist()]
    order = np.argsort(ties.diagonal(), kind="stable")
    parts = np.split(order, range(_ROWS, len(order), _ROWS))
    return all(_tied_to_all(direct, part, heights, each, least) for part in parts)


def _tied_to_all(
    direct: NDArray[np.int64], part: NDArray[np.intp], heights: Sequence[int], each: int, least: int
) -> bool:
    """True where more than `least` ways, but for those by way of k - 1, lead from these Computes to each other one.

    A sum of whole numbers is how many of them reach 1, and 2, and so on; without the k - 1 largest, k - 1 fewer reach
    each height, or none do. The smaller of two numbers reaches what both reach. So one product of matrices of zeros and
    ones counts for all pairs the ways that reach a height, and all heights between two numbers that occur count alike.
    """
    ways = direct[part]
    ways[np.arange(len(part)), part] = least + 1  # to itself
    for low, high in pairwise(heights):
        if (ways > least).all():
            return True
        reach = (direct >= high).astype(np.float32)  # whole numbers up to M are exact
        both = (reach[part] @ reach.T).astype(np.int64)
        ways += (high - low) * np.maximum(both - (each - 1), 0)
    return bool((ways > least).all())


def conspiring_sizes(computes: int, each: int) -> tuple[int, ...]:
    """Groups of Computes to tell somebody the exposure for: k, then a tenth, a fifth and half of all, all but one."""
    sizes = {each, *(max(each, round(part * computes)) for part in (0.1, 0.2, 0.5)), computes - 1}
    return tuple(sorted(size for size in sizes if each <= size < computes))


def expected_exposure(computes: int, each: int, conspiring: int, clients: int) -> float:
    """clients C(c, k)/C(M, k): the expected number of clients all of whose k Computes are among c of the M."""
    whole("conspiring", conspiring, 0, "of the Computes", most=computes)
    whole("clients", clients, 0, "say how many there are")
    return clients * (comb(conspiring, each) / comb(computes, each))


def smallest_k(computes: int, conspiring: int, clients: int, risk: float) -> int:
    """The smallest k with which the expected number of exposed clients is at most `risk`.

    `conspiring` of the `computes` may pool what they hold. The chance that any client at all is exposed is then at most
    `risk`, too. InvalidInput where all Computes conspire, as nothing helps then.
    """
    check_computes(computes)
    whole("conspiring", conspiring, 0, "at least one Compute must be honest", most=computes - 1)
    if not risk > 0:
        raise invalid("risk", "a number of clients above 0", risk, "give for example 0.01")
    return next(k for k in range(2, computes + 1) if expected_exposure(computes, k, conspiring, clients) <= risk)
