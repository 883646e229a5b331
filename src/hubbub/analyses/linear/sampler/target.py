"""What is sampled: the law of the exact sums given the noisy ones, with beta and q integrated out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.linear.released import Released
from hubbub.analyses.linear.sampler.state import Variances
from hubbub.analyses.linear.tuning import TUNING
from hubbub.arrays import Floats
from hubbub.release import NEARLY_NORMAL


@dataclass(frozen=True)
class Prior:
    """beta_j ~ N(mean_j, scale_j^2) in the units of the data; without a scale it is learned (R2 uniform)."""

    scale: Floats | None = None
    mean: Floats | None = None

    def shortened(self, factor: float) -> Prior:
        """The prior of coefficients that are all multiplied by the factor."""
        return Prior(*(None if part is None else part * factor for part in (self.scale, self.mean)))


@dataclass(frozen=True)
class Parts:
    """What a state says of the noisy q and y'y. Arrays have the walkers first."""

    log: Floats
    """Log likelihood of both."""
    of_yy: Floats
    """The part of y'y in it, by its stand-in law."""
    mean: Floats
    """Of q, given the noisy q."""
    covariance: Floats
    s2: Floats
    """Residual variance."""
    t: Floats
    """Prior variance of each coefficient."""
    gap: Floats
    """The noisy y'y less what is expected of it."""
    width: Floats
    """Variance of that gap."""

    def where(self, taken: NDArray[np.bool_], others: Parts) -> Parts:
        """These for the walkers that have taken them, the others for the rest."""
        pairs = ((getattr(self, each.name), getattr(others, each.name)) for each in fields(self))
        return Parts(*(np.where(taken.reshape(-1, *[1] * (a.ndim - 1)), a, b) for a, b in pairs))


