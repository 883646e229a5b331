"""A charge is given back only where every Compute has signed its refusal of exactly that round."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest

from hubbub import Bernoulli, Ledger
from hubbub.engines.network import NetworkEngine
from hubbub.errors import InvalidInput, PerhapsReleased, RoundRefused
from hubbub.privacy import Budget, shared_multipliers
from hubbub.service.devnet import LocalComputes
from hubbub.service.node import agreement
from hubbub.service.node.answers import signed_refusal
from hubbub.service.wire.canonical import check_signature, digest, read_signed, sign_record
from hubbub.service.wire.endings import RefusalRecord
from hubbub.service.wire.refusals import unsigned
from hubbub.service.wire.signing import SigningKey
from hubbub.service.wire.web import Patience, Web
from service.live import LiveStudy
from service.meddling import Answer, at, problem, says_refused, web_over
from service.stage import M, Stage, make_stage
from service.test_node import code_of

BUDGET = Budget(1.0, 1e-5)


def refused_round(stage: Stage) -> None:
    record = stage.round()
    stage.run_to_rosters(record, stage.people[:2])
    assert stage.settle() == ["refused"] * M


def test_a_compute_signs_a_refusal_once_it_has_refused_and_never_releases_after(stage: Stage):
    first, record = stage.nodes[0], stage.round()
    stage.open(record)
    assert code_of(signed_refusal, first, stage.id, 0) == "round-open"
    for person in stage.people[:2]:
        stage.send(record, person)
    stage.close(record)
    assert code_of(signed_refusal, first, stage.id, 0) == "agreement-under-way"
    stage.exchange()
    stage.settle()
    data = signed_refusal(first, stage.id, 0)
    found, signature = read_signed(data, RefusalRecord)
    check_signature(found, signature, stage.study.computes[0].verify_key, "Compute")
    assert (found.study, found.round, found.number, found.compute) == (digest(stage.study), digest(record), 0, 0)
    assert found.reason == "too-few-clients"
    assert stage.settle() == ["refused"] * M
    assert code_of(agreement.released_sum, first, stage.id, 0) == "round-refused"
    assert signed_refusal(first, stage.id, 0) == data


def test_a_compute_that_released_or_was_set_back_signs_no_refusal(stage: Stage):
    record = stage.round()
    stage.run_to_rosters(record)
    assert stage.settle() == ["released"] * M
    assert code_of(signed_refusal, stage.nodes[0], stage.id, 0) == "not-refused"
    stage.open(stage.round(1))
    agreement.refuse(stage.nodes[0], stage.id, 1, "rolled-back", "an old copy was restored")
    assert code_of(signed_refusal, stage.nodes[0], stage.id, 1) == "rolled-back"


def test_only_signatures_of_all_computes_under_this_very_round_count(tmp_path: Path):
    made = make_stage([f"sqlite:///{tmp_path}/{k}.db" for k in range(M)])
    made.register()
    refused_round(made)
    good = [signed_refusal(node, made.id, 0) for node in made.nodes]
    mark = read_signed(good[0], RefusalRecord)[0].round
    record = read_signed(good[1], RefusalRecord)[0]
    own = made.nodes[1].keys.sign

    def missing(second: bytes) -> list[str]:
        replies = dict(zip([compute.url for compute in made.study.computes], [good[0], second, good[2]], strict=True))

        def reply(request: httpx.Request) -> httpx.Response:
            url = str(request.url)
            return httpx.Response(200, content=next(data for base, data in replies.items() if url.startswith(base)))

        web = Web(httpx.Client(transport=httpx.MockTransport(reply)), Patience(total=0.1))
        return list(unsigned(made.study, 0, mark, web))

    assert missing(good[1]) == []
    for other in (
        sign_record(record, SigningKey.generate()),
        sign_record(replace(record, round=bytes(32)), own),
        sign_record(replace(record, study=bytes(32)), own),
        sign_record(replace(record, number=1), own),
        good[0],
        b"{}",
        b"",
    ):
        assert missing(other) == ["compute-1"]


def engine_over(live: LocalComputes, answer: Answer, *, relayed: bool = False, seconds: float = 10.0) -> NetworkEngine:
    engine = NetworkEngine(live.urls, tolerate=1, budget=BUDGET, relayed=relayed)
    object.__setattr__(engine, "_web", web_over(answer, seconds))
    return engine


def charged_after(engine: NetworkEngine, error: type[Exception], match: str) -> list[str]:
    """What stays in the ledger after a fit that must fail."""
    ledger = Ledger(BUDGET)
    with ledger, pytest.raises(error, match=match):
        Bernoulli().fit(np.ones(6, dtype=bool), budget=BUDGET, engine=engine)
    return [entry.label for entry in ledger.entries]


@pytest.mark.slow
@pytest.mark.parametrize("who", [0, 1, 2])
def test_one_compute_that_says_refused_gives_nothing_back(live: LocalComputes, who: int):
    """All three have released; whoever gets the sums by another way has the total."""
    engine = engine_over(live, says_refused(live.urls[who]))
    match = f"compute-{who + 1} says.*compute-{who + 1} has not signed a refusal.*its charge stays spent"
    assert len(charged_after(engine, PerhapsReleased, match)) == 1


def lost(urls: list[str] | tuple[str, ...], away: str | None = None) -> Answer:
    """Two reports are confirmed and dropped on their way to the first Compute; one Compute may not answer in the end."""
    dropped: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response | None:
        if at(request, urls[0], "/reports") and len(dropped) < 2:
            dropped.append(request)
            return httpx.Response(200, content=json.dumps({"samples": 1, "new": True}).encode())
        if away is not None and at(request, away, "/refusal"):
            raise httpx.ConnectError("nobody there")
        return None

    return answer


@pytest.mark.slow
def test_what_all_computes_have_refused_and_signed_is_given_back(live: LocalComputes):
    engine = engine_over(live, lost(live.urls))
    assert charged_after(engine, RoundRefused, "every Compute has signed its refusal, nothing is released") == []


@pytest.mark.slow
def test_a_compute_that_does_not_answer_gives_nothing_back(live: LocalComputes):
    engine = engine_over(live, lost(live.urls, away=live.urls[2]), seconds=1.5)
    match = "compute-3 has not signed a refusal .Compute must answer within.*its charge stays spent"
    assert len(charged_after(engine, PerhapsReleased, match)) == 1


@pytest.mark.slow
def test_a_bad_reply_after_the_round_was_opened_gives_nothing_back(live: LocalComputes):
    engine = engine_over(
        live, lambda request: httpx.Response(200, content=b"{}") if at(request, live.urls[0], "/reports") else None,
        relayed=True,
    )  # fmt: skip
    match = "must list what was refused.*the round was open by then, so its charge stays spent"
    assert len(charged_after(engine, PerhapsReleased, match)) == 1


@pytest.mark.slow
def test_what_is_wrong_before_the_round_is_opened_is_given_back(live: LocalComputes):
    engine = engine_over(live, lambda request: problem("not-found"))
    ledger = Ledger(BUDGET)
    with ledger, pytest.raises(InvalidInput):
        Bernoulli().fit(np.ones(1, dtype=bool), budget=BUDGET, engine=engine)  # too few for T = 1
    assert ledger.entries == ()


@pytest.mark.slow
def test_a_client_keeps_what_computes_only_say_they_refused_in_its_account(live: LocalComputes, tmp_path: Path):
    """All of them released the first round and say now that they refused it: a second one would overspend."""
    study = LiveStudy(live, tmp_path, BUDGET)
    study.prepare()
    (multiplier,) = shared_multipliers(BUDGET, [1.0])
    record, again = study.plan(0, multiplier), study.plan(1, multiplier)
    study.analyst.open_round(record)
    study.send(record)
    study.analyst.close(record)
    study.analyst.release(record)

    def refused_by_word(request: httpx.Request) -> httpx.Response | None:
        if request.method != "GET" or not request.url.path.endswith("/rounds"):
            return None
        content = httpx.get(request.url).json()
        return httpx.Response(200, json={**content, "rounds": [{**r, "state": "refused"} for r in content["rounds"]]})

    client = replace(study.clients["c0"], web=web_over(refused_by_word))
    with pytest.raises(InvalidInput, match=r"budget must cover all rounds.*do not take part"):
        client.make(again, study.rows("c0"))


@pytest.mark.slow
def test_a_report_waits_where_a_round_is_not_open_at_every_compute_yet(live: LocalComputes, tmp_path: Path):
    """The analyst opens it at one after the other, and a client may learn of it in between."""
    study, asked = LiveStudy(live, tmp_path, BUDGET), list[str]()
    study.prepare()
    (multiplier,) = shared_multipliers(BUDGET, [1.0])
    record = study.plan(0, multiplier)
    study.analyst.open_round(record)

    def not_yet(request: httpx.Request) -> httpx.Response | None:
        if not at(request, live.urls[2], "/reports") or len(asked) == 2:
            return None
        asked.append(request.url.path)
        return problem("not-found")

    client = replace(study.clients["c0"], web=web_over(not_yet))
    client.contribute(record, study.rows("c0"))
    assert len(asked) == 2
    assert not client.unsent(record)
