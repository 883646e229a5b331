"""The pipeline, run many times for two neighbouring data sets, and the likelihood of what it released."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.arrays import Floats
from hubbub.audit.case import Case
from hubbub.audit.evidence import Scores, least_epsilon, least_mu
from hubbub.budget import Budget
from hubbub.errors import InvalidInput
from hubbub.privacy import Event, GaussianEvent, PureEvent, SampledGaussianEvent, epsilon_spent
from hubbub.privacy.calibration import epsilon_of
from hubbub.protocols import Analysis, Engine, Mechanism, NoiseLaw, Plan, Release, RoundSpec
from hubbub.statistics import bounded_vectors

Rounds = Callable[[Engine, Floats], Iterator[tuple[RoundSpec, Release]]]
"""A whole pipeline over some rows: what is asked for and released, round after round."""


def one_round(spec: RoundSpec) -> Rounds:
    """A round by itself."""

    def rounds(engine: Engine, rows: Floats) -> Iterator[tuple[RoundSpec, Release]]:
        yield spec, engine.private_sum(rows, spec)

    return rounds


def all_rounds(analysis: Analysis[object, object], plan: Plan) -> Rounds:
    """All rounds of an analysis, up to the result, which is made of them and tells nothing more."""

    def rounds(engine: Engine, rows: Floats) -> Iterator[tuple[RoundSpec, Release]]:
        state = analysis.start(plan)
        while (spec := analysis.ask(state)) is not None:
            release = engine.private_sum(rows, spec)
            yield spec, release
            state = analysis.tell(state, release)

    return rounds


def budget_for(mechanism: Mechanism, budget: Budget) -> Budget:
    """The budget as this law can keep it: without delta where it needs none."""
    try:
        mechanism.within(pure := Budget(budget.epsilon, 0.0), (1.0,))
    except InvalidInput:
        return budget
    return pure


def vectors_under(spec: RoundSpec, rows: Floats) -> Floats:
    """What these samples contribute to a round where all of them count."""
    return bounded_vectors(spec.statistic, rows, spec.steps)[0]


def log_ratio(x: Floats, law: NoiseLaw, first: Floats, second: Floats) -> float:
    """The logarithm of the likelihood ratio of a noisy sum, given the sums without noise under two data sets."""
    if law.shape is None:
        return float((x - (first + second) / 2) @ (second - first)) / max(law.std, 1e-300) ** 2
    return float(np.abs(x - first).sum() - np.abs(x - second).sum()) / max(laplace_scale(law), 1e-300)


def laplace_scale(law: NoiseLaw) -> float:
    """b of the tails exp(-|x| / b)."""
    assert law.shape is not None
    return law.std / math.sqrt(2 * law.shape)


def played(
    rounds: Rounds, make: Callable[[], Engine], data: Sequence[Floats], present: Sequence[Floats], trials: int
) -> Scores:
    """Scores of so many runs for each of two data sets; `present` are those of their rows that are sent."""
    both = np.concatenate(present)  # so that their vectors are made at once
    found = [[_score(rounds, make(), rows, both) for _ in range(trials)] for rows in data]
    return Scores(np.array(found[0]), np.array(found[1]))


def _score(rounds: Rounds, engine: Engine, rows: Floats, both: Floats) -> float:
    total = 0.0
    for spec, release in rounds(engine, rows):
        first, second = vectors_under(spec, both).reshape(2, -1, spec.statistic.dimension).sum(axis=1)
        total += log_ratio(release.value, release.noise, first, second)
    return total


@dataclass(frozen=True, eq=False)
class Signal:
    """What one round really shows of the difference between two data sets."""

    moved: Floats
    """The difference of their sums, in the units of the noise's deviation."""
    law: NoiseLaw
    """Of the noise that the adversary does not know."""
    probability: float = 1.0
    """With which the changed sample counts at all."""

    def event(self) -> Event:
        """What the accountant would be told, had this been all that can be moved."""
        if self.law.shape is not None:
            epsilon = float(np.abs(self.moved).sum()) / laplace_scale(self.law)
            return PureEvent(math.log1p(self.probability * math.expm1(min(epsilon, 700.0))))
        length = float(np.linalg.norm(self.moved))
        multiplier = math.inf if length == 0 else self.law.std / length
        if self.probability == 1:
            return GaussianEvent(multiplier)
        return SampledGaussianEvent(multiplier, self.probability)


def exact_epsilon(signals: Sequence[Signal], delta: float) -> float:
    """What the signals cost together, exactly."""
    return epsilon_spent([signal.event() for signal in signals], delta)


def judged(name: str, scores: Scores, signals: Sequence[Signal], budget: Budget, error: float, how: str = "") -> Case:
    """The case of a likelihood-ratio attack: whatever the law, and as normal noise where that is what is claimed."""
    normal = all(signal.law.shape is None and signal.probability == 1 for signal in signals)
    bound, method = least_epsilon(scores, budget.delta, error / 2), "likelihood ratio"
    if normal and (mu := least_mu(scores, error / 2)) > 0:
        bound, method = max(bound, epsilon_of(1 / mu, budget.delta)), "likelihood ratio (normal law)"
    use = exact_epsilon(signals, budget.delta) / budget.epsilon
    return Case.of(name, budget.epsilon, bound, use, how or method, scores.trials)
