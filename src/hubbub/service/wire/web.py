"""HTTP with patience: retries with back-off, honours Retry-After, and says plainly when a Compute refuses."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Collection
from dataclasses import dataclass, field, replace

import httpx

from hubbub.errors import HubbubError
from hubbub.service.wire.messages import EVENT, JSON_TYPE
from hubbub.service.wire.problems import Problem, one_line, problem_from

TRANSIENT = frozenset({"too-fast", "timeout", "internal", "not-ready"})
MOST_ANSWER = 1_000_000
"""Bytes of an answer where nothing else is said: a receipt, keys, what became of a batch, a problem."""
MOST_LIST = 64_000_000
"""Bytes of a list of rounds or of all that a Compute is doing, which grow with every round."""
PLAIN = {"accept-encoding": "identity"}
"""No compression: what arrives is as long as it seems, so that a limit on its length is one on the memory it takes."""
_ANSWER_SECONDS = 120.0


class Unreachable(HubbubError):
    """A Compute did not answer in time. Whatever was to be sent is kept: the same call again goes on with it."""

    def __init__(self, message: str, *, busy: bool = False) -> None:
        super().__init__(message)
        self.busy = busy
        """True where it did answer, and asked to be asked later."""


@dataclass(frozen=True)
class Patience:
    """How long to try: waits double from `first` to `most` seconds, until `total` seconds are over."""

    total: float = 60.0
    first: float = 0.1
    most: float = 10.0


@dataclass(frozen=True)
class Web:
    """Requests to Computes."""

    http: httpx.Client = field(repr=False)
    patience: Patience = field(default_factory=Patience)

    @classmethod
    def open(cls, authority: str | None = None, patience: Patience | None = None) -> Web:
        """A new one; `authority` is a PEM file that the Computes' certificates are checked with."""
        import ssl

        verify = True if authority is None else ssl.create_default_context(cafile=authority)
        limits = httpx.Limits(max_keepalive_connections=50, max_connections=50)
        timeout = httpx.Timeout(30.0, connect=5.0)
        http = httpx.Client(verify=verify, timeout=timeout, limits=limits, follow_redirects=False)
        return cls(http, patience or Patience())

    def briefly(self, seconds: float) -> Web:
        """The same for Computes that one can do without: not waited for any longer than this."""
        return replace(self, patience=replace(self.patience, total=min(seconds, self.patience.total)))

    def get(self, url: str, wait_for: Collection[str] = (), most: int = MOST_ANSWER) -> httpx.Response:
        """The reply, of at most so many bytes; problems named in `wait_for` are waited out like a passing fault."""
        return self._call("GET", url, None, {}, wait_for, most)

    def post(
        self,
        url: str,
        body: bytes,
        *,
        kind: str = JSON_TYPE,
        headers: dict[str, str] | None = None,
        wait_for: Collection[str] = (),
        most: int = MOST_ANSWER,
    ) -> httpx.Response:
        """The reply to a body, which is sent again byte for byte where no reply came."""
        sent = {"content-type": kind, EVENT: uuid.uuid4().hex, **(headers or {})}
        return self._call("POST", url, body, sent, wait_for, most)

    def _call(
        self, method: str, url: str, body: bytes | None, headers: dict[str, str], wait_for: Collection[str], most: int
    ) -> httpx.Response:
        deadline, wait = time.monotonic() + self.patience.total, self.patience.first
        while True:
            found = self._once(method, url, body, headers, most)
            if isinstance(found, httpx.Response):
                return found
            if isinstance(found, Problem) and found.code not in {*TRANSIENT, *wait_for}:
                raise found
            pause = wait * random.uniform(0.7, 1.3)
            if isinstance(found, Problem) and found.retry_after is not None and found.code not in wait_for:
                pause = max(pause, float(found.retry_after))
            if time.monotonic() + pause > deadline:
                raise _given_up(url, found, self.patience.total)
            time.sleep(pause)
            wait = min(2 * wait, self.patience.most)

    def _once(
        self, method: str, url: str, body: bytes | None, headers: dict[str, str], most: int
    ) -> httpx.Response | Problem | httpx.TransportError:
        try:
            with self.http.stream(method, url, content=body, headers={**headers, **PLAIN}) as reply:
                check_plain(reply)
                content = _read(reply, most)
        except httpx.TransportError as error:
            return error
        if reply.status_code < 300:
            return httpx.Response(reply.status_code, headers=reply.headers, content=content, request=reply.request)
        return problem_from(reply.status_code, content, reply.headers.get("retry-after"))


def check_plain(reply: httpx.Response) -> None:
    """Refuse an answer that is compressed although none was asked for: a small one could fill the memory."""
    if (encoding := reply.headers.get("content-encoding", "identity")) != "identity":
        raise Problem(
            "malformed", f"Compute must answer without compression, got {one_line(encoding, 40)}; do not use it"
        )


def too_long(most: int) -> Problem:
    """What to say of an answer that is longer than any of its kind."""
    return Problem("too-large", f"Compute must answer with at most {most} bytes, got more; ask its operator")


def _read(reply: httpx.Response, most: int) -> bytes:
    """The bytes as they came, and no more of them than `most`; in a time that somebody may wait."""
    found, latest = bytearray(), time.monotonic() + _ANSWER_SECONDS
    for chunk in reply.iter_bytes():
        found += chunk
        if len(found) > most:
            raise too_long(most)
        if time.monotonic() > latest:
            raise httpx.ReadTimeout("the answer trickles in", request=reply.request)
    return bytes(found)


def _given_up(url: str, last: Problem | httpx.TransportError, seconds: float) -> HubbubError:
    """A state that did not change is a problem as it is; no answer at all is Unreachable."""
    if isinstance(last, Problem) and last.code not in TRANSIENT:
        return last
    host = httpx.URL(url).copy_with(path="/", query=None)
    said = f"Compute must answer within {seconds:g} s, got {last} from {host}; run the same command again"
    return Unreachable(said, busy=isinstance(last, Problem))
