"""The secure sum of `hubbub up`: which one its options ask for, and what it cannot do."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hubbub.cli.up import UpOptions
    from hubbub.protocols import SecureSum


def chosen_scheme(options: UpOptions) -> SecureSum:
    """Additive sharing, or one with a threshold; refuses to lose a Compute that is needed."""
    from math import comb

    from hubbub.errors import invalid, whole
    from hubbub.securesum import Additive, Replicated, Shamir
    from hubbub.securesum.replicated import MOST_PIECES

    computes, threshold = options.computes, options.threshold
    scheme: SecureSum
    if options.subset is not None:
        scheme = _subset(options, options.subset)
    elif threshold is None:
        scheme = Additive(computes)
    elif 2 <= threshold <= computes and comb(computes, threshold - 1) > MOST_PIECES:
        scheme = Shamir(computes, threshold)
    else:
        scheme = Replicated(computes, threshold)
    if options.lose is not None:
        if options.subset is not None:
            raise invalid(
                "lose", "left out with --subset, where all Computes must answer", options.lose,
                "to lose one, use --threshold in place of --subset",
            )  # fmt: skip
        whole("lose", options.lose, 1, "count the Computes from 1", most=computes)
        if scheme.quorum == computes:
            raise invalid(
                "lose", f"left out where all {computes} Computes must answer", options.lose,
                "give a smaller --threshold, such as --computes 3 --threshold 2",
            )  # fmt: skip
    return scheme


def _subset(options: UpOptions, each: int) -> SecureSum:
    """Some of the Computes for each client, if clients are enough to tie them together."""
    from hubbub.errors import invalid
    from hubbub.securesum import Subset, least_clients

    if options.threshold is not None:
        raise invalid("threshold", "left out with --subset, where all sums are needed", options.threshold, "choose one")
    scheme = Subset(options.computes, each)
    people = options.cover.population(options.clients)
    least = people.dropouts + least_clients(options.computes, each, people.colluders + 1)
    if options.clients < least:
        missing = f", of whom {people.dropouts} may be missing," if people.dropouts else ""
        raise invalid(
            "clients", f"at least {least}{missing} to tie {options.computes} Computes together, {each} for each client",
            options.clients, f"add --clients {least}, or use fewer Computes",
        )  # fmt: skip
    return scheme
