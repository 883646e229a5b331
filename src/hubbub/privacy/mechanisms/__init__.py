"""Laws of noise, each in a file of its own, and the registry of all that are installed."""

from hubbub.errors import invalid
from hubbub.privacy.mechanisms.discrete_gaussian import DiscreteGaussianMechanism
from hubbub.privacy.mechanisms.discrete_laplace import DiscreteLaplaceMechanism
from hubbub.privacy.mechanisms.gaussian import GaussianMechanism, GaussianNoise, gaussian_round, sensitivity_on_grid
from hubbub.privacy.mechanisms.multiplier import MultiplierMechanism
from hubbub.privacy.mechanisms.skellam import SkellamMechanism
from hubbub.protocols import Mechanism
from hubbub.registry import Registry

MECHANISMS: Registry[Mechanism] = Registry(
    "hubbub.mechanisms",
    "mechanism",
    {
        "discrete-gaussian": "hubbub.privacy.mechanisms.discrete_gaussian:DiscreteGaussianMechanism",
        "discrete-laplace": "hubbub.privacy.mechanisms.discrete_laplace:DiscreteLaplaceMechanism",
        "skellam": "hubbub.privacy.mechanisms.skellam:SkellamMechanism",
        "gaussian": "hubbub.privacy.mechanisms.gaussian:GaussianMechanism",
    },
)
"""Every mechanism that is installed here."""
GAUSSIAN = GaussianMechanism()
"""Continuous noise, as in the paper; its amount follows from a budget."""
DEFAULT = DiscreteGaussianMechanism()
"""The law of noise where nobody names one."""


def mechanism_named(law: Mechanism | str | None) -> Mechanism:
    """The law of noise of this name; the default one for None, and one that is given as it is."""
    if law is None:
        return DEFAULT
    found: Mechanism = MECHANISMS.find(law)() if isinstance(law, str) else law
    if isinstance(found, type) or not hasattr(found, "within"):
        known = ", ".join(MECHANISMS.names())
        raise invalid("mechanism", f"a Mechanism or the name of one ({known})", repr(law)[:80], "name one")
    return found


__all__ = [
    "DEFAULT", "GAUSSIAN", "MECHANISMS", "DiscreteGaussianMechanism", "DiscreteLaplaceMechanism", "GaussianMechanism",
    "GaussianNoise", "MultiplierMechanism", "SkellamMechanism", "gaussian_round", "mechanism_named",
    "sensitivity_on_grid",
]  # fmt: skip
