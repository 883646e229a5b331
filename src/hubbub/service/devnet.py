"""Computes on this machine as real processes: for `hubbub up`, the network engine's tests, and fault injection."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType

import httpx

from hubbub.errors import HubbubError
from hubbub.service.devnet_tls import Authority
from hubbub.service.node.compute import Limits
from hubbub.service.node.config import WITH_PARENT, init_compute, verify_with

_START_SECONDS = 30.0


@dataclass
class LocalCompute:
    """One Compute process, which can be stopped, killed and started again."""

    folder: Path
    port: int
    url: str
    authority: Path | None = None
    reserved: socket.socket | None = field(default=None, repr=False)
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def start(self, environment: Mapping[str, str] | None = None) -> None:
        """Start it and wait until it answers."""
        if self.reserved is not None:
            hand_over(self.reserved)
        command = [sys.executable, "-m", "hubbub", "compute", "serve", "--config", str(self.folder / "compute.toml")]
        with open(self.folder / "log.jsonl", "ab") as log:
            settings = {**os.environ, WITH_PARENT: "1", **(environment or {})}
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=settings)
        self._wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        verify = False if self.authority is None else verify_with(self.authority)
        with httpx.Client(verify=verify, timeout=2.0) as http:
            while time.monotonic() < deadline:
                assert self.process is not None
                if self.process.poll() is not None:
                    break
                try:
                    if http.get(f"{self.url}/v1/ready").status_code == 200:
                        return
                except httpx.TransportError:
                    time.sleep(0.05)
        tail = (self.folder / "log.jsonl").read_text(errors="replace")[-500:]
        raise HubbubError(f"Compute must start within {_START_SECONDS:g} s, got this log: {tail}")

    def stop(self) -> None:
        """Ask it to end, and wait."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """kill -9."""
        self._end(signal.SIGKILL)

    def wait_for_death(self, seconds: float = 10.0) -> None:
        """Until a crash that a test asked for has happened."""
        assert self.process is not None
        self.process.wait(seconds)

    def _end(self, number: signal.Signals) -> None:
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None


class LocalComputes:
    """M Computes on free ports of this machine, with a development authority for TLS where asked.

    They take any analyst's studies, since only this machine reaches them; with anyone=False those they are told to.
    """

    def __init__(
        self,
        folder: Path,
        computes: int = 3,
        *,
        tls: bool = False,
        limits: Limits | None = None,
        databases: Sequence[str] | None = None,
        anyone: bool = True,
    ) -> None:
        limits = replace(limits or Limits(), anyone=anyone)
        self.folder, self.authority = folder, None
        authority = Authority.create(folder) if tls else None
        self.authority = None if authority is None else authority.certificate
        self.computes = [
            self._make(k, authority, limits, None if databases is None else databases[k]) for k in range(computes)
        ]

    def _make(self, k: int, authority: Authority | None, limits: Limits, database: str | None) -> LocalCompute:
        reserved, place = reserve_port(), self.folder / f"compute-{k + 1}"
        port = port_of(reserved)
        config = init_compute(
            place, f"compute-{k + 1}", f"127.0.0.1:{port}", database=database or "sqlite:///compute.db", limits=limits
        )
        if authority is not None:
            authority.issue(place, "127.0.0.1")
            entries = f'certificate = "server.pem"\nkey = "server.key"\nauthority = "{authority.certificate}"'
            config.write_text(config.read_text().replace("[limits]", f"[tls]\n{entries}\n\n[limits]"))
        scheme = "http" if authority is None else "https"
        return LocalCompute(place, port, f"{scheme}://127.0.0.1:{port}", self.authority, reserved)

    @property
    def urls(self) -> tuple[str, ...]:
        """Where they are."""
        return tuple(compute.url for compute in self.computes)

    def __enter__(self) -> LocalComputes:
        try:
            for compute in self.computes:
                compute.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        for compute in self.computes:
            compute.stop()
            if compute.reserved is not None:
                compute.reserved.close()


def reserve_port() -> socket.socket:
    """A free port, bound but not listened on: Linux gives it to nobody but who asks for it by its number."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved


def port_of(reserved: socket.socket) -> int:
    """Its number."""
    return int(reserved.getsockname()[1])


def hand_over(reserved: socket.socket) -> None:
    """Before a child listens there: other systems than Linux do not let it bind what is still reserved."""
    if sys.platform != "linux":
        reserved.close()
