"""Every secure sum in the engines: plain and sealed, in workers, with parties, dropouts and colluders, on Spark's tasks."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest

from hubbub.engines import LocalEngine
from hubbub.engines.local import engine as local
from hubbub.engines.local.pool import POOL
from hubbub.engines.network import NetworkEngine
from hubbub.engines.spark.engine import SparkEngine
from hubbub.engines.spark.reports import OpenAndAdd, _called, _check_added
from hubbub.engines.spark.task import ShareOut, TaskSum, added
from hubbub.errors import CannotCombine, InvalidInput, ReportRejected, RoundRefused
from hubbub.privacy import Population, gaussian_round
from hubbub.protocols import SecureSum
from hubbub.randomness import Randomness
from hubbub.roles import (
    Compute,
    Study,
    accept,
    agree,
    combine_sums,
    compute_sum,
    contribute,
    release,
    roster_of,
    start_sessions,
)
from hubbub.roles.compute import Turnout
from hubbub.securesum import PrivateKey, Replicated, Shamir, Subset, encode_report
from hubbub.statistics import Means
from seams import planned

SCHEMES: dict[str, SecureSum] = {
    "replicated": Replicated(3, 2),
    "shamir": Shamir(5, 3),
    "subset": Subset(6, 3, "a seed"),
}
STATISTIC = Means((2.0**30, 2.0**30, 4.0))
pytestmark = pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)


def rows(clients: int = 60) -> np.ndarray:
    """A mark for each client whose sum shows a client that is missing or counted twice."""
    index = np.arange(clients, dtype=float)
    return np.column_stack([index, index**2, np.ones(clients)])


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Small rounds go to the workers, too, in many slices."""
    for name in ("_ONE_SLICE", "_WORTH_SENDING", "_WORTH_STARTING"):
        monkeypatch.setattr(local, name, 0)
    monkeypatch.setattr(local, "_LEAST_SLICE", 300)
    yield
    POOL.close()


@pytest.mark.parametrize("seal", [False, True])
def test_dropouts_and_parties(scheme: SecureSum, seal: bool):
    engine = LocalEngine(
        secure_sum=scheme, seal=seal, tolerate=3, absent=(4,), lost_halfway=(7,), colluders=(1,), holds=2
    )
    found = engine.private_sum(rows(100), gaussian_round(STATISTIC, 0.0))
    expected = np.delete(rows(100), [8, 9, 14, 15], axis=0).sum(axis=0)
    assert found.value.tolist() == expected.tolist()
    assert (found.clients, found.n) == (48, 96)
    assert found.protection.trust == scheme.trust()


def test_too_many_dropouts_are_refused(scheme: SecureSum):
    for seal in (False, True):
        with pytest.raises(RoundRefused):
            LocalEngine(secure_sum=scheme, seal=seal, tolerate=1, absent=(4, 5)).private_sum(
                rows(), gaussian_round(STATISTIC, 0.0)
            )


@pytest.mark.parametrize("workers", [1, 2])
def test_workers(scheme: SecureSum, workers: int, small_slices: None):
    engine = LocalEngine(secure_sum=scheme, workers=workers, tolerate=2, absent=(17,))
    for _ in range(2):
        found = engine.private_sum(rows(4000), gaussian_round(STATISTIC, 0.0))
        assert found.value.tolist() == np.delete(rows(4000), 17, axis=0).sum(axis=0).tolist()


def test_a_seed_gives_the_same_release_for_any_number_of_workers(scheme: SecureSum, small_slices: None):
    values = [
        LocalEngine(secure_sum=scheme, workers=workers, seed=3).private_sum(rows(2000), gaussian_round(STATISTIC, 1.0))
        for workers in (1, 2)
    ]
    assert values[0].value.tolist() == values[1].value.tolist()


def test_sparks_task_and_its_records(scheme: SecureSum):
    plan = planned(STATISTIC, 0.0, Population(60))
    task = ShareOut(plan, scheme, None)
    records = [task.record(part, [rows()[part::3]]) for part in range(3)]
    total = added([TaskSum.of(*record.row(0)[1:]) for record in records], scheme)
    assert total is not None
    sums = total.words.reshape(scheme.computes, -1)
    assert total.clients == 60
    assert plan.noise.grid.decode(scheme.unshard(dict(enumerate(sums)))).tolist() == rows().sum(axis=0).tolist()


# --------------------------------------------------------------------------------------------- the roles themselves


