"""Many Computes, of whom each client uses few: additive sharing among k of M, drawn by lot for each client.

A client sends as much as with k Computes, however many there are, and a group that is to read a certain client's words
has to hold all k of that client's Computes.
"""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Words
from hubbub.errors import RoundRefused, invalid, whole
from hubbub.protocols import Description, SecureSum, Share, Tally, Trust
from hubbub.randomness import Randomness
from hubbub.securesum.additive import Additive, check_computes
from hubbub.securesum.exposure import conspiring_sizes, expected_exposure, hold_together
from hubbub.securesum.tally import BLOCK_WORDS, Block, cached_blocks
from hubbub.securesum.wire.codec import pack

MOST_SEED_BYTES = 200
_LABEL = b"hubbub subset v1"
_LONG, _MANY = 256, 4  # rows so long, or with so few to a Compute, are added one by one
_TRIES, _FEWEST = (5000, 200), 10  # simulated draws: so many over M, at most 200, and not fewer than 10
_DEVIATIONS = 6.0  # from their mean to what one draw in 1000 needs: 4.9 for the largest of many (Gumbel), and a margin


@dataclass(frozen=True)
class Subset(SecureSum):
    """Each client uses `each` of the Computes, and the sums of all M are needed.

    Parameters
    ----------
    computes : M, from 2 to 1000.
    each : k, from 2 to M.
    seed : public text that decides, together with a client's name, which Computes serve that client. None, the default,
        is one that is still to be drawn: by all Computes together where they are live nodes, at will in a simulation.

    A client sends 8 d + 32 (k - 1) bytes, in the forms of additive sharing. Any k - 1 Computes learn nothing. A larger
    group learns the words of those clients all of whose k Computes belong to it: `exposure` of them are to be expected.
    It can subtract them from the total, so the others are covered as if these clients were among those who collude.

    **Who could steer the draw.** It is a hash of seed and name, so nobody can once both are fixed. Whoever chooses one
    of them last, knowing the other, can try values until the draw suits: to put one client into the hands of c of the
    M Computes takes about C(M, k)/C(c, k) tries, 163 for 10 of 50 and k = 3, which is nothing. So

    - shares are sealed to a hash that covers the seed: changed, nothing fits any more;
    - names must be fixed before the seed, or not be free to choose (a client that picks its own name can only harm
      itself, but an analyst who hands out names can harm others);
    - an analyst who picks the seed alone could conspire with Computes. Live nodes therefore take no seed that somebody
      brings: every Compute contributes to it, after the list of names is fixed (docs/decisions/0024). `exposure` holds
      for a seed that no conspirator chose.

    **What the sums tell.** All M sums are published, and a client ties only its own k Computes together. Take away the
    conspiring Computes and the clients that collude with them: where the other Computes fall into groups that no client
    ties together, the sums of each group tell the total over that group's clients, which less noise protects than the
    round's. `vetted` refuses rosters where k - 1 Computes could bring that about; for 50 Computes and k = 3 about 400
    clients pass. A larger group may do so where the Computes outside of it share few clients.
    """

    computes: int = 50
    each: int = 3
    seed: str | None = None

    def __post_init__(self) -> None:
        check_computes(self.computes)
        check_each(self.each, self.computes)
        if self.seed is None:
            return
        if not isinstance(self.seed, str) or not 0 < len(self.seed.encode()) <= MOST_SEED_BYTES:
            raise invalid("seed", f"a text of 1 to {MOST_SEED_BYTES} bytes", repr(self.seed)[:40], "leave it out")

    @property
    def undrawn(self) -> bool:
        """True without a seed."""
        return self.seed is None

    def drawn(self, seed: str) -> Subset:
        """The scheme with this seed; one that has a seed keeps it."""
        return replace(self, seed=seed) if self.seed is None else self

    def recipients(self, client: str) -> tuple[int, ...]:
        """The k Computes that serve this client: k draws without replacement from SHAKE-128 of seed and name.

        Draw i takes the next 8 bytes as a number x and picks, of the M - i Computes that are left in ascending order,
        number x (M - i) // 2^64. No Compute is more likely than another by more than a factor 1 + M/2^64.
        """
        if self.seed is None:
            raise invalid("seed", "drawn before clients have their Computes", None, "let the Computes draw it first")
        stream = hashlib.shake_128(pack(_LABEL, self.seed.encode(), client.encode())).digest(8 * self.each)
        left = list(range(self.computes))
        drawn = (int.from_bytes(stream[start : start + 8], "big") for start in range(0, len(stream), 8))
        return tuple(sorted(left.pop(number * len(left) >> 64) for number in drawn))

    def shard(self, words: Words, client: str, randomness: Randomness) -> tuple[Share, ...]:
        """k shares in the order of the client's Computes."""
        return self._among.shard(words, client, randomness)

    def vetted(self, clients: Iterable[str], colluding: int = 0) -> Iterator[str]:
        """The same clients; RoundRefused where k - 1 Computes and some colluding clients could take the total apart."""
        ties = np.zeros((self.computes, self.computes), dtype=np.int64)
        for client in clients:
            serving = self.recipients(client)
            ties[np.ix_(serving, serving)] += 1
            yield client
        used = np.flatnonzero(ties.diagonal())
        if not hold_together(ties[np.ix_(used, used)], self.each, colluding):
            raise RoundRefused(
                "loose-computes",
                f"clients must tie the {self.computes} Computes together, of whom each uses {self.each}, got too few "
                "clients: sums of some Computes would tell the total over a part; use fewer Computes, or more for each",
            )

    def forms(self, dimension: int) -> Mapping[int, int]:
        """Those of additive sharing."""
        return self._among.forms(dimension)

    def accumulate(self, total: Words, share: Share) -> None:
        """Add the share's words, expanded from the seed where it is one."""
        self._among.accumulate(total, share)

    def enough(self, computes: Collection[int]) -> bool:
        """All M."""
        return set(computes) == set(range(self.computes))

    def unshard(self, sums: Mapping[int, Words]) -> Words:
        """Add up all sums: the masks cancel exactly."""
        return self._among.unshard(sums)

    def trust(self) -> Trust:
        """One honest Compute among those of each client is enough."""
        return Trust(
            self.computes, self.each - 1,
            f"of the {self.each} Computes that serve a client, drawn by lot from {self.computes}, at least one does "
            "not show what it holds to the others",
            self._proviso(), exposed=tuple((size, self.exposure(size, 1)) for size in self._larger),
        )  # fmt: skip

    @property
    def _larger(self) -> tuple[int, ...]:
        """Sizes of groups that may read somebody's words; none where k = M, as all but one read nobody's."""
        return () if self.each == self.computes else conspiring_sizes(self.computes, self.each)

    def _proviso(self) -> str:
        """What larger groups of Computes see, by their size; empty where k = M, as there are none."""
        if not self._larger:
            return ""
        found = ", ".join(f"{100 * self.exposure(size, 1):.2g} % with {size}" for size in self._larger)
        return (
            f"a group of {self.each} or more of the {self.computes} Computes reads the numbers (with that client's own "
            f"share of noise) of those clients all of whose {self.each} Computes belong to it, and sees the total of "
            "the others without these clients' noise (with a large group these others may even fall into parts, each "
            f"with a total of its own): expected are {found}, if none of the group chose the seed (an analyst who "
            "conspires with the last Compute to reveal has some draws to choose from, 3 by default), if every client "
            "was told its name before the draw, and if the group was not chosen after it"
        )

    def exposure(self, conspiring: int, clients: int) -> float:
        """How many of so many clients are expected to have all their k Computes among so many that conspire."""
        return expected_exposure(self.computes, self.each, conspiring, clients)

    def tally(self, dimension: int, randomness: Randomness) -> Tally:
        """Masks of many clients at once, in blocks that stay in the cache."""
        return SubsetTally(self.computes, self.each, dimension, randomness)

    def describe(self) -> dict[str, object]:
        """Name and numbers, and the seed where there is one, for the study."""
        seed = {} if self.seed is None else {"seed": self.seed}
        return {"scheme": "subset", "computes": self.computes, "each": self.each, **seed}

    @classmethod
    def of(cls, description: Description) -> Self:
        """From its description."""
        return cls(description["computes"], description["each"], description.get("seed"))

    @property
    def _among(self) -> Additive:
        return Additive(self.each)


