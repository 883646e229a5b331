"""The five seams of hubbub: read this file first.

Everything that can be exchanged is one of five protocols. An implementation knows the protocol and the small records
below, and no other implementation.

    Statistic    what one sample contributes: a bounded vector, and how far one sample can move it
    Mechanism    how much noise, of which law, and how vector and noise become whole numbers
    SecureSum    how numbers are hidden from the Computes that add them up, and which of them are needed
    Engine       where the clients, the Computes and the combiner run
    Analysis     which sums to ask for, one after the other, and what they mean together

They meet in this order. An *analysis* plans its rounds for a budget and a population, and asks for a round: a
`RoundSpec` names a statistic, a mechanism and the public steps that a row takes before the statistic sees it. An
*engine* runs the round: each client evaluates the *statistic*, the *mechanism* turns the vector into noisy words, the
*secure sum* shards them, the Computes add their shares, and the sums together give a `Release`. The analysis is told
the release, and asks for the next round until it has its result. `hubbub.run` is that loop.

Implementations subclass these protocols, which gives them the parts that have a sensible default. Packages other than
hubbub register theirs by entry points (docs/extending/). They import what they need from `hubbub` and from here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Floats, Words, number_rows
from hubbub.budget import Budget
from hubbub.errors import BudgetExceeded, HubbubError, InvalidInput, RoundRefused, UntrustworthyWarning, invalid, whole
from hubbub.events import CloseEvent, Entry, Event, GaussianEvent, PureEvent, SampledGaussianEvent, same_event
from hubbub.grid import Grid
from hubbub.population import Population
from hubbub.randomness import Randomness
from hubbub.release import NoiseLaw, Protection, Release, Setting, Trust
from hubbub.shown import quantities_html
from hubbub.tally import OneByOne

__all__ = [
    "Analysis", "Budget", "BudgetExceeded", "CloseEvent", "Description", "Engine", "Entry", "Event", "Floats",
    "GaussianEvent", "Grid", "HubbubError", "InvalidInput", "Mechanism", "NoiseLaw", "OneByOne", "Plan", "Population",
    "Protection", "PureEvent", "Randomness", "Release", "Result", "RoundNoise", "RoundRefused", "RoundSpec", "Rows",
    "SampledGaussianEvent", "SecureSum", "Setting", "Share", "Statement", "Statistic", "Steps", "Table", "Tally",
    "Trust", "UntrustworthyWarning", "Words", "invalid", "number_rows", "whole",
]  # fmt: skip

Description = Mapping[str, Any]
"""Plain JSON values that say what something is, so that another party can build the same from them.

One field gives the name under which it is registered (`statistic`, `mechanism`, `scheme`, `kind`). What a package
other than hubbub brings also has a field `package`, so that a party that lacks it is told what to install.
"""

Steps = Sequence[Mapping[str, Any]]
"""Public steps from a row as its holder has it to a row that the statistic takes (`statistics/preparation.py`)."""


# ---------------------------------------------------------------------------------------------------- the statistic


class Statistic(Protocol):
    """One sample -> one bounded vector; the sum over all samples is what gets released.

    It promises that no two samples have vectors further apart than `sensitivity` (Euclidean) and `sensitivity_l1`
    (sum of absolute differences), whatever numbers the samples hold. The noise is scaled to that, so a statistic that
    misstates it breaks the guarantee.

    Called by the roles: first `inside`, then `vectors` with the samples that are inside (others count as zero).
    """

    @property
    def columns(self) -> int:
        """How many numbers one sample has."""
        ...

    @property
    def dimension(self) -> int:
        """The length of one sample's vector."""
        ...

    @property
    def magnitude(self) -> float:
        """The largest absolute value that a coordinate of the vector can take."""
        ...

    @property
    def sensitivity(self) -> float:
        """The largest L2 distance between the vectors of two samples (replace-one)."""
        ...

    @property
    def sensitivity_l1(self) -> float:
        """The largest L1 distance between the vectors of two samples (replace-one)."""
        ...

    @property
    def probability(self) -> float:
        """With which probability a sample counts, by a coin that its holder alone sees. By default every one counts."""
        return 1.0

    @property
    def at_once(self) -> int | None:
        """How many samples are best computed together, in threads of its own; by default it does not matter."""
        return None

    @property
    def domain(self) -> str:
        """What a sample may be, for a message to its holder."""
        return "finite numbers"

    def inside(self, rows: Floats) -> NDArray[np.bool_] | None:
        """Which of these finite samples have a vector; None where all have. The others count as the zero vector.

        Zero must be within the stated sensitivities of every vector; and, where `probability` is below 1, within half
        of `sensitivity` (a vector and its opposite are then furthest apart), as the account of coins takes for granted.
        """
        return None

    def vectors(self, rows: Floats) -> Floats:
        """(n, columns) samples that are inside the domain -> (n, dimension) fresh numbers, each sample bounded."""
        ...

    def describe(self) -> dict[str, object]:
        """What goes into a study: the field `statistic`, bounds, formula. The registered `of` reads it back."""
        ...


