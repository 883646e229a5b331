"""What the schemes have in common in which any t of the M Computes are enough."""

from __future__ import annotations

from collections.abc import Collection

from hubbub.errors import CannotCombine, whole
from hubbub.protocols import Trust

_COUNTS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def check_threshold(threshold: int, computes: int) -> None:
    """2 <= t <= M, or one line that says so."""
    whole(
        "threshold", threshold, 2, "1 would let a single Compute read every vector, more than M nobody", most=computes
    )


def check_cheating(cheating: int, threshold: int) -> None:
    """0 <= f < t, or one line that says so."""
    whole("cheating", cheating, 0, "as many as the threshold could read every vector anyway", most=threshold - 1)


def check_sums(sums: Collection[int], threshold: int) -> None:
    """t sums or more, or one line that says so: fewer tell nothing of the total."""
    if len(sums) < threshold:
        raise CannotCombine(
            "missing-compute", f"sums must be of at least {threshold} Computes, got {len(sums)}; fetch those of more"
        )


def quorum_of(threshold: int, computes: int, cheating: int) -> int:
    """q = floor((M + f)/2) + 1, and at least t: how many must sign a roster where f may contradict themselves.

    Two sets of q among M have at least 2q - M > f members in common, one of whom is honest and signs once. At least t,
    so that those who sign can also form the total.
    """
    return max(threshold, (computes + cheating) // 2 + 1)


def threshold_described(scheme: str, computes: int, threshold: int, cheating: int) -> dict[str, object]:
    """What goes into a study; a study in which no Compute is taken to cheat does not speak of it."""
    more = {"cheating": cheating} if cheating else {}
    return {"scheme": scheme, "computes": computes, "threshold": threshold, **more}


def are_enough(found: Collection[int], threshold: int, computes: int) -> bool:
    """True for t or more different Computes of the M."""
    return len(set(found)) >= threshold and set(found) <= set(range(computes))


def threshold_trust(threshold: int, computes: int, quorum: int) -> Trust:
    """Any t - 1 learn nothing, any t learn everything; and where not all M must sign, few may contradict themselves."""
    if threshold == computes:
        sentence = f"at least one of the {computes} Computes does not show what it holds to the others"
    else:
        sentence = f"no {_count(threshold)} of the {_count(computes)} Computes pool what they hold"
    if quorum == computes:
        return Trust(computes, threshold - 1, sentence)
    most = 2 * quorum - computes - 1  # two quorums have one member more in common, who is honest
    more = f"more than {_count(most)}" if most else "any"
    return Trust(
        computes, threshold - 1,
        f"{sentence}, and {_signing(most)} contradicting statements about one round, be it two lists of clients or a "
        "list and a refusal",
        f"if on live nodes {more} of the {computes} Computes sign contradicting statements about one round, several "
        "totals may be released, of which two may differ by one client, covered by its own share of noise only; or a "
        "round that was released may count as refused, so that its cost is given back and spent again",
        contradicting=most,
    )  # fmt: skip


def _signing(most: int) -> str:
    """How many of them may contradict themselves, in words."""
    return f"at most {_count(most)} of them sign{'s' if most == 1 else ''}" if most else "none of them signs"


def _count(number: int) -> str:
    return _COUNTS[number] if number < len(_COUNTS) else str(number)


def most_named(sums: int, threshold: int) -> int:
    """How many wrong sums among so many are sure to be named: (n - t)/2, rounded down.

    Two lists of n sums that both fit together have at most t - 1 sums in common, as t give all others. So whatever is
    at most (n - t)/2 sums away from one list that fits is further away from every other. Up to n - t wrong sums are
    sure to be noticed.
    """
    return (sums - threshold) // 2


def sums_differ(wrong: Collection[int], sums: int) -> CannotCombine:
    """The sums do not fit together, and why: those of `wrong`, or, where that is empty, it cannot be told whose."""
    if not wrong:
        return CannotCombine(
            "sums-differ",
            f"the sums of {sums} Computes must fit together, got some that differ and too few to tell whose is wrong; "
            "fetch those of more Computes, or start a new round",
        )
    whose = ", ".join(str(place + 1) for place in sorted(wrong))
    return CannotCombine(
        "sums-differ",
        f"the sums of {sums} Computes must fit together, got wrong ones of Compute {whose} (they, or clients that sent "
        "them something else, do not keep to the protocol); combine the sums of the others",
        tuple(sorted(wrong)),
    )
