"""The OpenAPI description of a Compute."""

from __future__ import annotations

from typing import Any


def describe() -> dict[str, Any]:
    """OpenAPI 3.1."""
    return {"openapi": "3.1.0", "info": {"title": "hubbub Compute", "version": "1"}, "paths": {}}
