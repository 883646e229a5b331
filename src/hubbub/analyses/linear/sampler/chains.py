"""All walkers, sweep after sweep, each kept apart from the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.linear.sampler.draw import Draw, draw
from hubbub.analyses.linear.sampler.explained import move_explained
from hubbub.analyses.linear.sampler.level import move_level
from hubbub.analyses.linear.sampler.model import move_model
from hubbub.analyses.linear.sampler.spread import move_spread
from hubbub.analyses.linear.sampler.start import start
from hubbub.analyses.linear.sampler.state import State
from hubbub.analyses.linear.sampler.sums import move_sums
from hubbub.analyses.linear.sampler.target import Target
from hubbub.analyses.linear.sampler.together import move_level_and_sums, move_spread_and_sums
from hubbub.analyses.linear.sampler.variances import move_variances
from hubbub.analyses.linear.tuning import TUNING
from hubbub.arrays import Floats
from hubbub.progress import Advance


@dataclass(frozen=True)
class Effort:
    """How long to sample."""

    walkers: int
    burn: int
    """Sweeps before the first draw."""
    most: int
    """Most sweeps after it, for however many draws."""
    longest: int
    """Most sweeps after it where chains do not agree."""

    @classmethod
    def of(cls, p: int) -> Effort:
        """Fewer walkers and sweeps where each costs more."""
        return cls(*next(effort for columns, *effort in TUNING.effort if columns is None or p <= columns))

    def sweeps(self, draws: int) -> int:
        """How many sweeps give so many draws, or the most that are made."""
        return min(-(-draws // self.walkers), self.most)

    def attempts(self, draws: int) -> Iterator[int]:
        """After how many sweeps chains are judged: twice as many each time, up to the longest."""
        sweeps = self.sweeps(draws)
        yield sweeps
        while sweeps < self.longest:
            sweeps = min(2 * sweeps, self.longest)
            yield sweeps


@dataclass(frozen=True)
class Walked:
    """Draws of all walkers, sweep after sweep: row s * walkers + w is walker w's in sweep s."""

    draws: Draw
    walkers: int
    probabilities: Floats
    """Of the compared models, averaged over sweeps and walkers."""

    def chains(self, weights: Floats) -> NDArray[np.intp]:
        """(chains, k): rows of the draws, in chains that are weighted as they should be.

        A walker is too short to be judged alone. So a chain is a group of walkers, one after the other, and within
        the group every draw is repeated as often as its weight demands (systematic resampling, which keeps the
        order). A draw of large weight then stands in a run of its copies, and autocorrelations tell what it costs.
        """
        rows = np.arange(weights.size).reshape(-1, self.walkers).T.reshape(TUNING.chains, -1)
        return np.stack([_systematic(each, weights[each]) for each in rows])


def _systematic(rows: NDArray[np.intp], weights: Floats) -> NDArray[np.intp]:
    """As many rows again, in the same order, each as often as its weight says."""
    reached = np.cumsum(weights)
    steps = (np.arange(rows.size) + 0.5) / rows.size * reached[-1]
    return np.asarray(rows[np.minimum(np.searchsorted(reached, steps), rows.size - 1)])


def walk(rng: np.random.Generator, target: Target, effort: Effort, sweeps: int) -> Walked:
    """Burn in, then one draw of every walker after each sweep."""
    return next(walks(rng, target, effort, [sweeps]))


def walks(
    rng: np.random.Generator, target: Target, effort: Effort, attempts: Iterable[int], advance: Advance | None = None
) -> Iterator[Walked]:
    """Burn in, then one draw of every walker after each sweep; what there is after so many sweeps, so many, and so on.

    From the second time on the first third of the draws is left out: where chains did not agree, walkers may still have
    been on their way.
    """
    state, drawn = start(rng, target, effort.walkers), list[tuple[Draw, Floats]]()
    for number, sweeps in enumerate(attempts):
        for done in range(-effort.burn if number == 0 else len(drawn), sweeps):
            state, probability = sweep(rng, state, target)
            if done >= 0:
                drawn.append((draw(rng, state, target), probability))
            if advance is not None:
                advance(effort.burn + done + 1, effort.burn + sweeps)
        kept = drawn if number == 0 else drawn[sweeps // 3 :]
        found, probabilities = zip(*kept, strict=True)
        yield Walked(Draw.joined(found), effort.walkers, np.mean(probabilities, axis=0))


def sweep(rng: np.random.Generator, state: State, target: Target) -> tuple[State, Floats]:
    """Every part of the state once; with the probabilities of the compared models."""
    kernels = [move_level]
    if not target.full:
        kernels.append(move_level_and_sums)
    if target.p > 1:
        kernels += [move_spread, move_spread_and_sums]
    kernels.append(move_sums)
    kernels += [move_explained] * TUNING.hyper_moves
    if target.shape is not None:
        kernels.append(move_variances)
    for kernel in kernels:
        state, _ = kernel(rng, state, target)
    state, info = move_model(rng, state, target)
    assert info.probabilities is not None
    return state, info.probabilities
