"""What a generalised linear model has found: the released steps, their report, and posteriors made from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from hubbub.analyses.glm.look import Stepped
from hubbub.analyses.glm.offset import Offset
from hubbub.analyses.glm.posterior import GLMPosterior
from hubbub.analyses.glm.release import GLMRelease
from hubbub.analyses.glm.stored import StoredGLM, table_of
from hubbub.privacy import PrivacyReport
from hubbub.protocols import Result


@dataclass(frozen=True)
class GLMResult(Result):
    """The released steps and their privacy report; the posterior is sampled when it is first asked for."""

    stepped: Stepped
    family: str
    names: tuple[str, ...]
    target: str
    privacy: PrivacyReport
    noticed: tuple[str, ...] = ()
    """What the first round shows of bounds that may be wrong."""
    offset: Offset | None = None
    """What rows added to their linear predictor; coefficients and intercept are those where that is 0."""

    def with_caveats(self, caveats: tuple[str, ...]) -> GLMResult:
        """The same with reasons why it is not a guarantee."""
        return replace(self, privacy=replace(self.privacy, caveats=caveats))

    def cautions(self) -> tuple[str, ...]:
        """That most values of a column lie at a bound, or beyond."""
        return self.noticed

    def sampled(
        self, *, prior_scale: object = None, prior_mean: object = None, draws: int = 1000, seed: int | None = 0
    ) -> GLMPosterior:
        """The posterior under this prior (deviations and means of coefficients in the units of the data), for free.

        Where the sampler's chains disagree or hold little, an UntrustworthyWarning says of what and what to do.
        """
        return self.release.posterior(prior_scale=prior_scale, prior_mean=prior_mean, draws=draws, seed=seed)

    @property
    def release(self) -> GLMRelease:
        """All that any posterior is made from."""
        return GLMRelease(
            self.stepped, self.family, self.names, self.target, self.privacy.as_dict(), offset=self.offset
        )

    @property
    def stored(self) -> StoredGLM:
        """What `hubbub predict` needs."""
        return self.release.stored(self.posterior)

    @cached_property
    def posterior(self) -> GLMPosterior:
        """The posterior under the default prior; `sampled` takes others."""
        return self.sampled()

    def table(self, level: float = 0.9) -> list[dict[str, Any]]:
        """Coefficients and intercept."""
        return table_of(self.posterior, self.names, level)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**self.stored.summary(), "n": self.stepped.n}

    def files(self) -> Mapping[str, Callable[[Path], None]]:
        """The model for `hubbub predict` and the release for `hubbub refit`."""
        return {"out": self.stored.save, "release": self.release.save}
