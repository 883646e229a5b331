"""What the default regression has found: the release, its privacy report, and the posterior made from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from hubbub.analyses.linear.release import RegressionRelease
from hubbub.analyses.linear.stored import INTERVALS, StoredModel
from hubbub.analyses.posterior import LinearPosterior
from hubbub.privacy import PrivacyReport
from hubbub.protocols import Result


@dataclass(frozen=True)
class RegressionResult(Result):
    """The released sums and their privacy report; the posterior is sampled when it is first asked for."""

    release: RegressionRelease
    privacy: PrivacyReport
    noticed: tuple[str, ...] = ()
    """What the first round shows of bounds that may be wrong."""

    def with_caveats(self, caveats: tuple[str, ...]) -> RegressionResult:
        """The same with reasons why it is not a guarantee."""
        report = replace(self.privacy, caveats=caveats)
        return replace(self, release=replace(self.release, privacy=report.as_dict()), privacy=report)

    def cautions(self) -> tuple[str, ...]:
        """That most values of a column lie at a bound, or beyond."""
        return self.noticed

    @cached_property
    def posterior(self) -> LinearPosterior:
        """The noise-aware posterior under the default prior; `release.posterior` takes others."""
        return self.release.posterior()

    @property
    def stored(self) -> StoredModel:
        """What `hubbub predict` needs."""
        names, target = list(self.release.names), self.release.target
        return StoredModel(names, target, self.posterior, self.privacy.as_dict(), INTERVALS["auto"])

    def table(self, level: float = 0.9) -> list[dict[str, Any]]:
        """Coefficients, intercept (if there is one) and residual deviation."""
        return self.stored.rows(level)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**self.stored.summary(), "n": self.release.released.n}

    def files(self) -> Mapping[str, Callable[[Path], None]]:
        """The model for `hubbub predict` and the release for `hubbub refit`."""
        return {"out": self.stored.save, "release": self.release.save}
