"""The description matches what the node does, and no request it allows (or forbids) makes the node fail."""

from __future__ import annotations

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from hubbub.service.devnet import LocalComputes
from hubbub.service.node.app import ROUTES
from hubbub.service.node.openapi import OPERATIONS, Operation, describe

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
SCHEMA = schemathesis.openapi.from_dict(describe())


def test_every_route_is_described_and_nothing_else():
    served = {(path.replace(":int", ""), method.lower()) for path, method, _, _ in ROUTES}
    assert served - {("/", "get"), ("/openapi.json", "get")} == {(o.path, o.method) for o in OPERATIONS}


def test_a_node_serves_its_own_description(live: LocalComputes):
    assert httpx.get(f"{live.urls[0]}/openapi.json").json() == describe()


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: f"{o.method} {o.path}")  # ids that xdist can tell apart
def test_whatever_comes_it_answers_as_described(live: LocalComputes, operation: Operation):
    """No 5xx, no hang (time-out of 10 s), and every answer has a described status, type and shape."""

    @settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
    @given(case=SCHEMA[operation.path][operation.method.upper()].as_strategy())
    def answers(case: schemathesis.Case) -> None:
        case.call_and_validate(base_url=live.urls[0], timeout=10, checks=CHECKS)

    answers()
