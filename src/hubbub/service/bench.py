"""How fast a Compute is, beside what HTTP alone allows on the same machine in the same run."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from hubbub.arrays import Floats
from hubbub.errors import whole
from hubbub.privacy import Population, gaussian_round
from hubbub.protocols import RoundSpec
from hubbub.randomness import Randomness
from hubbub.roles import contribute
from hubbub.securesum import PrivateKey, Session, encode_report, join_reports, start_session
from hubbub.service.analyst.analyst import Analyst, find_compute, make_tokens, new_study
from hubbub.service.client.client import Client
from hubbub.service.client.outbox import Outbox
from hubbub.service.devnet import LocalCompute, LocalComputes, hand_over, port_of, reserve_port
from hubbub.service.node.compute import Limits
from hubbub.service.wire.canonical import canonical, digest, sign_record
from hubbub.service.wire.messages import (
    ENROL,
    JSON_TYPE,
    REPORT_TYPE,
    enrol_parts,
    token_for,
)
from hubbub.service.wire.records import ComputeRecord, RoundRecord, StudyRecord
from hubbub.service.wire.signing import SigningKey
from hubbub.service.wire.web import Patience, Web
from hubbub.statistics import Means

CONNECTIONS = 256
_TURNS = 5
_THREADS = 16  # that clients of the whole round share
_LIMITS = Limits(simulation=True, requests_per_second=1e9, studies=1000)
_EMPTY = """
import sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
async def take(request):
    async for _ in request.stream():
        pass
    return Response(b"{}", media_type="application/json")
