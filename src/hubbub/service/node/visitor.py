"""HTTP on one connection, as uvicorn speaks it, for peers that take their time or never end."""

from __future__ import annotations

import time
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from hubbub.service.node.door import Guest, Guests

IDLE_SECONDS = 30
"""For which an answered connection is kept for the next request."""
_TAKING_SECONDS = 120  # for the peer to take a long answer
_MOST_HEADER = 65_536
"""Bytes in a row that are neither body nor the end of anything: of a header, of the trailers that may follow a chunked
body, or of what may stand beside the size of a chunk. The parser keeps them all."""
_MOST_PIPELINED = 8  # requests on one connection that wait for the one before


class Visitor(HttpToolsProtocol):
    """Tells the guest list whether the connection waits or is served, and hangs up on endless headers and trailers."""

    def __init__(self, guests: Guests, **settings: Any) -> None:
        super().__init__(**settings)
        self._guests = guests
        self._guest: Guest | None = None
        self._moved, self._header_bytes = False, 0

    def connection_made(self, transport: Any) -> None:
        """Find the place on the guest list; one that was shut already has none."""
        super().connection_made(transport)
        self._guest = self._guests.numbered(transport.get_extra_info("socket").fileno())
        if self._guest is None:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Parse it, and hang up where a header or a trailer has no end."""
        self._moved = False
        super().data_received(data)
        self._header_bytes = 0 if self._moved else self._header_bytes + len(data)
        if self._header_bytes > _MOST_HEADER:
            self.transport.abort()

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._moved = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is here, with what follows its body."""
        self._moved = True
        super().on_message_complete()

    def on_message_begin(self) -> None:
        """The first byte of a request is here; the rest of its header must follow."""
        super().on_message_begin()
        self._moved = True
        if self._guest is not None and self._guest.due is not None:
            self._guest.due = min(self._guest.due, time.monotonic() + self._guests.header_seconds)

    def on_headers_complete(self) -> None:
        """From now on it is served; how long its body takes is looked after where that is read."""
        self._moved = True
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
