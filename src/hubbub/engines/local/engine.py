"""All roles in one process, vectorised over clients: the same road, for simulation and analysis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Floats, Words, number_rows
from hubbub.engines.held import held_array
from hubbub.engines.local.pool import POOL, NotForWorkers, Slice, Tick, cores
from hubbub.engines.local.worker import MOST_SUMS, SLOT_WORDS
from hubbub.errors import InvalidInput, invalid, whole
from hubbub.privacy import Population, Unit, covered
from hubbub.protocols import Engine, Mechanism, Release, RoundSpec, SecureSum
from hubbub.randomness import Randomness
from hubbub.roles import (
    Outside,
    RoundPlan,
    Study,
    Turnout,
    check_turnout,
    decode_release,
    run_round,
    settle_round,
    share_out,
)
from hubbub.securesum import Additive, Masks, PrivateKey, SuiteName, check_secure_sum, check_suite, clients_at_once
from hubbub.settings import ONE_PROCESS
from hubbub.statistics import warn_outside

_ONE_SLICE = 1 << 19  # words of all vectors together, up to which one slice and one stream serve the whole round
_FAULTS = ("absent", "lost_halfway", "colluders")
_SLICES, _LEAST_SLICE = 64, 1 << 18
_WORTH_SENDING, _WORTH_STARTING = 1 << 21, 1 << 26  # words of all shares: to warm workers, and to start them


@dataclass(frozen=True)
class LocalEngine(Engine):
    """K clients, M Computes and the combiner in one process.

    Noise and shares are really drawn and really cancelled. With `seal=True` (or the name of a suite)
    every client runs on its own and its reports pass as sealed bytes through the roles: slower, and the
    code path of a network. A `seed` makes a simulation reproducible, and the privacy report says so.

    The noise covers `dropouts` clients that are missing and `colluding` ones that tell their noise, both at once, and
    a round that lacks more is refused; `tolerate=T` is short for T of each. `theorem1=True` counts as the paper does
    (T clients collude or drop out), for its experiments. Each client holds `holds` rows, one after the other, and adds
    one share of noise to their sum. `unit` is what the promise is about: any "sample", or all rows of any "client".

    Faults to simulate, as numbers of clients (of rows, where each client holds one): `absent` clients never send,
    `lost_halfway` ones reach only the first Compute, `colluders` add no noise.

    Large rounds are shared out by `workers` processes (default: one per core), started at the first such round and
    kept warm. `shares` is "raw" (masks drawn in bulk), "seeds" (expanded by client and Compute, as in a network)
    or "auto" (raw: in one process no byte is saved). `secure_sum` is the sharing scheme, such as `Replicated(3, 2)`: by
    default additive sharing among `computes` Computes, which it replaces otherwise. `mechanism` is the law of the noise
    of the analyses that run here, or its name ("discrete-gaussian", the default, "discrete-laplace", "skellam" or
    "gaussian").
    `tick` is called with the number of clients just added.
    """

    computes: int = 3
    tolerate: int = 0
    seal: bool | SuiteName = False
    seed: int | None = None
    fraction_bits: int | None = None
    absent: tuple[int, ...] = ()
    lost_halfway: tuple[int, ...] = ()
    colluders: tuple[int, ...] = ()
    shares: Masks = "auto"
    workers: int | None = None
    tick: Tick | None = field(default=None, repr=False, compare=False)
    dropouts: int | None = None
    colluding: int | None = None
    holds: int = 1
    unit: Unit = "sample"
    theorem1: bool = False
    secure_sum: SecureSum | None = None
    mechanism: Mechanism | str | None = None
    _randomness: Randomness = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_secure_sum(self.secure_sum)
        object.__setattr__(self, "computes", self.scheme.computes)
        covered(self.tolerate, self.dropouts, self.colluding)
        whole("holds", self.holds, 1, "a client holds one sample at least")
        if self.workers is not None:
            whole("workers", self.workers, 1, "leave it out for one per core")
        for fault in _FAULTS:
            object.__setattr__(self, fault, _row_numbers(fault, getattr(self, fault)))
        if not isinstance(self.seal, bool):
            check_suite(self.seal)
        object.__setattr__(self, "_randomness", Randomness.of(self.seed))

    def population(self, samples: int) -> Population:
        """Who takes part where there are so many rows."""
        both = covered(self.tolerate, self.dropouts, self.colluding)
        return Population.of_rows(samples, self.holds, both, self.unit, self.theorem1)

    @property
    def scheme(self) -> SecureSum:
        """How sums are kept secret."""
        return Additive(self.computes, self.shares) if self.secure_sum is None else self.secure_sum

    def hold(self, rows: Any) -> Floats:
        """An array, as it is."""
        return held_array(rows)

    def private_sum(self, rows: Any, spec: RoundSpec) -> Release:
        """The noisy sum over the clients that came, or a refusal."""
        rows = number_rows("rows", rows, None if spec.steps else spec.statistic.columns)
        if spec.chosen is None:
            return self._round(self.settle(spec, rows.shape[0]), rows)
        if self.holds > 1:
            raise InvalidInput(
                "selection must be 'self' where clients hold several samples, got 'trainer'; "
                "let the clients select themselves"
            )
        return self._among(spec.chosen, rows.shape[0])._round(self.settle(spec, spec.chosen.size), rows[spec.chosen])

    def _among(self, chosen: NDArray[np.intp], clients: int) -> LocalEngine:
        """The same engine, its simulated faults numbered within the chosen rows."""
        self._present(clients)  # refuses the fault of a client that does not exist
        faults = {name: tuple(np.flatnonzero(np.isin(chosen, getattr(self, name))).tolist()) for name in _FAULTS}
        engine = replace(self, **faults)  # type: ignore[arg-type]  # tuples of row numbers, as the fields are
        object.__setattr__(engine, "_randomness", self._randomness)
        return engine

    def _round(self, plan: RoundPlan, rows: Floats) -> Release:
        """One round as settled."""
        present = self._present(plan.population.clients)
        check_turnout(plan.population, int(present.sum()))
        suite = self._suite()
        if suite is None:
            words = self.scheme.unshard(dict(enumerate(self.compute_sums(plan, rows))))
        else:
            words = self._sealed_sum(plan, rows, suite)
        return decode_release(
            plan,
            words,
            Turnout(int(present.sum()), int(self._rows_of(present, rows.shape[0]).size)),
            secure_sum=self.scheme,
            setting=ONE_PROCESS,
            sealed=suite,
            randomness=self._randomness,
            colluders=int(present[list(self.colluders)].sum()),
        )

    def _rows_of(self, chosen: NDArray[np.bool_], samples: int) -> NDArray[np.intp]:
        """The rows that these clients hold."""
        return np.flatnonzero(np.repeat(chosen, self.holds)[:samples])

    def settle(self, spec: RoundSpec, samples: int) -> RoundPlan:
        """The grid and the noise of a round over so many rows, before any data is touched."""
        return settle_round(spec, self.population(samples), self.fraction_bits)

    def compute_sums(self, plan: RoundPlan, rows: Floats) -> Words:
        """(M, length): what each Compute adds up. A slice of clients at a time, so memory stays bounded."""
        sums, outside = self._sums_of_workers(plan, rows) or self._sums_here(plan, rows)
        warn_outside("rows", plan.statistic, outside.number, rows.shape[0], outside.first)
        return sums

    def _sums_of_workers(self, plan: RoundPlan, rows: Floats) -> tuple[Words, Outside] | None:
        """By worker processes; None where they are not worth their while, or cannot know the statistic."""
        count = self.workers or cores()
        size, words = max(rows.shape[1], plan.dimension), rows.shape[0] * plan.dimension
        too_long = self.holds * size > SLOT_WORDS or self.scheme.empty(plan.dimension).size * self.computes > MOST_SUMS
        if count == 1 or words <= _ONE_SLICE or too_long or self.colluders or plan.statistic.at_once:
            return None
        if words * self.computes < (_WORTH_SENDING if POOL.warm(count) else _WORTH_STARTING):
            return None
        try:
            return POOL.use(
                count, lambda workers: workers.sums(plan, rows, self._slices(plan, rows), self.scheme, self._tick)
            )
        except NotForWorkers:
            return None

    def _sums_here(self, plan: RoundPlan, rows: Floats) -> tuple[Words, Outside]:
        """In this process."""
        silent = np.zeros(plan.population.clients, dtype=bool)
        silent[list(self.colluders)] = True
        silent_rows = np.repeat(silent, self.holds)[: rows.shape[0]]
        whole_round = self._slice_size(plan, rows) >= rows.shape[0]

        def shared_out(piece: tuple[Slice, bytes | None]) -> tuple[Words, Outside, int]:
            chosen, key = piece
            stream = self._randomness if whole_round else Randomness(key, self._randomness.source)
            tally = self.scheme.tally(plan.dimension, stream)
            part = rows[chosen]
            quiet = silent_rows[chosen][:: self.holds] if self.colluders else None
            outside = share_out(plan, part, tally, stream, quiet)
            if outside.first is not None:
                place = chosen.start + outside.first if isinstance(chosen, slice) else int(chosen[outside.first])
                outside = outside._replace(first=place)
            return tally.sums, outside, part.shape[0]

        total = np.stack([self.scheme.empty(plan.dimension) for _ in range(self.computes)])
        outside = Outside()
        with self._threads(plan) as each:
            for part, found, clients in each(shared_out, self._slices(plan, rows)):
                self.scheme.merge(total, part)
                outside = outside.and_then(found, 0)
                self._tick(clients)
        return total, outside

    @contextmanager
    def _threads(self, plan: RoundPlan) -> Iterator[Callable[..., Iterable[tuple[Words, Outside, int]]]]:
        """How slices are gone through: a statistic that computes many rows at once lets threads work side by side."""
        count = self.workers or cores()
        if count == 1 or not plan.statistic.at_once:
            yield map
            return
        with ThreadPoolExecutor(count) as pool:
            yield pool.map

    def _tick(self, clients: int) -> None:
        if self.tick is not None:
            self.tick(clients)

    def warm_up(self) -> None:
        """Start the worker processes now, rather than at the first large round."""
        if (count := self.workers or cores()) > 1:
            POOL.use(count, lambda _: None)

    def _slice_size(self, plan: RoundPlan, rows: Floats) -> int:
        """Rows in a slice, those of whole clients: all of them in a small round."""
        clients, words = int(rows.shape[0]), int(rows.shape[0]) * plan.dimension
        if plan.statistic.at_once is not None:
            size = min(plan.statistic.at_once, clients)
        elif words <= _ONE_SLICE:
            size = clients
        else:
            wanted = max(words // _SLICES, _LEAST_SLICE) // plan.dimension
            size = max(1, min(wanted, SLOT_WORDS // max(plan.dimension, int(rows.shape[1]))))
            size = max(size // clients_at_once(plan.dimension), 1) * min(clients_at_once(plan.dimension), size)
        return -(-size // self.holds) * self.holds

    def _slices(self, plan: RoundPlan, rows: Floats) -> Iterator[tuple[Slice, bytes | None]]:
        """Slices of clients, each with the key of its own stream: the same whatever the number of workers."""
        samples, size = rows.shape[0], self._slice_size(plan, rows)
        present = self._present(plan.population.clients) if self.absent or self.lost_halfway else None
        there = None if present is None else self._rows_of(present, samples)
        for start in range(0, samples if there is None else there.size, size):
            chosen = slice(start, start + size) if there is None else there[start : start + size]
            yield chosen, self._randomness.child_key()

    def _present(self, clients: int) -> NDArray[np.bool_]:
        present = np.ones(clients, dtype=bool)
        gone = [*self.absent, *self.lost_halfway]
        for index in (*gone, *self.colluders):
            if not 0 <= index < clients:
                raise invalid("client", f"a number in 0..{clients - 1}", index, "name clients that exist")
        present[gone] = False
        return present

    def _suite(self) -> SuiteName | None:
        if isinstance(self.seal, bool):
            return "X25519" if self.seal else None
        return self.seal

    def _sealed_sum(self, plan: RoundPlan, rows: Floats, suite: SuiteName) -> Words:
        """The same sum through the roles themselves, one client at a time, every share sealed."""
        keys = [PrivateKey.generate(suite) for _ in range(self.computes)]
        population = plan.population
        study = Study(population, tuple(key.public() for key in keys), (plan,), scheme=self.scheme.drawn("simulation"))
        held = [rows[start : start + self.holds] for start in range(0, rows.shape[0], self.holds)]
        absent = set(self.absent)
        samples = {f"client-{i}": sample for i, sample in enumerate(held) if i not in absent}
        lost = {f"client-{i}" for i in self.lost_halfway}
        withholding = {f"client-{i}" for i in self.colluders}
        return run_round(study, 0, keys, samples, self._randomness, lost, withholding)[0]


def _row_numbers(fault: str, values: object) -> tuple[int, ...]:
    try:
        numbers = list(values)  # type: ignore[call-overload]  # whatever it is, list() decides
    except TypeError:
        raise invalid(fault, "a list of row numbers", repr(values), "give for example (3, 17)") from None
    return tuple(dict.fromkeys(whole(fault, number, 0, "give the row numbers of clients") for number in numbers))
