"""Methods of many steps as analyses: described, read and replayed elsewhere with the same result; states never change."""

from __future__ import annotations

import gc
import json

import numpy as np
import pytest

from analyses.iterative import models
from hubbub import Budget, InvalidInput, LocalEngine
from hubbub.analyses.driver import run
from hubbub.analyses.iterative import sgld, svi
from hubbub.analyses.iterative.logistic import LogisticRegression
from hubbub.analyses.iterative.mixture import GaussianMixture
from hubbub.analyses.iterative.public import Public
from hubbub.analyses.iterative.rows import as_rows
from hubbub.analyses.iterative.sgld import LangevinSampling
from hubbub.analyses.iterative.svi import VariationalInference
from hubbub.analyses.iterative.trace import Trace
from hubbub.privacy import (
    DEFAULT,
    GAUSSIAN,
    CloseEvent,
    GaussianEvent,
    Population,
    SampledGaussianEvent,
    noise_multiplier,
)
from hubbub.protocols import Engine
from hubbub.registry import Registry
from hubbub.statistics import statistic_from

BUDGET = Budget(3.0, 1e-5)
X, Y = models.logistic_data(200)
ROWS, SHAPE = as_rows((X, Y))
READ = Registry("hubbub.none", "kind", {
    each.kind: each.of for each in (LogisticRegression, GaussianMixture, VariationalInference, LangevinSampling)
})  # fmt: skip
BATCHES = {"steps": 6, "batch": 50, "seed": 5}


def variational(**settings):
    return VariationalInference(svi.guided_model(models.logistic, None, SHAPE, Public(), 200), **settings)


def langevin(**settings):
    return LangevinSampling(sgld.langevin_model(models.logistic, SHAPE, Public(), 200), **settings)


MAKE = {
    "logistic": lambda **k: LogisticRegression(("a", "b", "c"), "y", **k),
    "mixture": lambda **k: GaussianMixture(("a", "b", "c", "d"), 2, **k),
    "svi": variational,
    "sgld": langevin,
}


class Kept(Engine):
    """Keeps what it releases."""

    def __init__(self) -> None:
        self.inner, self.releases, self.specs = LocalEngine(computes=2, seed=1), [], []
        self.hold, self.population = self.inner.hold, self.inner.population

    def hold(self, rows): ...

    def population(self, samples): ...

    def private_sum(self, rows, spec):
        self.specs.append(spec)
        self.releases.append(self.inner.private_sum(rows, spec))
        return self.releases[-1]


def same(one, other) -> bool:
    return json.dumps(one.as_dict()) == json.dumps(other.as_dict())


@pytest.mark.parametrize("selection", ["self", "trainer"])
@pytest.mark.parametrize("kind", MAKE)
def test_what_is_read_from_a_description_replays_to_the_same_result(kind, selection):
    analysis, engine = MAKE[kind](selection=selection, **BATCHES), Kept()
    if kind in ("svi", "sgld"):
        analysis.install()
    result = run(analysis, ROWS, engine, BUDGET)
    again = READ.read(json.loads(json.dumps(analysis.describe())))
    assert again.kind == kind
    assert again.columns == analysis.columns
    assert len(again.columns) == ROWS.shape[1]
    plan = again.plan(BUDGET, engine.population(200), DEFAULT)
    state = again.start(plan)
    for spec, release in zip(engine.specs, engine.releases, strict=True):
        asked = again.ask(state)
        assert asked.statistic.describe() == spec.statistic.describe()
        assert asked.chosen is None if selection == "self" else np.array_equal(asked.chosen, spec.chosen)
        state = again.tell(state, release)
    assert again.ask(state) is None
    assert same(again.result(state), result)
    assert str(again.result(state).privacy) == str(result.privacy)
    assert {"name", "mean", "std", "low", "high"} <= set(result.table()[0])
    assert all(row["low"] <= row["mean"] <= row["high"] for row in result.table(0.99))


