"""The same analysis where somebody else runs the rounds: a study replays what it has released."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hubbub.analyses import ANALYSES
from hubbub.analyses.driver import warned
from hubbub.errors import InvalidInput
from hubbub.privacy import DEFAULT, MECHANISMS, Budget, Population
from hubbub.protocols import Analysis, Mechanism, Plan, Release, RoundSpec, Steps


@dataclass(frozen=True)
class Replay:
    """An analysis with all that its plan depends on, to be replayed from the releases of its rounds."""

    analysis: Analysis[Any, Any]
    budget: Budget
    population: Population
    mechanism: Mechanism = DEFAULT

    @classmethod
    def of(cls, description: Mapping[str, Any], budget: Budget, population: Population, noise: str) -> Replay:
        """As a study has it: the analysis by its description, the law of the noise by its name."""
        return cls(ANALYSES.read(_current(description)), budget, population, MECHANISMS.find(noise)())

    @property
    def plan(self) -> Plan:
        """All rounds, settled from public numbers: the same for everybody who reads the study."""
        return self.analysis.plan(self.budget, self.population, self.mechanism)

    def state(self, releases: Sequence[Release]) -> Any:
        """The state of the analysis after these releases, in the order of the rounds."""
        plan = self.plan
        state = self.analysis.start(plan)
        for number, release in enumerate(releases):
            plan.check(number, release.event)
            state = self.analysis.tell(state, release)
        return state

    def next_round(self, releases: Sequence[Release]) -> RoundSpec | None:
        """What to run after these releases; None where the result can be made."""
        return self.analysis.ask(self.state(releases))

    def check_steps(self, releases: Sequence[Release], steps: Steps) -> None:
        """Refuse a last release whose clients took other public steps than these releases lead to here.

        Steps follow from earlier releases by constants that a later version may change; sums made by other steps mean
        something else, and nothing in the numbers would show it.
        """
        asked = self.next_round(releases[:-1])
        if asked is None or not same_steps(asked.steps, steps):
            raise InvalidInput(
                f"round {len(releases) - 1} must have the steps that this version of hubbub plans, got others; "
                "use the version that opened the round"
            )

    def result(self, releases: Sequence[Release]) -> Any:
        """What the analysis finds in the releases of all rounds."""
        return warned(self.analysis.result(self.state(releases)))


def same_steps(one: Any, other: Any) -> bool:
    """Equal but for the last digits, in which linear algebra differs from machine to machine."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same_steps(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same_steps, one, other))
    if isinstance(one, float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=1e-5, abs_tol=1e-9)
    return bool(one == other)


def _current(description: Mapping[str, Any]) -> Mapping[str, Any]:
    """As this version describes an analysis: hubbub 0.1 knew one, and called it otherwise."""
    if description.get("kind") != "linear regression":
        return description
    return {**{name: value for name, value in description.items() if name != "rounds"}, "kind": "linear"}


def written_analysis(entries: Any) -> Analysis[Any, Any]:
    """The analysis that an analyst wrote down in study.toml: `kind`, and that analysis's own settings."""
    if not isinstance(entries, Mapping) or not isinstance(entries.get("kind"), str):
        known = ", ".join(ANALYSES.names())
        raise InvalidInput(f"analysis must be a table with a kind, one of {known}; see `hubbub study create --help`")
    settings = {name: value for name, value in entries.items() if name not in ("kind", "package")}
    kind = ANALYSES.find(entries["kind"], entries.get("package"))
    try:
        found: Analysis[Any, Any] = kind.written(settings)
    except InvalidInput:
        raise
    except (TypeError, ValueError, KeyError) as error:
        why = str(error).split(".")[-1].replace("__init__()", entries["kind"])
        raise InvalidInput(
            f"analysis must have the settings of its kind, got others: {why}; see `hubbub study create --help`"
        ) from None
    return ANALYSES.read(found.describe())
