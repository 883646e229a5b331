"""Answers of Computes that mean no good: endless, compressed, redirecting, or with words meant for a terminal."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from hubbub.service.analyst.analyst import Analyst
from hubbub.service.client.rounds import rounds_of
from hubbub.service.node.caretaker import Caretaker
from hubbub.service.node.peers import Peers
from hubbub.service.node.trust import TrustList
from hubbub.service.wire.problems import Problem, problem_from
from hubbub.service.wire.web import MOST_ANSWER, MOST_LIST, Patience, Web
from service.stage import M, Stage, make_stage

CHUNK = 1 << 16


class Endless(httpx.SyncByteStream, httpx.AsyncByteStream):
    """More than anybody should read; counts what was."""

    def __init__(self) -> None:
        self.sent = 0

    def __iter__(self) -> Iterator[bytes]:
        while self.sent < 4 * MOST_LIST:
            self.sent += CHUNK
            yield bytes(CHUNK)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self:
            yield chunk


def web(answer) -> Web:
    return Web(httpx.Client(transport=httpx.MockTransport(answer)), Patience(total=0.2))


def problem_of(call, *arguments, **options) -> Problem:
    with pytest.raises(Problem) as problem:
        call(*arguments, **options)
    return problem.value


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = make_stage([f"sqlite:///{tmp_path}/compute-{k}.db" for k in range(M)])
    made.register()
    yield made
    for node in made.nodes:
        node.store.close()


@pytest.mark.parametrize("status", [200, 400, 503])
def test_an_endless_answer_is_cut_off_at_its_limit(status: int):
    stream = Endless()
    problem = problem_of(web(lambda _: httpx.Response(status, stream=stream)).get, "http://a.example/v1/keys")
    assert problem.code == "too-large"
    assert stream.sent <= MOST_ANSWER + CHUNK


def test_every_kind_of_answer_has_its_own_limit(stage: Stage):
    """A sum is as long as its numbers, a list of rounds longer; neither is read without end."""
    sums, lists, record = Endless(), Endless(), stage.round()
    analyst = Analyst(stage.study, stage.analyst, web(lambda _: httpx.Response(200, stream=sums)))
    assert problem_of(analyst.release, record).code == "too-large"
    assert sums.sent <= 2 * CHUNK
    asking = web(lambda _: httpx.Response(200, stream=lists))
    assert problem_of(rounds_of, stage.study, stage.study.computes[0], asking).code == "too-large"
    assert lists.sent <= MOST_LIST + CHUNK


def test_a_small_answer_that_grows_when_unpacked_is_refused_unread():
    asked = []

    def bomb(request: httpx.Request) -> httpx.Response:
        asked.append(request.headers["accept-encoding"])
        packed = httpx.ByteStream(gzip.compress(bytes(20_000_000)))
        return httpx.Response(200, headers={"content-encoding": "gzip"}, stream=packed)

    problem = problem_of(web(bomb).get, "http://a.example/v1/keys")
    assert "without compression, got gzip" in str(problem)
    assert asked == ["identity"]


def test_a_redirect_is_not_followed():
    asked = []

    def elsewhere(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.host)
        return httpx.Response(302, headers={"location": "http://inside.example/secret"})

    assert problem_of(web(elsewhere).get, "http://a.example/v1/keys").code == "redirected"
    assert problem_of(web(elsewhere).post, "http://a.example/v1/studies", b"{}").code == "redirected"
    assert asked == ["a.example"] * 2


def test_what_a_compute_says_is_shown_as_one_printable_line():
    detail = "line\\r\\n\\u001b[2J\\u202eevil " + "x" * 100_000
    problem = problem_from(400, f'{{"code": "\\u001b]0;x", "detail": "{detail}"}}'.encode(), None)
    assert problem.code == "internal"
    assert str(problem).isprintable()
    assert str(problem).startswith("line [2J evil xxx")
    assert len(str(problem)) <= 500


def asked_by(stage: Stage, answer) -> Exception | None:
    """What becomes of a Compute's question to the second one."""

    async def play() -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
            await Peers(stage.nodes[0], http)._rosters(stage.study.computes[1], stage.id, 0, 1)

    try:
        asyncio.run(play())
    except Problem as problem:
        return problem
    return None


def test_computes_read_one_anothers_answers_as_carefully(stage: Stage):
    stream = Endless()
    assert asked_by(stage, lambda _: httpx.Response(200, stream=stream)).code == "too-large"
    assert stream.sent <= CHUNK
    packed = gzip.compress(b'{"rosters": []}')
    bomb = httpx.Response(200, headers={"content-encoding": "gzip"}, stream=httpx.ByteStream(packed))
    assert asked_by(stage, lambda _: bomb).code == "malformed"
    moved = httpx.Response(307, headers={"location": "http://inside.example"})
    assert asked_by(stage, lambda _: moved).code == "redirected"
    assert asked_by(stage, lambda _: httpx.Response(200, json={"rosters": []})) is None


def test_a_compute_no_longer_trusted_is_not_called(stage: Stage, tmp_path: Path):
    asked = []
    stage.nodes[0] = replace(stage.nodes[0], trust=TrustList(tmp_path / "none.json"))
    assert asked_by(stage, lambda request: asked.append(request) or httpx.Response(200)).code == "not-allowed"
    assert asked == []


@pytest.mark.parametrize("answer", ["[]", '{"rosters": 7}', '{"rosters": [7]}', '{"rosters": ["\\ud800"]}'])
def test_nonsense_in_a_history_says_nothing(stage: Stage, answer: str):
    async def play() -> None:
        transport = httpx.MockTransport(lambda _: httpx.Response(200, content=answer.encode()))
        async with httpx.AsyncClient(transport=transport) as http:
            await Caretaker(stage.nodes[0], http).check_history(stage.id, 0)

    asyncio.run(play())
