"""All roles in one process, vectorised over clients: the same road, for simulation and analysis."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Floats, Words, finite_rows
from hubbub.errors import invalid, whole
from hubbub.privacy import Release, add_share
from hubbub.randomness import Randomness
from hubbub.roles import RoundPlan, Study, check_turnout, decode_release, plan_round, run_round
from hubbub.securesum import BulkShares, PrivateKey, SuiteName, check_computes, check_suite, combine
from hubbub.statistics import Statistic

_CHUNK_WORDS = 1 << 15  # 256 KB an array: noise, words and masks of a chunk stay in cache


@dataclass(frozen=True)
class LocalEngine:
    """N clients, M Computes and the combiner in one process.

    Noise and shares are really drawn and really cancelled. With `seal=True` (or the name of a suite)
    every client runs on its own and its reports pass as sealed bytes through the roles: slower, and the
    code path of a network. A `seed` makes a simulation reproducible, and the privacy report says so.

    Faults to simulate, as row numbers: `absent` clients never send, `lost_halfway` ones reach only
    the first Compute, `colluders` add no noise.
    """

    computes: int = 3
    tolerated: int = 0
    seal: bool | SuiteName = False
    seed: int | None = None
    fraction_bits: int | None = None
    absent: tuple[int, ...] = ()
    lost_halfway: tuple[int, ...] = ()
    colluders: tuple[int, ...] = ()
    _randomness: Randomness = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_computes(self.computes)
        whole("tolerated", self.tolerated, 0, "give how many clients may collude or drop out")
        for fault in ("absent", "lost_halfway", "colluders"):
            object.__setattr__(self, fault, _row_numbers(fault, getattr(self, fault)))
        if not isinstance(self.seal, bool):
            check_suite(self.seal)
        object.__setattr__(self, "_randomness", Randomness.of(self.seed))

    def private_sum(self, rows: Floats, statistic: Statistic, noise_multiplier: float) -> Release:
        """The noisy sum over the clients that came, or a refusal."""
        rows = finite_rows("rows", rows, statistic.columns)
        plan = self.plan(statistic, noise_multiplier, clients=rows.shape[0])
        present = self._present(rows.shape[0])
        check_turnout(rows.shape[0], self.tolerated, int(present.sum()))
        suite = self._suite()
        words = combine(self.compute_sums(plan, rows)) if suite is None else self._sealed_sum(plan, rows, suite)
        return decode_release(
            plan,
            words,
            int(present.sum()),
            computes=self.computes,
            setting="one process",
            sealed=suite,
            randomness=self._randomness,
            colluders=int(present[list(self.colluders)].sum()),
        )

    def plan(self, statistic: Statistic, noise_multiplier: float, clients: int) -> RoundPlan:
        """The grid and the noise of a round, before any data is touched."""
        return plan_round(statistic, noise_multiplier, clients, self.tolerated, self.fraction_bits)

    def compute_sums(self, plan: RoundPlan, rows: Floats) -> Words:
        """(M, d): what each Compute adds up. A chunk at a time, so memory stays bounded."""
        shares = BulkShares(self.computes, plan.dimension, self._randomness)
        silent = np.zeros(rows.shape[0], dtype=bool)
        silent[list(self.colluders)] = True
        for chunk in self._chunks(rows.shape[0], plan.dimension):
            vectors = plan.statistic.vectors(rows[chunk])
            noisy = add_share(vectors, plan.mechanism.sigma_client, self._randomness)
            if self.colluders:
                noisy[silent[chunk]] = vectors[silent[chunk]]
            shares.add(plan.fixed_point.encode(noisy))
        return shares.sums()

    def _chunks(self, clients: int, dimension: int) -> Iterator[slice | NDArray[np.intp]]:
        """Row selections of a cache-sized number of clients, a multiple of M each but the last."""
        size = max(1, _CHUNK_WORDS // dimension // self.computes) * self.computes
        if not (self.absent or self.lost_halfway):
            yield from (slice(start, start + size) for start in range(0, clients, size))
            return
        there = np.flatnonzero(self._present(clients))
        yield from (there[start : start + size] for start in range(0, there.size, size))

    def _present(self, clients: int) -> NDArray[np.bool_]:
        present = np.ones(clients, dtype=bool)
        gone = [*self.absent, *self.lost_halfway]
        for index in (*gone, *self.colluders):
            if not 0 <= index < clients:
                raise invalid("client", f"a row number in 0..{clients - 1}", index, "name clients that exist")
        present[gone] = False
        return present

    def _suite(self) -> SuiteName | None:
        if isinstance(self.seal, bool):
            return "X25519" if self.seal else None
        return self.seal

    def _sealed_sum(self, plan: RoundPlan, rows: Floats, suite: SuiteName) -> Words:
        """The same sum through the roles themselves, one client at a time, every share sealed."""
        keys = [PrivateKey.generate(suite) for _ in range(self.computes)]
        study = Study(rows.shape[0], self.tolerated, tuple(key.public() for key in keys), (plan,))
        absent = set(self.absent)
        samples = {f"client-{i}": row for i, row in enumerate(rows) if i not in absent}
        lost = {f"client-{i}" for i in self.lost_halfway}
        withholding = {f"client-{i}" for i in self.colluders}
        return run_round(study, 0, keys, samples, self._randomness, lost, withholding)[0]


def _row_numbers(fault: str, values: object) -> tuple[int, ...]:
    try:
        numbers = list(values)  # type: ignore[call-overload]  # whatever it is, list() decides
    except TypeError:
        raise invalid(fault, "a list of row numbers", repr(values), "give for example (3, 17)") from None
    return tuple(dict.fromkeys(whole(fault, number, 0, "give the row numbers of clients") for number in numbers))
