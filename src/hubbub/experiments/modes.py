"""Three ways to compute the paper's experiments: soundly, by its text, and as its program does.

What differs is how much noise is added, and so whether the stated budget is met.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from hubbub.analyses.linear.projected import DEVIATIONS_SHARE
from hubbub.errors import invalid
from hubbub.privacy import Budget, GaussianEvent, epsilon_spent, noise_multiplier, shared_multipliers
from hubbub.privacy.calibration import classic_multiplier
from hubbub.statistics import Box, Formula

Mode = Literal["sound", "paper", "published"]
MODES: tuple[Mode, ...] = get_args(Mode)

EXPLANATIONS: dict[Mode, str] = {
    "sound": (
        "Noise is calibrated with the exact (analytic) condition of Balle and Wang, to proven tight "
        "sensitivities, and the two rounds of the projected methods are composed exactly. Every point is a "
        "guarantee at its stated budget."
    ),
    "paper": (
        "The formulas of the paper's text: the classic calibration sigma = Delta sqrt(2 ln(1.25/delta))/epsilon, "
        "which is proven for epsilon below 1 only; the paper's sensitivity, which counts every product at twice "
        "its largest value and so adds up to 1.4 times the noise that is needed; and a budget divided linearly, "
        "30 % of epsilon and of delta for the deviations and 70 % for the regression, which costs more noise than "
        "exact composition. At small epsilon this wastes accuracy; at large epsilon the classic formula falls "
        "short of the budget, and those points are marked."
    ),
    "published": (
        "What the paper's published program really does. It computes as the text says, with the classic formula's "
        "shortfall at large epsilon, but for two slips. The noise on the second moments (the deviations) is scaled "
        "to the bound c_j where the sensitivity is c_j^2: at c = 7.5 that is 7.5 times too little, so the projected "
        "methods spend far more than the stated budget. And the search for the projection thresholds adds noise "
        "scaled by the fourth power of the sensitivity, which makes large thresholds look hopeless and drives the "
        "choice to the bottom of the grid. The first slip makes the projected curves look better than the budget "
        "allows, and none of their points is a guarantee; the second happens to help, since hard clipping suits "
        "these data."
    ),
}


@dataclass(frozen=True)
class Noise:
    """How much noise each method gets under one budget, and what that really costs."""

    budget: Budget
    plain: float
    projected: tuple[float, float]
    formula: Formula
    noise_power: int
    fallback: float | None

    spent_plain: float
    """Epsilon that the plain sums really spend at the budget's delta, held against the tight sensitivity."""
    spent_projected: float
    """Epsilon that the two rounds of the projected methods really spend."""
    spent_input: float
    """Epsilon that input perturbation really spends."""

    def is_guarantee(self, method: str) -> bool | None:
        """Whether a method's noise really meets the stated budget; None where there is no privacy to speak of."""
        if method == "NP":
            return None
        if method == "hubbub":
            return True
        spent = self.spent_input if method == "input perturbation" else self.spent_plain
        spent = self.spent_projected if method.startswith("proj") else spent
        return spent <= self.budget.epsilon * (1 + 1e-6)


def noise_of(mode: Mode, budget: Budget, bound: Box) -> Noise:
    """The noise multipliers of every method for this way of computing, and what they really cost.

    The paper's sensitivity is larger than the true one, so its noise is worth more than it claims: the plain
    sums are held against the tight sensitivity of the same bounds. For the projected methods, whose bounds
    depend on the data, that bonus is not counted.
    """
    if mode not in MODES:
        raise invalid("as", f"one of {', '.join(MODES)}", repr(mode), "use 'sound'")
    assert bound.y is not None
    limits = np.array([*bound.x, bound.y])
    bonus = 1.0
    if mode == "sound":
        first, second = shared_multipliers(budget, [DEVIATIONS_SHARE, 1 - DEVIATIONS_SHARE])
        plain = noise_multiplier(budget)
    else:
        plain = classic_multiplier(budget)
        first, second = (classic_multiplier(_part(budget, s)) for s in (DEVIATIONS_SHARE, 1 - DEVIATIONS_SHARE))
        bonus = bound.sensitivity(False, "paper") / bound.sensitivity(False, "tight")
    if mode == "published":  # noise scaled to c_j in the place of c_j^2
        first *= float(np.sqrt(np.sum(limits**2) / np.sum(limits**4)))
    return Noise(
        budget=budget,
        plain=plain,
        projected=(first, second),
        formula="tight" if mode == "sound" else "paper",
        noise_power=4 if mode == "published" else 1,
        fallback=None if mode == "sound" else 0.5,
        spent_plain=epsilon_spent([GaussianEvent(plain * bonus)], budget.delta),
        spent_projected=epsilon_spent([GaussianEvent(first), GaussianEvent(second)], budget.delta),
        spent_input=epsilon_spent([GaussianEvent(plain)], budget.delta),
    )


def _part(budget: Budget, share: float) -> Budget:
    return Budget(budget.epsilon * share, budget.delta * share)
