"""Where the roles run; one interface, one contract test."""

from hubbub.engines.base import Engine
from hubbub.engines.local import LocalEngine
from hubbub.engines.trusted import TrustedAggregator

__all__ = ["Engine", "LocalEngine", "TrustedAggregator"]
