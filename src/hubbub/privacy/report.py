"""The privacy report: what is promised, to whom, against whom, and what is not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from hubbub.budget import Budget
from hubbub.events import noise_multiplier_of
from hubbub.population import EarlyPopulation, Population, Unit
from hubbub.privacy.accountant import epsilon_spent, fits
from hubbub.protocols import Plan
from hubbub.release import Protection, Release
from hubbub.shown import Part, Shown

UNITS: dict[Unit, str] = {
    "sample": "one sample (one row of data), whoever holds it",
    "client": "one client: all samples that it holds, together",
}
ADJACENCIES: dict[Unit, str] = {
    "sample": "replace-one: two data sets of the same clients, each with as many samples, that differ in one sample",
    "client": "replace-one: two data sets of the same clients, each with as many samples, that differ in all samples "
    "of one client",
}


@dataclass(frozen=True)
class Round:
    """One release in the report."""

    label: str
    release: Release

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        r, p = self.release, self.release.protection
        return {
            "label": self.label, "statistic": p.statistic, "dimension": p.dimension, "n": r.n,
            "clients": r.clients, "dropouts": r.dropouts, "colluders_covered": r.colluders_covered,
            "sensitivity": p.sensitivity, "noise_multiplier": noise_multiplier_of(r.event),
            "sigma_std": p.sigma_std, "sigma_client": p.sigma_client, "noise_std": r.noise_std,
            "mechanism": p.mechanism, "noise": r.noise.law,
            "fraction_bits": p.fraction_bits, "sealed": p.sealed, "setting": p.setting.name,
            "generator": p.generator,
        }  # fmt: skip


@dataclass(frozen=True)
class PrivacyReport(Shown):
    """A statement that a data-protection officer can read: `print(model.privacy_)`."""

    budget: Budget
    rounds: tuple[Round, ...]
    caveats: tuple[str, ...] = field(default=())
    """Reasons why this run is not a guarantee, beyond what the releases say themselves."""

    @classmethod
    def of(cls, plan: Plan, releases: Sequence[Release]) -> PrivacyReport:
        """The report of an analysis that has all its releases, in the order of the plan's rounds."""
        rounds = zip(plan.specs, releases, strict=True)
        return cls(plan.budget, tuple(Round(spec.label, release) for spec, release in rounds))

    @property
    def epsilon(self) -> float:
        """Epsilon really spent by the rounds together, at the budget's delta."""
        return epsilon_spent([r.release.event for r in self.rounds], self.budget.delta)

    @property
    def delta(self) -> float:
        """The budget's delta."""
        return self.budget.delta

    @property
    def reservations(self) -> tuple[str, ...]:
        """Every reason why the numbers are not a guarantee; empty where they are."""
        found = list(self.caveats)
        if not fits([r.release.event for r in self.rounds], self.budget):
            found.append(f"the noise spends epsilon {self.epsilon:.4g} at this delta, more than the budget")
        for release in (r.release for r in self.rounds):
            p = release.protection
            if not p.secure_generator:
                found.append(f"the noise can be reproduced: {p.generator}")
            if p.colluders > release.colluders_covered:
                found.append(f"{p.colluders} simulated colluders exceed the {release.colluders_covered} covered")
        return tuple(dict.fromkeys(found))

    @property
    def is_guarantee(self) -> bool:
        """True where the stated epsilon and delta really hold."""
        return not self.reservations

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {
            "guarantee": self.is_guarantee, "reservations": list(self.reservations),
            "epsilon": self.epsilon, "delta": self.delta,
            "budget": {"epsilon": self.budget.epsilon, "delta": self.budget.delta},
            "meaning": self.meaning() if self.is_guarantee else None,
            "setting": self._last.setting.statement, **population_dict(self._last.population),
            "computes": self._last.computes,
            "trust": None if self._last.trust is None else self._last.trust.sentence,
            "rounds": [r.as_dict() for r in self.rounds],
            "holds_against": self.holds_against(), "not_promised": self.not_promised(),
        }  # fmt: skip

    @property
    def _last(self) -> Protection:
        return self.rounds[-1].release.protection

    def holds_against(self) -> list[str]:
        """The adversaries against whom the statement is made."""
        p = self._last
        public = "everybody who sees the released sums, the posterior or anything computed from them"
        if p.setting.aggregator:
            return [public]
        missing = max(r.release.dropouts for r in self.rounds)
        return [
            public,
            "the analyst, and any single client, who knows (and can subtract) its own share of the noise",
            f"{p.population.colluding(missing)}up to {conspiring(p)} of the {p.computes} Computes that pool what "
            f"they hold, {provided(p)} (and as long as AES-128 is not broken)",
        ]

    def meaning(self) -> str:
        """What epsilon and delta mean for one unit of privacy."""
        return meaning_of(self.budget, self._last.population.unit)

    def not_promised(self) -> list[str]:
        """What a reader might wrongly assume."""
        p = self._last
        if p.setting.aggregator:
            return ["the trusted aggregator sees every sample: there is no protection against it", *common(p)]
        special = [all_pool(self.rounds[-1].release), p.population.beyond()]
        if p.sealed is None:
            special.append("the shares were not encrypted by hubbub: none of them left " + p.setting.name)
        return [*special, *common(p)]

    def parts(self) -> list[Part]:
        """What it says, in order."""
        spent = f"{self.epsilon:.4g} at delta {self.delta:g}, {len(self.rounds)} round(s)"
        return [
            *opening(self.budget, self.reservations, spent, self._last),
            Part("Rounds", items=tuple(map(_round_line, self.rounds)), mark="1."),
            *closing(self.is_guarantee, self.holds_against(), self.not_promised()),
        ]


