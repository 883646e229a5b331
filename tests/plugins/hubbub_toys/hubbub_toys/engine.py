"""All clients in this process, one after the other: each step of the road can be read off."""

from dataclasses import dataclass, field
from typing import Any

from hubbub import Turnout, decode_release, settle_round, vectors_of, warn_outside
from hubbub.protocols import Engine, Floats, Population, Randomness, Release, RoundSpec, SecureSum, Setting, number_rows

HERE = Setting("toy loop", "all parties were simulated in one process: whoever ran it could see the samples")


@dataclass(frozen=True)
class ToyLoop(Engine):
    """A client for every row, of whom `dropouts` may be missing and `colluding` may tell their noise."""

    secure_sum: SecureSum
    dropouts: int = 0
    colluding: int = 0
    seed: int | None = None
    _randomness: Randomness = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_randomness", Randomness.of(self.seed))

    def hold(self, rows: Any) -> Floats:
        return number_rows("rows", rows)

    def population(self, samples: int) -> Population:
        return Population(samples, self.dropouts, self.colluding)

    def private_sum(self, rows: Any, spec: RoundSpec) -> Release:
        rows = number_rows("rows", rows, None if spec.steps else spec.statistic.columns)
        rows = rows if spec.chosen is None else rows[spec.chosen]
        plan = settle_round(spec, self.population(rows.shape[0]))  # refuses before any row is touched
        scheme, outside = self.secure_sum, []
        sums = [scheme.empty(plan.dimension) for _ in range(scheme.computes)]
        for number, row in enumerate(rows):
            vectors, found = vectors_of(plan, row[None], self._randomness)
            outside += [number] * found.number
            words = plan.noise.noisy_words(vectors, self._randomness)[0]
            shares = scheme.shard(words, f"client-{number}", self._randomness)
            for compute, share in zip(scheme.recipients(f"client-{number}"), shares, strict=True):
                scheme.accumulate(sums[compute], share)
        warn_outside("rows", plan.statistic, len(outside), rows.shape[0], outside[0] if outside else None)
        return decode_release(
            plan,
            scheme.unshard(dict(enumerate(sums))),
            Turnout(rows.shape[0], rows.shape[0]),
            secure_sum=scheme,
            setting=HERE,
            sealed=None,
            randomness=self._randomness,
        )
