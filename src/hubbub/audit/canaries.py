"""One run with many canaries: for engines and methods of which a run takes long.

Each canary is a sample of which a coin of its own decides what it is: one of two samples that lie as far apart as they
can. The attack scores every coin from one run (Steinke, Nasr and Jagielski 2023). Where coordinates have independent
noise and canaries touch different ones, the scores are independent, too, and count as so many trials.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.replay import written_analysis
from hubbub.arrays import Floats
from hubbub.audit.case import Case, Check, Setting
from hubbub.audit.evidence import Scores, least_epsilon_of_guesses
from hubbub.audit.games import (
    Rounds,
    Signal,
    all_rounds,
    budget_for,
    exact_epsilon,
    judged,
    laplace_scale,
    one_round,
    vectors_under,
)
from hubbub.audit.releases import name_of
from hubbub.budget import Budget
from hubbub.engines import LocalEngine
from hubbub.protocols import Engine, Mechanism, NoiseLaw, Release, RoundSpec
from hubbub.statistics import OneHot

CANARIES = 500
BELIEFS = (1.0, 1e-3)
"""How much of the stated noise an attack on one run thinks there is: all of it, or hardly any."""
LEAST_DELTA = 1e-10
"""Of these checks, where the budget's is larger: delta counts for every canary, and would hide what is found."""
QUICK = 50
"""How many times as many canaries there are as other checks have trials, on engines that take milliseconds a round."""
CLEAREST = 0.2
"""Which share of the coins is guessed, where there are thousands: those with the clearest scores. Where there are only
hundreds all are guessed, since a few guesses that are all right could be luck."""


@dataclass(frozen=True, eq=False)
class Canaries:
    """What each canary is where its coin shows heads, and where it shows tails; the other rows are public."""

    heads: Floats
    tails: Floats
    others: Floats

    def rows(self, coins: NDArray[np.bool_]) -> Floats:
        """The data set that these coins make."""
        return np.concatenate([np.where(coins[:, None], self.heads, self.tails), self.others])


def tossed(count: int) -> NDArray[np.bool_]:
    """So many coins."""
    coins: NDArray[np.bool_] = np.random.default_rng().random(count) < 0.5
    return coins


def scored(rounds: Rounds, engine: Engine, canaries: Canaries, coins: NDArray[np.bool_]) -> Floats:
    """How much each canary's coordinates speak for heads, over all rounds of one run."""
    total = np.zeros(coins.size)
    for noisy, apart, law in seen(rounds, engine, canaries, coins):
        total += _evidence(noisy, apart, law)
    return total


def decoded(views: Sequence[View], believed: float) -> Floats:
    """All coins together, where canaries share coordinates: positive for heads.

    What is seen is a sum of (coin - 1/2) times how far a canary's two vectors are apart, with noise: a regression,
    with the variance 1/4 of a coin for a prior. `believed` is how much of the stated noise there is thought to be.
    """
    count = views[0].apart.shape[0]
    products, sums = 4 * np.eye(count), np.zeros(count)
    for view in views:
        weight = 1 / max(believed * view.law.std, 1e-9) ** 2
        products += weight * view.apart @ view.apart.T
        sums += weight * view.apart @ view.noisy
    return np.asarray(np.linalg.solve(products, sums), dtype=np.float64)


class View(NamedTuple):
    """What an adversary makes of one release."""

    noisy: Floats
    """The release without what is known."""
    apart: Floats
    """How far each canary's two vectors are apart."""
    law: NoiseLaw


def seen(rounds: Rounds, engine: Engine, canaries: Canaries, coins: NDArray[np.bool_]) -> Iterator[View]:
    """One view for each round."""
    for spec, release in rounds(engine, canaries.rows(coins)):
        heads, tails = vectors_under(spec, canaries.heads), vectors_under(spec, canaries.tails)
        known = (heads + tails).sum(axis=0) / 2
        if canaries.others.size:
            known = known + vectors_under(spec, canaries.others).sum(axis=0)
        yield View(release.value - known, heads - tails, release.noise)


def _evidence(noisy: Floats, apart: Floats, law: NoiseLaw) -> Floats:
    """The logarithm of each canary's likelihood ratio, as if the other canaries were known."""
    if law.shape is None:
        found: Floats = apart @ noisy / max(law.std, 1e-300) ** 2
        return found
    scale = max(laplace_scale(law), 1e-300)
    return np.array([(np.abs(noisy + each / 2) - np.abs(noisy - each / 2)).sum() for each in apart]) / scale


def guessed(scores: Floats, coins: NDArray[np.bool_], share: float) -> tuple[int, int]:
    """(correct, guesses): this share of the coins, those with the clearest scores, is guessed by their signs."""
    guesses = max(1, int(share * scores.size))
    clearest = np.argsort(-np.abs(scores))[:guesses]
    return int(((scores > 0) == coins)[clearest].sum()), guesses


def _budget(law: Mechanism, setting: Setting) -> Budget:
    return budget_for(law, replace(setting.budget, delta=min(setting.budget.delta, LEAST_DELTA)))