COMMON = [
    "other releases from the same data: this report covers one fit; several compose, which a ledger keeps",
    "scores, chosen settings and preprocessing taken from the rows as they are (score, grid search, scaling, "
    "the refusal of rows that a method does not take, where it is given an array: numbers that are not finite, "
    "outcomes that it does not know, exposures that are not above zero; and of labels of one kind only by a "
    "classifier that is not told its classes: all of these look at rows)",
    "that a client took part, how many did, and how many samples they hold stays public",
    "the truth of what clients send: a client may lie about its own sample",
    "several samples of one person count as several samples: their losses add up (a unit of a whole client covers "
    "those that one client holds)",
]


def opening(
    budget: Budget,
    reservations: Sequence[str],
    spent: str,
    p: Protection,
    *,
    all_of: str = "",
    caution: str | None = None,
) -> list[Part]:
    """How every report begins: the guarantee or why there is none, what was spent, and to whom the promise is made."""
    found = [] if caution is None else [Part("Take care", caution)]
    if reservations:
        found.append(Part("NOT A GUARANTEE", "; ".join(reservations)))
        found.append(Part("Calculated as", f"{budget}-differential privacy, had these been avoided"))
    else:
        found.append(Part("Guarantee", f"{budget}-differential privacy{all_of}"))
        found.append(Part("In plain words", meaning_of(budget, p.population.unit)))
    found.append(Part("Spent", f"epsilon {spent}"))
    found.append(Part("Setting", p.setting.statement))
    found.append(Part("Unit of privacy", UNITS[p.population.unit]))
    found.append(Part("Adjacency", ADJACENCIES[p.population.unit]))
    found += [Part("Take care", caution) for caution in budget_cautions(budget, p.population.n)]
    return [*found, Part("Parties", parties(p))]


def closing(is_guarantee: bool, against: Sequence[str], not_promised: Sequence[str]) -> list[Part]:
    """How every report ends: against whom it holds, and what it does not promise."""
    holds = "Holds against" if is_guarantee else "Would hold against"
    return [Part(holds, items=tuple(against), mark="+"), Part("Not promised", items=tuple(not_promised))]


def common(p: Protection) -> list[str]:
    """What no report promises, and what the mechanism's figures take for granted."""
    proviso = "" if p.trust is None else p.trust.beyond(p.population.clients)
    return [*COMMON, *([] if p.reservation is None else [p.reservation]), *([proviso] if proviso else [])]


