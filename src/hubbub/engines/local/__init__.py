"""All roles in one process (and its workers)."""

from hubbub.engines.local.engine import LocalEngine

__all__ = ["LocalEngine"]