# ---------------------------------------------------------------------------------------------------- the mechanism


class Mechanism(Protocol):
    """A law of noise and an amount of it, before anything is known of the clients.

    Called by an analysis, which asks for mechanisms that together stay `within` a budget and puts one into each round;
    by the accountant, which is told the `event`; by the client, the Compute and the engine, each of which settles the
    noise of a round on its own (`settled`).

    What is registered under a mechanism's name can be called without arguments, which gives the law with some amount,
    and has a method `of(description)`, which gives it with the amount that the description says.
    """

    def within(self, budget: Budget, weights: Sequence[float], probability: float = 1.0) -> tuple[Mechanism, ...]:
        """Mechanisms of this law for several rounds that together meet the budget; one for each weight.

        The weights say how loud a round's signal is to be beside the others': twice the weight, half the noise for
        the same sensitivity. `probability` is that of the rounds' statistics. This object's own amount is ignored.
        """
        ...

    def event(self, probability: float = 1.0) -> Event:
        """What the accountant is told of one round in which a sample counts with this probability."""
        ...

    def settled(self, statistic: Statistic, population: Population, fraction_bits: int | None = None) -> RoundNoise:
        """The noise of a round over these clients: grid, sensitivity on that grid, and each client's share.

        With `fraction_bits` on that grid, or InvalidInput where it is not safe. Everybody who takes part settles the
        round on their own and compares, so the same arguments must give the same noise everywhere.
        """
        ...

    @property
    def reservation(self) -> str | None:
        """What the figures of this law take for granted, in words for the privacy report; None where nothing."""
        return None

    def describe(self) -> dict[str, object]:
        """What goes into a round's record: the field `mechanism` and its amount. The registered `of` reads it back."""
        ...


class RoundNoise(Protocol):
    """A mechanism, settled for one round: vectors in, noisy words of the ring Z/2^64 out.

    Called by the client's role: `encoded` for each sample's vector, then `shares` once for the client, whose words are
    added; or `noisy_words`, which does both for clients that hold one sample each. Called by the combiner: `law`.
    """

    population: Population
    """Who takes part, and how many shares of the noise are counted on."""
    grid: Grid
    """On which numbers are whole."""
    sensitivity: float
    """How far one unit of privacy can move the sum on the grid, in the norm that the law goes by."""

    @property
    def sigma_std(self) -> float:
        """Standard deviation that a trusted aggregator would add to each coordinate."""
        ...

    @property
    def sigma_client(self) -> float:
        """Standard deviation that one client adds to each coordinate, whatever number of samples it holds."""
        ...

    def encoded(self, vectors: Floats) -> Words:
        """The vectors on the grid, without noise."""
        return self.grid.encode(vectors)

    def shares(self, clients: int, dimension: int, randomness: Randomness) -> Words:
        """(clients, dimension): one share of noise for each client, on the grid."""
        ...

    def noisy_words(
        self,
        vectors: Floats,
        randomness: Randomness,
        silent: NDArray[np.bool_] | None = None,
        room: Floats | None = None,
    ) -> Words:
        """(clients, d) words: each client's one vector with its share of noise.

        `silent` marks clients who add none, colluders of a simulation. `room`, contiguous and of the vectors' shape,
        may be used for the result.
        """
        words = self.encoded(vectors)
        noise = self.shares(vectors.shape[0], vectors.shape[1], randomness)
        words += noise if silent is None else np.where(silent[:, None], np.uint64(0), noise)
        return words

    def law(self, contributors: int) -> NoiseLaw:
        """The law and scale of the noise in a sum to which so many clients have added their share."""
        ...

    def check(self, statistic: Statistic) -> None:
        """Refuse (InvalidInput) noise that is too small for this statistic, or a sum that may not fit the ring."""
        ...

    def describe(self) -> dict[str, object]:
        """Plain values for the hash of a round that parties agree on."""
        ...