def provided(p: Protection) -> str:
    """The assumption about Computes on which the promise against them rests."""
    return "" if p.trust is None else f"as far as the trust is justified that {p.trust.sentence}"


def conspiring(p: Protection) -> int:
    """How many Computes may conspire without learning anything."""
    return 0 if p.trust is None else p.trust.conspiring


def parties(p: Protection) -> str:
    """Who takes part, in one line."""
    if p.setting.aggregator:
        return f"{p.population.n} samples and one trusted aggregator"
    return f"{p.population}; M = {p.computes} Computes, {_allowed(p)}"


def _allowed(p: Protection) -> str:
    """How many Computes may pool what they hold, and how many may contradict themselves where that is limited."""
    if conspiring(p) == p.computes - 1 and (p.trust is None or p.trust.contradicting is None):
        return "of whom at least one must be honest"
    pooling = f"of whom at most {conspiring(p)} may pool what they hold"
    if p.trust is None or p.trust.contradicting is None:
        return pooling
    most = p.trust.contradicting or "none"
    return f"{pooling}, and {'at most ' if p.trust.contradicting else ''}{most} may sign contradicting statements"


def population_dict(population: Population) -> dict[str, object]:
    """Who takes part and what the promise is about, for JSON."""
    return {
        "unit": UNITS[population.unit], "adjacency": ADJACENCIES[population.unit], "clients": population.clients,
        "samples": population.n, "largest": population.largest, "dropouts_covered": population.dropouts,
        "colluders_covered": population.colluders, "theorem1": population.theorem1,
    }  # fmt: skip


def all_pool(release: Release) -> str:
    """What is left where too many Computes conspire: of Laplace noise often nothing at all."""
    p, alone = release.protection, "" if release.noise.shape is None else ", which is often zero where clients are many"
    many = conspiring(p) + 1
    who = f"all {many} Computes" if many == p.computes else f"{many} of the {p.computes} Computes"
    return f"if {who} pool their shares, a client is covered by its own share of noise only{alone}"


def _round_line(r: Round) -> str:
    release, p = r.release, r.release.protection
    seal = f"sealed with {p.sealed}" if p.sealed else "not sealed"
    held = "" if release.n == release.clients else f" with {release.n} samples"
    who = "samples" if isinstance(p.population, EarlyPopulation) else "clients"
    text = (
        f"{r.label}: {p.dimension} number(s) summed over {release.clients} {who}{held} ({release.dropouts} missing, "
        f"{release.colluders_covered} colluding {who} covered); sensitivity {p.sensitivity:.4g}; {p.mechanism} noise "
        f"of standard deviation {release.noise_std:.4g} in each released number"
    )
    if p.setting.aggregator:
        return f"{text}; drawn by {p.generator}"
    return (
        f"{text} ({p.sigma_client:.4g} from each client, a trusted aggregator would add {p.sigma_std:.4g}); "
        f"{p.setting.name}, {seal}; drawn by {p.generator}"
    )


def meaning_of(budget: Budget, unit: Unit = "sample") -> str:
    """What epsilon and delta mean for one unit of privacy."""
    what = "one sample" if unit == "sample" else "all samples of one client"
    factor = math.exp(min(budget.epsilon, 700.0))
    but = "" if budget.pure else f", up to a probability of {budget.delta:g}"
    return (
        f"had {what} been any other, every conclusion from the result would be at most {factor:.3g} "
        f"times as likely or unlikely{but}"
    )


def budget_cautions(budget: Budget, samples: int) -> list[str]:
    """What to know about a budget that promises less than it seems to, one line each."""
    found = []
    if budget.delta >= 1 / samples:
        found.append(f"delta {budget.delta:g} is not below 1/N = {1 / samples:.3g}: one sample may be shown as it is")
    if budget.epsilon > 5:
        found.append(f"epsilon {budget.epsilon:g} is above 5 and protects little")
    return found
