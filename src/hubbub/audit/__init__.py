"""An auditor that tries to refute what hubbub claims: attacks on the real pipeline, and what they prove.

`checks_for` says what is tried, `audit` tries it. docs/audit.md shows the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hubbub.audit.case import Case, Check, Setting
from hubbub.audit.plan import ENGINES, KINDS, AuditOptions, checks_for
from hubbub.audit.workers import in_workers

__all__ = ["ENGINES", "KINDS", "AuditOptions", "AuditReport", "Case", "Check", "Setting", "audit", "checks_for"]


@dataclass(frozen=True)
class AuditReport:
    """Every claim that was tried, and how sure a refutation is."""

    options: AuditOptions
    cases: tuple[Case, ...]

    @property
    def passed(self) -> bool:
        """True where nothing was refuted."""
        return not any(case.refuted for case in self.cases)

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {
            "passed": self.passed, "epsilon": self.options.budget.epsilon, "delta": self.options.budget.delta,
            "engine": self.options.engine, "mechanisms": list(self.options.mechanisms), "trials": self.options.trials,
            "confidence": self.options.confidence, "cases": [case.as_dict() for case in self.cases],
        }  # fmt: skip


def audit(options: AuditOptions, tick: Callable[[Case], object] | None = None) -> AuditReport:
    """Try to refute everything that the options name.

    The confidence is that of all cases together: a sound program is called refuted with probability
    1 - confidence at most.
    """
    checks: Sequence[Check] = checks_for(options)
    setting = Setting(options.budget, options.trials, (1 - options.confidence) / len(checks))
    return AuditReport(options, in_workers(checks, setting, tick, 1 if options.slow else None))
