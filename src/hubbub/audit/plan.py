"""What is tried: which checks belong to which mechanism, analysis and engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

from hubbub.audit.canaries import PLANTED, on_engine, one_run
from hubbub.audit.case import Check
from hubbub.audit.conduct import conduct
from hubbub.audit.releases import adversaries, analysis, bounds
from hubbub.audit.views import shares, views
from hubbub.budget import Budget
from hubbub.engines import LocalEngine, TrustedAggregator
from hubbub.errors import InvalidInput, invalid, whole
from hubbub.experiments.trials import TRIALS
from hubbub.privacy import MECHANISMS, mechanism_named
from hubbub.protocols import Engine, Mechanism

KINDS = tuple(TRIALS)
"""Analyses that can be audited by name."""
ENGINES = ("local", "sealed", "trusted", "spark", "network")
"""Where the pipeline runs."""
_PARTIES = 10  # of the engines whose rounds take long


@dataclass(frozen=True)
class AuditOptions:
    """What is to be refuted, and how hard it is tried.

    Parameters
    ----------
    mechanisms : names of laws of noise; all of hubbub's by default.
    kind : one analysis, or None for everything.
    engine : where the pipeline runs: one of `ENGINES`. Faults and adversaries inside are simulated by "local" alone;
        the others run rounds with many canaries.
    budget : what is claimed; laws that need no delta are held to epsilon alone.
    trials : runs for each of two neighbouring data sets.
    confidence : that no sound claim is called refuted, for all cases together.
    only : a part of the names of the checks to run; all of them by default.
    """

    mechanisms: tuple[str, ...] = ("discrete-gaussian", "discrete-laplace", "skellam", "gaussian")
    kind: str | None = None
    engine: str = "local"
    budget: Budget = field(default_factory=lambda: Budget(2.0, 1e-5))
    trials: int = 2000
    confidence: float = 0.999
    only: str | None = None

    def __post_init__(self) -> None:
        whole("trials", self.trials, 20, "fewer tell nothing", most=10**7)
        if not 0.5 <= self.confidence < 1:
            raise invalid("confidence", "in [0.5, 1)", self.confidence, "use 0.999")
        if self.kind is not None and self.kind not in KINDS:
            raise invalid(
                "analysis", f"one of {', '.join(KINDS)}", repr(self.kind), "name one of them, or leave it out"
            )
        if self.engine not in ENGINES:
            raise invalid("engine", f"one of {', '.join(ENGINES)}", repr(self.engine), "use local")
        if self.kind is not None and self.engine != "local":
            raise invalid(
                "analysis", f"left out for the engine {self.engine}", self.kind, "audit it on the engine local"
            )
        for name in self.mechanisms:
            MECHANISMS.find(name)

    @property
    def slow(self) -> bool:
        """True where a check keeps all cores busy by itself, or has processes of its own."""
        return self.engine in ("spark", "network")


def checks_for(options: AuditOptions) -> list[Check]:
    """Everything that is tried."""
    laws = [mechanism_named(name) for name in options.mechanisms]
    found = [check for law in laws for check in _of_law(law, options)]
    if options.engine == "local" and options.kind is None:
        found += shares()
    chosen = [check for check in found if options.only is None or options.only in check.name]
    if not chosen:
        raise InvalidInput(
            f"only must be part of the name of a check, got only={options.only!r}; leave it out to see all"
        )
    return chosen


def _of_law(law: Mechanism, options: AuditOptions) -> list[Check]:
    if options.engine != "local":
        return [on_engine(options.engine, law, _OPENED[options.engine], quick=options.engine == "trusted")]
    kinds = KINDS if options.kind is None else (options.kind,)
    found = [one_run(kind, law) if kind in PLANTED else analysis(kind, TRIALS[kind], law) for kind in kinds]
    if options.kind is not None:
        return found
    canaries = on_engine("local", law, _OPENED["local"], quick=True)
    return [*adversaries(law), *bounds(law), *found, canaries, *views(law), *conduct(law)]


def _local(rows: int) -> AbstractContextManager[Engine]:
    return nullcontext(LocalEngine(holds=-(-rows // _PARTIES)))


def _sealed(rows: int) -> AbstractContextManager[Engine]:
    return nullcontext(LocalEngine(holds=-(-rows // _PARTIES), seal=True))


def _trusted(rows: int) -> AbstractContextManager[Engine]:
    return nullcontext(TrustedAggregator())


def _spark(rows: int) -> AbstractContextManager[Engine]:
    from hubbub.engines.spark.engine import SparkEngine

    return nullcontext(SparkEngine(computes=3))


@contextmanager
def _network(rows: int) -> Iterator[Engine]:
    """Three Computes as processes of their own, on this machine, for as many rounds as the audit takes."""
    import tempfile
    from pathlib import Path

    from hubbub.engines.network import NetworkEngine
    from hubbub.service.devnet import LocalComputes
    from hubbub.service.node.compute import Limits

    with (
        tempfile.TemporaryDirectory(prefix="hubbub-audit-") as folder,
        LocalComputes(Path(folder), 3, limits=Limits(simulation=True)) as nodes,
    ):
        yield NetworkEngine(nodes.urls, holds=-(-rows // _PARTIES))


_OPENED = {"local": _local, "sealed": _sealed, "trusted": _trusted, "spark": _spark, "network": _network}