# --------------------------------------------------------------------------------------------------- the secure sum


@dataclass(frozen=True, eq=False)
class Share:
    """What one Compute gets of one client's words, in one of the forms of its scheme. Unprintable."""

    form: int
    """Which form, 1 to 255; the scheme's `forms` says how long its body is."""
    dimension: int
    body: bytes = field(repr=False)


class Tally(Protocol):
    """The sums of all Computes while many clients share out their words, where one machine simulates them all."""

    sums: Words
    """(Computes, length of a sum)."""
    randomness: Randomness
    """Where masks come from. A worker process gives every slice of clients a stream of its own here."""

    def blocks(self, clients: int) -> Iterator[tuple[slice, slice]]:
        """Parts of a (clients, d) array to be made and added one after the other, so that each stays in the cache."""
        ...

    def add(self, words: Words, columns: slice) -> None:
        """Share out some clients' words of these columns. May overwrite the array."""
        ...


class SecureSum(Protocol):
    """How words are hidden from the Computes that add them up, and which Computes are needed in the end.

    Called in this order: the client `shard`s its words and sends the shares to its `recipients`; each Compute passes
    the agreed roster through `vetted`, starts with `empty` and `accumulate`s the shares of those clients that send to
    it; the combiner `unshard`s the sums of Computes that are `enough`.

    What any `trust().conspiring` Computes hold, together with all sums, must depend on the words through their total
    only. The total must be exact where the clients' words, read as signed numbers, add up to at most 2^62 in absolute
    value; the grid of a round keeps every total within that.
    """

    @property
    def computes(self) -> int:
        """M, the number of Computes."""
        ...

    def recipients(self, client: str) -> Sequence[int]:
        """The Computes (numbered from 0, ascending) that this client sends a share to; by default all of them.

        It depends on nothing but the scheme and the client's name, so everybody knows who serves whom.
        """
        return range(self.computes)

    @property
    def undrawn(self) -> bool:
        """True where `recipients` follow from a seed that is still to be drawn; by default there is nothing to draw.

        On live nodes no party may choose that seed: all Computes draw it together (service/wire/draw.py).
        """
        return False

    def drawn(self, seed: str) -> SecureSum:
        """The scheme with the seed that was drawn; itself where nothing is to be drawn."""
        return self

    def shard(self, words: Words, client: str, randomness: Randomness) -> Sequence[Share]:
        """One share for each of the client's recipients, in their order. The name may decide whose is the longest."""
        ...

    def vetted(self, clients: Iterable[str], colluding: int = 0) -> Iterator[str]:
        """The same clients. Once all have passed, RoundRefused where sums over them would tell more than the total.

        Those who must not learn more are any `trust().conspiring` Computes together with so many `colluding` clients of
        the roster. By default all is well: where every client sends to every Compute, the sums tell the total alone.
        """
        return iter(clients)

    def forms(self, dimension: int) -> Mapping[int, int]:
        """The forms that a share of so many words may have, and the bytes of its body in each."""
        ...

    def empty(self, dimension: int) -> Words:
        """A Compute's sum of nobody's shares. Its length may differ from the dimension."""
        return np.zeros(dimension, dtype=np.uint64)

    def accumulate(self, total: Words, share: Share) -> None:
        """Add one share to a Compute's sum, in place."""
        ...

    def merge(self, total: Words, part: Words) -> None:
        """Add another part of the same sums to them, element by element and in place; they have any shape."""
        total += part

    @property
    def quorum(self) -> int:
        """How many Computes must have signed the same roster before one of them releases its sum; by default all.

        Any two sets of so many must share an honest Compute, or two rosters could be summed (docs/protocol.md). Fewer
        than all only where every client sends to every Compute.
        """
        return self.computes

    def enough(self, computes: Collection[int]) -> bool:
        """True where the sums of these Computes (numbered from 0) give the total."""
        ...

    def unshard(self, sums: Mapping[int, Words]) -> Words:
        """The total from the sums of Computes that are enough."""
        ...

    def trust(self) -> Trust:
        """Whom one must trust, for the privacy report, the study and the data holder."""
        ...

    def tally(self, dimension: int, randomness: Randomness) -> Tally:
        """The same scheme for many clients at once on one machine; by default one client after the other."""
        return OneByOne(self, dimension, randomness)

    def describe(self) -> dict[str, object]:
        """What goes into a study: the field `scheme` and its numbers. The registered `of` reads it back."""
        ...


