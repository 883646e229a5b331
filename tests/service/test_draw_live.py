"""Real processes of which each client uses a few: from registration over the draw to the exact sum."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest

from hubbub.engines.network import NetworkEngine
from hubbub.errors import InvalidInput, RoundRefused
from hubbub.privacy import Budget, gaussian_round
from hubbub.securesum import Context, Report, Subset, encode_report, start_session
from hubbub.service.client.outbox import Outbox
from hubbub.service.devnet import LocalComputes
from hubbub.service.node.compute import Limits
from hubbub.service.wire.canonical import digest
from hubbub.service.wire.draw import check_ties
from hubbub.service.wire.messages import ENROL, REPORT_TYPE, enrol_parts, token_for
from hubbub.service.wire.problems import Problem
from hubbub.statistics import Means
from service.live import LiveStudy
from service.test_faults import dies_at

M, K = 5, 2
LIMITS = Limits(simulation=True, agreement_seconds=60.0)
NAMES = {f"c{i}": 1 + i % 2 for i in range(60)}


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalComputes]:
    with LocalComputes(tmp_path_factory.mktemp("five"), M, limits=LIMITS) as computes:
        yield computes


@pytest.fixture
def study(five: LocalComputes, tmp_path: Path) -> LiveStudy:
    return LiveStudy(five, tmp_path, samples=NAMES, secure_sum=Subset(M, K))


def test_from_registration_to_the_exact_sum(study: LiveStudy):
    study.prepare()
    shown = httpx.get(f"{study.study.computes[0].url}/v1/status").json()["studies"]
    assert [each["drawn"] for each in shown if each["study"] == study.study.id] == [True]
    scheme = study.analyst.drawn.secure_sum
    first, second = study.plan(0), study.plan(1)
    study.analyst.open_round(first)
    study.send(first)
    held = [httpx.get(study.url(k, "/rounds")).json()["rounds"][0]["reports"] for k in range(M)]
    assert held == [sum(k in scheme.recipients(name) for name in NAMES) for k in range(M)]
    assert sum(held) == K * len(NAMES)
    study.analyst.close(first)
    release = study.analyst.release(first)
    np.testing.assert_array_equal(release.value, study.exact())
    assert (release.clients, release.n) == (60, 90)
    there = list(NAMES)[1:]  # one may be missing
    study.analyst.open_round(second)
    study.send(second, there)
    study.analyst.close(second)
    np.testing.assert_array_equal(study.analyst.release(second).value, study.exact(there))


def test_a_client_takes_no_name_that_was_handed_out_after_the_draw(study: LiveStudy):
    study.prepare()
    late = replace(study.clients["c0"], name="late")
    with pytest.raises(Problem, match="on the list that was fixed before the draw") as caught:
        late.enrol(bytes(32))
    assert caught.value.code == "not-found"
    more = replace(study.clients["c0"], samples=2, outbox=Outbox(study.outbox.path.with_name("other.db")))
    with pytest.raises(InvalidInput, match="got c0 with 2 sample.*the name may have been chosen for its Computes"):
        more.enrol(study.tokens["c0"][0])
    assert more.outbox.draw(study.study.id, "c0") is None


def test_those_who_come_to_other_computes_are_refused_and_counted(study: LiveStudy):
    study.prepare()
    client = study.clients["c0"]
    (other, *_) = set(range(M)) - set(study.analyst.drawn.secure_sum.recipients("c0"))
    before, compute = study.counter(other, "wrong-recipient"), study.study.computes[other]
    session = start_session(compute.key, digest(study.study), "c0", other)
    key = client.identity.key
    parts = enrol_parts(digest(study.study), other, "c0", 1, key.public(), session.opening)
    token = token_for(study.tokens["c0"][0], compute.verify_key)
    content = {
        "client": "c0", "samples": 1, "token": token.hex(), "key": key.public().hex(),
        "opening": session.opening.hex(), "signature": key.sign(ENROL, *parts).hex(),
    }  # fmt: skip
    reply = httpx.post(study.url(other, "/enrolments"), json=content)
    assert (reply.status_code, reply.json()["code"]) == (422, "wrong-recipient")
    record = study.plan()
    study.analyst.open_round(record)
    role = record.checked(study.analyst.drawn)
    sealed = session.short().seal(bytes(40), Context(role.digest, 0, "c0", other))
    report = encode_report(Report(role.digest, 0, "c0", other, sealed, session.short().opening))
    reply = httpx.post(study.url(other, "/rounds/0/reports"), content=report, headers={"content-type": REPORT_TYPE})
    assert (reply.status_code, reply.json()["code"]) == (422, "wrong-recipient")
    assert "client must be one that Compute" in reply.json()["detail"]
    assert study.counter(other, "wrong-recipient") == before + 2


def test_the_second_draw_of_a_study_is_refused_by_a_client_that_has_seen_the_first(study: LiveStudy):
    study.prepare()
    with pytest.raises(InvalidInput, match="draw must be the one that c0 has seen before"):
        study.outbox.keep_draw(study.study.id, "c0", b"another")


def loose_study(five: LocalComputes, folder: Path) -> LiveStudy:
    """One whose draw happens not to tie the Computes together, as all but one in 1000 do."""
    while True:
        study = LiveStudy(five, folder, Budget(1.0, 1e-5), {f"c{i}": 1 for i in range(4)}, secure_sum=Subset(M, K))
        study.prepare()
        try:
            check_ties(study.analyst.drawn, list(study.samples))
        except RoundRefused:
            return study


def test_what_loose_computes_refuse_is_paid_back(five: LocalComputes, tmp_path: Path):
    """4 clients hardly ever tie Computes together; the budget covers one round, and the second one opens."""
    study = loose_study(five, tmp_path)
    for number in range(2):
        record = study.plan(number, 4.0)
        study.analyst.open_round(record)
        study.send(record)
        study.analyst.close(record)
        with pytest.raises(RoundRefused, match="loose-computes.*every Compute has signed its refusal"):
            study.analyst.release(record)


@pytest.mark.parametrize("relayed", [False, True])
def test_an_analysis_runs_on_the_network_engine(five: LocalComputes, relayed: bool):
    engine = NetworkEngine(five.urls, secure_sum=Subset(M, K), seed=1, relayed=relayed)
    rows = np.arange(120.0).reshape(60, 2) % 64
    for number in range(2):
        release = engine.private_sum(rows, gaussian_round(Means((64.0, 64.0)), 0.0, f"round {number}"))
        np.testing.assert_array_equal(release.value, rows.sum(axis=0))
    trust = release.protection.trust
    assert trust is not None
    assert (trust.conspiring, "expected are 10 % with 2, 60 % with 4" in trust.proviso) == (1, True)
    chosen = NetworkEngine(five.urls, secure_sum=Subset(M, K, "mine"))
    with pytest.raises(InvalidInput, match="a seed must be drawn, not chosen"):
        chosen.private_sum(rows, gaussian_round(Means((64.0, 64.0)), 0.0, "round"))
    few = NetworkEngine(five.urls, secure_sum=Subset(M, K), colluding=3)  # not one of 20000 draws would do
    with pytest.raises(RoundRefused, match="clients must tie the 5 Computes together"):  # before a round is opened
        few.private_sum(rows[:8], gaussian_round(Means((64.0, 64.0)), 0.0, "round"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "point",
    [
        "after:secret-made", "after:registered", "before-reply:commitment", "after:secret-bound", "after:revealed",
        "before-reply:draw-request", "after:drawn", "before-reply:reveals", "before-reply:listing",
    ],
)  # fmt: skip
def test_a_compute_that_is_killed_at_any_step_goes_on(tmp_path: Path, point: str):
    with LocalComputes(tmp_path / "nodes", 3, limits=LIMITS) as computes:
        study = LiveStudy(computes, tmp_path, samples=NAMES, secure_sum=Subset(3, 2))
        with dies_at(computes.computes[0], point) as died:
            study.prepare()
            assert died.is_set()
        record = study.plan()
        study.analyst.open_round(record)
        study.send(record)
        study.analyst.close(record)
        np.testing.assert_array_equal(study.analyst.release(record).value, study.exact())


@pytest.mark.slow
def test_eight_computes_three_for_each_client(tmp_path: Path):
    with LocalComputes(tmp_path / "nodes", 8, limits=LIMITS) as computes:
        study = LiveStudy(computes, tmp_path, samples={f"c{i}": 1 for i in range(80)}, secure_sum=Subset(8, 3))
        study.prepare()
        record = study.plan()
        study.analyst.open_round(record)
        study.send(record)
        study.analyst.close(record)
        np.testing.assert_array_equal(study.analyst.release(record).value, study.exact())
