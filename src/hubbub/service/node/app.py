"""The HTTP face of a Compute: read the request, call the node, answer. Every refusal is problem+json."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, ParamSpec, TypeVar

import httpx
from sqlalchemy.exc import SQLAlchemyError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from hubbub.errors import HubbubError, MalformedMessage, whole
from hubbub.securesum import OPENING_BYTES, split_reports
from hubbub.service.node import agreement, answers, draw, faults, matching, status
from hubbub.service.node import compute as node
from hubbub.service.node.bodies import Bodies, Headers, header
from hubbub.service.node.caretaker import Caretaker
from hubbub.service.node.compute import Enrolment, Node, Receipt
from hubbub.service.node.inbox import Inbox
from hubbub.service.node.log import log
from hubbub.service.node.metrics import CONTENT_TYPE, Counts, prometheus
from hubbub.service.node.openapi import describe
from hubbub.service.node.page import PAGE
from hubbub.service.node.rate import Buckets
from hubbub.service.node.shared import Shared
from hubbub.service.node.uploads import Outcome, Taken, Upload, accept_uploads
from hubbub.service.wire.canonical import hexed, read_json
from hubbub.service.wire.draw import most_draw
from hubbub.service.wire.endings import MOST_AGREEMENT
from hubbub.service.wire.messages import EVENT, JSON_TYPE, PROBLEM_TYPE, REPORT_TYPE, TOKEN_BYTES
from hubbub.service.wire.problems import Problem
from hubbub.service.wire.records import MOST_CLIENTS, MOST_ROUNDS, check_client_name
from hubbub.service.wire.signing import KEY_BYTES, SIGNATURE_BYTES

Endpoint = Callable[["Face", Request], Awaitable[Response]]
P = ParamSpec("P")
T = TypeVar("T")
_LONG_THREADS = 2
# What a body of each kind has at most, in bytes; none has more than the limit in the configuration.
_MOST_STUDY, _MOST_INVITATION, _MOST_ROUND = 1_000_000, 4_000_000, 8_000_000
_MOST_ENROLMENT, _MOST_CLOSE = 8_192, 4_096
_MOST_DRAW = most_draw(1000)
_MOST_NAME = 310  # of a client in a roster: 100 bytes, of which each two may be written as six


@dataclass(frozen=True)
class Face:
    """What the endpoints share."""

    node: Node
    reports: Inbox[Upload, list[Outcome]]
    enrolments: Inbox[Enrolment, Receipt | Problem]
    caretaker: Caretaker
    counts: Counts
    buckets: Buckets
    bodies: Bodies
    overview: Shared[Response]
    long: ThreadPoolExecutor = field(default_factory=partial(ThreadPoolExecutor, _LONG_THREADS, "long"), repr=False)

    async def at_length(self, function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """Run what may take seconds, a few at a time, so that all others find a thread at once."""
        work = partial(function, *arguments, **options)
        return await asyncio.get_running_loop().run_in_executor(self.long, work)


def create_app(this: Node, http: httpx.AsyncClient) -> ASGIApp:
    """The application; its background tasks start and end with it."""
    buckets = Buckets(this.limits.requests_per_second, this.clock)
    bodies = Bodies(this.limits.bodies_bytes, this.limits.upload_seconds)
    reports = Inbox[Upload, list[Outcome]](partial(accept_uploads, this))
    enrolments = Inbox[Enrolment, Receipt | Problem](partial(node.enrol, this))
    counts = Counts()
    overview = Shared(partial(_listed, status.overview, this, counts), "status")
    face = Face(this, reports, enrolments, Caretaker(this, http, counts), counts, buckets, bodies, overview)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await asyncio.to_thread(agreement.forget_ended, this, starting=True)
        work = (reports.run(), enrolments.run(), face.caretaker.run(), bodies.run(), _flush(face))
        tasks = [asyncio.create_task(each) for each in work]
        face.caretaker.poke()
        yield
        for task in tasks:
            task.cancel()
        face.counts.flush(this.store)
        await http.aclose()
        this.store.close()

    routes = [Route(path, _guarded(face, name, function), methods=[method]) for path, method, name, function in ROUTES]
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: _not_found(face)})
    return _reports_first(face, app)


def _reports_first(face: Face, app: ASGIApp) -> ASGIApp:
    """Nearly all requests are reports: they go past routes and middleware, which take longer than the rest."""

    async def first(scope: Scope, receive: Receive, send: Send) -> None:
        found = _REPORTS.fullmatch(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if found is None:
            await app(scope, receive, send)
            return
        try:
            address = scope["client"][0] if scope["client"] else ""
            face.buckets.take(address)
            response = await _uploaded(face, found[1], int(found[2]), scope["headers"], receive, address)
        except Exception as error:
            response = _refusal(face, "report", error)
        finally:
            face.bodies.done()
        if response.status_code >= 400:
            log("request", endpoint="report", status=response.status_code, other=_event(scope["headers"]))
        faults.point("before-reply:report")
        await response(scope, receive, send)

    return first


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
            face.buckets.take(_address(request))
            response = await function(face, request)
        except Exception as error:
            response = _refusal(face, name, error)
        finally:
            face.bodies.done()
        if response.status_code >= 400 or name not in _QUIET:
            seconds = round(time.perf_counter() - started, 4)
            log("request", endpoint=name, status=response.status_code, seconds=seconds, other=_other(request))
        faults.point(f"before-reply:{name}")
        return response

    return endpoint


_EVENT = EVENT.encode()
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


async def _body(face: Face, request: Request, most: int, limit: int | None = None) -> bytes:
    """A JSON body of at most so many bytes, and of at most what any body may have (or `limit` in its place)."""
    most = min(most, face.node.limits.body_bytes if limit is None else limit)
    return await face.bodies.read(request.scope["headers"], request.receive, _address(request), most, JSON_TYPE)


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


def _other(request: Request) -> str | None:
    return _event(request.scope["headers"])


def _event(headers: Headers) -> str | None:
    """The sender's event, for the audit log."""
    event = header(headers, _EVENT)
    return event if event and len(event) <= 64 and event.isalnum() else None