def attempt_engine(
    setting: Setting, name: str, *, law: Mechanism, opened: Callable[[int], AbstractContextManager[Engine]], quick: bool
) -> Case:
    """Rounds of a one-hot sum in which every canary moves between two categories of its own.

    `opened` gives an engine for so many rows. The scores of all canaries in all rounds are independent.
    """
    budget, statistic = _budget(law, setting), OneHot(2 * CANARIES)
    (mechanism,) = law.within(budget, (1.0,))
    spec = RoundSpec("audit", statistic, mechanism)
    categories = np.arange(2.0 * CANARIES).reshape(-1, 2)
    canaries = Canaries(categories[:, :1], categories[:, 1:], np.empty((0, 1)))
    laws: list[NoiseLaw] = []

    def watched(engine: Engine, rows: Floats) -> Iterator[tuple[RoundSpec, Release]]:
        for asked, release in one_round(spec)(engine, rows):
            laws.append(release.noise)
            yield asked, release

    found: list[tuple[Floats, Floats]] = []
    correct = guesses = count = 0
    with opened(CANARIES) as engine:
        for _ in range(max(2, math.ceil((QUICK if quick else 1) * 2 * setting.trials / CANARIES))):
            coins = tossed(CANARIES)
            scores = scored(watched, engine, canaries, coins)
            found.append((scores[~coins], scores[coins]))
            right, tried = guessed(scores, coins, CLEAREST)
            correct, guesses, count = correct + right, guesses + tried, count + CANARIES
    tails, heads = (np.concatenate(each) for each in zip(*found, strict=True))
    moved = np.zeros(statistic.dimension)
    moved[:2] = 1.0, -1.0
    case = judged(
        name, Scores(tails, heads), [Signal(moved, laws[-1])], budget, setting.error / 2, f"{CANARIES} canaries a round"
    )
    guess = least_epsilon_of_guesses(correct, guesses, count, budget.delta, setting.error / 2)
    return Case.of(name, case.claimed, max(case.lower_bound, guess), case.use, case.method, case.trials)


def attempt_one_run(setting: Setting, name: str, *, kind: str, law: Mechanism) -> Case:
    """One run of a method of many steps, every release of which the adversary sees."""
    planted = PLANTED[kind]
    analysis, budget = written_analysis({"kind": kind, **planted.settings}), _budget(law, setting)
    canaries, engine = planted.canaries, LocalEngine()
    coins = tossed(canaries.heads.shape[0])
    plan = analysis.plan(budget, engine.population(coins.size + canaries.others.shape[0]), law)
    steps: list[Signal] = []

    def watched(engine: Engine, rows: Floats) -> Iterator[tuple[RoundSpec, Release]]:
        for spec, release in all_rounds(analysis, plan)(engine, rows):
            apart = vectors_under(spec, canaries.heads) - vectors_under(spec, canaries.tails)
            largest = apart[np.argmax(np.linalg.norm(apart, axis=1))]
            steps.append(Signal(largest, release.noise, spec.statistic.probability))
            yield spec, release

    views, bound = list(seen(watched, engine, canaries, coins)), 0.0
    for believed in BELIEFS:
        correct, guesses = guessed(decoded(views, believed), coins, 1.0)
        error = setting.error / len(BELIEFS)
        bound = max(bound, least_epsilon_of_guesses(correct, guesses, coins.size, budget.delta, error))
    use = exact_epsilon(steps, budget.delta) / budget.epsilon
    method = f"one run of {plan.count} steps, {coins.size} canaries"
    return Case.of(name, budget.epsilon, bound, use, method, 1)


@dataclass(frozen=True, eq=False)
class Planted:
    """A method of many steps, with canaries that each have a column of their own."""

    settings: dict[str, Any]
    canaries: Canaries


_COLUMNS, _NORM = 150, 3.0
_NAMES = [f"x{j}" for j in range(_COLUMNS)]
_ALONE = _NORM * 0.9 * np.eye(_COLUMNS)
PLANTED = {
    "logistic": Planted(
        {"features": _NAMES, "target": "y", "x_norm": _NORM, "steps": 4},
        Canaries(
            np.column_stack([_ALONE, np.ones(_COLUMNS)]), np.column_stack([_ALONE, np.zeros(_COLUMNS)]),
            np.zeros((2, _COLUMNS + 1)),
        ),
    ),
    "mixture": Planted(
        {"features": _NAMES, "components": 2, "x_norm": _NORM, "steps": 4},
        Canaries(_ALONE, -_ALONE, np.zeros((2, _COLUMNS))),
    ),
}  # fmt: skip
"""Canaries of logistic regressions are rows whose class is decided by a coin, those of mixtures rows or their
negatives."""


def one_run(kind: str, law: Mechanism) -> Check:
    """All releases of a method of many steps, in one run."""
    return Check(f"one run: {kind}, {name_of(law)}", partial(attempt_one_run, kind=kind, law=law))


def on_engine(
    label: str, law: Mechanism, opened: Callable[[int], AbstractContextManager[Engine]], *, quick: bool
) -> Check:
    """Canaries in rounds of this engine, which may take milliseconds each."""
    name = f"canaries, {label} engine, {name_of(law)}"
    return Check(name, partial(attempt_engine, law=law, opened=opened, quick=quick))
