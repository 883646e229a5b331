"""A limit on requests: a bucket of tokens for every address, refilled at a steady rate."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from hubbub.service.wire.problems import Problem

_MOST_ADDRESSES = 10_000
_BURST_SECONDS = 5.0


class Buckets:
    """At most `rate` requests a second from one address, with bursts of five seconds' worth."""

    def __init__(self, rate: float, clock: Callable[[], float]) -> None:
        self._rate, self._clock = rate, clock
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, address: str) -> None:
        """Let one request pass, or raise too-fast."""
        now, most = self._clock(), self._rate * _BURST_SECONDS
        level, then = self._levels.pop(address, (most, now))
        level = min(most, level + max(0.0, now - then) * self._rate)
        self._levels[address] = (max(level - 1.0, 0.0), now)
        if len(self._levels) > _MOST_ADDRESSES:
            self._levels.popitem(last=False)
        if level < 1.0:
            raise Problem("too-fast", f"requests must number at most {self._rate:g} a second; wait a moment", 1)