def _place(request: Request) -> tuple[str, int]:
    return request.path_params["study"], _number(request.path_params["number"])


def _number(number: int) -> int:
    if number > MOST_ROUNDS:
        raise Problem("not-found", f"round must be at most {MOST_ROUNDS}; check the address")
    return number


def _json(content: object, code: int = 200, event: str | None = None) -> Response:
    return Response(json.dumps(content), code, {} if event is None else {EVENT: event}, JSON_TYPE)


def _listed(function: Callable[..., object], *arguments: object) -> Response:
    """What the function finds, as JSON; called where neither holds up anybody."""
    return _json(function(*arguments))


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
    data = await _body(face, request, _MOST_STUDY)
    return _receipt(await face.at_length(node.register_study, face.node, data, _other(request)))


async def _studies(face: Face, _: Request) -> Response:
    return await face.at_length(_listed, status.studies, face.node)


async def _study(face: Face, request: Request) -> Response:
    row = await asyncio.to_thread(status.study_row, face.node, request.path_params["study"])
    return Response(row.record, media_type=JSON_TYPE)


async def _invite(face: Face, request: Request) -> Response:
    data, study = await _body(face, request, _MOST_INVITATION), request.path_params["study"]
    return _receipt(await face.at_length(node.invite, face.node, study, data, _other(request)))


async def _commitment(face: Face, request: Request) -> Response:
    body = await asyncio.to_thread(draw.commitment, face.node, request.path_params["study"])
    return Response(body, media_type=JSON_TYPE)


async def _draw_in(face: Face, request: Request) -> Response:
    data, study = await _body(face, request, _MOST_DRAW), request.path_params["study"]
    body = await face.at_length(draw.reveal, face.node, study, data, _other(request))
    return Response(body, media_type=JSON_TYPE)


async def _reveals_in(face: Face, request: Request) -> Response:
    data, study = await _body(face, request, _MOST_DRAW), request.path_params["study"]
    return _receipt(await face.at_length(draw.finish, face.node, study, data, _other(request)))


async def _draw(face: Face, request: Request) -> Response:
    body = await asyncio.to_thread(draw.result, face.node, request.path_params["study"])
    return Response(body, media_type=JSON_TYPE)


async def _listing(face: Face, request: Request) -> Response:
    client = check_client_name(request.query_params.get("client", ""))
    return await face.at_length(_listed, draw.listed, face.node, request.path_params["study"], client)


