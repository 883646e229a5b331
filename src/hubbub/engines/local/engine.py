"""All roles in one process, vectorised over clients: the same road, for simulation and analysis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Floats, Words, number_rows
from hubbub.engines.local.pool import POOL, NotForWorkers, Selection, Tick, cores
from hubbub.engines.local.worker import MOST_SUMS, SLOT_WORDS
from hubbub.engines.series import Series
from hubbub.errors import InvalidInput, invalid, whole
from hubbub.privacy import Population, Release, Unit, covered
from hubbub.randomness import Randomness
from hubbub.roles import RoundPlan, Study, Turnout, check_turnout, decode_release, plan_round, run_round, share_out
from hubbub.securesum import (
    PrivateKey,
    Sharing,
    SuiteName,
    Tally,
    check_computes,
    check_sharing,
    check_suite,
    clients_at_once,
    combine,
)
from hubbub.statistics import Statistic, rows_at_once, tell_outside, warn_outside

_ONE_SLICE = 1 << 19  # words of all vectors together, up to which one slice and one stream serve the whole round
_FAULTS = ("absent", "lost_halfway", "colluders")
_SLICES, _LEAST_SLICE = 64, 1 << 18
_WORTH_SENDING, _WORTH_STARTING = 1 << 21, 1 << 26  # words of all shares: to warm workers, and to start them


@dataclass(frozen=True)
class LocalEngine:
    """K clients, M Computes and the combiner in one process.

    Noise and shares are really drawn and really cancelled. With `seal=True` (or the name of a suite)
    every client runs on its own and its reports pass as sealed bytes through the roles: slower, and the
    code path of a network. A `seed` makes a simulation reproducible, and the privacy report says so.

    The noise covers `dropouts` clients that are missing and `colluding` ones that tell their noise, both at once, and
    a round that lacks more is refused; `tolerated=T` is short for T of each. `theorem1=True` counts as the paper does
    (T clients collude or drop out), for its experiments. Each client holds `holds` rows, one after the other, and adds
    one share of noise to their sum. `unit` is what the promise is about: any "sample", or all rows of any "client".

    Faults to simulate, as numbers of clients (of rows, where each client holds one): `absent` clients never send,
    `lost_halfway` ones reach only the first Compute, `colluders` add no noise.

    Large rounds are shared out by `workers` processes (default: one per core), started at the first such round and
    kept warm. `shares` is "raw" (masks drawn in bulk), "seeds" (expanded by client and Compute, as in a network)
    or "auto" (raw: in one process no byte is saved). `tick` is called with the number of clients just added.
    """

    computes: int = 3
    tolerated: int = 0
    seal: bool | SuiteName = False
    seed: int | None = None
    fraction_bits: int | None = None
    absent: tuple[int, ...] = ()
    lost_halfway: tuple[int, ...] = ()
    colluders: tuple[int, ...] = ()
    shares: Sharing = "auto"
    workers: int | None = None
    tick: Tick | None = field(default=None, repr=False, compare=False)
    dropouts: int | None = None
    colluding: int | None = None
    holds: int = 1
    unit: Unit = "sample"
    theorem1: bool = False
    _randomness: Randomness = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_computes(self.computes)
        check_sharing(self.shares)
        covered(self.tolerated, self.dropouts, self.colluding)
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
        both = covered(self.tolerated, self.dropouts, self.colluding)
        return Population.of_rows(samples, self.holds, both, self.unit, self.theorem1)

    def private_sum(self, rows: Floats, statistic: Statistic, noise_multiplier: float) -> Release:
        """The noisy sum over the clients that came, or a refusal."""
        rows = number_rows("rows", rows, statistic.columns)
        return self._round(self.plan(statistic, noise_multiplier, rows.shape[0]), rows)

    def series(self, rows: Floats, statistic: Statistic, noise_multiplier: float, clients: int | None = None) -> Series:
        """Many rounds over the same rows, planned once; `clients` of them a round where not all take part."""
        rows = number_rows("rows", rows, statistic.columns)
        tell_outside("rows", statistic, rows)
        if clients is not None and self.holds > 1:
            raise InvalidInput(
                "selection must be 'self' where clients hold several samples, got 'trainer'; "
                "let the clients select themselves"
            )
        plan = self.plan(statistic, noise_multiplier, rows.shape[0] if clients is None else clients)
        return Series(plan, partial(self._round_of_series, rows))

    def _round_of_series(self, rows: Floats, plan: RoundPlan, chosen: NDArray[np.intp] | None) -> Release:
        if chosen is None:
            return self._round(plan, rows, checked=True)
        return self._among(chosen, rows.shape[0])._round(plan, rows[chosen], checked=True)

    def _among(self, chosen: NDArray[np.intp], clients: int) -> LocalEngine:
        """The same engine, its simulated faults numbered within the chosen rows."""
        self._present(clients)  # refuses the fault of a client that does not exist
        faults = {name: tuple(np.flatnonzero(np.isin(chosen, getattr(self, name))).tolist()) for name in _FAULTS}
        engine = replace(self, **faults)  # type: ignore[arg-type]  # tuples of row numbers, as the fields are
        object.__setattr__(engine, "_randomness", self._randomness)
        return engine

    def _round(self, plan: RoundPlan, rows: Floats, checked: bool = False) -> Release:
        """One round as planned; whoever runs it has been told of `checked` rows."""
        population = plan.mechanism.population
        present = self._present(population.clients)
        check_turnout(population, int(present.sum()))
        suite = self._suite()
        words = (
            combine(self.compute_sums(plan, rows, checked)) if suite is None else self._sealed_sum(plan, rows, suite)
        )
        return decode_release(
            plan,
            words,
            Turnout(int(present.sum()), int(self._rows_of(present, rows.shape[0]).size)),
            computes=self.computes,
            setting="one process",
            sealed=suite,
            randomness=self._randomness,
            colluders=int(present[list(self.colluders)].sum()),
        )

    def _rows_of(self, chosen: NDArray[np.bool_], samples: int) -> NDArray[np.intp]:
        """The rows that these clients hold."""
        return np.flatnonzero(np.repeat(chosen, self.holds)[:samples])

    def plan(self, statistic: Statistic, noise_multiplier: float, samples: int) -> RoundPlan:
        """The grid and the noise of a round over so many rows, before any data is touched."""
        return plan_round(statistic, noise_multiplier, self.population(samples), self.fraction_bits)

    def compute_sums(self, plan: RoundPlan, rows: Floats, checked: bool = False) -> Words:
        """(M, d): what each Compute adds up. A slice of clients at a time, so memory stays bounded."""
        count = self._worker_count(plan, rows)
        if count > 1:
            try:
                sums, outside = POOL.use(
                    count,
                    lambda workers: workers.sums(
                        plan, rows, self._slices(plan, rows), self.computes, self.shares, self._tick
                    ),
                )
            except NotForWorkers:
                pass  # a statistic that only this process knows
            else:
                warn_outside("rows", plan.statistic, 0 if checked else outside, rows.shape[0])
                return sums
        if not checked:
            tell_outside("rows", plan.statistic, rows)
        silent = np.zeros(plan.mechanism.population.clients, dtype=bool)
        silent[list(self.colluders)] = True
        silent_rows = np.repeat(silent, self.holds)[: rows.shape[0]]
        whole_round = self._slice_size(plan, rows) >= rows.shape[0]

        def shared_out(piece: tuple[Selection, bytes | None]) -> tuple[Words, int]:
            selection, key = piece
            stream = self._randomness if whole_round else Randomness(key, self._randomness.source)
            tally = Tally(self.computes, plan.dimension, stream, self.shares)
            chosen = rows[selection]
            share_out(plan, chosen, tally, stream, silent_rows[selection][:: self.holds] if self.colluders else None)
            return tally.sums, chosen.shape[0]

        sums = np.zeros((self.computes, plan.dimension), dtype=np.uint64)
        with self._threads(plan) as each:
            for part, clients in each(shared_out, self._slices(plan, rows)):
                sums += part
                self._tick(clients)
        return sums

    @contextmanager
    def _threads(self, plan: RoundPlan) -> Iterator[Callable[..., Iterable[tuple[Words, int]]]]:
        """How slices are gone through: a statistic that computes many rows at once lets threads work side by side."""
        count = self.workers or cores()
        if count == 1 or not rows_at_once(plan.statistic):
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

    def _worker_count(self, plan: RoundPlan, rows: Floats) -> int:
        """How many processes are worth their while for this round; 1 is this one."""
        count = self.workers or cores()
        words = rows.shape[0] * plan.dimension * self.computes
        one_slice = rows.shape[0] * plan.dimension <= _ONE_SLICE
        too_long = (
            self.holds * max(rows.shape[1], plan.dimension) > SLOT_WORDS or plan.dimension * self.computes > MOST_SUMS
        )
        if count == 1 or one_slice or too_long or self.colluders or rows_at_once(plan.statistic):
            return 1
        return count if words >= (_WORTH_SENDING if POOL.warm(count) else _WORTH_STARTING) else 1

    def _slice_size(self, plan: RoundPlan, rows: Floats) -> int:
        """Rows in a slice, those of whole clients: all of them in a small round."""
        return -(-self._rows_in_slice(plan, rows) // self.holds) * self.holds

    def _rows_in_slice(self, plan: RoundPlan, rows: Floats) -> int:
        clients = int(rows.shape[0])
        words = clients * plan.dimension
        if (block := rows_at_once(plan.statistic)) is not None:
            return min(block, clients)
        if words <= _ONE_SLICE:
            return clients
        wanted = max(words // _SLICES, _LEAST_SLICE) // plan.dimension
        size = max(1, min(wanted, SLOT_WORDS // max(plan.dimension, int(rows.shape[1]))))
        return max(size // clients_at_once(plan.dimension), 1) * min(clients_at_once(plan.dimension), size)

    def _slices(self, plan: RoundPlan, rows: Floats) -> Iterator[tuple[Selection, bytes | None]]:
        """Slices of clients, each with the key of its own stream: the same whatever the number of workers."""
        samples, size = rows.shape[0], self._slice_size(plan, rows)
        present = self._present(plan.mechanism.population.clients) if self.absent or self.lost_halfway else None
        there = None if present is None else self._rows_of(present, samples)
        for start in range(0, samples if there is None else there.size, size):
            selection = slice(start, start + size) if there is None else there[start : start + size]
            yield selection, self._randomness.child_key()

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
        population = plan.mechanism.population
        study = Study(population, tuple(key.public() for key in keys), (plan,))
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
