"""Start a Compute: uvicorn around the application, with TLS where certificates are given."""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import signal
import sys
import threading
from asyncio import sslproto
from functools import partial
from pathlib import Path
from typing import Any, cast

import httpx
import uvicorn
from starlette.types import ASGIApp

from hubbub.errors import invalid
from hubbub.service.node.app import create_app
from hubbub.service.node.config import WITH_PARENT, Config, read_config
from hubbub.service.node.door import Guests, open_doors
from hubbub.service.node.log import log
from hubbub.service.node.visitor import IDLE_SECONDS, Visitor

_OTHER_FILES = 100  # that a Compute has open besides connections
_TLS_BUFFER = 16_384  # bytes for each connection, one record of TLS; asyncio would take 16 times as many


def serve(path: Path) -> None:
    """Serve until told to stop (SIGTERM or SIGINT)."""
    config = read_config(path)
    config.check_private(path)
    http = httpx.AsyncClient(
        verify=config.tls.verify(), timeout=httpx.Timeout(10.0, connect=3.0), follow_redirects=False
    )
    app = create_app(config.node(), http)
    _spare_the_collector()
    if os.environ.get(WITH_PARENT):
        threading.Thread(target=_end_with_parent, daemon=True).start()
    scheme = "http" if config.tls.certificate is None else "https"
    log("starting", name=config.name, address=f"{scheme}://{config.host}:{config.port}")
    _serve(app, config)


def _serve(app: ASGIApp, config: Config) -> None:
    most = min(config.limits.connections, _open_files(config.limits.connections + _OTHER_FILES) - _OTHER_FILES)
    guests = Guests(most, config.limits.connections_per_address, config.limits.header_seconds, config.proxies)
    try:
        doors = open_doors(config.host, config.port, guests)
    except OSError as error:
        raise invalid("listen", "free, and an address of this machine", f"{config.host}:{config.port}",
                      f"{error.strerror}; choose another") from None  # fmt: skip
    sslproto.SSLProtocol.max_size = _TLS_BUFFER
    server = uvicorn.Server(uvicorn.Config(app, http=cast(Any, partial(Visitor, guests)), **_options(config, guests)))
    with contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=list(doors))
    if not server.started:
        sys.exit(1)


def _open_files(wanted: int) -> int:
    """How many files and connections this process may have, after it has asked for as many as it wants."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else soft


def _spare_the_collector() -> None:
    """What is there now stays; to search it for garbage again and again takes a tenth of the time."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _end_with_parent() -> None:
    """Standard input is a pipe that the parent never writes to: it ends when the parent does."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


def _options(config: Config, guests: Guests) -> dict[str, Any]:
    options: dict[str, Any] = {
        "loop": "asyncio", "ws": "none", "access_log": False, "log_level": "warning", "server_header": False,
        "timeout_keep_alive": IDLE_SECONDS, "timeout_graceful_shutdown": 5, "backlog": config.limits.connections,
        "callback_notify": guests.look, "timeout_notify": 0,
        "proxy_headers": bool(config.proxies), "forwarded_allow_ips": list(config.proxies),
    }  # fmt: skip
    if config.tls.certificate is not None:
        options |= {"ssl_certfile": str(config.tls.certificate), "ssl_keyfile": str(config.tls.key)}
    return options
