"""The HTTP face of a Compute: read the request, call the node, answer. Every refusal is problem+json."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx
from sqlalchemy.exc import SQLAlchemyError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from hubbub.errors import HubbubError, MalformedMessage
from hubbub.securesum import OPENING_BYTES
from hubbub.service import agreement, faults, node, status
from hubbub.service.canonical import hexed, read_json
from hubbub.service.caretaker import Caretaker
from hubbub.service.inbox import Inbox
from hubbub.service.log import log
from hubbub.service.messages import BATCH_TYPE, EVENT, JSON_TYPE, PROBLEM_TYPE, REPORT_TYPE, TOKEN_BYTES
from hubbub.service.metrics import Counts, prometheus
from hubbub.service.node import Enrolment, Node, Receipt
from hubbub.service.openapi import describe
from hubbub.service.page import PAGE
from hubbub.service.problems import Problem
from hubbub.service.rate import Buckets
from hubbub.service.records import MOST_ROUNDS
from hubbub.service.signing import KEY_BYTES, SIGNATURE_BYTES
from hubbub.service.uploads import Outcome, Taken, Upload, accept_uploads

Endpoint = Callable[["Face", Request], Awaitable[Response]]


@dataclass(frozen=True)
class Face:
    """What the endpoints share."""

    node: Node
    reports: Inbox[Upload, Outcome]
    enrolments: Inbox[Enrolment, Receipt | Problem]
    caretaker: Caretaker
    counts: Counts
    buckets: Buckets


def create_app(this: Node, http: httpx.AsyncClient) -> Starlette:
    """The application; its background tasks start and end with it."""
    buckets = Buckets(this.limits.requests_per_second, this.clock)
    reports = Inbox[Upload, Outcome](partial(accept_uploads, this))
    enrolments = Inbox[Enrolment, Receipt | Problem](partial(node.enrol, this))
    face = Face(this, reports, enrolments, Caretaker(this, http), Counts(), buckets)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        work = (reports.run(), enrolments.run(), face.caretaker.run(), _flush(face))
        tasks = [asyncio.create_task(each) for each in work]
        face.caretaker.poke()
        yield
        for task in tasks:
            task.cancel()
        face.counts.flush(this.store)
        await http.aclose()
        this.store.close()

    routes = [Route(path, _guarded(face, name, function), methods=[method]) for path, method, name, function in ROUTES]
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: _not_found(face)})


async def _flush(face: Face) -> None:
    while True:
        await asyncio.sleep(1.0)
        with contextlib.suppress(SQLAlchemyError):
            await asyncio.to_thread(face.counts.flush, face.node.store)


def _guarded(face: Face, name: str, function: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint behind the rate limit, with every error turned into a problem."""

    async def endpoint(request: Request) -> Response:
        started = time.perf_counter()
        try:
            face.buckets.take(request.client.host if request.client else "")
            response = await function(face, request)
        except Exception as error:
            response = _refusal(face, name, error)
        if response.status_code >= 400 or name not in _QUIET:
            seconds = round(time.perf_counter() - started, 4)
            log("request", endpoint=name, status=response.status_code, seconds=seconds, other=_other(request))
        faults.point(f"before-reply:{name}")
        return response

    return endpoint


_QUIET = {"report", "health", "ready", "metrics", "status", "page", "keys"}


def _refusal(face: Face, name: str, error: Exception) -> Response:
    """The problem that the error is; what nobody foresaw is logged and called internal."""
    problem = _problem(error)
    face.counts.add(f"rejected:{problem.code}")
    if problem.code in ("internal", "not-ready"):
        log("failed", endpoint=name, error=type(error).__name__, detail=str(error)[:300])
    headers = {} if problem.retry_after is None else {"retry-after": str(problem.retry_after)}
    return Response(problem.body(), problem.kind.status, headers, PROBLEM_TYPE)


def _problem(error: Exception) -> Problem:
    if isinstance(error, Problem):
        return error
    if isinstance(error, TimeoutError | ClientDisconnect):
        return Problem("timeout", "body must arrive in time; send it again")
    if isinstance(error, MalformedMessage):
        return Problem("malformed", str(error))
    if isinstance(error, HubbubError):
        return Problem("invalid-record", str(error))
    if isinstance(error, SQLAlchemyError | OSError):
        return Problem("not-ready", "this Compute's database does not answer; send it again later")
    return Problem("internal", "this Compute failed; its operator finds the reason in the log")