@pytest.mark.parametrize("kind", MAKE)
def test_a_state_stays_what_it_was(kind):
    """Told two different releases, an early state gives two runs that know nothing of one another."""
    analysis, engine = MAKE[kind](steps=3, seed=5), LocalEngine(computes=2, seed=1)
    start = analysis.start(analysis.plan(BUDGET, engine.population(200), DEFAULT))
    releases = [engine.private_sum(ROWS, analysis.ask(start)) for _ in range(2)]

    def told(*chosen):
        state = start
        for number in chosen:
            state = analysis.tell(state, releases[number])
        return analysis.result(state)

    first = told(0, 1, 0)
    assert not same(told(1, 0, 1), first)
    assert same(told(0, 1, 0), first)
    assert start.done == 0


def test_a_client_that_reads_a_description_can_take_part_and_a_stranger_is_told_what_to_install(monkeypatch):
    from hubbub.statistics import clipped

    monkeypatch.setattr(clipped, "_INSTALLED", {})
    for kind in ("logistic", "mixture"):
        analysis = READ.read(MAKE[kind](**BATCHES).describe())
        spec = analysis.plan(BUDGET, Population(200), DEFAULT).specs[0]
        assert np.isfinite(statistic_from(spec.statistic.describe()).vectors(ROWS)).all()
    for kind in ("svi", "sgld"):
        description = {**MAKE[kind](**BATCHES).describe(), "fingerprint": "0" * 64}
        with pytest.raises(
            InvalidInput, match=r"model must be installed here, got 'gradient of .* \(000000000000"
        ) as error:
            READ.read(description)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("kind", ["svi", "sgld"])
def test_study_files_name_an_installed_model_by_its_fingerprint(kind):
    analysis = MAKE[kind]()
    analysis.install()
    found = type(analysis).written({"fingerprint": analysis.program.fingerprint, "columns": ["a", "b", "c", "y"]})
    assert found.describe() == {**analysis.describe(), "columns": ["a", "b", "c", "y"]}


@pytest.mark.parametrize("change", [
    {"steps": 0}, {"steps": 1.5}, {"selection": "luck"}, {"x_norm": -1.0}, {"features": "abc"}, {"features": ["a", "a"]},
    {"features": []}, {"seed": -1}, {"noise_multiplier": "x"}, {"target": 3}, {"extra": 1},
])  # fmt: skip
def test_bad_descriptions_are_refused_in_one_line(change):
    with pytest.raises(InvalidInput) as error:
        READ.read({**MAKE["logistic"]().describe(), **change})
    assert "\n" not in str(error.value)


def test_plans_count_every_step_and_charge_all_of_them_at_once():
    people = Population(200)
    plan = MAKE["logistic"](steps=6, batch=50).plan(BUDGET, people, GAUSSIAN)
    assert (plan.count, len(plan.specs)) == (6, 1)
    (entry,) = plan.cost(4)
    assert entry.label == "expected statistics (logistic), 4 step(s)"
    assert entry.event == SampledGaussianEvent(plan.noise_multiplier, 0.25, 4)
    assert plan.cost(0) == ()
    whole = MAKE["logistic"](steps=9).plan(BUDGET, people, GAUSSIAN)
    assert whole.cost(9)[0].event == GaussianEvent(whole.noise_multiplier / 3)
    assert whole.noise_multiplier == pytest.approx(3 * noise_multiplier(BUDGET))
    exact = MAKE["logistic"](steps=9).plan(BUDGET, people, DEFAULT).cost(9)[0].event
    assert isinstance(exact, CloseEvent)
    assert exact.ideal == whole.cost(9)[0].event
    assert (exact.ratio, exact.outside) == pytest.approx((9e-100, 9e-100))


def test_picked_batches_are_refused_before_anything_is_charged_where_they_cannot_be():
    picked = MAKE["logistic"](steps=6, batch=5, selection="trainer")
    with pytest.raises(InvalidInput, match=r"dropouts \+ colluders must be at most K - 2 = 3"):
        picked.plan(BUDGET, Population(200, 2, 2), DEFAULT)
    with pytest.raises(InvalidInput, match="selection must be 'self' where clients hold several samples"):
        picked.plan(BUDGET, Population(100, samples=200, largest=2), DEFAULT)


def test_long_traces_are_shared_and_can_be_let_go():
    trace = Trace()
    for step in range(200_000):
        trace = trace.added(np.array([float(step)]))
    assert trace.array()[-1] == 199_999
    del trace
    gc.collect()
