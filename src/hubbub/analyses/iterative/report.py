"""The privacy report of a run of many steps: what is promised to a client, and against whom."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hubbub.analyses.iterative.plan import StepPlan
from hubbub.privacy import Budget, Event, Protection, Release, epsilon_spent, fits
from hubbub.privacy.report import (
    all_pool,
    closing,
    common,
    conspiring,
    opening,
    population_dict,
    provided,
)
from hubbub.protocols import Statement
from hubbub.shown import Part, Shown


@dataclass(frozen=True)
class TrainingReport(Shown, Statement):
    """A statement that a data-protection officer can read: `print(model.privacy_)`."""

    plan: StepPlan
    steps: int
    """How many were taken."""
    last: Release
    least_covered: int
    most_dropouts: int
    most_colluders: int = 0
    caution: str | None = None
    """Why the result must not be trusted, which is no matter of privacy; None where nothing is known against it."""
    caveats: tuple[str, ...] = ()
    """Reasons why this run is not a guarantee, beyond what the releases say themselves."""

    @property
    def budget(self) -> Budget:
        """What the run was allowed to spend."""
        return self.plan.budget

    @property
    def samples(self) -> int:
        """All samples together."""
        return self.plan.samples

    @property
    def label(self) -> str:
        """What people call the method."""
        return self.plan.label

    @property
    def event(self) -> Event:
        """What all steps cost together."""
        return self.plan.event(self.steps)

    @cached_property
    def epsilon(self) -> float:
        """Epsilon really spent by all steps together, at the budget's delta."""
        return epsilon_spent([self.event], self.budget.delta)

    @property
    def delta(self) -> float:
        """The budget's delta."""
        return self.budget.delta

    @cached_property
    def reservations(self) -> tuple[str, ...]:
        """Every reason why the numbers are not a guarantee; empty where they are."""
        found, p = [], self._protection
        if self.last.noise_std == 0:
            found.append("no noise was added: this is a run without privacy, for comparison")
        elif not fits([self.event], self.budget):
            found.append(f"the noise spends epsilon {self.epsilon:.4g} at this delta, more than the budget")
        if not p.secure_generator:
            found.append(f"noise and coins can be reproduced: {p.generator}")
        if self.most_colluders > self.least_covered:
            found.append(f"{self.most_colluders} simulated colluders exceed the {self.least_covered} covered")
        return (*found, *self.caveats)

    @property
    def is_guarantee(self) -> bool:
        """True where the stated epsilon and delta really hold."""
        return not self.reservations

    @property
    def _protection(self) -> Protection:
        return self.last.protection

    def adversaries(self) -> dict[str, dict[str, Any]]:
        """Epsilon at the budget's delta against each adversary, and why."""
        spent = {"epsilon": self.epsilon, "delta": self.delta}
        plan = self.plan
        if plan.picked is not None:
            turns = plan.participations(self.steps)
            known = f"batches are known: {turns} of {self.steps} steps at most count for one client, not amplified"
            if self._protection.setting.aggregator:
                return {"public model": {**spent, "why": known}}
            return {
                "public model": {**spent, "why": "as against the trainer; that the public does not know the batches "
                                 "is not counted on"},
                "Computes": {**spent, "why": f"{known}; each sees its shares and who takes part in a step"},
                "trainer": {**spent, "why": known},
            }  # fmt: skip
        hidden = (
            f"every sample has its own coin (probability {plan.probability:.4g}) and all send in every step, so "
            "nobody knows who counted: amplified by sampling"
            if plan.probability < 1
            else "all samples count in every step"
        )
        if self._protection.setting.aggregator:
            return {"public model": {**spent, "why": hidden}}
        p = self._protection
        who = f"{p.population.colluding(self.most_dropouts)}up to {conspiring(p)} of them"
        seen = f"{who} that pool what they hold see uniform shares, {provided(p)}"
        return {
            "public model": {**spent, "why": hidden},
            "Computes": {**spent, "why": f"{hidden}; {seen}"},
            "trainer": {**spent, "why": f"{hidden}; it sees the noisy sum of every step and nothing else"},
        }

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        p = self._protection
        return {
            "guarantee": self.is_guarantee, "reservations": list(self.reservations), "caution": self.caution,
            "epsilon": self.epsilon, "delta": self.delta,
            "budget": {"epsilon": self.budget.epsilon, "delta": self.budget.delta},
            "method": self.label, "steps": self.steps, "batch": self.plan.batch, "selection": self._selection,
            "probability": self.plan.probability, "noise_multiplier": self.plan.noise_multiplier,
            "participations": self.plan.participations(self.steps), "clip": self.plan.clip,
            "sensitivity": p.sensitivity, "sigma_std": p.sigma_std, "sigma_client": p.sigma_client,
            "noise_std": self.last.noise_std, "mechanism": p.mechanism, "dimension": p.dimension,
            "fraction_bits": p.fraction_bits, "sealed": p.sealed, "generator": p.generator,
            "setting": p.setting.statement,
            **population_dict(p.population), "computes": p.computes, "most_dropouts": self.most_dropouts,
            "least_colluders_covered": self.least_covered,
            "against": self.adversaries(), "not_promised": self.not_promised(),
        }  # fmt: skip

    @property
    def _selection(self) -> str:
        if self.plan.picked is not None:
            return "trainer"
        return "self" if self.plan.probability < 1 else "everybody"

    def not_promised(self) -> list[str]:
        """What a reader might wrongly assume."""
        p = self._protection
        special = ["which settings were chosen (clip, steps, learning rate) by looking at the data costs extra"]
        if p.setting.aggregator:
            return ["the trusted aggregator sees every sample: there is no protection against it", *special, *common(p)]
        if self.plan.probability < 1:
            special.append(
                "a client works as much when it lost its coin as when it won; how long its machine takes is not covered"
            )
        return [all_pool(self.last), p.population.beyond(), *special, *common(p)]

    def parts(self) -> list[Part]:
        """What it says, in order."""
        spent = f"{self.epsilon:.4g} at delta {self.delta:g}, {self.steps} step(s)"
        all_of = f", for all {self.steps} steps together"
        found = opening(self.budget, self.reservations, spent, self._protection, all_of=all_of, caution=self.caution)
        found += [Part("Batches", _batches(self.plan)), Part("Every step", _step(self.last, self.plan))]
        if self.most_dropouts:
            seen = f"up to {self.most_dropouts} in a step; {self.least_covered} colluders covered"
            found.append(Part("Dropouts", seen))
        against = [
            f"{who}: epsilon {what['epsilon']:.4g} at delta {what['delta']:g}; {what['why']}"
            for who, what in self.adversaries().items()
        ]
        return [*found, *closing(self.is_guarantee, against, self.not_promised())]


def _step(release: Release, plan: StepPlan) -> str:
    p, multiplier = release.protection, plan.noise_multiplier
    amount = "" if multiplier is None else f" (multiplier {multiplier:.4g})"
    return (
        f"{p.dimension} number(s) summed over {release.n} samples, each one's clipped to length {plan.clip:.4g}; "
        f"{p.mechanism} noise of standard deviation {release.noise_std:.4g}{amount}; drawn by {p.generator}"
    )


def _batches(plan: StepPlan) -> str:
    if plan.picked is not None:
        return f"{plan.batch} of {plan.samples} clients, picked by the trainer: known to it and to the Computes"
    if plan.probability < 1:
        return f"self-selected, {plan.batch} of {plan.samples} samples on average: known to nobody"
    return f"all {plan.samples} samples in every step"
