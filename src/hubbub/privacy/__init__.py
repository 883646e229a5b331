"""Budget, calibration (budget -> noise), the noise itself, accounting, ledger and report."""

from hubbub.budget import Budget
from hubbub.events import CloseEvent, Entry, Event, GaussianEvent, PureEvent, SampledGaussianEvent
from hubbub.population import EarlyPopulation, Population, Unit, covered
from hubbub.privacy.accountant import (
    affordable_steps,
    composed_multiplier,
    epsilon_spent,
    fits,
    sampled_multiplier,
    shared_multipliers,
)
from hubbub.privacy.calibration import Calibration, noise_multiplier
from hubbub.privacy.ledger import Ledger, current_ledger
from hubbub.privacy.mechanisms import (
    DEFAULT,
    GAUSSIAN,
    MECHANISMS,
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    GaussianNoise,
    MultiplierMechanism,
    SkellamMechanism,
    gaussian_round,
    mechanism_named,
    sensitivity_on_grid,
)
from hubbub.privacy.report import PrivacyReport
from hubbub.release import Protection, Release

__all__ = [
    "DEFAULT",
    "GAUSSIAN",
    "MECHANISMS",
    "Budget",
    "Calibration",
    "CloseEvent",
    "DiscreteGaussianMechanism",
    "DiscreteLaplaceMechanism",
    "EarlyPopulation",
    "Entry",
    "Event",
    "GaussianEvent",
    "GaussianMechanism",
    "GaussianNoise",
    "Ledger",
    "MultiplierMechanism",
    "Population",
    "PrivacyReport",
    "Protection",
    "PureEvent",
    "Release",
    "SampledGaussianEvent",
    "SkellamMechanism",
    "Unit",
    "affordable_steps",
    "composed_multiplier",
    "covered",
    "current_ledger",
    "epsilon_spent",
    "fits",
    "gaussian_round",
    "mechanism_named",
    "noise_multiplier",
    "sampled_multiplier",
    "sensitivity_on_grid",
    "shared_multipliers",
]  # fmt: skip
