"""Start a Compute: uvicorn around the application, with TLS where certificates are given."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from hubbub.service.app import create_app
from hubbub.service.config import WITH_PARENT, Config, read_config
from hubbub.service.log import log

_CONNECTIONS = 2000


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
    uvicorn.run(app, host=config.host, port=config.port, **_options(config))


def _spare_the_collector() -> None:
    """What is there now stays; to search it for garbage again and again takes a tenth of the time."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _end_with_parent() -> None:
    """Standard input is a pipe that the parent never writes to: it ends when the parent does."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


def _options(config: Config) -> dict[str, Any]:
    options: dict[str, Any] = {
        "access_log": False, "log_level": "warning", "timeout_keep_alive": 30, "limit_concurrency": _CONNECTIONS,
        "timeout_graceful_shutdown": 5, "server_header": False, "backlog": _CONNECTIONS,
        "proxy_headers": bool(config.proxies), "forwarded_allow_ips": list(config.proxies),
    }  # fmt: skip
    if config.tls.certificate is not None:
        options |= {"ssl_certfile": str(config.tls.certificate), "ssl_keyfile": str(config.tls.key)}
    return options
