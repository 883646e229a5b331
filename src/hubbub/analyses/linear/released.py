"""What the private rounds of the default regression released: all that any posterior is made from, at no cost."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hubbub.analyses.linear.columns import Columns
from hubbub.analyses.linear.tuning import TUNING
from hubbub.arrays import Floats
from hubbub.statistics import Ball, Gram

_LEAST_SHAPE = 1e-9  # of noise that is added, so that next to none of it is no special case


@dataclass(frozen=True)
class Released:
    """Noisy sums of standardised rows in a ball, the noise in them, and the standardisation.

    Rows are u = (1, (x - centre)/scale, (y - centre)/scale), the 1 only with an intercept. The noise is isometric:
    a diagonal term bears noise_std, an off-diagonal one noise_std/sqrt(2), target terms less by the ball's weight.
    Where it has a shape, its variance was drawn for each of these numbers on its own, and noise_std is its mean's root.
    """

    sums: Gram
    n: int
    noise_std: float
    ball: Ball
    columns: Columns
    """Of the features, then the target."""
    intercept: bool
    shape: float | None = None
    """Of the noise (`NoiseLaw.shape`): 1 for Laplace noise, more where it has more shares, None for normal noise."""

    @property
    def features(self) -> int:
        """d, the features without the constant."""
        return self.columns.scale.size - 1

    @property
    def cross_variance(self) -> float:
        """Noise variance of an off-diagonal term of XX'."""
        return self.noise_std**2 / 2

    @property
    def target_variance(self) -> float:
        """Noise variance of a term of X'y."""
        return self.noise_std**2 / (2 * self.ball.weight**2)

    @property
    def factors(self) -> Floats:
        """Original coefficients are standardised ones times these."""
        scale = self.columns.scale
        return np.asarray(scale[-1] / scale[:-1])

    @property
    def mean_square(self) -> float:
        """Of the (clipped) target, from its noisy sum of squares, never below what the noise could hide."""
        assert self.sums.yy is not None
        return max(self.sums.yy, self.noise_std / self.ball.weight**2, 1e-12 * self.n) / self.n

    @property
    def left_by_clipping(self) -> float:
        """What clipping y is taken to have left of the coefficients: two thirds of a normal target's loss count."""
        assert self.ball.y is not None
        attenuation, _ = clipped_target(np.array(self.mean_square), self.ball.y)
        return 1 - TUNING.clipping_counts * (1 - float(attenuation))

    def blurred(self, noise_std: float, rng: np.random.Generator) -> Released:
        """With more noise of the same law, where there is less than this: post-processing, at no cost.

        To Laplace noise Laplace noise of the same scale is added, as if more clients had added their share: the sum
        is of the same law with a larger shape. Normal noise on top would make a law that no posterior here knows.
        """
        if self.noise_std >= noise_std:
            return self
        p, weight, more = self.sums.xy.size, self.ball.weight, np.sqrt(noise_std**2 - self.noise_std**2)
        shape = self._blurred_shape(noise_std)
        added = None if shape is None or self.shape is None else max(shape - self.shape, _LEAST_SHAPE)
        normal = rng.standard_normal((p, p))
        assert self.sums.yy is not None
        sums = Gram(
            self.sums.xx + more * (normal + normal.T) / 2 * _both_sides(_loudness(rng, added, (p, p))),
            self.sums.xy + more / weight / np.sqrt(2) * rng.standard_normal(p) * _loudness(rng, added, (p,)),
            float(self.sums.yy + more / weight**2 * rng.standard_normal() * _loudness(rng, added, ())),
        )
        return replace(self, sums=sums, noise_std=noise_std, shape=shape)

    def _blurred_shape(self, noise_std: float) -> float | None:
        """The shape goes with the variance, at the same scale; from so little noise that it makes no odds, none."""
        if self.shape is None or self.noise_std < 1e-6 * noise_std:
            return None
        return self.shape * (noise_std / self.noise_std) ** 2

    def shortening(self, S: Floats) -> Floats:
        """Mean squared factor by which rows were shortened: what became of the constant 1, or else of unit columns."""
        if self.intercept:
            return np.asarray(S[:, 0, 0] / self.n)
        return np.asarray(np.clip(np.trace(S, axis1=-2, axis2=-1) / (self.n * self.features), 0.02, 1.0))

    def original(self, beta: Floats) -> tuple[Floats, Floats]:
        """(k, p) standardised coefficients -> (k, d) coefficients and (k,) intercepts, in the units of the data."""
        first = int(self.intercept)
        coefficients = beta[:, first:] * self.factors
        if not self.intercept:
            return coefficients, np.zeros(beta.shape[0])
        centre, scale = self.columns.centre, self.columns.scale
        return coefficients, centre[-1] + scale[-1] * beta[:, 0] - coefficients @ centre[:-1]


def _loudness(rng: np.random.Generator, shape: float | None, size: tuple[int, ...]) -> Floats:
    """What turns normal noise into noise of this shape: the root of a gamma draw of mean 1, or 1 without a shape."""
    return np.ones(size) if shape is None else np.asarray(np.sqrt(rng.gamma(shape, 1 / shape, size)))


def _both_sides(matrix: Floats) -> Floats:
    """The upper triangle, mirrored: a term and its mirror image are one released number."""
    return np.asarray(np.triu(matrix) + np.triu(matrix, 1).T)


def clipped_target(second_moment: Floats, bound: float) -> tuple[Floats, Floats]:
    """(attenuation, growth) of a normal target that was clipped to +-bound and then had this mean square.

    Clipping multiplies the covariance of a normal y with anything normal by P(|y| < bound) (Bussgang), and
    makes its mean square smaller. Where less than 35 % would be left, 35 % is assumed.
    """
    from scipy.special import ndtr

    ratio = np.logspace(-1.5, np.log10(1 / 0.4538), 400)  # deviation over bound
    edge = 1 / ratio
    inside = 2 * ndtr(edge) - 1
    left = ratio**2 * (inside - 2 * edge * np.exp(-(edge**2) / 2) / np.sqrt(2 * np.pi)) + 1 - inside
    seen = second_moment / bound**2
    found = np.interp(seen, left, ratio)
    unclipped = seen < left[0]
    growth = np.where(unclipped, 1.0, np.maximum((found * bound) ** 2 / second_moment, 1.0))
    return np.where(unclipped, 1.0, 2 * ndtr(1 / found) - 1), growth