async def _enrol(face: Face, request: Request) -> Response:
    content = read_json(await _body(face, request, _MOST_ENROLMENT))
    fields = {"client", "samples", "token", "key", "opening", "signature"}
    if not isinstance(content, dict) or set(content) != fields:
        raise Problem("malformed", f"enrolment must have the fields {', '.join(sorted(fields))}, and no others")
    opening = hexed("opening", content["opening"], OPENING_BYTES[face.node.keys.seal.suite])
    samples = whole("samples", content["samples"], 1, "a client holds one at least", most=MOST_CLIENTS)
    client, study = check_client_name(content["client"]), request.path_params["study"]
    enrolment = Enrolment(
        study, client, samples, hexed("token", content["token"], TOKEN_BYTES), hexed("key", content["key"], KEY_BYTES),
        opening, hexed("signature", content["signature"], SIGNATURE_BYTES), _other(request),
    )  # fmt: skip
    outcome = await face.enrolments.submit(enrolment, len(opening))
    if isinstance(outcome, Problem):
        raise outcome
    return _receipt(outcome)


async def _open(face: Face, request: Request) -> Response:
    data, study = await _body(face, request, _MOST_ROUND), request.path_params["study"]
    _, record = await asyncio.to_thread(node.checked_round, face.node, study, data)
    await face.caretaker.check_history(study, record.number)
    await face.caretaker.settle_charges(study)
    return _receipt(await asyncio.to_thread(node.open_round, face.node, study, data, _other(request)))


async def _rounds(face: Face, request: Request) -> Response:
    return await face.at_length(_listed, status.rounds, face.node, request.path_params["study"])


async def _report(face: Face, request: Request) -> Response:
    return await _uploaded(face, *_place(request), request.scope["headers"], request.receive, _address(request))


async def _uploaded(face: Face, study: str, number: int, headers: Headers, receive: Receive, address: str) -> Response:
    """The answer to a body of reports."""
    body = await face.bodies.read(headers, receive, address, face.node.limits.body_bytes, REPORT_TYPE)
    upload = Upload(study, _number(number), split_reports(body), _event(headers))
    outcomes = await face.reports.submit(upload, len(body))
    if len(outcomes) > 1:
        return _batch(face, outcomes)
    if isinstance(outcomes[0], Problem):  # raised here, it would keep the body until garbage is collected
        return _refusal(face, "report", outcomes[0])
    return _taken(outcomes[0])


@lru_cache(maxsize=64)
def _taken(outcome: Taken) -> Response:
    return _json({"samples": outcome.samples, "new": outcome.new})


def _batch(face: Face, outcomes: Sequence[Outcome]) -> Response:
    """Each report of a batch is taken or refused by itself; mostly all of them have the same outcome."""
    first, count = outcomes[0], len(outcomes)
    if isinstance(first, Taken) and outcomes.count(first) == count:
        return _json({"taken": count, "new": count * first.new, "samples": count * first.samples, "refused": []})
    refused = [(place, outcome) for place, outcome in enumerate(outcomes) if isinstance(outcome, Problem)]
    taken = [outcome for outcome in outcomes if isinstance(outcome, Taken)]
    for _, problem in refused:
        face.counts.add(f"rejected:{problem.code}")
    return _json({
        "taken": len(taken), "new": sum([new for _, new in taken]), "samples": sum([samples for samples, _ in taken]),
        "refused": [{"report": place, "code": each.code, "detail": str(each)} for place, each in refused],
    })  # fmt: skip


async def _close(face: Face, request: Request) -> Response:
    place, data = _place(request), await _body(face, request, _MOST_CLOSE)
    receipt = await asyncio.to_thread(agreement.close, face.node, *place, data, _other(request))
    face.caretaker.poke()
    return _receipt(receipt)


async def _roster_in(face: Face, request: Request) -> Response:
    place = _place(request)
    most = await asyncio.to_thread(node.most_roster, face.node, place[0])
    data = await _body(face, request, most, face.node.limits.roster_bytes)
    receipt = await asyncio.to_thread(agreement.receive_roster, face.node, *place, data, _other(request))
    own = await asyncio.to_thread(agreement.own_roster, face.node, *place)
    return Response(own, 200, {EVENT: receipt.event}, JSON_TYPE)


