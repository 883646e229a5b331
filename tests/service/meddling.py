"""A connection to real Computes on which a test answers some requests itself: a Compute that lies, or is away."""

from __future__ import annotations

from collections.abc import Callable

import httpx

from hubbub.service.wire.problems import Problem
from hubbub.service.wire.web import Patience, Web

Answer = Callable[[httpx.Request], httpx.Response | None]


class Meddling(httpx.BaseTransport):
    """Requests for which `answer` has a reply never arrive; `seen` are all of them."""

    def __init__(self, answer: Answer = lambda _: None) -> None:
        self._real, self._answer = httpx.HTTPTransport(), answer
        self.seen: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        self.seen.append(request)
        return self._answer(request) or self._real.handle_request(request)


def web_over(answer: Answer, seconds: float = 10.0) -> Web:
    return Web(httpx.Client(transport=Meddling(answer), timeout=20), Patience(total=seconds, first=0.02, most=0.2))


def at(request: httpx.Request, url: str, tail: str) -> bool:
    """Whether the request is for this address at the Compute with this URL."""
    return str(request.url).startswith(url) and request.url.path.endswith(tail)


def problem(code: str) -> httpx.Response:
    made = Problem(code, f"the test says {code}")
    return httpx.Response(made.kind.status, content=made.body(), headers={"content-type": "application/problem+json"})


def says_refused(url: str) -> Answer:
    """The Compute says that it refused, whatever it did, and signs nothing."""
    return lambda request: problem("round-refused") if at(request, url, "/sum") else None