def _not_found(face: Face) -> Callable[[Request, Exception], Response]:
    def answer(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        code = "method-not-allowed" if error.status_code == 405 else "not-found"
        response = _refusal(face, "unknown", Problem(code, "address must be one of those in /openapi.json"))
        response.headers.update(error.headers or {})
        return response

    return answer


async def _body(face: Face, request: Request, *types: str) -> bytes:
    """The body, if it is of the right type, not too large, and arrives in time."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in types:
        raise Problem("unsupported-type", f"content-type must be {' or '.join(types)}, got {kind[:80]!r}")
    most, size, chunks = face.node.limits.body_bytes, 0, []
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > most:
        raise Problem("too-large", f"body must have at most {most} bytes, got {declared[:20]}; send smaller batches")
    async with asyncio.timeout(face.node.limits.upload_seconds):
        async for chunk in request.stream():
            size += len(chunk)
            if size > most:
                raise Problem("too-large", f"body must have at most {most} bytes; send smaller batches")
            chunks.append(chunk)
    return b"".join(chunks)


def _other(request: Request) -> str | None:
    """The sender's event, for the audit log."""
    event = request.headers.get(EVENT)
    return event if event and len(event) <= 64 and event.isalnum() else None


def _place(request: Request) -> tuple[str, int]:
    number = request.path_params["number"]
    if number > MOST_ROUNDS:
        raise Problem("not-found", f"round must be at most {MOST_ROUNDS}; check the address")
    return request.path_params["study"], number


def _json(content: object, code: int = 200, event: str | None = None) -> Response:
    return Response(json.dumps(content), code, {} if event is None else {EVENT: event}, JSON_TYPE)


def _receipt(receipt: Receipt) -> Response:
    content = {"event": receipt.event, "new": receipt.new}
    if receipt.study:
        content["study"] = receipt.study
    return _json(content, 201 if receipt.new else 200, receipt.event)


async def _keys(face: Face, _: Request) -> Response:
    key, verify_key = face.node.keys.seal.public(), face.node.keys.sign.public()
    return _json({"hubbub": 1, "name": face.node.name, "suite": key.suite, "key": key.data.hex(),
                  "verify_key": verify_key.hex(), "time": face.node.clock()})  # fmt: skip


async def _register(face: Face, request: Request) -> Response:
    data = await _body(face, request, JSON_TYPE)
    return _receipt(await asyncio.to_thread(node.register_study, face.node, data, _other(request)))


async def _studies(face: Face, _: Request) -> Response:
    return _json(await asyncio.to_thread(status.studies, face.node))


async def _study(face: Face, request: Request) -> Response:
    row = await asyncio.to_thread(status.study_row, face.node, request.path_params["study"])
    return Response(row.record, media_type=JSON_TYPE)


async def _invite(face: Face, request: Request) -> Response:
    data = await _body(face, request, JSON_TYPE)
    return _receipt(
        await asyncio.to_thread(node.invite, face.node, request.path_params["study"], data, _other(request))
    )


async def _enrol(face: Face, request: Request) -> Response:
    content = read_json(await _body(face, request, JSON_TYPE))
    fields = {"client", "token", "key", "opening", "signature"}
    if not isinstance(content, dict) or set(content) != fields:
        raise Problem("malformed", f"enrolment must have the fields {', '.join(sorted(fields))}, and no others")
    opening = hexed("opening", content["opening"], OPENING_BYTES[face.node.keys.seal.suite])
    enrolment = Enrolment(
        request.path_params["study"], content["client"], hexed("token", content["token"], TOKEN_BYTES),
        hexed("key", content["key"], KEY_BYTES), opening,
        hexed("signature", content["signature"], SIGNATURE_BYTES), _other(request),
    )  # fmt: skip
    outcome = await face.enrolments.submit(enrolment, len(opening))
    if isinstance(outcome, Problem):
        raise outcome
    return _receipt(outcome)


async def _open(face: Face, request: Request) -> Response:
    data, study = await _body(face, request, JSON_TYPE), request.path_params["study"]
    await face.caretaker.check_history(study)
    return _receipt(await asyncio.to_thread(node.open_round, face.node, study, data, _other(request)))


async def _rounds(face: Face, request: Request) -> Response:
    return _json(await asyncio.to_thread(status.rounds, face.node, request.path_params["study"]))


async def _report(face: Face, request: Request) -> Response:
    study, number = _place(request)
    body = await _body(face, request, REPORT_TYPE, BATCH_TYPE)
    client = _decoded(request.headers.get("hubbub-client", ""))
    batch = request.headers["content-type"].startswith(BATCH_TYPE)
    outcome = await face.reports.submit(Upload(study, number, client, body, batch), len(body))
    if isinstance(outcome, Problem):
        raise outcome
    return _taken(outcome, batch)


def _decoded(header: str) -> str:
    """Header bytes are Latin-1 to HTTP; names are UTF-8."""
    try:
        return header.encode("latin-1").decode()
    except (UnicodeDecodeError, UnicodeEncodeError):
        raise Problem("malformed", "hubbub-client must be UTF-8; send the name as it was enrolled") from None


def _taken(outcome: Taken, batch: bool) -> Response:
    """Of a batch, what became of each report; of a single one, success or its problem (counted already)."""
    if outcome.rejected and not batch:
        rejection = outcome.rejected[0]
        problem = Problem(rejection.code, rejection.detail)
        return Response(problem.body(), problem.kind.status, media_type=PROBLEM_TYPE)
    rejected = [{"client": r.name, "code": r.code, "detail": r.detail} for r in outcome.rejected]
    return _json({"accepted": outcome.fresh, "known": outcome.known, "rejected": rejected})


async def _close(face: Face, request: Request) -> Response:
    place, data = _place(request), await _body(face, request, JSON_TYPE)
    receipt = await asyncio.to_thread(agreement.close, face.node, *place, data, _other(request))
    face.caretaker.poke()
    return _receipt(receipt)


async def _roster_in(face: Face, request: Request) -> Response:
    place, data = _place(request), await _body(face, request, JSON_TYPE)
    receipt = await asyncio.to_thread(agreement.receive_roster, face.node, *place, data, _other(request))
    own = await asyncio.to_thread(agreement.own_roster, face.node, *place)
    return Response(own, 200, {EVENT: receipt.event}, JSON_TYPE)


async def _rosters(face: Face, request: Request) -> Response:
    study, compute = request.path_params["study"], request.query_params.get("compute", "")
    return _json(await asyncio.to_thread(status.rosters, face.node, study, compute))


async def _sum(face: Face, request: Request) -> Response:
    body = await asyncio.to_thread(agreement.released_sum, face.node, *_place(request))
    return Response(body, media_type=REPORT_TYPE)


async def _health(_: Face, __: Request) -> Response:
    return _json({"status": "alive"})


async def _ready(face: Face, _: Request) -> Response:
    await asyncio.to_thread(face.node.store.ping)
    return _json({"status": "ready", "name": face.node.name})


async def _metrics(face: Face, _: Request) -> Response:
    text = await asyncio.to_thread(prometheus, face.node.store, face.counts)
    return Response(text, media_type="text/plain; version=0.0.4")


async def _status(face: Face, _: Request) -> Response:
    return _json(await asyncio.to_thread(status.overview, face.node, face.counts))


async def _openapi(_: Face, __: Request) -> Response:
    return _json(describe())


async def _page(_: Face, __: Request) -> Response:
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"
    return Response(PAGE, 200, {"content-security-policy": policy}, "text/html; charset=utf-8")


_STUDY, _ROUND = "/v1/studies/{study}", "/v1/studies/{study}/rounds/{number:int}"
ROUTES: list[tuple[str, str, str, Any]] = [
    ("/", "GET", "page", _page),
    ("/v1/keys", "GET", "keys", _keys),
    ("/v1/studies", "GET", "studies", _studies),
    ("/v1/studies", "POST", "register", _register),
    (_STUDY, "GET", "study", _study),
    (f"{_STUDY}/clients", "POST", "invite", _invite),
    (f"{_STUDY}/enrolments", "POST", "enrol", _enrol),
    (f"{_STUDY}/rounds", "GET", "rounds", _rounds),
    (f"{_STUDY}/rounds", "POST", "open", _open),
    (f"{_STUDY}/rosters", "GET", "rosters", _rosters),
    (f"{_ROUND}/reports", "POST", "report", _report),
    (f"{_ROUND}/close", "POST", "close", _close),
    (f"{_ROUND}/rosters", "POST", "roster", _roster_in),
    (f"{_ROUND}/sum", "GET", "sum", _sum),
    ("/v1/status", "GET", "status", _status),
    ("/v1/health", "GET", "health", _health),
    ("/v1/ready", "GET", "ready", _ready),
    ("/metrics", "GET", "metrics", _metrics),
    ("/openapi.json", "GET", "openapi", _openapi),
]