# ------------------------------------------------------------------------------------------------------ the engine


@dataclass(frozen=True, eq=False)
class RoundSpec:
    """One round that an analysis asks for."""

    label: str
    """What people call it."""
    statistic: Statistic
    mechanism: Mechanism
    steps: Steps = ()
    """What becomes of a row before the statistic sees it."""
    chosen: NDArray[np.intp] | None = None
    """The clients that take part, where the trainer picks them; None is everybody."""

    @property
    def event(self) -> Event:
        """What the accountant is told."""
        return self.mechanism.event(self.statistic.probability)


@runtime_checkable
class Rows(Protocol):
    """Rows as an engine holds them: in memory, in a cluster, on other machines."""

    @property
    def shape(self) -> tuple[int, int]:
        """(samples, columns)."""
        ...


@runtime_checkable
class Table(Rows, Protocol):
    """Rows that stay where they are and are known by the names of their columns, such as those of a cluster."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        ...

    def select(self, columns: Sequence[str]) -> Table:
        """The same rows with these columns, in this order."""
        ...

    def engine(self) -> Engine:
        """An engine that runs where the rows are, for users who name none."""
        ...


@runtime_checkable
class Engine(Protocol):
    """Runs the roles somewhere; an analysis only ever sees the Release.

    Called by `run` in this order: `hold` once, `population` once, then `private_sum` for every round.
    """

    def hold(self, rows: Any) -> Rows:
        """Whatever the user has, brought to where rounds over it are cheap, and checked for its shape.

        Rows that this engine has made are given back as they are. InvalidInput where it cannot take such rows.
        """
        ...

    @property
    def mechanism(self) -> Mechanism | str | None:
        """The law of noise of the rounds here, where whoever runs an analysis names no other; None is hubbub's own."""
        return None

    def population(self, samples: int) -> Population:
        """Who takes part where there are so many rows, and how many of them the noise does without."""
        ...

    def private_sum(self, rows: Any, spec: RoundSpec) -> Release:
        """The noisy sum of the statistic over the rows, through all roles, settled for `population(samples)`.

        Raises InvalidInput or RoundRefused only where nothing is released and nothing can be any more, since the
        charge is then given back; an engine that cannot be sure raises something else, such as PerhapsReleased.
        """
        ...


# ---------------------------------------------------------------------------------------------------- the analysis

State = TypeVar("State")
ResultT = TypeVar("ResultT", covariant=True)


