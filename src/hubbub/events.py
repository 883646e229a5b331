"""What was done, apart from what it costs: events feed any accountant.

As plain values (`event_fields`) they fit into ledger files, a Compute's database and a client's outbox.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from hubbub.errors import InvalidInput, invalid, whole

if TYPE_CHECKING:
    from dp_accounting import DpEvent


@dataclass(frozen=True)
class GaussianEvent:
    """One Gaussian mechanism; the multiplier is sigma over the replace-one L2 sensitivity."""

    noise_multiplier: float


@dataclass(frozen=True)
class SampledGaussianEvent:
    """So many Gaussian mechanisms, in each of which a sample counts with this probability, by a coin that nobody sees.

    The multiplier is sigma over the replace-one L2 sensitivity, as in `GaussianEvent`.
    """

    noise_multiplier: float
    probability: float
    steps: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.probability <= 1:
            raise invalid("probability", "in (0, 1]", self.probability, "use the batch over the number of clients")
        whole("steps", self.steps, 1, "count the steps")


@dataclass(frozen=True)
class PureEvent:
    """So many mechanisms of pure differential privacy: none changes any probability by more than a factor e^epsilon."""

    epsilon: float
    steps: int = 1

    def __post_init__(self) -> None:
        if not self.epsilon >= 0:
            raise invalid("epsilon", "at least 0", self.epsilon, "derive it from a budget")
        whole("steps", self.steps, 1, "count the steps")


@dataclass(frozen=True)
class CloseEvent:
    """A mechanism whose law is nearly that of another event, which is easier to account for.

    For every data set, whatever was released before, and for every set of outcomes the probability P under the one law
    and Q under the other meet P <= e^ratio Q + outside and Q <= e^ratio P + outside. So it is where every outcome has
    the same probability up to a factor e^ratio, but for outcomes that are `outside` likely at most under either law.
    """

    ideal: Event
    ratio: float
    outside: float

    def __post_init__(self) -> None:
        for name in ("ratio", "outside"):
            if not 0 <= getattr(self, name) < 1:
                raise invalid(name, "in [0, 1)", getattr(self, name), "derive it from the mechanism")


Event: TypeAlias = "GaussianEvent | SampledGaussianEvent | PureEvent | CloseEvent | DpEvent"
"""A release of hubbub, or an event of dp_accounting that the user adds.

Such an event is read in dp_accounting's own terms (its noise over the add-or-remove sensitivity) and charged under
replace-one, like everything here; one for which dp_accounting has no replace-one account is refused.
"""


@dataclass(frozen=True)
class Entry:
    """One line of a ledger: what people call a release, and what was done."""

    label: str
    event: Event


def repeated(event: Event, times: int) -> Event:
    """As many independent releases of the same kind, as one event."""
    if isinstance(event, GaussianEvent):
        return GaussianEvent(event.noise_multiplier / math.sqrt(times))
    if isinstance(event, SampledGaussianEvent | PureEvent):
        return replace(event, steps=event.steps * times)
    if isinstance(event, CloseEvent):
        return CloseEvent(repeated(event.ideal, times), event.ratio * times, event.outside * times)
    from dp_accounting import SelfComposedDpEvent

    return SelfComposedDpEvent(event, times)


def noise_multiplier_of(event: Event) -> float | None:
    """Noise over the replace-one sensitivity; None of an event that has no such number."""
    ideal = event.ideal if isinstance(event, CloseEvent) else event
    return ideal.noise_multiplier if isinstance(ideal, GaussianEvent | SampledGaussianEvent) else None


def event_fields(event: Event) -> dict[str, Any]:
    """An event as plain values: one of hubbub's, or one of dp_accounting's that dp_accounting can write down."""
    if isinstance(event, CloseEvent):
        return {"close_to": event_fields(event.ideal), "ratio": event.ratio, "outside": event.outside}
    if isinstance(event, PureEvent):
        return {"epsilon": event.epsilon, "steps": event.steps}
    if isinstance(event, SampledGaussianEvent):
        return {"noise_multiplier": event.noise_multiplier, "probability": event.probability, "steps": event.steps}
    if isinstance(event, GaussianEvent):
        return {"noise_multiplier": event.noise_multiplier}
    return {"dp_event": _written(event)}


def event_of(fields: Mapping[str, Any]) -> Event:
    """The event with these fields; KeyError, TypeError or ValueError where it is none."""
    if "dp_event" in fields:
        return _foreign(fields["dp_event"])
    if "close_to" in fields:
        return CloseEvent(event_of(fields["close_to"]), float(fields["ratio"]), float(fields["outside"]))
    if "epsilon" in fields:
        return PureEvent(float(fields["epsilon"]), fields["steps"])
    multiplier = float(fields["noise_multiplier"])
    if "probability" not in fields:
        return GaussianEvent(multiplier)
    return SampledGaussianEvent(multiplier, float(fields["probability"]), fields["steps"])


def same_event(one: Event, other: Event) -> bool:
    """True where two events are the same, up to the last digits of numbers that were computed on two machines."""
    return one == other or _alike(event_fields(one), event_fields(other))


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_alike(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    numbers = isinstance(one, int | float) and isinstance(other, int | float)
    return math.isclose(one, other, rel_tol=1e-9) if numbers else bool(one == other)


def _written(event: Any) -> dict[str, Any]:
    """An event of dp_accounting by the name of its class and its fields, which may be events again."""
    import attr
    from dp_accounting import DpEvent

    kind = type(event)
    if not isinstance(event, DpEvent) or not kind.__module__.startswith("dp_accounting"):
        raise InvalidInput(f"event must be of hubbub or dp_accounting to be written down, got {kind.__name__}")
    return {"class": kind.__name__, **{each.name: _plain(getattr(event, each.name)) for each in attr.fields(kind)}}


def _plain(value: Any) -> Any:
    if isinstance(value, int | float | str | bool) or value is None:
        return value
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else _written(value)


def _foreign(fields: Mapping[str, Any]) -> DpEvent:
    """Back from its class and fields."""
    import dp_accounting

    kind = getattr(dp_accounting, str(fields["class"]))
    if not (isinstance(kind, type) and issubclass(kind, dp_accounting.DpEvent)):
        raise ValueError
    event: DpEvent = kind(**{name: _value(value) for name, value in fields.items() if name != "class"})
    return event


def _value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _foreign(value)
    return [_value(each) for each in value] if isinstance(value, list) else value
