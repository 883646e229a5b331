"""The OpenAPI description of a Compute, from one table of its operations."""

from __future__ import annotations

from typing import Any, NamedTuple

from hubbub.service.wire.messages import JSON_TYPE, PROBLEM_TYPE, REPORT_TYPE
from hubbub.service.wire.problems import KINDS

Schema = dict[str, Any]

_STUDY: Schema = {
    "name": "study", "in": "path", "required": True, "description": "SHA-256 of the study's canonical bytes.",
    "schema": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
}  # fmt: skip
_NUMBER: Schema = {
    "name": "number", "in": "path", "required": True, "description": "Rounds count from 0.",
    "schema": {"type": "integer", "minimum": 0, "maximum": 1000},
}  # fmt: skip
_OF_ROUND: Schema = {
    "name": "round", "in": "query", "description": "Of this round only.",
    "schema": {"type": "integer", "minimum": 0, "maximum": 1000},
}  # fmt: skip
_COMPUTE: Schema = {
    "name": "compute", "in": "query", "description": "Of this Compute only, by its place in the study.",
    "schema": {"type": "integer", "minimum": 0},
}  # fmt: skip
_CLIENT: Schema = {
    "name": "client", "in": "query", "required": True, "description": "The client's name.",
    "schema": {"type": "string"},
}  # fmt: skip


def _object(*required: str, **properties: Schema) -> Schema:
    return {"type": "object", "required": list(required or properties), "properties": properties}


_TEXT, _WHOLE, _YES, _HEX = (
    {"type": "string"},
    {"type": "integer"},
    {"type": "boolean"},
    {"type": "string", "pattern": "^[0-9a-f]*$"},
)
_RECEIPT = _object("event", "new", event=_TEXT, new=_YES, study=_TEXT)
_SIGNED = _object(record={"type": "object"}, signature={"type": "string", "pattern": "^[0-9a-f]{128}$"})
_REFUSED = _object(report=_WHOLE, code=_TEXT, detail=_TEXT)
_TAKEN = {
    "oneOf": [
        _object(samples=_WHOLE, new=_YES),
        _object(taken=_WHOLE, new=_WHOLE, samples=_WHOLE, refused={"type": "array", "items": _REFUSED}),
    ]
}
_KEYS = _object(hubbub=_WHOLE, name=_TEXT, suite=_TEXT, key=_HEX, verify_key=_HEX, time={"type": "number"})
_STUDIES = _object(studies={"type": "array", "items": _object(study=_TEXT, title=_TEXT)})
_ROUND = _object(
    "number",
    "state",
    "record",
    number=_WHOLE,
    state={"enum": ["open", "closed", "agreed", "released", "refused"]},
    record=_TEXT,
)
_ROUNDS = _object(study=_TEXT, rounds={"type": "array", "items": _ROUND})
_AGREEMENTS = _object(agreements={"type": "array", "items": _TEXT})
_ROSTERS = _object(rosters={"type": "array", "items": _TEXT})
_TEXTS = {"type": "array", "items": _TEXT}
_DRAW = _object(request=_TEXT, commitments=_TEXTS, reveals=_TEXTS)
_LISTING = _object(place=_WHOLE, hashes={"type": "array", "items": _HEX})
_ENROLMENT = _object(client=_TEXT, samples=_WHOLE, token=_HEX, key=_HEX, opening=_HEX, signature=_HEX)
_STATUS = _object(status=_TEXT)
_BINARY: Schema = {"type": "string", "format": "binary"}


class Operation(NamedTuple):
    """One entry of the description."""

    method: str
    path: str
    summary: str
    parameters: tuple[Schema, ...] = ()
    body: dict[str, Schema] | None = None
    success: tuple[int, ...] = (200,)
    answer: tuple[str, Schema] = (JSON_TYPE, {"type": "object"})


