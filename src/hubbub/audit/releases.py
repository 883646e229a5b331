"""Checks of what is released: every bound, every adversary who knows some of the noise, every analysis."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from hubbub.analyses.replay import written_analysis
from hubbub.arrays import Floats
from hubbub.audit.case import Case, Check, Setting
from hubbub.audit.games import (
    Signal,
    all_rounds,
    budget_for,
    judged,
    one_round,
    played,
    vectors_under,
)
from hubbub.audit.scenes import FEW, SCENES, Scene
from hubbub.audit.worst import Pair, widest_pair
from hubbub.experiments.trials import Trial
from hubbub.protocols import Mechanism, RoundSpec, Statistic
from hubbub.roles import settle_round
from hubbub.statistics import (
    Ball,
    Box,
    Clipped,
    ColumnHistogram,
    Count,
    MeanAndSquare,
    Means,
    OneHot,
    Regression,
    SecondMoments,
    Spread,
    Stacked,
)

STATISTICS: dict[str, Statistic] = {
    "means": Means((1.0, 2.0, 3.0)),
    "second moments": SecondMoments((7.5, 7.5, 2.0)),
    "mean and square": MeanAndSquare(2.0),
    "count": Count(3.0),
    "one-hot": OneHot(5),
    "column histogram": ColumnHistogram((1.0, 10.0)),
    "spread": Spread(2.0, 3),
    "regression in a box": Regression(Box((1.0, 0.5), 2.0)),
    "regression in a box, with y^2": Regression(Box((2.0, 2.0, 2.0), 2.0), target_square=True),
    "regression in a ball": Regression(Ball(1.0, 2, y=2.0, weight=0.5), target_square=True),
    "stacked": Stacked((Means((1.0,)), OneHot(3)), (0.5, 0.5)),
}
"""One of each kind, with every bound that the analyses use."""
SEED = 0  # of the search for the worst pair: a search needs no secret


def order_of(mechanism: Mechanism) -> int:
    """The norm that a law goes by: 1 where its account is pure, 2 otherwise."""
    return 1 if mechanism.settled(Means((1.0,)), FEW.engine().population(FEW.clients)).law(1).shape is not None else 2


def worst_of(spec: RoundSpec, order: int) -> Pair:
    """The pair of samples that a round tells apart best."""
    return widest_pair(partial(vectors_under, spec), spec.statistic.columns, order, np.random.default_rng(SEED))


def signal_of(spec: RoundSpec, scene: Scene, data: tuple[Floats, Floats]) -> Signal:
    """What the two data sets differ by on the grid, and the noise that is left."""
    plan = settle_round(spec, scene.engine().population(data[0].shape[0]))
    words = [plan.noise.encoded(vectors_under(spec, scene.present(rows))).sum(axis=0, dtype=np.uint64) for rows in data]
    moved = plan.noise.grid.decode(words[1] - words[0])
    return Signal(moved, plan.noise.law(scene.left), spec.statistic.probability)


def attempt_round(setting: Setting, name: str, *, statistic: Statistic, law: Mechanism, scene: Scene) -> Case:
    """One round over the worst pair of samples, seen by the adversary of a scene."""
    budget = budget_for(law, setting.budget)
    (mechanism,) = law.within(budget, (1.0,), statistic.probability)
    spec = RoundSpec("audit", statistic, mechanism)
    data = scene.neighbours(worst_of(spec, order_of(law)))
    present = [scene.present(rows) for rows in data]
    scores = played(one_round(spec), scene.engine, data, present, setting.trials)
    return judged(name, scores, [signal_of(spec, scene, data)], budget, setting.error)


def bounds(law: Mechanism) -> list[Check]:
    """For the worst neighbours of every bound."""
    return [
        Check(f"bound: {name}, {name_of(law)}", partial(attempt_round, statistic=statistic, law=law, scene=FEW))
        for name, statistic in STATISTICS.items()
    ]


def adversaries(law: Mechanism) -> list[Check]:
    """Against everybody who sees the sum, whatever noise they know."""
    statistic = Means((1.0, 2.0, 3.0))
    return [
        *(
            Check(f"{name}, {name_of(law)}", partial(attempt_round, statistic=statistic, law=law, scene=scene))
            for name, scene in SCENES.items()
        ),
        Check(f"self-selected samples, {name_of(law)}", partial(attempt_coins, law=law)),
    ]


def name_of(law: Mechanism) -> str:
    """What people call a law of noise."""
    return str(law.describe()["mechanism"])


@dataclass(frozen=True)
class Same:
    """A program that gives a row back: for samples that select themselves."""

    columns: int = 3
    name: str = "a row as it is"
    fingerprint: str = "audit"
    at_once: int = 1000

    @property
    def dimension(self) -> int:
        """That of a row."""
        return self.columns

    def vectors(self, state: Floats, rows: Floats) -> Floats:
        """The rows."""
        return rows.copy()


def attempt_coins(setting: Setting, name: str, *, law: Mechanism) -> Case:
    """A sample counts by a coin that its holder alone sees; all others are zero, so that their coins do not matter."""
    statistic, budget, scene = Clipped(Same(), np.zeros(0), 1.0, 0.5), budget_for(law, setting.budget), FEW
    (mechanism,) = law.within(budget, (1.0,), statistic.probability)
    spec = RoundSpec("audit", statistic, mechanism)
    data = scene.neighbours(worst_of(spec, order_of(law)), np.zeros(statistic.columns))
    scores = played(one_round(spec), scene.engine, data, [scene.present(rows) for rows in data], setting.trials)
    return judged(name, scores, [signal_of(spec, scene, data)], budget, setting.error)


def attempt_analysis(setting: Setting, name: str, *, trial: Trial, kind: str, law: Mechanism) -> Case:
    """All rounds of an analysis, of which the adversary sees every release."""
    analysis, budget, scene = written_analysis({"kind": kind, **trial.settings}), budget_for(law, setting.budget), FEW
    plan = analysis.plan(budget, scene.engine().population(scene.clients), law)
    stds = [settle_round(spec, plan.population).noise.law(scene.left).std for spec in plan.specs]

    def weighted(rows: Floats) -> Floats:
        parts = [vectors_under(spec, rows) / std for spec, std in zip(plan.specs, stds, strict=True)]
        return np.concatenate(parts, axis=1)

    pair = widest_pair(weighted, len(analysis.columns), order_of(law), np.random.default_rng(SEED))
    data = scene.neighbours(pair)
    scores = played(
        all_rounds(analysis, plan), scene.engine, data, [scene.present(rows) for rows in data], setting.trials
    )
    return judged(name, scores, [signal_of(spec, scene, data) for spec in plan.specs], budget, setting.error)


def analysis(kind: str, trial: Trial, law: Mechanism) -> Check:
    """All releases of an analysis of a few rounds."""
    return Check(f"analysis: {kind}, {name_of(law)}", partial(attempt_analysis, trial=trial, kind=kind, law=law))
