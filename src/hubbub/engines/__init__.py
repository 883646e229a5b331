"""Where the roles run; one interface, one contract test."""

from hubbub.engines.local.engine import LocalEngine
from hubbub.engines.trusted import TrustedAggregator

__all__ = ["LocalEngine", "TrustedAggregator"]