_S, _R = "/v1/studies/{study}", "/v1/studies/{study}/rounds/{number}"
_SENT: dict[str, Any] = {"body": {JSON_TYPE: _SIGNED}, "success": (200, 201), "answer": (JSON_TYPE, _RECEIPT)}
"""A signed record goes in, a receipt comes out."""
OPERATIONS = (
    Operation("get", "/v1/keys", "This Compute's public keys and clock.", answer=(JSON_TYPE, _KEYS)),
    Operation("get", "/v1/studies", "The studies registered here.", answer=(JSON_TYPE, _STUDIES)),
    Operation("post", "/v1/studies", "Register a study that its analyst signed.", (), **_SENT),
    Operation("get", _S, "The signed study.", (_STUDY,), answer=(JSON_TYPE, _SIGNED)),
    Operation("post", f"{_S}/clients", "Invite clients; signed by the analyst.", (_STUDY,), **_SENT),
    Operation(
        "get", f"{_S}/commitment", "This Compute's signed commitment to random bytes, for the draw of who serves whom.",
        (_STUDY,), answer=(JSON_TYPE, _SIGNED),
    ),
    Operation("get", f"{_S}/draw", "All signed records of the draw.", (_STUDY,), answer=(JSON_TYPE, _DRAW)),
    Operation(
        "post", f"{_S}/draw",
        "Fix the list of clients and all commitments; signed by the analyst. Answered with this Compute's reveal.",
        (_STUDY,), {JSON_TYPE: _DRAW}, answer=(JSON_TYPE, _SIGNED),
    ),
    Operation(
        "post", f"{_S}/reveals", "The draw with the reveals of all Computes.", (_STUDY,), {JSON_TYPE: _DRAW},
        (200, 201), (JSON_TYPE, _RECEIPT),
    ),
    Operation(
        "get", f"{_S}/listing", "The proof that a client is on the list that was fixed before the draw.",
        (_STUDY, _CLIENT), answer=(JSON_TYPE, _LISTING),
    ),
    Operation(
        "post", f"{_S}/enrolments", "Bind a client's key and session to its name with a one-time token.", (_STUDY,),
        {JSON_TYPE: _ENROLMENT}, (200, 201), (JSON_TYPE, _RECEIPT),
    ),
    Operation("get", f"{_S}/rounds", "The rounds with their states.", (_STUDY,), answer=(JSON_TYPE, _ROUNDS)),
    Operation("post", f"{_S}/rounds", "Open a round; the ledger is charged.", (_STUDY,), **_SENT),
    Operation(
        "get", f"{_S}/rosters", "Signed rosters held here.", (_STUDY, _COMPUTE, _OF_ROUND), answer=(JSON_TYPE, _ROSTERS)
    ),
    Operation(
        "post", f"{_R}/reports",
        "Upload a client's report, or a batch of several clients'; the same bytes again change nothing.",
        (_STUDY, _NUMBER), {REPORT_TYPE: _BINARY}, answer=(JSON_TYPE, _TAKEN),
    ),
    Operation("post", f"{_R}/close", "End the round; signed by the analyst.", (_STUDY, _NUMBER), **_SENT),
    Operation(
        "post", f"{_R}/rosters", "Exchange rosters between Computes; each signs its own.", (_STUDY, _NUMBER),
        {JSON_TYPE: _SIGNED}, (200,), (JSON_TYPE, _SIGNED),
    ),
    Operation(
        "get", f"{_R}/agreements", "What this Compute has signed that it would release over, and who signed the same.",
        (_STUDY, _NUMBER), answer=(JSON_TYPE, _AGREEMENTS),
    ),
    Operation(
        "post", f"{_R}/agreements", "Exchange what the Computes would release over; each signs its own.",
        (_STUDY, _NUMBER), {JSON_TYPE: _SIGNED}, (200,), (JSON_TYPE, _AGREEMENTS),
    ),
    Operation(
        "get", f"{_R}/sum", "This Compute's signed sum, always the same bytes.", (_STUDY, _NUMBER),
        answer=(REPORT_TYPE, _BINARY),
    ),
    Operation(
        "post", f"{_R}/sum", "The same for the analyst, whose signed request every study takes; some take no other.",
        (_STUDY, _NUMBER), {JSON_TYPE: _SIGNED}, answer=(REPORT_TYPE, _BINARY),
    ),
    Operation(
        "get", f"{_R}/refusal", "This Compute's signature that it refused the round.", (_STUDY, _NUMBER),
        answer=(JSON_TYPE, _SIGNED),
    ),
    Operation("get", "/v1/status", "What the status page shows."),
    Operation("get", "/v1/health", "Alive.", answer=(JSON_TYPE, _STATUS)),
    Operation(
        "get", "/v1/ready", "The database can be written, and every round that has not ended is looked after.",
        answer=(JSON_TYPE, _STATUS),
    ),
    Operation("get", "/metrics", "Prometheus text.", answer=("text/plain", {"type": "string"})),
)  # fmt: skip


def describe() -> dict[str, Any]:
    """OpenAPI 3.1."""
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "hubbub Compute", "version": "1", "license": {"name": "MIT", "identifier": "MIT"}},
        "paths": paths,
        "components": {"schemas": {"Problem": _problem()}},
    }


def _operation(operation: Operation) -> dict[str, Any]:
    kind, schema = operation.answer
    responses = {
        str(code): {"description": "Done.", "content": {kind: {"schema": schema}}} for code in operation.success
    }
    problem = {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    refusals = sorted({kind.status for kind in KINDS.values()})
    responses |= {str(code): {"description": "Refused.", "content": problem} for code in refusals}
    found: dict[str, Any] = {
        "operationId": f"{operation.method}{operation.path}", "summary": operation.summary,
        "parameters": list(operation.parameters), "responses": responses,
    }  # fmt: skip
    if operation.body is not None:
        content = {kind: {"schema": schema} for kind, schema in operation.body.items()}
        found["requestBody"] = {"required": True, "content": content}
    return found


def _problem() -> Schema:
    return _object(type=_TEXT, title=_TEXT, status=_WHOLE, detail=_TEXT, code={"enum": sorted(KINDS)})
