"""Whole numbers of a given law, drawn exactly: from uniform bits, by comparisons that rounding cannot turn.

`cells` draws from any law with one hump, many numbers at a time; `gaussian` and `poisson` are two such laws. `clusters`
draws the shares of discrete Laplace noise. A mechanism is made of one of these and a calibration.
"""

from hubbub.privacy.samplers.cells import Cells
from hubbub.privacy.samplers.clusters import Clusters
from hubbub.privacy.samplers.gaussian import DiscreteGaussianLaw
from hubbub.privacy.samplers.poisson import PoissonLaw

__all__ = ["Cells", "Clusters", "DiscreteGaussianLaw", "PoissonLaw"]