def check_each(each: int, computes: int) -> None:
    """2 <= k <= M, or one line that says so."""
    many = isinstance(each, int) and each > computes
    why = f"there are only {computes} Computes" if many else "one Compute alone would see a client's vector"
    whole("each", each, 2, why, most=computes)


class SubsetTally(Tally):
    """Every client of a simulation draws its k Computes and its k - 1 masks; each Compute adds up what it is sent.

    Clients have no names here, so their Computes are drawn from the stream and not by the hash: with the same law. No
    sum leaves the machine, so there is no roster to be vetted; where the roles themselves run (`seal=True`) there is.
    """

    def __init__(self, computes: int, each: int, dimension: int, randomness: Randomness) -> None:
        self.sums = np.zeros((computes, dimension), dtype=np.uint64)
        self._each, self.randomness = each, randomness
        self._mask = np.empty(0, dtype=np.uint64)  # scratch, used again for every block

    def blocks(self, clients: int) -> Iterator[Block]:
        """Clients with all their words, as many as fit into the cache."""
        size = self.sums.shape[1]
        yield from cached_blocks(clients, size, max(BLOCK_WORDS, size), wide=size)

    def add(self, words: Words, columns: slice) -> None:
        """Share out some clients' words; consumes (overwrites) the array."""
        totals = self.sums[:, columns]
        serving = drawn_computes(words.shape[0], totals.shape[0], self._each, self.randomness)
        if self._mask.size < words.size:
            self._mask = np.empty(words.size, dtype=np.uint64)
        mask = self._mask[: words.size].reshape(words.shape)
        for computes in serving[1:]:
            self.randomness.fill_words(mask)
            words -= mask
            add_rows_to(totals, computes, mask)
        add_rows_to(totals, serving[0], words)


