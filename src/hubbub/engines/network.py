"""The roles on real Compute nodes: every call of `private_sum` is one round over HTTP, with simulated clients."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hubbub.arrays import Floats, number_rows
from hubbub.engines.held import held_array
from hubbub.errors import InvalidInput, PerhapsReleased, invalid, whole
from hubbub.privacy import Budget, Population, Unit, covered
from hubbub.protocols import Engine, Mechanism, Release, RoundSpec, SecureSum
from hubbub.randomness import Randomness
from hubbub.securesum import Additive, check_computes, check_secure_sum
from hubbub.service.analyst.analyst import Analyst, find_compute, make_tokens, new_study
from hubbub.service.client.client import Client, send_together
from hubbub.service.client.outbox import Outbox
from hubbub.service.wire.draw import check_ties
from hubbub.service.wire.records import RoundRecord
from hubbub.service.wire.signing import SigningKey
from hubbub.service.wire.web import Patience, Web
from hubbub.settings import NETWORK_HERE

_STUDY_SECONDS = 24 * 3600.0
_THREADS = 16


@dataclass(frozen=True)
class _Live:
    """A registered study and its enrolled clients, for all rounds over as many rows with one law of noise."""

    analyst: Analyst
    clients: tuple[Client, ...]
    rounds: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class NetworkEngine(Engine):
    """K simulated clients on this machine, M Computes at `urls`: every call of `private_sum` is one round over HTTP.

    With a `budget` every Compute keeps the study's ledger and refuses a round that overspends it. Without one the
    study is a simulation, which Computes take only if their configuration says so. The noise covers `dropouts`
    clients that are missing and `colluding` ones that tell their noise, both at once; `tolerate=T` is short for T of
    each. `holds` is the number of samples of one client (1: every row is a client of its own, with its own key and
    report), and `unit` what the promise is about: any "sample", or all samples of any "client". With
    `relayed` reports travel in batches, as through a gateway; otherwise every client uploads by itself. A `seed` makes
    noise and shares reproducible, and the privacy report says so. `authority` is a PEM file for the Computes'
    certificates. `secure_sum` is the sharing scheme, by default additive sharing among all Computes, and
    `mechanism` the law of the noise, or its name.
    """

    urls: tuple[str, ...]
    tolerate: int = 0
    budget: Budget | None = None
    seed: int | None = None
    holds: int = 1
    relayed: bool = False
    authority: str | None = None
    fraction_bits: int | None = None
    title: str = "network engine"
    tick: Callable[[int], None] | None = field(default=None, repr=False, compare=False)
    dropouts: int | None = None
    colluding: int | None = None
    unit: Unit = "sample"
    secure_sum: SecureSum | None = None
    mechanism: Mechanism | str | None = None
    uploaded: Callable[[int], None] | None = field(default=None, repr=False, compare=False)
    """Called with a round's number when all its reports are sent and it is about to be closed."""
    _randomness: Randomness = field(init=False, repr=False, compare=False)
    _web: Web = field(init=False, repr=False, compare=False)
    _folder: Any = field(init=False, repr=False, compare=False)
    _live: dict[tuple[int, str], _Live] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "urls", tuple(self.urls))
        check_computes(len(self.urls))
        check_secure_sum(self.secure_sum)
        if self.secure_sum is None:
            object.__setattr__(self, "secure_sum", Additive(len(self.urls)))
        if self.scheme.computes != len(self.urls):
            raise invalid("secure_sum", f"for the {len(self.urls)} Computes", self.scheme.computes, "name as many")
        covered(self.tolerate, self.dropouts, self.colluding)
        whole("holds", self.holds, 1, "a client holds one sample at least")
        object.__setattr__(self, "_randomness", Randomness.of(self.seed))
        object.__setattr__(self, "_web", Web.open(self.authority, Patience(total=60.0, first=0.02, most=1.0)))
        object.__setattr__(self, "_folder", tempfile.TemporaryDirectory(prefix="hubbub-"))

    @property
    def computes(self) -> int:
        """M, the number of Computes."""
        return len(self.urls)

    def population(self, samples: int) -> Population:
        """Who takes part where there are so many rows."""
        both = covered(self.tolerate, self.dropouts, self.colluding)
        return Population.of_rows(samples, self.holds, both, self.unit)

    @property
    def scheme(self) -> SecureSum:
        """How sums are kept secret."""
        assert self.secure_sum is not None  # as __post_init__ has seen to
        return self.secure_sum

    def hold(self, rows: Any) -> Floats:
        """An array, as it is."""
        return held_array(rows)

    def private_sum(self, rows: Any, spec: RoundSpec) -> Release:
        """The noisy sum over the clients, through one round on the live nodes.

        InvalidInput comes before the round is opened, RoundRefused where every Compute has signed its refusal. After
        any other error, PerhapsReleased among them, the sum may be out.
        """
        rows = number_rows("rows", rows, None if spec.steps else spec.statistic.columns)
        if spec.chosen is not None:
            raise InvalidInput(
                "selection must be 'self' on a network, whose clients answer for themselves, got 'trainer'; "
                "let the clients select themselves"
            )
        live = self._study(rows.shape[0], str(spec.mechanism.describe()["mechanism"]))
        record = live.analyst.plan(len(live.rounds), spec, self.fraction_bits)
        with _under_way():
            return self._round(live, record, rows)

    def _round(self, live: _Live, record: RoundRecord, rows: Floats) -> Release:
        away = live.analyst.open_round(record)
        live.rounds.append(record.label)
        for client, part in zip(live.clients, _parts(rows, self.holds), strict=True):
            client.make(record, part)  # one after the other, so that a seed gives the same noise again
        if self.relayed:
            send_together(live.clients, record, away)
        else:
            self._at_once(live.clients, lambda client: client.send(record, without=away))
        if self.uploaded is not None:
            self.uploaded(record.number)
        live.analyst.close(record)
        return live.analyst.release(record, setting=NETWORK_HERE, randomness=self._randomness)

    def _study(self, samples: int, noise: str) -> _Live:
        """The study over so many rows with this law of noise: made, registered and enrolled in at the first round."""
        if (samples, noise) not in self._live:
            other = next((law for rows, law in self._live if rows == samples), None)
            if self.budget is not None and other is not None:
                raise invalid(
                    "mechanism", f"{other} in all rounds over the same rows, since one study keeps their budget", noise,
                    "make another engine, and keep a ledger over both",
                )  # fmt: skip
            self._live[samples, noise] = self._start(samples, noise)
        return self._live[samples, noise]

    def _start(self, samples: int, noise: str) -> _Live:
        population = self.population(samples)
        key, computes = SigningKey.generate(), [find_compute(url, self._web) for url in self.urls]
        study = new_study(
            self.title, computes, population, self.budget, key, seconds=_STUDY_SECONDS, secure_sum=self.scheme,
            noise=noise,
        )  # fmt: skip
        analyst = Analyst(study, key, self._web)
        analyst.register()
        sizes = [part.shape[0] for part in _parts(np.empty((samples, 0)), self.holds)]
        names = [f"client-{i}" for i in range(len(sizes))]
        tokens = make_tokens(dict(zip(names, sizes, strict=True)))
        analyst.invite(tokens)
        analyst.draw({name: count for name, (_, count) in tokens.items()})
        check_ties(analyst.drawn, names)
        outbox = Outbox(Path(self._folder.name) / f"{study.id[:16]}.db")
        simulation = self.budget is None
        found = tuple(
            Client(study, name, outbox, self._web, samples, self._randomness, simulation)
            for name, (_, samples) in tokens.items()
        )
        self._at_once(found, lambda client: client.enrol(tokens[client.name][0]))
        return _Live(analyst, found)

    def _at_once(self, clients: Sequence[Client], work: Callable[[Client], object]) -> None:
        """Several clients talk to the Computes at the same time, as they would."""
        with ThreadPoolExecutor(min(_THREADS, len(clients))) as pool:
            for _ in pool.map(work, clients):
                if self.tick is not None:
                    self.tick(1)


@contextmanager
def _under_way() -> Iterator[None]:
    """Once a round is open, a bad value (of a Compute's reply, say) does not mean that nothing was released."""
    try:
        yield
    except InvalidInput as error:
        raise PerhapsReleased(f"{error}; the round was open by then, so its charge stays spent") from error


def _parts(rows: Floats, size: int) -> Sequence[Floats]:
    return [rows[start : start + size] for start in range(0, rows.shape[0], size)]
