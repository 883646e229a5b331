"""A bad network between parties: requests lost before or after they arrive, sent twice, or arriving too slowly."""

from __future__ import annotations

import random
import socket
import time
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest

from hubbub.service.client.client import Client
from hubbub.service.client.outbox import Outbox
from hubbub.service.devnet import LocalComputes
from hubbub.service.node.compute import Limits
from hubbub.service.wire.messages import REPORT_TYPE
from hubbub.service.wire.web import Web
from service.live import LiveStudy, N

pytestmark = pytest.mark.slow


class BadNetwork(httpx.BaseTransport):
    """A real connection that loses a third of the requests, a third of the replies, and repeats a third of the rest."""

    def __init__(self, seed: int) -> None:
        self._real, self._random = httpx.HTTPTransport(), random.Random(seed)
        self.lost = self.repeated = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        if self._random.random() < 1 / 3:
            self.lost += 1
            raise httpx.ConnectError("the request was lost")
        if self._random.random() < 1 / 3:
            self.repeated += 1
            self._real.handle_request(request).read()
        reply = self._real.handle_request(request)
        if self._random.random() < 1 / 3:
            reply.read()
            self.lost += 1
            raise httpx.ReadError("the reply was lost")
        return reply


def over(study: LiveStudy, network: BadNetwork) -> None:
    """Let analyst and clients speak over this network."""
    web = Web(httpx.Client(transport=network), replace(study.web.patience, total=60.0, first=0.01, most=0.05))
    study.web, study.analyst = web, replace(study.analyst, web=web)
    study.clients = {name: replace(client, web=web) for name, client in study.clients.items()}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_lost_and_repeated_messages_change_nothing(live: LocalComputes, tmp_path: Path, seed: int):
    study, network = LiveStudy(live, tmp_path), BadNetwork(seed)
    over(study, network)
    study.prepare()
    record = study.plan()
    study.analyst.open_round(record)
    study.send(record)
    study.analyst.close(record)
    release = study.analyst.release(record)
    assert release.n == N
    np.testing.assert_array_equal(release.value, study.exact())
    assert network.lost > 10
    assert network.repeated > 3


def test_two_copies_of_one_client_are_one_client(live: LocalComputes, tmp_path: Path):
    """The second copy has another outbox, so other noise: it is told, and the first report stays."""
    study = LiveStudy(live, tmp_path)
    study.prepare()
    record = study.plan()
    study.analyst.open_round(record)
    study.send(record)
    twin = Client(study.study, "c0", Outbox(tmp_path / "twin.db"), study.web, simulation=True)
    before = study.counter(0, "wrong-session")
    with pytest.raises(Exception, match="does not take the report"):
        twin.contribute(record, study.rows("c0") * 7)
    assert study.counter(0, "wrong-session") == before + 1
    study.analyst.close(record)
    np.testing.assert_array_equal(study.analyst.release(record).value, study.exact())


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory):
    limits = Limits(simulation=True, requests_per_second=4.0, upload_seconds=1.0, body_bytes=2000, studies=1)
    with LocalComputes(tmp_path_factory.mktemp("strict"), 2, limits=limits) as computes:
        yield computes


def test_a_body_that_trickles_in_is_cut_off(strict: LocalComputes):
    time.sleep(1.0)
    with socket.create_connection(("127.0.0.1", strict.computes[0].port), timeout=10) as connection:
        head = f"POST /v1/studies/{'0' * 64}/rounds/0/reports HTTP/1.1\r\nhost: x\r\ncontent-type: {REPORT_TYPE}\r\ncontent-length: 100\r\n\r\nx"
        connection.sendall(head.encode())
        started = time.monotonic()
        assert connection.recv(4096).startswith(b"HTTP/1.1 408")
        assert 0.5 < time.monotonic() - started < 5


def test_too_many_requests_are_told_to_wait(strict: LocalComputes):
    url = f"{strict.urls[1]}/v1/health"
    with httpx.Client() as http:
        replies = [http.get(url) for _ in range(40)]
    refused = [reply for reply in replies if reply.status_code == 429]
    assert refused
    assert refused[0].json()["code"] == "too-fast"
    assert int(refused[0].headers["retry-after"]) >= 1
    time.sleep(1.5)
    assert httpx.get(url).status_code == 200
