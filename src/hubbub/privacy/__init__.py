"""Budget, calibration (budget -> noise), the noise itself, accounting, ledger and report."""

from hubbub.budget import Budget
from hubbub.events import Event, GaussianEvent, SampledGaussianEvent
from hubbub.population import EarlyPopulation, Population, Unit, covered
from hubbub.privacy.accountant import (
    affordable_steps,
    composed_multiplier,
    epsilon_spent,
    fits,
    sampled_multiplier,
    split,
)
from hubbub.privacy.calibration import Calibration, noise_multiplier
from hubbub.privacy.ledger import Entry, Ledger, current_ledger
from hubbub.privacy.mechanisms.gaussian import DistributedGaussian, add_share
from hubbub.privacy.report import PrivacyReport
from hubbub.release import Protection, Release

__all__ = [
    "Budget", "Calibration", "DistributedGaussian", "EarlyPopulation", "Entry", "Event", "GaussianEvent", "Ledger",
    "Population", "PrivacyReport", "Protection", "Release", "SampledGaussianEvent", "Unit", "add_share",
    "affordable_steps", "composed_multiplier", "covered", "current_ledger", "epsilon_spent", "fits",
    "noise_multiplier", "sampled_multiplier", "split",
]  # fmt: skip
