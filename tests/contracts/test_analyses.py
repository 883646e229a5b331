"""What every analysis must do: plan from public numbers, stay within the budget, and find the same from the releases.

A new analysis is one line in ANALYSES. A package with an analysis of its own calls `check_analysis` in its tests.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts.structure import satisfies
from hubbub.analyses import ANALYSES as REGISTRY
from hubbub.analyses.driver import run
from hubbub.analyses.families.discrete import Bernoulli, Categorical, PoissonRate
from hubbub.analyses.families.normal import Gaussian, GaussianMean
from hubbub.analyses.glm.analysis import GLM
from hubbub.analyses.iterative.logistic import LogisticRegression
from hubbub.analyses.iterative.mixture import GaussianMixture
from hubbub.analyses.linear.auto import LinearRegression
from hubbub.analyses.linear.projected import PlainRegression, ProjectedRegression
from hubbub.analyses.replay import Replay
from hubbub.engines import LocalEngine, TrustedAggregator
from hubbub.errors import BudgetExceeded, InvalidInput, RoundRefused
from hubbub.privacy import (
    DEFAULT,
    MECHANISMS,
    Budget,
    Ledger,
    Population,
    Unit,
    epsilon_spent,
    fits,
    mechanism_named,
)
from hubbub.protocols import Analysis, Engine, Plan, Release, Result, RoundSpec, Rows, Statement
from hubbub.roles import settle_round
from hubbub.statistics.preparation import check_steps

BUDGET = Budget(4.0, 1e-5)
PURE = Budget(4.0, 0.0)
N = 200
RNG = np.random.default_rng(20261115)
X = RNG.uniform(-1, 1, size=(N, 2))
REGRESSION = np.column_stack([X, np.clip(X @ [0.5, -0.3] + 0.1 * RNG.standard_normal(N), -1, 1)])
LABELLED = np.column_stack([X, X[:, 0] > 0])
COUNTED = np.column_stack([X, np.random.default_rng(5).poisson(np.exp(1 + X @ [0.5, -0.3]))]).astype(float)
COLUMNS = (("a", "b"), "y", (-1.0, 1.0))
BOUNDS = ((-1.0, 1.0), (-1.0, 1.5))

ANALYSES: dict[str, tuple[Analysis[Any, Any], np.ndarray]] = {
    "linear": (LinearRegression(*COLUMNS, BOUNDS), REGRESSION),
    "linear, by length": (LinearRegression(*COLUMNS, x_norm=1.5), REGRESSION),
    "linear, no intercept": (LinearRegression(*COLUMNS, BOUNDS, intercept=False), REGRESSION),
    "projected": (ProjectedRegression(*COLUMNS, BOUNDS), REGRESSION),
    "projected, thresholds given": (ProjectedRegression(*COLUMNS, BOUNDS, thresholds=(2.0, 1.5)), REGRESSION),
    "plain": (PlainRegression(*COLUMNS, BOUNDS, repair="flip", formula="paper"), REGRESSION),
    "Bernoulli": (Bernoulli(column="ill"), RNG.integers(0, 2, (N, 1)).astype(float)),
    "categorical": (Categorical(4, column="kind"), RNG.integers(0, 4, (N, 1)).astype(float)),
    "Gaussian": (Gaussian(5.0), RNG.standard_normal((N, 1))),
    "Gaussian, prior given": (Gaussian(5.0, 0.5, 2.0, 1.0, 1.0, "height"), RNG.standard_normal((N, 1))),
    "Gaussian mean": (GaussianMean((3.0, 2.0), 1.0, names=("a", "b")), RNG.standard_normal((N, 2))),
    "Poisson": (PoissonRate(20.0, column="events"), RNG.poisson(3.0, (N, 1)).astype(float)),
    "glm, yes or no": (GLM(("a", "b"), "y", (0.0, 1.0), BOUNDS), LABELLED),
    "glm, probit": (GLM(("a", "b"), "y", (0.0, 1.0), BOUNDS, "probit"), LABELLED),
    "glm, counts": (GLM(("a", "b"), "y", (0.0, 20.0), BOUNDS, "poisson"), COUNTED),
    "logistic": (LogisticRegression(("a", "b"), "y", steps=4, seed=1), LABELLED),
    "logistic, batches that select themselves": (
        LogisticRegression(("a", "b"), "y", steps=4, batch=60, selection="self", seed=1),
        LABELLED,
    ),
    "mixture": (GaussianMixture(("a", "b"), 2, steps=4, seed=1), 3 * X),
}


@dataclass(frozen=True)
class OnlyShape(Rows):
    """Rows of which nobody here knows more than how many there are."""

    shape: tuple[int, int] = (0, 0)


@dataclass
class OnlyReleases(Engine):
    """An engine without a single row: it hands out releases that were made elsewhere."""

    people: Population
    releases: Sequence[Release]
    asked: list[RoundSpec] = field(default_factory=list)

    def hold(self, rows: Any) -> Rows:
        assert isinstance(rows, OnlyShape)
        return rows

    def population(self, samples: int) -> Population:
        return self.people

    def private_sum(self, rows: Any, spec: RoundSpec) -> Release:
        self.asked.append(spec)
        return self.releases[len(self.asked) - 1]


@dataclass
class Recording(Engine):
    """Another engine, whose releases are kept."""

    engine: Engine
    specs: list[RoundSpec] = field(default_factory=list)
    releases: list[Release] = field(default_factory=list)
    refuse: int = -1

    def hold(self, rows: Any) -> Rows:
        return self.engine.hold(rows)

    def population(self, samples: int) -> Population:
        return self.engine.population(samples)

    def private_sum(self, rows: Any, spec: RoundSpec) -> Release:
        if len(self.releases) == self.refuse:
            raise RoundRefused("too-few-clients", "clients must be more")
        self.specs.append(spec)
        self.releases.append(self.engine.private_sum(rows, spec))
        return self.releases[-1]


def told(spec: RoundSpec) -> str:
    """Everything about a round, as text."""
    content = {
        "label": spec.label, "statistic": spec.statistic.describe(), "mechanism": spec.mechanism.describe(),
        "steps": [dict(step) for step in spec.steps],
    }  # fmt: skip
    return json.dumps(content, sort_keys=True, allow_nan=False)


def found(result: Result) -> str:
    """What was found, as text; plain values only."""
    return json.dumps([result.as_dict(), result.privacy.as_dict()], sort_keys=True)


def recorded(
    analysis: Analysis[Any, Any], rows: np.ndarray, seed: int = 7, law: str | None = None, budget: Budget = BUDGET
) -> tuple[Recording, Any]:
    engine = Recording(LocalEngine(tolerate=2, seed=seed))
    return engine, run(analysis, rows, engine, budget, mechanism=law)


def released(analysis: Analysis[Any, Any], plan: Plan, rows: np.ndarray) -> list[Release]:
    """All rounds of a plan, without making anything of them in the end."""
    engine, state, releases = LocalEngine(tolerate=2, seed=7), analysis.start(plan), []
    while (spec := analysis.ask(state)) is not None:
        releases.append(engine.private_sum(rows, spec))
        state = analysis.tell(state, releases[-1])
    return releases


def people_of(rows: np.ndarray) -> Population:
    return LocalEngine(tolerate=2).population(rows.shape[0])


def spent(plan: Plan, rounds: int) -> float:
    return epsilon_spent([entry.event for entry in plan.cost(rounds)], plan.budget.delta)


def it_has_all_members(analysis: Analysis[Any, Any], rows: np.ndarray) -> None:
    satisfies(analysis, Analysis)
    assert len(analysis.columns) == rows.shape[1]
    assert len(set(analysis.columns)) == rows.shape[1]
    _, result = recorded(analysis, rows)
    satisfies(result, Result)
    satisfies(result.privacy, Statement)


def everything_is_settled_before_the_first_round_from_public_numbers(
    analysis: Analysis[Any, Any], rows: np.ndarray
) -> None:
    """The same plan twice; every round of it can be settled; what is asked later costs and measures the same."""
    first, second = (analysis.plan(BUDGET, people_of(rows), DEFAULT) for _ in range(2))
    assert isinstance(first, Plan)
    assert first.budget == BUDGET
    assert first.population == people_of(rows)
    assert first.count >= len(first.specs) >= 1
    assert list(map(told, first.specs)) == list(map(told, second.specs))
    for spec in first.specs:
        settle_round(spec, people_of(rows))
        if spec.steps:
            check_steps(spec.steps, spec.statistic.columns)
    engine, _ = recorded(analysis, rows)
    assert len(engine.specs) == first.count
    last = first.specs[-1:] * (first.count - len(first.specs))  # steps that are all alike stand there once
    for asked, planned in zip(engine.specs, (*first.specs, *last), strict=True):
        assert (asked.label, asked.event) == (planned.label, planned.event)
        assert asked.statistic.dimension == planned.statistic.dimension
        json.loads(told(asked))


def all_rounds_together_fit_the_budget(analysis: Analysis[Any, Any], rows: np.ndarray) -> None:
    for budget in (Budget(0.1, 1e-6), BUDGET):
        plan = analysis.plan(budget, people_of(rows), DEFAULT)
        costs = [spent(plan, rounds) for rounds in range(plan.count + 1)]
        assert fits([entry.event for entry in plan.cost(plan.count)], budget)
        assert plan.cost(0) == ()
        assert costs == sorted(costs)
        assert 0.5 * budget.epsilon < costs[-1] <= budget.epsilon * (1 + 1e-9)
    engine, result = recorded(analysis, rows)
    asked = [spec.event for spec in engine.specs]
    assert asked == [release.event for release in engine.releases]
    assert fits(asked, BUDGET)
    assert epsilon_spent(asked, BUDGET.delta) == pytest.approx(costs[-1], rel=1e-6), "what is charged is what is spent"
    assert result.privacy.as_dict()["epsilon"] == pytest.approx(costs[-1], rel=1e-6)


def replaying_the_releases_gives_the_same(analysis: Analysis[Any, Any], rows: np.ndarray) -> None:
    """On another machine, from the description of the analysis; and the run itself repeats with its seed."""
    engine, result = recorded(analysis, rows)
    assert found(recorded(analysis, rows)[1]) == found(result)
    described = json.loads(json.dumps(analysis.describe()))
    here, elsewhere = (
        Replay(analysis, BUDGET, people_of(rows)),
        Replay.of(described, BUDGET, people_of(rows), DEFAULT.name),
    )
    for replay in (here, elsewhere):
        assert replay.next_round(engine.releases) is None
        assert found(replay.result(engine.releases)) == found(result)
        for done, spec in enumerate(engine.specs):
            following = replay.next_round(engine.releases[:done])
            assert following is not None, "too few releases"
            assert told(following) == told(spec)


def every_law_of_noise_is_planned_run_and_replayed(analysis: Analysis[Any, Any], rows: np.ndarray) -> None:
    """Also for a budget without delta, by laws that need none; the others say so before a row is touched."""
    for law in MECHANISMS.names():
        for budget in (BUDGET, PURE):
            try:
                plan = analysis.plan(budget, people_of(rows), mechanism_named(law))
            except InvalidInput as refused:
                assert budget == PURE
                assert law not in MECHANISMS._own or str(refused).startswith(
                    f"delta must be positive for the mechanism {law}"
                )
                continue
            releases = released(analysis, plan, rows)
            assert {release.protection.mechanism for release in releases} == {law}
            assert fits([release.event for release in releases], budget)
            cost = [entry.event for entry in plan.cost(plan.count)]
            assert fits(cost, budget)
            assert epsilon_spent([release.event for release in releases], budget.delta) == pytest.approx(
                epsilon_spent(cost, budget.delta), rel=1e-6
            )
            replay = Replay.of(json.loads(json.dumps(analysis.describe())), budget, people_of(rows), law)
            assert replay.next_round(releases) is None


def results_are_made_of_pure_releases(analysis: Analysis[Any, Any], rows: np.ndarray) -> None:
    """A release whose noise is not normal is understood, here and where it is replayed."""
    engine, result = recorded(analysis, rows, law="discrete-laplace", budget=PURE)
    assert result.privacy.as_dict()["epsilon"] == pytest.approx(PURE.epsilon, rel=1e-6)
    assert result.privacy.as_dict()["delta"] == 0
    assert {release.noise.law for release in engine.releases} == {"laplace"}
    assert all(np.isfinite(row["mean"]) and row["std"] >= 0 for row in result.table())
    replay = Replay(analysis, PURE, people_of(rows), mechanism_named("discrete-laplace"))
    assert found(replay.result(engine.releases)) == found(result)


def a_state_is_left_as_it_was(analysis: Analysis[Any, Any], rows: np.ndarray) -> None:
    """`ask`, `tell` and `result` are functions: a state can be told twice."""
    engine, _ = recorded(analysis, rows)
    state = analysis.start(analysis.plan(BUDGET, people_of(rows), DEFAULT))
    for release in engine.releases:
        before, twice = analysis.ask(state), analysis.tell(state, release)
        after = analysis.ask(state)
        assert before is not None
        assert after is not None
        assert told(before) == told(after)
        state = twice
    assert found(analysis.result(state)) == found(analysis.result(state))


def it_never_sees_a_row(analysis: Analysis[Any, Any], rows: np.ndarray) -> None:
    engine, result = recorded(analysis, rows)
    blind = OnlyReleases(people_of(rows), engine.releases)
    assert found(run(analysis, OnlyShape(rows.shape), blind, BUDGET)) == found(result)
    assert list(map(told, blind.asked)) == list(map(told, engine.specs))


def it_runs_on_every_kind_of_engine(analysis: Analysis[Any, Any], rows: np.ndarray) -> None:
    plan = analysis.plan(BUDGET, people_of(rows), DEFAULT)
    unit: Unit = "client" if all(spec.statistic.probability == 1 for spec in plan.specs) else "sample"
    for engine in (LocalEngine(), LocalEngine(holds=4, dropouts=1, colluding=1, unit=unit), TrustedAggregator()):
        result = run(analysis, rows, engine, BUDGET)
        assert result.privacy.is_guarantee, str(result.privacy)
        table = result.table(0.8)
        assert len({row["name"] for row in table}) == len(table) >= 1
        for row in table:
            assert set(row) >= {"name", "mean", "std", "low", "high"}
            assert row["low"] <= row["high"]
            assert row["std"] >= 0
            assert all(np.isfinite(row[key]) for key in ("mean", "std", "low", "high"))
        assert json.loads(json.dumps(result.as_dict(), allow_nan=False))
    assert not run(analysis, rows, LocalEngine(seed=1), BUDGET).privacy.is_guarantee


def files_are_written(analysis: Analysis[Any, Any], rows: np.ndarray) -> None:
    import tempfile

    _, result = recorded(analysis, rows)
    with tempfile.TemporaryDirectory() as folder:
        for name, write in result.files().items():
            path = Path(folder) / f"{name}.json"
            write(path)
            assert path.stat().st_size > 0


def a_ledger_is_charged_before_and_given_back_what_was_not_released(
    analysis: Analysis[Any, Any], rows: np.ndarray
) -> None:
    plan = analysis.plan(BUDGET, LocalEngine().population(rows.shape[0]), DEFAULT)
    for refused in range(plan.count):
        ledger, engine = Ledger(BUDGET), Recording(LocalEngine(), refuse=refused)
        with pytest.raises(RoundRefused):
            run(analysis, rows, engine, BUDGET, ledger)
        assert ledger.entries == plan.cost(refused)
    ledger, engine = Ledger(BUDGET), Recording(LocalEngine())
    run(analysis, rows, engine, BUDGET, ledger)
    assert ledger.entries == plan.cost(plan.count)
    with pytest.raises(BudgetExceeded):
        run(analysis, rows, engine, BUDGET, ledger)
    assert len(engine.releases) == plan.count, "nothing was released for what the ledger refused"


def description_reads_back(analysis: Analysis[Any, Any], rows: np.ndarray) -> None:
    description = json.loads(json.dumps(analysis.describe(), allow_nan=False))
    assert description["kind"] == analysis.kind
    again = REGISTRY.read(description)
    assert type(again) is type(analysis)
    assert again.describe() == analysis.describe()
    assert again.columns == analysis.columns
    with pytest.raises(InvalidInput):
        REGISTRY.read({**description, "unknown": 1})
    with pytest.raises(InvalidInput):
        REGISTRY.read({"kind": description["kind"]})


CHECKS: list[Callable[[Analysis[Any, Any], np.ndarray], None]] = [
    it_has_all_members,
    everything_is_settled_before_the_first_round_from_public_numbers,
    all_rounds_together_fit_the_budget,
    replaying_the_releases_gives_the_same,
    every_law_of_noise_is_planned_run_and_replayed,
    results_are_made_of_pure_releases,
    a_state_is_left_as_it_was,
    it_never_sees_a_row,
    it_runs_on_every_kind_of_engine,
    files_are_written,
    a_ledger_is_charged_before_and_given_back_what_was_not_released,
    description_reads_back,
]


def check_analysis(analysis: Analysis[Any, Any], rows: np.ndarray) -> None:
    """All of the contract, for one analysis and rows that suit it; for the tests of a package that brings one."""
    for check in CHECKS:
        check(analysis, rows)


@pytest.mark.filterwarnings("ignore::hubbub.errors.UntrustworthyWarning")  # 200 rows tell little
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", ANALYSES)
def test_contract(name: str, check: Callable[[Analysis[Any, Any], np.ndarray], None]):
    check(*ANALYSES[name])