def stage(scheme: SecureSum, clients: int = 60) -> tuple[Study, list[PrivateKey], dict[str, np.ndarray]]:
    keys = [PrivateKey.generate() for _ in range(scheme.computes)]
    population = Population(clients, 2)
    study = Study(
        population, tuple(key.public() for key in keys), (planned(STATISTIC, 0.0, population),), scheme=scheme
    )
    return study, keys, {f"client-{i}": row for i, row in enumerate(rows(clients))}


def inboxes(study: Study, samples: dict[str, np.ndarray], sessions: bool = False) -> list[list]:
    found: list[list] = [[] for _ in study.keys]
    for client, sample in samples.items():
        opened = start_sessions(study, client) if sessions else None
        for report in contribute(study, 0, client, sample, Randomness.system(), sessions=opened):
            found[report.compute].append(report)
    return found


def test_a_client_is_in_the_sum_where_all_its_computes_hold_it(scheme: SecureSum):
    study, keys, samples = stage(scheme)
    sent = inboxes(study, samples)
    lost = next(report.client for report in sent[0])
    sent[0] = [report for report in sent[0] if report.client != lost]
    states = [accept(Compute(study, 0, k, key), sent[k])[0] for k, key in enumerate(keys)]
    roster = agree(study, [roster_of(state) for state in states])
    assert set(samples) - set(roster) == {lost}
    sums = [release(state, roster)[1] for state in states]
    words, turnout = combine_sums(study, 0, sums)
    expected = sum(sample for client, sample in samples.items() if client != lost)
    assert study.plan(0).noise.grid.decode(words).tolist() == expected.tolist()
    assert turnout == (59, 59)
    enough = [s for s in sums if s.compute != 1]
    if scheme.enough([s.compute for s in enough]):
        assert (combine_sums(study, 0, enough)[0] == words).all()
    else:
        with pytest.raises(CannotCombine):
            combine_sums(study, 0, enough)


def test_stored_reports_on_spark_without_a_session(scheme: SecureSum):
    """Each Compute's task over its stored reports gives the sum of the role; a report too few is refused."""
    study, keys, samples = stage(scheme)
    roster, sums = tuple(sorted(samples)), []
    for k, inbox in enumerate(inboxes(study, samples, sessions=True)):
        compute, data = Compute(study, 0, k, keys[k]), [encode_report(report) for report in inbox]
        called, task = _called(compute, roster, b"key", None), OpenAndAdd(compute, b"key")
        record = added([task.record(data[:7]), task.record([*data[7:], b"rubbish"])], scheme)
        assert record is not None
        _check_added(record, called)
        sums.append(compute_sum(compute, called.digest, Turnout(called.clients, called.clients), record.words))
        expected = release(accept(compute, inbox)[0], roster)[1]
        assert (sums[k].words == expected.words).all()
        assert sums[k].roster == expected.roster
        with pytest.raises(RoundRefused):
            _check_added(task.record(data[1:]), called)
    found = study.plan(0).noise.grid.decode(combine_sums(study, 0, sums)[0])
    assert found.tolist() == rows().sum(axis=0).tolist()


def test_a_compute_takes_reports_of_its_own_clients_only(scheme: SecureSum):
    study, keys, samples = stage(scheme)
    strangers = [c for c in samples if 0 not in scheme.recipients(c)]
    assert bool(strangers) == isinstance(scheme, Subset)
    for client in strangers[:3]:
        report = contribute(study, 0, client, samples[client], Randomness.system())[0]
        state, rejected = accept(Compute(study, 0, 0, keys[0]), [dataclasses.replace(report, compute=0)])
        assert not state.held
        assert isinstance(rejected[0], ReportRejected)
        assert rejected[0].reason == "wrong-recipient"


def test_the_study_is_bound_to_its_scheme(scheme: SecureSum):
    study, _, _ = stage(scheme)
    assert study.digest != dataclasses.replace(study, scheme=None).digest
    if isinstance(scheme, Subset):
        assert study.digest != dataclasses.replace(study, scheme=dataclasses.replace(scheme, seed="other")).digest


def test_an_engine_without_a_secure_sum_says_how_to_make_one(scheme: SecureSum):
    """Its name alone, as `mechanism` may be, does not say how many are enough."""
    urls = tuple(f"http://compute-{k}.example" for k in range(scheme.computes))
    name = scheme.describe()["scheme"]
    for make in (LocalEngine, SparkEngine, partial(NetworkEngine, urls)):
        with pytest.raises(InvalidInput, match=f"secure_sum must be a secure sum of the Computes, got .*'{name}'"):
            make(secure_sum=name)
        assert make(secure_sum=scheme).scheme == scheme
