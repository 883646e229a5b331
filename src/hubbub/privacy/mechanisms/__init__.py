"""Laws of noise, each in a file of its own."""

from hubbub.privacy.mechanisms.gaussian import DistributedGaussian, add_share

__all__ = ["DistributedGaussian", "add_share"]
