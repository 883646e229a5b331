"""What an experiment gives: rows, and the paper's claims held against them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hubbub.experiments.modes import Mode
from hubbub.experiments.real_sets import Half
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
    sets: Half | None = None
    """Which half of the data sets, for an experiment that has two."""

    @property
    def name(self) -> str:
        """File name: the experiment, with the mode where it is not the sound one and the half that is set aside."""
        mode = "" if self.mode == "sound" else f"_{self.mode}"
        return f"{self.experiment}{mode}{'_reported' if self.sets == 'reported' else ''}"

    def as_dict(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        return {
            "experiment": self.experiment,
            "as": self.mode,
            **({} if self.sets is None else {"sets": self.sets}),
            "rows": self.rows,
            "claims": [claim.as_dict() for claim in self.claims],
            "about": self.about,
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Outcome:
        """Read back what as_dict wrote."""
        claims = [Claim(c["claim"], c["measured"], c["holds"]) for c in content["claims"]]
        return cls(content["experiment"], content["as"], content["rows"], claims, content["about"], content.get("sets"))


def claim_everywhere(claim: str, measured: str, what: str, places: dict[str, tuple[bool, str]]) -> Claim:
    """A claim that holds where it holds at all places; those where it does not are listed with their values."""
    failed = [f"{place} ({value})" for place, (good, value) in places.items() if not good]
    text = f"{measured} {len(places) - len(failed)} of {len(places)} {what}"
    return Claim(claim, f"{text}; not {', '.join(failed)}" if failed else text, not failed)