async def _agreement_in(face: Face, request: Request) -> Response:
    place, data = _place(request), await _body(face, request, MOST_AGREEMENT)
    if await asyncio.to_thread(matching.receive_agreement, face.node, *place, data) == "new":
        face.caretaker.poke()
    signed = await asyncio.to_thread(matching.signed_agreements, face.node, *place)
    return _json({"agreements": [each.decode() for each in signed]})


async def _agreements(face: Face, request: Request) -> Response:
    signed = await asyncio.to_thread(matching.signed_agreements, face.node, *_place(request))
    return _json({"agreements": [each.decode() for each in signed]})


async def _rosters(face: Face, request: Request) -> Response:
    asked = (request.query_params.get(name, "") for name in ("compute", "round"))
    return await face.at_length(_listed, status.rosters, face.node, request.path_params["study"], *asked)


async def _sum(face: Face, request: Request) -> Response:
    return await _sum_for(face, request, None)


async def _sum_request(face: Face, request: Request) -> Response:
    return await _sum_for(face, request, await _body(face, request, _MOST_CLOSE))


async def _sum_for(face: Face, request: Request, signed: bytes | None) -> Response:
    place = _place(request)
    await asyncio.to_thread(answers.check_reader, face.node, *place, signed)
    body = await asyncio.to_thread(agreement.released_sum, face.node, *place)
    return Response(body, media_type=REPORT_TYPE)


async def _refused(face: Face, request: Request) -> Response:
    body = await asyncio.to_thread(answers.signed_refusal, face.node, *_place(request))
    return Response(body, media_type=JSON_TYPE)


async def _health(_: Face, __: Request) -> Response:
    return _json({"status": "alive"})


async def _ready(face: Face, _: Request) -> Response:
    await face.caretaker.health.check()
    return _json({"status": "ready", "name": face.node.name})


async def _metrics(face: Face, _: Request) -> Response:
    text = await face.at_length(prometheus, face.node.store, face.counts)
    return Response(text, media_type=CONTENT_TYPE)


async def _status(face: Face, _: Request) -> Response:
    return await face.overview.now()


async def _openapi(_: Face, __: Request) -> Response:
    return _json(describe())


async def _page(_: Face, __: Request) -> Response:
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"
    return Response(PAGE, 200, {"content-security-policy": policy}, "text/html; charset=utf-8")


_REPORTS = re.compile(r"/v1/studies/([0-9a-f]{64})/rounds/([0-9]{1,9})/reports")
_STUDY, _ROUND = "/v1/studies/{study}", "/v1/studies/{study}/rounds/{number:int}"
ROUTES: list[tuple[str, str, str, Any]] = [
    ("/", "GET", "page", _page),
    ("/v1/keys", "GET", "keys", _keys),
    ("/v1/studies", "GET", "studies", _studies),
    ("/v1/studies", "POST", "register", _register),
    (_STUDY, "GET", "study", _study),
    (f"{_STUDY}/clients", "POST", "invite", _invite),
    (f"{_STUDY}/commitment", "GET", "commitment", _commitment),
    (f"{_STUDY}/draw", "GET", "draw", _draw),
    (f"{_STUDY}/draw", "POST", "draw-request", _draw_in),
    (f"{_STUDY}/reveals", "POST", "reveals", _reveals_in),
    (f"{_STUDY}/listing", "GET", "listing", _listing),
    (f"{_STUDY}/enrolments", "POST", "enrol", _enrol),
    (f"{_STUDY}/rounds", "GET", "rounds", _rounds),
    (f"{_STUDY}/rounds", "POST", "open", _open),
    (f"{_STUDY}/rosters", "GET", "rosters", _rosters),
    (f"{_ROUND}/reports", "POST", "report", _report),
    (f"{_ROUND}/close", "POST", "close", _close),
    (f"{_ROUND}/rosters", "POST", "roster", _roster_in),
    (f"{_ROUND}/agreements", "GET", "agreements", _agreements),
    (f"{_ROUND}/agreements", "POST", "agreement", _agreement_in),
    (f"{_ROUND}/sum", "GET", "sum", _sum),
    (f"{_ROUND}/sum", "POST", "sum-request", _sum_request),
    (f"{_ROUND}/refusal", "GET", "refusal", _refused),
    ("/v1/status", "GET", "status", _status),
    ("/v1/health", "GET", "health", _health),
    ("/v1/ready", "GET", "ready", _ready),
    ("/metrics", "GET", "metrics", _metrics),
    ("/openapi.json", "GET", "openapi", _openapi),
]