class Target:
    """The posterior with beta and q integrated out. Arrays of states have the walkers first."""

    def __init__(self, released: Released, prior: Prior, models: Sequence[Sequence[int]] | None) -> None:
        first = int(released.intercept)
        self.n, self.p, self.first = released.n, released.sums.xy.size, first
        self.eye = np.eye(self.p)
        assert released.sums.yy is not None
        assert released.ball.y is not None
        self.S, self.q, self.yy = released.sums.xx, released.sums.xy, released.sums.yy
        self.noise = max(released.noise_std, 1e-9 * released.n)  # without noise S would be known exactly
        self.q_noise = self.noise**2 / (2 * released.ball.weight**2)
        self.yy_noise = (self.noise / released.ball.weight**2) ** 2
        # the variances above are means of gamma laws of this shape; fixed without one, or where it makes no difference
        self.shape = None if released.shape is None or released.shape > NEARLY_NORMAL else released.shape
        self.bound = released.ball.y
        self.most = released.n * released.ball.radius**2
        # in a ball that cannot hold the constant every row was shortened to its radius: the trace is known
        self.full = released.intercept and released.ball.radius <= 1
        doubt = 2 * np.maximum(released.columns.doubt, TUNING.least_doubt)
        self.doubt = np.concatenate([np.full(first, 2 * TUNING.least_doubt), doubt])  # of log S_jj, and last of log n V
        open_ = min(
            1.0, self.noise / self.most / TUNING.open_noise
        )  # many clients find their columns, whatever the shape
        off_centre = open_ * TUNING.off_centre * np.maximum(released.columns.doubt[:-1] - TUNING.centred_doubt, 0.0)
        self.off_centre = np.concatenate([np.zeros(first), off_centre * first])
        # the more open, the more moves; none, and all columns centred, where it is next to nothing
        self.centre_moves = int(np.clip(np.ceil(4 * self.off_centre.max(initial=0.0) - 0.2), 0, 4))
        self.off_centre *= self.centre_moves > 0
        d = released.features
        self.models = np.zeros((1 if models is None else len(models), self.p), dtype=bool)
        for mask, model in zip(self.models, [range(d)] if models is None else models, strict=True):
            mask[[first + j for j in model]] = True
        self.sizes = np.maximum(self.models.sum(axis=1), 1)
        self.scale = (
            None if prior.scale is None else np.square(np.minimum(prior.scale / released.factors, TUNING.widest_prior))
        )
        self.mean = np.zeros(self.p)
        if prior.mean is not None:
            self.mean[first:] = np.clip(prior.mean / released.factors, -TUNING.widest_prior, TUNING.widest_prior)
        self.dof = max(self.n - self.p, 1)

    def variances(self, S: Floats, hyper: Floats, model: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """Residual variance, and prior variance of each coefficient (0 outside the model)."""
        V, R2 = np.exp(hyper[:, 0]) / self.n, 1 / (1 + np.exp(-hyper[:, 1]))
        diagonal = np.diagonal(S, axis1=-2, axis2=-1)
        within = diagonal
        if self.first:  # what varies around the constant
            within = np.maximum(diagonal - S[:, 0, :] ** 2 / diagonal[:, :1], 1e-3 * diagonal)
        if self.scale is None:
            t = (R2 * V / self.sizes[model])[:, None] * self.n / within
        else:
            t = np.broadcast_to(np.concatenate([np.zeros(self.first), self.scale]), S.shape[:2]).copy()
        t = np.where(self.models[model], t, 0.0)
        if self.first:
            t[:, 0] = V * self.n / diagonal[:, 0]
        return (1 - R2) * V, t

    def parts(self, S: Floats, hyper: Floats, model: NDArray[np.intp], variances: Variances) -> Parts:
        """What these states say of the noisy q and y'y, with beta and q integrated out."""
        s2, t = self.variances(S, hyper, model)
        F = t[:, :, None] * S + s2[:, None, None] * self.eye  # S^-1 times the covariance of q
        spread = S @ F
        A = spread + self.q_noise * variances.q[:, :, None] * self.eye
        A = (A + np.swapaxes(A, -1, -2)) / 2
        inverse = np.linalg.inv(A)
        log_det = np.log(np.diagonal(np.linalg.cholesky(A), axis1=-2, axis2=-1)).sum(axis=-1)
        expected = S @ self.mean
        gap = self.q - expected
        a = np.einsum("cij,cj->ci", inverse, gap)
        mean = expected + np.einsum("cij,cj->ci", spread, a)
        solved = self.mean + np.einsum("cij,cj->ci", F, a)  # S^-1 mean
        covariance = self.q_noise * spread @ inverse * variances.q[:, None, :]
        turned = self.q_noise * F @ inverse * variances.q[:, None, :]  # S^-1 covariance
        center = np.sum(mean * solved, axis=-1) + np.trace(turned, axis1=-2, axis2=-1) + self.dof * s2
        width = (
            2 * np.sum(turned * np.swapaxes(turned, -1, -2), axis=(-1, -2))
            + 4 * np.einsum("ci,cij,cj->c", solved, covariance, solved)
            + 2 * self.dof * s2**2
            + self.yy_noise * variances.yy
        )
        of_yy = log_stand_in(self.yy - center, width)
        log = -log_det - 0.5 * np.sum(gap * a, axis=-1) + of_yy
        return Parts(log, of_yy, mean, covariance, s2, t, self.yy - center, width)

    def log_likelihood(self, S: Floats, hyper: Floats, model: NDArray[np.intp], variances: Variances) -> Floats:
        """Of the noisy q and y'y; minus infinity where S is not possible."""
        possible = (np.trace(S, axis1=-2, axis2=-1) <= self.most * (1 + 1e-9)) & positive(S)
        found = np.full(S.shape[0], -np.inf)
        if possible.any():
            found[possible] = self.parts(S[possible], hyper[possible], model[possible], variances.taken(possible)).log
        return found

    def log_prior(self, hyper: Floats, level: Floats) -> Floats:
        """Of (log n V, logit R2)."""
        return np.asarray(
            -0.5 * ((hyper[:, 0] - level) / self.doubt[-1]) ** 2
            - np.logaddexp(0, -hyper[:, 1])
            - np.logaddexp(0, hyper[:, 1])
        )

    def log_density(self, S: Floats, variances: Variances) -> Floats:
        """Of the noisy S: an off-diagonal term has half the variance of a diagonal one, and is summed twice."""
        return np.asarray(-0.5 * np.sum((self.S - S) ** 2 / variances.S, axis=(-1, -2)) / self.noise**2)

    def log_shape(self, S: Floats, center: Floats) -> Floats:
        """What the log-normal prior of the diagonal adds to the normal one that S is proposed from."""
        diagonal = np.maximum(np.diagonal(S, axis1=-2, axis2=-1), 1e-300)
        around = 0.5 * ((diagonal - center) / (center * self.doubt[:-1])) ** 2
        return np.asarray(self.log_diagonal(S, center) + around.sum(axis=-1))

    def log_diagonal(self, S: Floats, center: Floats) -> Floats:
        """The log-normal prior of the diagonal."""
        log = np.log(np.maximum(np.diagonal(S, axis1=-2, axis2=-1), 1e-300))
        return np.asarray((-log - 0.5 * ((log - np.log(center)) / self.doubt[:-1]) ** 2).sum(axis=-1))

    def log_centres(self, away: Floats) -> Floats:
        """The prior of how far columns lie from zero."""
        return np.asarray(-0.5 * np.sum((away / np.maximum(self.off_centre, 1e-12)) ** 2, axis=-1))

    def kept(self, change: Floats) -> Floats:
        """A change of S that leaves the trace as it is, where that is known."""
        if not self.full:
            return change
        return np.asarray(change - np.trace(change, axis1=-2, axis2=-1)[:, None, None] / self.p * self.eye)

    def pattern(self, away: Floats, inner: Floats | None = None) -> Floats:
        """What S looks like a priori, in units of its level, where columns lie `away` from zero (`inner` if not)."""
        shift = np.broadcast_to(self.eye, (len(away), self.p, self.p)).copy()
        if self.first:
            shift[:, 1:, 0] = away[:, 1:]
        return np.asarray((shift if inner is None else shift @ inner) @ np.swapaxes(shift, -1, -2))


def log_stand_in(gap: Floats, width: Floats) -> Floats:
    """The t law that stands for that of y'y until draws are weighted: of the same mean and spread."""
    return np.asarray(-0.5 * np.log(width) - 0.5 * (TUNING.tail + 1) * np.log1p(gap**2 / (TUNING.tail * width)))


def log_off(S: Floats, expected: Floats, deviation: Floats) -> Floats:
    """The prior of the off-diagonal terms."""
    outside = (S - expected) * (1 - np.eye(S.shape[-1]))
    return np.asarray(-0.5 * np.sum(outside**2, axis=(-1, -2)) / deviation**2)


def positive(S: Floats) -> NDArray[np.bool_]:
    """Which matrices are positive definite."""
    try:
        np.linalg.cholesky(S)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.eigvalsh(S)[:, 0] > 0)
    return np.ones(S.shape[0], dtype=bool)