@dataclass(frozen=True)
class Plan:
    """All rounds of an analysis, settled before the first one: their number, noise and cost."""

    budget: Budget
    population: Population
    specs: tuple[RoundSpec, ...]
    """The rounds, or one of each kind where many are alike (`count` says how many there are). Where a later one depends
    on what an earlier one releases, it stands here at typical values."""

    @property
    def count(self) -> int:
        """How many rounds there are."""
        return len(self.specs)

    def spec(self, number: int) -> RoundSpec:
        """The round of this number, counted from 0, as it was planned."""
        return self.specs[min(number, len(self.specs) - 1)]

    def check(self, number: int, event: Event) -> None:
        """Refuse a round beyond the plan, or one that costs something else than what was planned and charged."""
        if number >= self.count:
            raise InvalidInput(f"rounds must number at most {self.count}, as planned, got another; plan it again")
        if not same_event(event, self.spec(number).event):
            raise InvalidInput(
                f"round {number} must cost what was planned, {self.spec(number).event}, got {event}; plan it again"
            )

    def cost(self, rounds: int) -> tuple[Entry, ...]:
        """What a ledger is charged for the first so many rounds."""
        return tuple(Entry(spec.label, spec.event) for spec in self.specs[:rounds])


class Statement(Protocol):
    """What is promised, to whom, and what is not: a privacy report. Prints as a text for people."""

    @property
    def is_guarantee(self) -> bool:
        """True where the stated epsilon and delta really hold."""
        ...

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        ...


class Result(Protocol):
    """What an analysis has found, in a form that a command can print and store."""

    privacy: Statement
    """The privacy report of the rounds it was made from."""

    def table(self, level: float = 0.9) -> list[dict[str, Any]]:
        """A row for each quantity: name, mean, std, and low and high of its interval of this probability."""
        ...

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON, without the privacy report."""
        ...

    def cautions(self) -> tuple[str, ...]:
        """Why the result must not be trusted, as far as what was released tells: one line each, with what to do."""
        return ()

    def files(self) -> Mapping[str, Callable[[Path], None]]:
        """What can be written to a file, by the name of the option that asks for it (`out`, `release`)."""
        return {}

    def _repr_html_(self) -> str:
        level = 0.9
        note = "" if self.privacy.is_guarantee else "NOT A GUARANTEE (see privacy)"
        return quantities_html(self.table(level), level, "\n".join(filter(None, [note, *self.cautions()])))


class Analysis(Protocol[State, ResultT]):
    """Which sums to ask for, one after the other, and what they mean together. It never sees a row.

    Called by `run`, and by the commands of a study, in this order: `plan`, `start`, then `ask` and `tell` in turn until
    `ask` gives None, then `result`. All of these are functions of their arguments: a study replays them from the
    releases it has, on another day or another machine, and gets the same.
    """

    kind: ClassVar[str]
    """The name under which it is registered."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that a client needs, in order."""
        ...

    def plan(self, budget: Budget, population: Population, mechanism: Mechanism) -> Plan:
        """Settle all rounds and their noise, from public numbers alone; InvalidInput where that cannot be done.

        `mechanism` is the law of noise that is wanted; the amounts follow from the budget (`Mechanism.within`).
        """
        ...

    def cautions(self, plan: Plan) -> tuple[str, ...]:
        """What speaks against this plan, from public numbers alone, one line each: said before anything is spent."""
        return ()

    def start(self, plan: Plan) -> State:
        """Before the first round."""
        ...

    def ask(self, state: State) -> RoundSpec | None:
        """The next round, or None where the result can be made."""
        ...

    def tell(self, state: State, release: Release) -> State:
        """The state after this release of the round that was asked for."""
        ...

    def result(self, state: State) -> ResultT:
        """What was found, once `ask` gives None."""
        ...

    def describe(self) -> dict[str, Any]:
        """What goes into a study: the field `kind` and all settings, as plain JSON values."""
        ...

    @classmethod
    def of(cls, description: Description) -> Self:
        """The analysis that describes itself so, or InvalidInput (KeyError, TypeError and ValueError will do)."""
        ...

    @classmethod
    def written(cls, settings: Mapping[str, Any]) -> Self:
        """The analysis that an analyst writes down in study.toml: the entries of [analysis] without its kind.

        By default they are the keywords of the class.
        """
        return cls(**settings)
