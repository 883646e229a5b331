"""Structured logs: one JSON object a line on standard error. Bodies, keys, tokens and signatures are never logged."""

from __future__ import annotations

import contextlib
import json
import sys
import time


def log(event: str, **fields: object) -> None:
    """Write one line; `fields` are names, numbers and codes."""
    line = json.dumps({"time": round(time.time(), 3), "event": event, **fields}, default=str)
    with contextlib.suppress(OSError):  # a full disk must not keep a Compute from answering
        print(line, file=sys.stderr, flush=True)
