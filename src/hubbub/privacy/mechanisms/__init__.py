"""Laws of noise, each in a file of its own, and the registry of all that are installed."""

from hubbub.privacy.mechanisms.gaussian import GaussianMechanism, GaussianNoise, gaussian_round, sensitivity_on_grid
from hubbub.protocols import Mechanism
from hubbub.registry import Registry

MECHANISMS: Registry[Mechanism] = Registry(
    "hubbub.mechanisms", "mechanism", {"gaussian": "hubbub.privacy.mechanisms.gaussian:GaussianMechanism"}
)
"""Every mechanism that is installed here."""
GAUSSIAN = GaussianMechanism()
"""The default law of noise; its amount follows from a budget."""

__all__ = ["GAUSSIAN", "MECHANISMS", "GaussianMechanism", "GaussianNoise", "gaussian_round", "sensitivity_on_grid"]
