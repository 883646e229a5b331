"""Peers that never end a request: the node stays small, and answers everybody else at once."""

from __future__ import annotations

import contextlib
import resource
import select
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from hubbub.service.devnet import LocalCompute, LocalComputes
from hubbub.service.node.compute import Limits

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="needs 127.0.0.2, and /proc to see how much memory a node has"),
]
ATTACKER, MOST_MB = "127.0.0.2", 300
HEADER_SECONDS = 3.0


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCompute]:
    limits = Limits(simulation=True, header_seconds=HEADER_SECONDS)
    with LocalComputes(tmp_path_factory.mktemp("slow"), 1, limits=limits) as computes:
        yield computes.computes[0]


def megabytes(node: LocalCompute, what: str = "VmHWM") -> float:
    assert node.process is not None
    lines = Path(f"/proc/{node.process.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(what)).split()[1]) / 1024


@contextlib.contextmanager
def connections(node: LocalCompute, count: int, data: bytes) -> Iterator[list[socket.socket]]:
    """From the attacker's address, each with these first bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, count + 500)), hard))
    made = list[socket.socket]()
    try:
        for _ in range(count):
            made.append(socket.create_connection(("127.0.0.1", node.port), 10, source_address=(ATTACKER, 0)))
            with contextlib.suppress(ConnectionError):
                made[-1].sendall(data)
        yield made
    finally:
        for each in made:
            each.close()


def still_open(found: list[socket.socket]) -> int:
    """How many of them the node has not hung up on."""
    waiting = select.poll()
    for each in found:
        waiting.register(each, select.POLLIN)
    return len(found) - len(waiting.poll(0))


def seconds_to_answer(node: LocalCompute, source: str = "127.0.0.1", path: str = "/v1/ready") -> float:
    transport = httpx.HTTPTransport(local_address=source)
    started = time.monotonic()
    with httpx.Client(transport=transport, timeout=20) as http:
        assert http.get(f"{node.url}{path}").status_code == 200
    return time.monotonic() - started


def test_2050_unfinished_headers_from_one_address_keep_nobody_out(node: LocalCompute):
    with connections(node, 2050, b"GET /v1/ready HTTP/1.1\r\nx-slow: ") as attackers:
        assert max(seconds_to_answer(node) for _ in range(5)) < 1.0
        assert still_open(attackers) <= Limits().connections_per_address
        assert seconds_to_answer(node, ATTACKER) < 1.0  # even a neighbour of theirs: who waits longest gives way
        assert megabytes(node) < MOST_MB
        deadline = time.monotonic() + HEADER_SECONDS + 10
        while still_open(attackers) and time.monotonic() < deadline:
            for each in attackers[-50:]:  # a byte now and then does not help
                with contextlib.suppress(OSError):
                    each.send(b"x")
            time.sleep(0.2)
        assert still_open(attackers) == 0


def unfinished_bodies(node: LocalCompute, path: str, count: int, size: int, stop: threading.Event) -> None:
    """All but the last bytes of so many bodies, as fast as they are taken, and then nothing."""
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/octet-stream\r\ncontent-length: {size + 9}\r\n\r\n"
    with connections(node, count, head.encode()) as attackers:
        left, piece = dict.fromkeys(attackers, size), bytes(1_000_000)
        for each in attackers:
            each.setblocking(False)
        while left and not stop.is_set():
            for each in select.select([], list(left), [], 0.1)[1]:
                try:
                    left[each] -= each.send(piece[: left[each]])
                except OSError:
                    left[each] = 0
                if not left[each]:
                    del left[each]
        stop.wait(20)


def test_100_unfinished_bodies_take_no_more_than_their_budget(node: LocalCompute):
    stop, path = threading.Event(), f"/v1/studies/{'ab' * 32}/rounds/0/reports"
    attack = threading.Thread(target=unfinished_bodies, args=(node, path, 100, 15_000_000, stop))
    attack.start()
    waits, deadline = list[float](), time.monotonic() + 4
    while time.monotonic() < deadline:
        waits.append(seconds_to_answer(node))
        time.sleep(0.1)
    kind = {"content-type": "application/octet-stream"}
    honest = httpx.post(f"{node.url}{path}", content=bytes(8_000_000), headers=kind, timeout=20)
    stop.set()
    attack.join()
    assert max(waits) < 1.0
    assert megabytes(node) < MOST_MB
    assert honest.json()["code"] == "not-found"  # it was read whole before anybody looked for its study


def test_many_large_bodies_that_do_end_take_no_more_either(node: LocalCompute):
    """Whoever is refused for want of room sends again later; nothing of a body stays once it is answered."""
    kind, path = {"content-type": "application/octet-stream"}, f"/v1/studies/{'ab' * 32}/rounds/0/reports"
    codes = list[str]()

    def send() -> None:
        transport = httpx.HTTPTransport(local_address=ATTACKER)
        with httpx.Client(transport=transport, timeout=60) as http:
            for _ in range(2):
                codes.append(http.post(f"{node.url}{path}", content=bytes(15_000_000), headers=kind).json()["code"])

    threads = [threading.Thread(target=send) for _ in range(20)]
    for each in threads:
        each.start()
    waits = [seconds_to_answer(node) for _ in range(5)]
    for each in threads:
        each.join()
    assert set(codes) <= {"not-found", "too-fast"}
    assert codes.count("not-found") > 3
    assert max(waits) < 1.0
    assert megabytes(node) < MOST_MB


@pytest.mark.parametrize(
    "start", [b"0\r\na: ", b"0\r\na: b\r\n", b"1;"], ids=["trailer", "trailers", "chunk extension"]
)
def test_what_may_follow_a_chunk_has_an_end(node: LocalCompute, start: bytes):
    """The parser keeps it all: one connection took a node to 1.4 GB."""
    head = f"POST /v1/studies/{'0' * 64}/rounds/0/reports HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\n"
    piece = b"a: bbbbbbbbbbbb\r\n" * 4096 if start.endswith(b"\n") else b"b" * 65536
    with connections(node, 1, f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + start) as (peer,):
        sent = 0
        with contextlib.suppress(OSError):
            while sent < 50_000_000:
                peer.sendall(piece)
                sent += len(piece)
    assert sent < 10_000_000  # what the sockets hold
    assert megabytes(node) < MOST_MB
