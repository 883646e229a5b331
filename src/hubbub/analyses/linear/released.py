"""What the private rounds of the default regression released: all that any posterior is made from, at no cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hubbub.analyses.linear.columns import Columns
from hubbub.analyses.linear.evidence import Evidence, Look
from hubbub.analyses.linear.residuals import ResidualShape
from hubbub.analyses.linear.tuning import TUNING
from hubbub.analyses.linear.turned import Pooled, Uneven, left_turn, pool, straight, turned
from hubbub.arrays import Floats
from hubbub.statistics import Ball, Gram


@dataclass(frozen=True)
class LaterLook:
    """What a later round released: the same sums with residuals in place of the target, and how far residuals lie."""

    sums: Gram
    """Of the rows with (y - u'around) / unit in place of y."""
    noise_std: float
    around: Floats
    """The coefficients that the sums before it gave, of standardised columns."""
    unit: float
    """The deviation that residuals were taken to have, in standard units of the target."""
    counts: Floats
    """Residuals by their distance from zero (`residuals.EDGES`), whole rows and not shortened ones."""
    counts_noise: float
    left_out: float = 0.0
    """Length of the coefficients of columns that were left out since (`restricted`): so much more noise."""
    left: float | None = None
    """What clipping left of a change of coefficients, where columns have been left out; otherwise the counts tell."""
    turn: Floats | None = None
    """A, where the sums are those of rows A u in place of u (`turned.py`): symmetric."""

    @property
    def straight(self) -> Gram:
        """The sums in the units of u."""
        return straight(self.sums, self.turn)

    def restricted(self, rows: Sequence[int], left: float) -> LaterLook:
        """Around the coefficients of some columns alone, with what the others explained put back, noise and all."""
        rest = np.setdiff1d(np.arange(self.around.size), rows)
        whole = self.straight
        b, xx, xy = self.around[rest] * left / self.unit, whole.xx, whole.xy
        back = xx[:, rest] @ b
        assert whole.yy is not None
        yy = float(whole.yy + (2 * xy[rest] + back[rest]) @ b)
        sums, gone = Gram(xx[np.ix_(rows, rows)], (xy + back)[rows], yy), self.around[rest]
        if self.turn is None:
            turn, length = None, float(np.linalg.norm(gone))
        else:  # noise that is put back is not independent of what is left: it counts as all along one axis
            turn = left_turn(self.turn, np.asarray(rows))
            sums = turned(sums, turn)
            length = math.sqrt(2) * float(np.linalg.norm(np.linalg.inv(self.turn)[:, rest] @ gone))
        return replace(
            self, sums=sums, around=self.around[rows], left=left, left_out=math.hypot(self.left_out, length), turn=turn
        )


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
    later: tuple[LaterLook, ...] = ()
    """Of the rounds about residuals, one after the other. None in releases of versions that had one round of sums."""

    @cached_property
    def evidence(self) -> Evidence:
        """What the rounds of sums say together."""
        growth = float(clipped_target(np.array(self.mean_square), self._y)[1])
        nowhere = np.zeros(self.sums.xy.size)
        looks = [self._look(self.sums, self.noise_std, nowhere, 1.0, self.left_by_clipping, growth)]
        if self.later:  # squares of y are much larger than those of residuals, and so is their noise
            looks[0] = replace(looks[0], square_noise=math.inf)
        for later in self.later:
            left = self.left_of_residuals(later)
            look = self._look(later.straight, later.noise_std, later.around, later.unit, left, 1 / left**2)
            looks.append(_louder(look, later.noise_std, later.left_out) if later.left_out else look)
        if self._pooled is not None:
            return self._cautious(self._unlike(self._pooled, looks))
        noise = np.array([self._noise(each) for each in (self.noise_std, *(later.noise_std for later in self.later))])
        weights = noise**-2.0 / np.sum(noise**-2.0)
        xx = np.tensordot(weights, [self.sums.xx, *(later.sums.xx for later in self.later)], axes=1)
        together = float(np.sum(noise**-2.0) ** -0.5)
        return self._cautious(Evidence(xx, together, mixed_shape(self.shape, weights * noise), tuple(looks)))

    @cached_property
    def _pooled(self) -> Pooled | None:
        """XX' of all looks, where the later ones are at turned rows."""
        if not self.later or self.later[0].turn is None:
            return None
        others, noises = [each.straight.xx for each in self.later], [self._noise(each.noise_std) for each in self.later]
        return pool(self.sums.xx, self._noise(self.noise_std), self.later[0].turn, others, noises)

    def _unlike(self, together: Pooled, looks: list[Look]) -> Evidence:
        """What looks at turned rows say beside the first one, whose S may be another: so its S beta may be, too."""
        apart = together.more * float(np.linalg.norm(looks[-1].around)) / math.sqrt(2)
        looks[0] = replace(looks[0], xy_noise=math.hypot(looks[0].xy_noise, apart))
        axes = together.axes
        xy = np.array([look.xy_noise / (axes.stretch if row else np.ones(len(axes.stretch)))
                       for row, look in enumerate(looks)])  # fmt: skip
        size = float(np.median(np.diagonal(together.noise)))
        return Evidence(together.xx, size, None, tuple(looks), uneven=Uneven(axes, together.noise, xy))

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
        uneven = None if found.uneven is None else found.uneven.louder(factor)
        return replace(found, noise_std=least, looks=looks, blurred=True, uneven=uneven)

    def _look(self, sums: Gram, noise: float, around: Floats, unit: float, left: float, growth: float) -> Look:
        assert sums.yy is not None
        weight, noise = self.ball.weight, self._noise(noise)
        return Look(
            around, sums.xy * unit / left, noise * unit / (math.sqrt(2) * weight * left),
            sums.yy * unit**2 * growth, noise * (unit / weight) ** 2 * growth,
        )  # fmt: skip

    @cached_property
    def residuals(self) -> tuple[ResidualShape, ...]:
        """The law of the residuals in each later look, in its unit; none where columns have been left out since.

        All count the same rows, and so do not err apart: each counts as one of so many.
        """
        if any(later.left_out for later in self.later):
            return ()
        return tuple(ResidualShape(each.counts, self.n, each.counts_noise, len(self.later)) for each in self.later)

    def left_of_residuals(self, later: LaterLook) -> float:
        """What clipping residuals left of a change of coefficients: the share of residuals that are not clipped.

        Whatever the residuals' law, it is the derivative of a clipped residual's mean by its shift.
        """
        if later.left is not None:
            return later.left
        mean = (self.sums.xx + later.sums.xx) / 2 if self._pooled is None else self._pooled.xx
        shortened = math.sqrt(float(np.clip(self.shortening(mean[None])[0], TUNING.least_shortening, 1.0)))
        counted = ResidualShape(later.counts, self.n, later.counts_noise)
        return max(counted.within(self._y / shortened), TUNING.least_left)

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
            later=tuple(each.restricted(rows, self.left_of_residuals(each)) for each in self.later),
        )  # fmt: skip

    def unexplained(self, deviations: Floats, beta: Floats, S: Floats) -> Floats:
        """Residual variance of whole rows, in standard units, for draws of coefficients and of the counted deviation.

        The counts are of residuals around the last look's coefficients, so what better ones explain beyond these is
        taken away.
        """
        last = self.later[-1]
        counted = (last.unit * deviations) ** 2
        step = beta - last.around
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


def mixed_shape(shape: float | None, deviations: Floats) -> float | None:
    """Of a sum of noises of one shape with these deviations: that of the same kurtosis. Normal noise has none."""
    if shape is None:
        return None
    return float(shape * np.sum(deviations**2) ** 2 / np.sum(deviations**4))


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
