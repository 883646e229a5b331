"""Where the roles run; one interface, one contract test."""

from hubbub.engines.local.engine import LocalEngine
from hubbub.engines.trusted import TrustedAggregator
from hubbub.protocols import Engine
from hubbub.registry import Finder

ENGINES: Finder[type[Engine]] = Finder(
    "hubbub.engines",
    "engine",
    {
        "local": "hubbub.engines.local.engine:LocalEngine",
        "trusted": "hubbub.engines.trusted:TrustedAggregator",
        "spark": "hubbub.engines.spark.engine:SparkEngine",
        "network": "hubbub.engines.network:NetworkEngine",
    },
)
"""Every engine that is installed here, by name."""

__all__ = ["ENGINES", "LocalEngine", "TrustedAggregator"]
