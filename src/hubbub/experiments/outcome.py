"""What an experiment gives: rows, and the paper's claims held against them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hubbub.experiments.modes import Mode
from hubbub.experiments.runner import Row


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, what we measured, and whether it holds."""

    claim: str
    measured: str
    holds: bool

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {"claim": self.claim, "measured": self.measured, "holds": self.holds}


@dataclass(frozen=True)
class Outcome:
    """One experiment, done."""

    experiment: str
    mode: Mode
    rows: list[Row]
    claims: list[Claim]
    about: str
    """A paragraph for the report: what was done."""

    @property
    def name(self) -> str:
        """File name: the experiment, with the mode where it is not the sound one."""
        return self.experiment if self.mode == "sound" else f"{self.experiment}_{self.mode}"

    def as_dict(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        return {
            "experiment": self.experiment,
            "as": self.mode,
            "rows": self.rows,
            "claims": [claim.as_dict() for claim in self.claims],
            "about": self.about,
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Outcome:
        """Read back what as_dict wrote."""
        claims = [Claim(c["claim"], c["measured"], c["holds"]) for c in content["claims"]]
        return cls(content["experiment"], content["as"], content["rows"], claims, content["about"])