app = Starlette(routes=[Route("/empty", take, methods=["POST"])])
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=False, log_level="warning")
"""


@dataclass(frozen=True)
class Sizes:
    """What is measured."""

    dimension: int = 77
    singles: int = 2000
    """Reports that are uploaded one by one, in each turn."""
    batched: int = 10_000
    """Reports that are uploaded in batches, in each turn."""
    batch: int = 100
    """Reports of a batch, or samples of a party."""
    parties: int = 1000
    clients: int = 20_000

    def __post_init__(self) -> None:
        whole("clients", self.clients, 2, "one client alone cannot hide")
        whole("singles", self.singles, 1, "give how many reports are uploaded one by one")


def run(sizes: Sizes, note: Callable[[str], None], tick: Callable[[int], None]) -> dict[str, Any]:
    """Rates of one Compute, and a whole round through three."""
    with tempfile.TemporaryDirectory(prefix="hubbub-bench-") as folder:
        found = _one_node(sizes, Path(folder) / "one", note)
        return found | _end_to_end(sizes, Path(folder) / "three", note, tick)


def _one_node(sizes: Sizes, folder: Path, note: Callable[[str], None]) -> dict[str, Any]:
    with LocalComputes(folder, 1, limits=_LIMITS) as computes, httpx.Client() as http, _empty() as port:
        node, web = computes.computes[0], Web(http)
        note("single uploads, batches, and a handler that does nothing ...")
        empty, single, batched, enrolled, parties = _Clock(), _Clock(), _Clock(), _Clock(), _Clock()
        names = _names(sizes.singles + sizes.batched)
        for _ in range(_TURNS):  # in turns: what slows the machine down for a moment slows all of them
            load = _Load(sizes, node, web, dict.fromkeys(names, 1))
            enrolled.add(node.port, load.enrolments(), expect=201)
            alone = load.uploads(names[: sizes.singles])
            empty.add(port, [body.replace(body.split(b" ")[1], b"/empty", 1) for body in alone])
            single.add(node.port, alone)
            together = load.uploads(names[sizes.singles :], sizes.batch)
            batched.add(node.port, together, reports=sizes.batched)
        note(f"parties of {sizes.batch} samples ...")
        load = _Load(sizes, node, web, dict.fromkeys(_names(sizes.parties), sizes.batch))
        enrolled.add(node.port, load.enrolments(), expect=201)
        parties.add(node.port, load.uploads(list(load.samples)), reports=sizes.parties * sizes.batch)
    return {
        "dimension": sizes.dimension, "empty_per_second": empty.rate, "single_per_second": single.rate,
        "single_over_empty": single.rate / empty.rate, "batch": sizes.batch, "batched_per_second": batched.rate,
        "batched_over_single": batched.rate / single.rate, "party_samples_per_second": parties.rate,
        "party_samples_over_single": parties.rate / single.rate, "enrolled_per_second": enrolled.rate,
    }  # fmt: skip


def _names(count: int) -> list[str]:
    return [f"c{i}" for i in range(count)]


@dataclass
class _Clock:
    """How much was accepted in how many seconds."""

    reports: int = 0
    seconds: float = 0.0

    def add(self, port: int, requests: Sequence[bytes], *, expect: int = 200, reports: int | None = None) -> None:
        """Send these, and count what they hold."""
        self.seconds += blast(port, requests, expect)
        self.reports += len(requests) if reports is None else reports

    @property
    def rate(self) -> float:
        return self.reports / self.seconds


class _Load:
    """Prepared requests to the first Compute of a study; the other Computes of it exist on paper only."""

    def __init__(self, sizes: Sizes, node: LocalCompute, web: Web, samples: dict[str, int]) -> None:
        self.node, self.samples = node, samples
        paper = [
            ComputeRecord(f"paper-{k}", f"http://127.0.0.1:{k + 1}", PrivateKey.generate().public(), os.urandom(32))
            for k in range(2)
        ]
        key = SigningKey.generate()
        computes = [find_compute(node.url, web), *paper]
        population = Population(len(samples), samples=sum(samples.values()), largest=max(samples.values()))
        self.study: StudyRecord = new_study("bench", computes, population, None, key, seconds=3600)
        alone = Analyst(self.study, key, web)
        self.tokens, self.keys = make_tokens(samples), {name: SigningKey.generate() for name in samples}
        never = [self._start("nobody", position) for position in (1, 2)]
        self.sessions = {name: [self._start(name, 0), *never] for name in samples}
        _register_at_first(alone, self.tokens)
        record = alone.plan(0, _spec(sizes))
        _open_at_first(alone, record)
        self.role = record.checked(self.study)

    def _start(self, name: str, position: int) -> Session:
        return start_session(self.study.computes[position].key, digest(self.study), name, position)

    def enrolments(self) -> list[bytes]:
        """One request for every client."""
        return [self._enrolment(name) for name in self.samples]

    def _enrolment(self, name: str) -> bytes:
        key, compute, opening = self.keys[name], self.study.computes[0], self.sessions[name][0].opening
        samples, token = self.samples[name], token_for(self.tokens[name][0], compute.verify_key)
        parts = enrol_parts(digest(self.study), 0, name, samples, key.public(), opening)
        content = {"client": name, "samples": samples, "token": token.hex(), "key": key.public().hex(),
                   "opening": opening.hex(), "signature": key.sign(ENROL, *parts).hex()}  # fmt: skip
        return request(f"/v1/studies/{self.study.id}/enrolments", canonical(content), JSON_TYPE)

    def uploads(self, names: Sequence[str], batch: int = 1) -> list[bytes]:
        """The reports of these clients, so many in a request."""
        rng, path = np.random.default_rng(0), f"/v1/studies/{self.study.id}/rounds/0/reports"
        dimension = self.role.plan(0).dimension
        reports = [self._report(name, rng.uniform(-1, 1, (self.samples[name], dimension))) for name in names]
        starts = range(0, len(reports), batch)
        return [request(path, join_reports(reports[start : start + batch]), REPORT_TYPE) for start in starts]

    def _report(self, name: str, rows: Floats) -> bytes:
        sessions = [each.short() for each in self.sessions[name]]
        return encode_report(contribute(self.role, 0, name, rows, Randomness.system(), sessions=sessions)[0])


def _spec(sizes: Sizes) -> RoundSpec:
    return gaussian_round(Means((1.0,) * sizes.dimension), 1.0, "bench")


def _register_at_first(analyst: Analyst, tokens: dict[str, tuple[bytes, int]]) -> None:
    first = analyst.study.computes[0]
    analyst.web.post(f"{first.url}/v1/studies", sign_record(analyst.study, analyst.key))
    analyst.invite(tokens, only=0)


def _open_at_first(analyst: Analyst, record: RoundRecord) -> None:
    url = f"{analyst.study.computes[0].url}/v1/studies/{analyst.study.id}/rounds"
    analyst.web.post(url, sign_record(record, analyst.key))


@contextlib.contextmanager
def _empty() -> Iterator[int]:
    """The port of a handler that reads the body and does nothing."""
    reserved = reserve_port()
    port = port_of(reserved)
    hand_over(reserved)
    process = subprocess.Popen([sys.executable, "-c", _EMPTY, str(port)])
    try:
        for _ in range(200):
            try:
                if httpx.post(f"http://127.0.0.1:{port}/empty", content=b"x").status_code == 200:
                    break
            except httpx.TransportError:
                time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait(10)
        reserved.close()


def request(path: str, body: bytes, kind: str, headers: dict[str, str] | None = None) -> bytes:
    """An HTTP/1.1 request as bytes."""
    lines = [f"POST {path} HTTP/1.1", "host: bench", f"content-type: {kind}", f"content-length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def blast(port: int, requests: Sequence[bytes], expect: int = 200) -> float:
    """Seconds that these take over many kept connections; every answer must have the expected status."""
    return asyncio.run(_blast(port, list(requests), expect))


async def _blast(port: int, requests: list[bytes], expect: int) -> float:
    status = f"HTTP/1.1 {expect} ".encode()

    async def connection() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while requests:
            writer.write(requests.pop())
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            body = await reader.readexactly(length)
            if not head.startswith(status):
                raise RuntimeError(
                    f"a Compute must take every request of the benchmark, got {head[:40]!r} {body[:200]!r}"
                )
        writer.close()

    started = time.perf_counter()
    await asyncio.gather(*(connection() for _ in range(min(CONNECTIONS, len(requests)))))
    return time.perf_counter() - started


def _end_to_end(sizes: Sizes, folder: Path, note: Callable[[str], None], tick: Callable[[int], None]) -> dict[str, Any]:
    """N clients through three Computes, with peak memory and the seconds from close to sum."""
    with LocalComputes(folder, 3, limits=_LIMITS) as computes:
        web = Web.open(None, Patience(total=120.0, first=0.05, most=0.5))
        key = SigningKey.generate()
        found = [find_compute(url, web) for url in computes.urls]
        study = new_study("bench", found, Population(sizes.clients), None, key, seconds=3600)
        analyst, tokens = Analyst(study, key, web), make_tokens({f"c{i}": 1 for i in range(sizes.clients)})
        analyst.register()
        analyst.invite(tokens)
        record = analyst.plan(0, _spec(sizes))
        analyst.open_round(record)
        outbox = Outbox(folder / "outbox.db")
        note(f"{sizes.clients} clients through 3 Computes ...")
        rows = np.random.default_rng(0).uniform(-1, 1, (sizes.clients, sizes.dimension))

        def take_part(row: int) -> None:
            client = Client(study, f"c{row}", outbox, web, simulation=True)
            client.enrol(tokens[client.name][0])
            client.contribute(record, rows[row : row + 1])
            tick(1)

        started = time.perf_counter()
        with ThreadPoolExecutor(_THREADS) as pool:
            for _ in pool.map(take_part, range(sizes.clients)):
                pass
        uploaded = time.perf_counter()
        analyst.close(record)
        release = analyst.release(record)
        ended = time.perf_counter()
        peaks = [_peak_mb(compute) for compute in computes.computes]
    return {
        "clients": release.n, "computes": 3, "upload_seconds": uploaded - started, "close_seconds": ended - uploaded,
        "peak_mb": peaks,
    }  # fmt: skip


def _peak_mb(compute: LocalCompute) -> float:
    assert compute.process is not None
    status = Path(f"/proc/{compute.process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def verdict(found: dict[str, Any]) -> dict[str, bool]:
    """What the service promises of itself, held against a run."""
    return {
        "singles at least half of an empty handler": found["single_over_empty"] >= 0.5,
        "batches of 100 reports at least eight times singles": found["batched_over_single"] >= 8,
        "parties of 100 samples at least ten times singles": found["party_samples_over_single"] >= 10,
        "memory below 300 MB": max(found["peak_mb"]) < 300,
        "closing and summing below 10 s": found["close_seconds"] < 10,
    }
