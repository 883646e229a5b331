"""Normal noise in whole steps of the grid: vectors are encoded first, then rounded noise is added."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hubbub import fits
from hubbub.protocols import (
    Budget,
    Description,
    GaussianEvent,
    Grid,
    Mechanism,
    NoiseLaw,
    Population,
    Randomness,
    RoundNoise,
    SampledGaussianEvent,
    Statistic,
    Words,
    invalid,
)

LEAST, USUAL, MOST = 3, 10, 30  # a step of the grid is 2^-3 to 2^-30 of the noise of one client, mostly 2^-10


@dataclass(frozen=True)
class ToyRounded(Mechanism):
    """Noise of `multiplier` sensitivities (replace-one, L2), shared among the clients."""

    multiplier: float = 1.0

    def __post_init__(self) -> None:
        if type(self.multiplier) is not float or not 1e-6 < self.multiplier < 1e6:
            raise invalid("multiplier", "a number with a decimal point in 1e-6..1e6", self.multiplier, "use a budget")

    def within(self, budget: Budget, weights: Sequence[float], probability: float = 1.0) -> "tuple[ToyRounded, ...]":
        if not weights or min(weights) <= 0:
            raise invalid("weights", "positive, one for each round", list(weights), "give each round a part")

        def rounds(amount: float) -> "tuple[ToyRounded, ...]":
            return tuple(ToyRounded(amount / weight) for weight in weights)

        def enough(amount: float) -> bool:
            return fits([each.event(probability) for each in rounds(amount)], budget)

        high = max(weights)
        while not enough(high):
            high *= 2
        low = high / 2
        while enough(low):
            high, low = low, low / 2
        while high / low > 1.001:  # `high` was always seen to be enough: round toward privacy
            middle = math.sqrt(low * high)
            low, high = (low, middle) if enough(middle) else (middle, high)
        return rounds(high)

    def event(self, probability: float = 1.0) -> GaussianEvent | SampledGaussianEvent:
        """Rounding noise of eight steps or more is as private as normal noise (docs/privacy.md, section 6)."""
        if probability == 1:
            return GaussianEvent(self.multiplier)
        return SampledGaussianEvent(self.multiplier, probability)

    def settled(self, statistic: Statistic, population: Population, fraction_bits: int | None = None) -> "ToyNoise":
        sigma = self.multiplier * population.weight * statistic.sensitivity / math.sqrt(population.shares)
        size = min(sigma, statistic.sensitivity / math.sqrt(statistic.dimension))
        grid = Grid(USUAL - math.floor(math.log2(size)) if fraction_bits is None else fraction_bits)
        rounding = grid.step * math.sqrt(statistic.dimension)  # half a step each way, in every coordinate
        noise = ToyNoise(population, grid, population.weight * (statistic.sensitivity + rounding), self.multiplier)
        noise.check(statistic)
        return noise

    @property
    def reservation(self) -> str:
        return "noise is drawn in double precision: the figures are those of ideal normal noise"

    def describe(self) -> dict[str, object]:
        return {"mechanism": "toy-rounded", "package": "hubbub-toys", "multiplier": self.multiplier}

    @classmethod
    def of(cls, description: Description) -> "ToyRounded":
        return cls(description["multiplier"])


@dataclass(frozen=True)
class ToyNoise(RoundNoise):
    """Each client adds one share, so large that the shares that are counted on have `sigma_std` together."""

    population: Population
    grid: Grid
    sensitivity: float
    multiplier: float

    @property
    def sigma_std(self) -> float:
        return self.multiplier * self.sensitivity

    @property
    def sigma_client(self) -> float:
        return self.sigma_std / math.sqrt(self.population.shares)

    def shares(self, clients: int, dimension: int, randomness: Randomness) -> Words:
        return self.grid.encode(self.sigma_client * randomness.normals((clients, dimension)))

    def law(self, contributors: int) -> NoiseLaw:
        return NoiseLaw("rounded normal", self.sigma_client * math.sqrt(contributors))

    def check(self, statistic: Statistic) -> None:
        bits, size = self.grid.fraction_bits, math.log2(self.sigma_client)
        rounding = self.grid.step * math.sqrt(statistic.dimension)
        reach = self.population.n * statistic.magnitude + 10 * self.population.clients * self.sigma_client
        if not LEAST <= bits + size <= MOST + 1 or rounding > statistic.sensitivity:
            raise invalid("fraction_bits", f"{LEAST} to {MOST} bits finer than the noise", bits, "leave it out")
        if math.log2(reach) + bits > 62:
            raise invalid("fraction_bits", "so small that the sum fits into 64 bits", bits, "leave it out")
        if self.sensitivity < self.population.weight * (statistic.sensitivity + rounding) * (1 - 1e-12):
            raise invalid("sensitivity", "what one unit of privacy can move", self.sensitivity, "do not take part")

    def describe(self) -> dict[str, object]:
        return {
            "multiplier": self.multiplier,
            "sensitivity": self.sensitivity,
            "sigma_client": self.sigma_client,
            "fraction_bits": self.grid.fraction_bits,
        }
