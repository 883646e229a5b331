"""HTTP on one connection, as uvicorn speaks it, for peers that take their time or never end."""

from __future__ import annotations

import time
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from hubbub.service.door import Guest, Guests

IDLE_SECONDS = 30
"""For which an answered connection is kept for the next request."""
_TAKING_SECONDS = 120  # for the peer to take a long answer
_MOST_HEADER = 65_536  # bytes of a header, besides what came with its first piece
_MOST_PIPELINED = 8  # requests on one connection that wait for the one before


class Visitor(HttpToolsProtocol):
    """Tells the guest list whether the connection waits or is served, and hangs up on endless headers."""

    def __init__(self, guests: Guests, **settings: Any) -> None:
        super().__init__(**settings)
        self._guests = guests
        self._guest: Guest | None = None
        self._in_header, self._begun, self._header_bytes = True, False, 0

    def connection_made(self, transport: Any) -> None:
        """Find the place on the guest list; one that was shut already has none."""
        super().connection_made(transport)
        self._guest = self._guests.numbered(transport.get_extra_info("socket").fileno())
        if self._guest is None:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Parse it, and hang up where the header has no end."""
        self._begun = False
        super().data_received(data)
        if self._in_header and not self._begun:
            self._header_bytes += len(data)
            if self._header_bytes > _MOST_HEADER:
                self.transport.abort()

    def on_message_begin(self) -> None:
        """The first byte of a request is here; the rest of its header must follow."""
        super().on_message_begin()
        self._in_header, self._begun, self._header_bytes = True, True, 0
        if self._guest is not None and self._guest.due is not None:
            self._guest.due = min(self._guest.due, time.monotonic() + self._guests.header_seconds)

    def on_headers_complete(self) -> None:
        """From now on it is served; how long its body takes is looked after where that is read."""
        self._in_header = False
        if len(self.pipeline) >= _MOST_PIPELINED:
            raise httptools.HttpParserError("too many requests at once")
        if self._guest is not None:
            self._guest.due = None
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """It waits again, unless it has sent the next request already."""
        super().on_response_complete()
        if self._guest is not None and not self.pipeline:
            seconds = _TAKING_SECONDS if self.transport.get_write_buffer_size() else IDLE_SECONDS
            self._guest.due = time.monotonic() + seconds
