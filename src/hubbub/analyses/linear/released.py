"""What the private rounds of the default regression released: all that any posterior is made from, at no cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hubbub.analyses.linear.columns import Columns
from hubbub.analyses.linear.residuals import ResidualShape
from hubbub.analyses.linear.tuning import TUNING
from hubbub.arrays import Floats
from hubbub.statistics import Ball, Gram


@dataclass(frozen=True)
class SecondLook:
    """What the last round released: the same sums with residuals in place of the target, and how far residuals lie."""

    sums: Gram
    """Of the rows with (y - u'around) / unit in place of y."""
    noise_std: float
    around: Floats
    """The coefficients that the first sums gave, of standardised columns."""
    unit: float
    """The deviation that residuals were taken to have, in standard units of the target."""
    counts: Floats
    """Residuals by their distance from zero (`residuals.EDGES`), whole rows and not shortened ones."""
    counts_noise: float
    left_out: float = 0.0
    """Length of the coefficients of columns that were left out since (`restricted`): so much more noise."""
    left: float | None = None
    """What clipping left of a change of coefficients, where columns have been left out; otherwise the counts tell."""

    def restricted(self, rows: Sequence[int], left: float) -> SecondLook:
        """Around the coefficients of some columns alone, with what the others explained put back, noise and all."""
        rest = np.setdiff1d(np.arange(self.around.size), rows)
        b, xx, xy = self.around[rest] * left / self.unit, self.sums.xx, self.sums.xy
        back = xx[:, rest] @ b
        assert self.sums.yy is not None
        yy = float(self.sums.yy + (2 * xy[rest] + back[rest]) @ b)
        return replace(
            self, sums=Gram(xx[np.ix_(rows, rows)], (xy + back)[rows], yy), around=self.around[rows], left=left,
            left_out=math.hypot(self.left_out, float(np.linalg.norm(self.around[rest]))),
        )  # fmt: skip


@dataclass(frozen=True)
class Look:
    """What one round says of u'y: in standard units, with what clipping took away put back. Noise is its deviation."""

    around: Floats
    xy: Floats
    """Sum of u (y - u'around)."""
    xy_noise: float
    square: float
    """Sum of (y - u'around)^2."""
    square_noise: float
    """Infinite where another round says it better."""

    def moved(self, to: Floats, xx: Floats) -> tuple[Floats, Floats]:
        """The sums with residuals around other coefficients, for this XX' or for many."""
        step = self.around - to
        xy = self.xy + xx @ step
        return xy, np.asarray(self.square + (xy + self.xy) @ step)


@dataclass(frozen=True)
class Evidence:
    """All looks at one data set together, around the coefficients of the last one."""

    xx: Floats
    noise_std: float
    shape: float | None
    looks: tuple[Look, ...]
    blurred: bool = False
    """True where it is taken for noisier than it is."""

    @property
    def around(self) -> Floats:
        """Of the last look."""
        return self.looks[-1].around

    @property
    def xy_noise(self) -> float:
        """Of all looks weighted by how much they tell."""
        return float(sum(look.xy_noise**-2.0 for look in self.looks) ** -0.5)

    def together(self) -> tuple[Floats, float]:
        """Sum of u (y - u'around), and of its square, with the noisy XX' taken as it is."""
        moved = [look.moved(self.around, self.xx) for look in self.looks]
        weights = np.array([look.xy_noise**-2.0 for look in self.looks]) * self.xy_noise**2
        squares = np.array([look.square_noise**-2.0 for look in self.looks])
        xy = np.asarray(sum(w * part for w, (part, _) in zip(weights, moved, strict=True)))
        return xy, float(squares @ [float(square) for _, square in moved] / squares.sum())


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
    second: SecondLook | None = None
    """Of the last round. None in releases of earlier versions, which had one round of sums."""

    @cached_property
    def evidence(self) -> Evidence:
        """What the rounds of sums say together."""
        zero, second = np.zeros(self.sums.xy.size), self.second
        growth = float(clipped_target(np.array(self.mean_square), self._y)[1])
        first = self._look(self.sums, self.noise_std, zero, 1.0, self.left_by_clipping, growth)
        if second is None:
            return self._cautious(Evidence(self.sums.xx, self._noise(self.noise_std), self.shape, (first,)))
        left = self.left_of_residuals
        last = self._look(second.sums, second.noise_std, second.around, second.unit, left, 1 / left**2)
        if second.left_out:
            last = _louder(last, second.noise_std, second.left_out)
        # squares of y are much larger than those of residuals, and so is their noise
        looks = (replace(first, square_noise=math.inf), last)
        one, other = self._noise(self.noise_std), self._noise(second.noise_std)
        share = other**2 / (one**2 + other**2)
        xx = share * self.sums.xx + (1 - share) * second.sums.xx
        shape = mixed_shape(self.shape, share, one, other)
        return self._cautious(Evidence(xx, one * math.sqrt(share), shape, looks))

    def _noise(self, noise: float) -> float:
        """Not less than what keeps the sums from being known exactly, which no sampler could move in."""
        return max(noise, 1e-9 * self.n)

    def _cautious(self, found: Evidence) -> Evidence:
        """With more noise than there is, where rows are few for the columns: S is next to singular there.

        No walker finds its way among such matrices where noise is small. The posterior is wider than it could be.
        """
        p = len(found.xx)
        few = TUNING.few_rows if p <= TUNING.many_columns else TUNING.few_rows_of_many
        level = min(float(np.trace(found.xx)), self.n * self.ball.radius**2) / p
        least = TUNING.blur * level * max(0.0, few * p / self.n - 1) / (few - 1)
        if least <= found.noise_std:
            return found
        factor = least / found.noise_std
        looks = tuple(
            replace(look, xy_noise=look.xy_noise * factor, square_noise=look.square_noise * factor)
            for look in found.looks
        )
        return replace(found, noise_std=least, looks=looks, blurred=True)

    def _look(self, sums: Gram, noise: float, around: Floats, unit: float, left: float, growth: float) -> Look:
        assert sums.yy is not None
        weight, noise = self.ball.weight, self._noise(noise)
        return Look(
            around, sums.xy * unit / left, noise * unit / (math.sqrt(2) * weight * left),
            sums.yy * unit**2 * growth, noise * (unit / weight) ** 2 * growth,
        )  # fmt: skip

    @cached_property
    def residuals(self) -> ResidualShape | None:
        """The law of the residuals around the first coefficients, in the second look's unit; None where none tells."""
        second = self.second
        if second is None or second.left_out:
            return None
        return ResidualShape(second.counts, self.n, second.counts_noise)

    @property
    def left_of_residuals(self) -> float:
        """What clipping residuals left of a change of coefficients: the share of residuals that are not clipped.

        Whatever the residuals' law, it is the derivative of a clipped residual's mean by its shift.
        """
        assert self.second is not None
        if self.second.left is not None:
            return self.second.left
        assert self.residuals is not None
        mean = (self.sums.xx + self.second.sums.xx) / 2
        shortened = math.sqrt(float(np.clip(self.shortening(mean[None])[0], TUNING.least_shortening, 1.0)))
        return max(self.residuals.within(self._y / shortened), TUNING.least_left)

    @property
    def _y(self) -> float:
        assert self.ball.y is not None
        return self.ball.y

    @property
    def features(self) -> int:
        """d, the features without the constant."""
        return self.columns.scale.size - 1

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

    def shortening(self, S: Floats) -> Floats:
        """Mean squared factor by which rows were shortened: what became of the constant 1, or else of unit columns."""
        if self.intercept:
            return np.asarray(S[:, 0, 0] / self.n)
        share = np.trace(S, axis1=-2, axis2=-1) / (self.n * self.features)
        return np.asarray(np.clip(share, TUNING.least_shortening, 1.0))

    def restricted(self, rows: Sequence[int]) -> Released:
        """The same for these of the columns of the sums (the constant among them), as if the others were not there."""
        first, kept = int(self.intercept), [j - int(self.intercept) for j in rows if j >= int(self.intercept)]
        columns = Columns(
            *(part[[*kept, -1]] for part in (self.columns.centre, self.columns.scale, self.columns.doubt))
        )
        assert len(kept) + first == len(rows)
        return replace(
            self, sums=Gram(self.sums.xx[np.ix_(rows, rows)], self.sums.xy[rows], self.sums.yy), columns=columns,
            ball=replace(self.ball, features=len(rows)),
            second=None if self.second is None else self.second.restricted(rows, self.left_of_residuals),
        )  # fmt: skip

    def unexplained(self, deviations: Floats, beta: Floats, S: Floats) -> Floats:
        """Residual variance of whole rows, in standard units, for draws of coefficients and of the counted deviation.

        The counts are of residuals around the first coefficients, so what better ones explain beyond these is taken
        away.
        """
        assert self.second is not None
        counted = (self.second.unit * deviations) ** 2
        step = beta - self.second.around
        shortened = np.clip(self.shortening(S), TUNING.least_shortening, 1.0) * self.n
        explained = np.einsum("ci,cij,cj->c", step, S, step) / shortened
        return np.asarray(np.maximum(counted - explained, TUNING.least_unexplained * counted))

    def original(self, beta: Floats) -> tuple[Floats, Floats]:
        """(k, p) standardised coefficients -> (k, d) coefficients and (k,) intercepts, in the units of the data."""
        first = int(self.intercept)
        coefficients = beta[:, first:] * self.factors
        if not self.intercept:
            return coefficients, np.zeros(beta.shape[0])
        centre, scale = self.columns.centre, self.columns.scale
        return coefficients, centre[-1] + scale[-1] * beta[:, 0] - coefficients @ centre[:-1]


def _louder(look: Look, noise: float, length: float) -> Look:
    """With the noise that came in with coefficients of this length: that of XX', and of u'y in squares."""
    square = math.hypot(look.square_noise, 2 * length * look.xy_noise, noise * length**2)
    return replace(look, xy_noise=math.hypot(look.xy_noise, noise * length / math.sqrt(2)), square_noise=square)


def mixed_shape(shape: float | None, share: float, one: float, other: float) -> float | None:
    """Of a weighted mean of two noises of one shape: that of the same kurtosis. Normal noise has none."""
    if shape is None:
        return None
    a, b = (share * one) ** 2, ((1 - share) * other) ** 2
    return shape * (a + b) ** 2 / (a**2 + b**2)


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