def drawn_computes(clients: int, computes: int, each: int, randomness: Randomness) -> NDArray[np.intp]:
    """(each, clients): for each client that many different Computes, in random order. For simulations.

    As in `Subset.recipients`, with numbers of 32 bits: each Compute is as likely as another up to a factor 1 + M/2^32.
    """
    numbers = randomness.words(each * clients).reshape(each, clients) >> np.uint64(32)
    found = np.empty((each, clients), dtype=np.intp)
    for place, number in enumerate(numbers):
        drawn = (number * np.uint64(computes - place) >> np.uint64(32)).astype(np.intp)
        for earlier in np.sort(found[:place], axis=0):
            drawn += drawn >= earlier  # the number of a Compute among those left, as a number among all
        found[place] = drawn
    return found


def add_rows_to(totals: Words, places: NDArray[np.intp], rows: Words) -> None:
    """Add each row to the total at its place: one by one where rows are long, sorted by place where they are short."""
    if rows.shape[1] >= _LONG or rows.shape[0] < _MANY * totals.shape[0]:
        each = list(totals)
        for place, row in zip(places.tolist(), rows, strict=True):
            np.add(each[place], row, each[place])
        return
    order = np.argsort(places, kind="stable")
    found, starts = np.unique(places[order], return_index=True)
    totals[found] += np.add.reduceat(rows[order], starts, axis=0)


@lru_cache(maxsize=64)
def least_clients(computes: int, each: int, colluding: int = 0) -> int:
    """With so many clients at most one draw in 1000 or so fails `Subset.vetted`: from simulated draws.

    What a draw needs is the most that any pair of Computes needs, so its law is about Gumbel's. Those who stay away tie
    nothing together: so many must be left when D are missing.
    """
    check_computes(computes)
    check_each(each, computes)
    tries = max(_FEWEST, min(_TRIES[1], _TRIES[0] // computes))
    found = [_needed(computes, each, colluding, Randomness.simulation(number)) for number in range(tries)]
    return math.ceil(np.mean(found) + _DEVIATIONS * np.std(found))


def _needed(computes: int, each: int, colluding: int, randomness: Randomness) -> int:
    """With how many of its clients one draw holds together first, to half a percent: more never tie less."""
    serving = drawn_computes(computes, computes, each, randomness)
    while not _tied(serving, computes, each, colluding):
        serving = np.hstack([serving, drawn_computes(serving.shape[1], computes, each, randomness)])
    step = max(1, serving.shape[1] // 200)
    counts = range(0, serving.shape[1] + step, step)
    return counts[bisect_left(counts, True, key=lambda count: _tied(serving[:, :count], computes, each, colluding))]


def _tied(serving: NDArray[np.intp], computes: int, each: int, colluding: int) -> bool:
    """True where these clients tie all Computes together."""
    ties = np.zeros((computes, computes), dtype=np.int64)
    np.add.at(ties, (serving[:, None], serving), 1)
    return bool((ties.diagonal() > 0).all()) and hold_together(ties, each, colluding)
