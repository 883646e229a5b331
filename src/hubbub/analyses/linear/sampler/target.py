"""What is sampled: the law of the exact sums given the noisy ones, with beta and q integrated out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.linear.released import Released
from hubbub.analyses.linear.sampler.state import Sums, Variances
from hubbub.analyses.linear.tuning import TUNING
from hubbub.analyses.linear.turned import Uneven
from hubbub.arrays import Floats
from hubbub.release import NEARLY_NORMAL


@dataclass(frozen=True)
class Prior:
    """beta_j ~ N(mean_j, scale_j^2) in the units of the data.

    Without a scale it is learned: R2 has a beta law, both of whose shapes are `explained_shape`.
    """

    scale: Floats | None = None
    mean: Floats | None = None


@dataclass(frozen=True)
class Parts:
    """What a state says of the noisy q and of the squares of residuals, both around the last look's coefficients."""

    log: Floats
    """Log likelihood of both."""
    of_square: Floats
    """The part of the squares in it, by their stand-in law."""
    q: Floats
    """The noisy q that all looks make together, given S."""
    mean: Floats
    """Of q, given the noisy q."""
    covariance: Floats
    s2: Floats
    """Residual variance."""
    T: Floats
    """Prior covariance of the coefficients."""
    square: Floats
    """The noisy sum of squares."""
    gap: Floats
    """That less what is expected of it."""
    width: Floats
    """Variance of that gap."""

    def where(self, taken: NDArray[np.bool_], others: Parts) -> Parts:
        """These for the walkers that have taken them, the others for the rest."""
        pairs = ((getattr(self, each.name), getattr(others, each.name)) for each in fields(self))
        return Parts(*(np.where(taken.reshape(-1, *[1] * (a.ndim - 1)), a, b) for a, b in pairs))


_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(5)
_LOG_WEIGHTS = np.log(_WEIGHTS / _WEIGHTS.sum())
_LEAST_APART = 1e-9  # of two eigenvalues of log S: for the logarithm of their distance


class Target:
    """The posterior with beta and q integrated out. Arrays of states have the walkers first.

    Coefficients are counted from those that the last look was around: beta = around + gamma.
    """

    def __init__(self, released: Released, prior: Prior, models: Sequence[Sequence[int]] | None) -> None:
        first, seen = int(released.intercept), released.evidence
        self.n, self.p, self.first = released.n, len(seen.xx), first
        self.eye = np.eye(self.p)
        self.S, self.noise, self.looks, self.around = seen.xx, seen.noise_std, seen.looks, seen.around
        self.values, self.axes = np.linalg.eigh(self.S)
        # counts tell more of residuals than their squares do, but are not to be blurred
        laws, self._shortening = () if seen.blurred else released.residuals, released.shortening
        self.counted = [(law, each.around, each.unit) for law, each in zip(laws, released.later, strict=False)]
        precisions = np.array([look.xy_noise**-2.0 for look in self.looks])
        self.q_noise, self.q_weights = 1 / precisions.sum(), precisions / precisions.sum()
        self.uneven = seen.uneven
        self.terms_noise: Floats | float = self.noise
        if self.uneven is not None:
            along = self.uneven.axes.along
            self.q_covariance = (along * self.uneven.xy_together**2) @ along.T
            self.terms_noise = self._noise_along_axes(self.uneven)
        squares = np.array([look.square_noise**-2.0 for look in self.looks])
        self.square_noise, self.square_weights = 1 / squares.sum(), squares / squares.sum()
        # the variances above are means of gamma laws of this shape; fixed without one, or where it makes no difference
        self.shape = None if seen.shape is None or seen.shape > NEARLY_NORMAL else seen.shape
        self.most = released.n * released.ball.radius**2
        # in a ball that cannot hold the constant every row was shortened to its radius: the trace is known
        self.full = released.intercept and released.ball.radius <= 1
        doubt = 2 * np.maximum(released.columns.doubt, TUNING.least_doubt)
        self.doubt = np.concatenate([np.full(first, 2 * TUNING.least_doubt), doubt])  # of log S_jj, and last of log n V
        d = released.features
        self.models = np.zeros((1 if models is None else len(models), self.p), dtype=bool)
        for mask, model in zip(self.models, [range(d)] if models is None else models, strict=True):
            mask[[first + j for j in model]] = True
        self.scale = (
            None if prior.scale is None else np.square(np.minimum(prior.scale / released.factors, TUNING.widest_prior))
        )
        mean = np.zeros(self.p)
        if prior.mean is not None:
            mean[first:] = np.clip(prior.mean / released.factors, -TUNING.widest_prior, TUNING.widest_prior)
        self.mean = mean - self.around
        self.dof = max(self.n - self.p, 1)
        self.explained_shape = TUNING.explained_shape

    def _noise_along_axes(self, uneven: Uneven) -> Floats:
        """(p, p): of the terms of the noisy S in its own axes, each as if all others were known.

        That of a term (i, j) is held against a change of S along those two axes, whichever way the turn's axes lie.
        """
        along = uneven.axes.along.T @ self.axes
        square, precision = along**2, uneven.xx**-2.0
        crossed = np.einsum("ai,aj,ab,bi,bj->ij", along, along, precision, along, along, optimize=True)
        both = square.T @ precision @ square + crossed
        return np.asarray((both / (1 + self.eye)) ** -0.5)

    def sums(self, log_S: Floats) -> Sums:
        """The sums with these logarithms."""
        logs, turned = np.linalg.eigh(log_S)
        values, axes = np.exp(np.clip(logs, -300, 300)), self.axes @ turned
        if self.full:
            values *= (self.most / values.sum(axis=1))[:, None]
        return Sums((axes * values[:, None, :]) @ np.swapaxes(axes, -1, -2), values, axes)

    def variances(self, sums: Sums, hyper: Floats, model: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """Residual variance, and prior covariance of the coefficients (0 outside the model).

        That is a power of S^-1, from the identity (all coefficients alike) over the inverse of S (all its axes alike)
        to its square (the largest effects along the axes with the least variance), as wide as the share R2 of the
        variance of y demands.
        """
        V, R2 = np.exp(hyper[:, 0]) / self.n, _share(hyper[:, 1])
        power = TUNING.most_power * _share(hyper[:, 2])
        S, inside = sums.S, self.models[model]
        if self.scale is None:
            size = (np.maximum(sums.values, 1e-12 * sums.values.max(axis=1, keepdims=True))) ** -power[:, None]
            T = (sums.axes * size[:, None, :]) @ np.swapaxes(sums.axes, -1, -2)
            T = T * (inside[:, :, None] & inside[:, None, :])
            explained = np.sum(T * S, axis=(-1, -2))
            T *= (R2 * V * self.n / np.maximum(explained, 1e-300))[:, None, None]
        else:
            variances = np.concatenate([np.zeros(self.first), self.scale])
            T = np.where(inside, variances, 0.0)[:, :, None] * self.eye
        if self.first:
            T[:, 0, 0] = TUNING.off_centre**2 + V * self.n / S[:, 0, 0]
        return (1 - R2) * V, T

    def parts(self, sums: Sums, hyper: Floats, model: NDArray[np.intp], variances: Variances) -> Parts:
        """What these states say of what was seen, with beta and q integrated out."""
        S, (s2, T) = sums.S, self.variances(sums, hyper, model)
        q, apart = self._seen(S)
        F = T @ S + s2[:, None, None] * self.eye  # S^-1 times the covariance of q
        covariance_of_q = S @ F
        A = covariance_of_q + self._q_noise(variances)
        A = (A + np.swapaxes(A, -1, -2)) / 2
        inverse = np.asarray(np.linalg.inv(A), dtype=np.float64)
        log_det = np.log(np.diagonal(np.linalg.cholesky(A), axis1=-2, axis2=-1)).sum(axis=-1)
        expected = S @ self.mean
        gap = q - expected
        a = np.einsum("cij,cj->ci", inverse, gap)
        mean = expected + np.einsum("cij,cj->ci", covariance_of_q, a)
        solved = self.mean + np.einsum("cij,cj->ci", F, a)  # S^-1 mean
        covariance = self._before_q_noise(covariance_of_q, inverse, variances)
        turned = self._before_q_noise(F, inverse, variances)  # S^-1 covariance
        center = np.sum(mean * solved, axis=-1) + np.trace(turned, axis1=-2, axis2=-1) + self.dof * s2
        noise = self.square_noise * variances.yy
        width = (
            2 * np.sum(turned * np.swapaxes(turned, -1, -2), axis=(-1, -2))
            + 4 * np.einsum("ci,cij,cj->c", solved, covariance, solved)
            + 2 * self.dof * s2**2
            + noise
        )
        square = self._square(S, mean)
        if self.counted:
            of_square = self._log_mean_counts(S, mean, center, solved, covariance, turned)
        else:
            of_square = log_stand_in(square - center, width)
        log = apart - log_det - 0.5 * np.sum(gap * a, axis=-1) + of_square
        return Parts(log, of_square, q, mean, covariance, s2, T, square, square - center, width)

    def _q_noise(self, variances: Variances) -> Floats:
        """Its covariance."""
        if self.uneven is None:
            return np.asarray(self.q_noise * variances.q[:, :, None] * self.eye)
        return self.q_covariance

    def _before_q_noise(self, left: Floats, inverse: Floats, variances: Variances) -> Floats:
        """A product of three matrices, that covariance last."""
        if self.uneven is None:
            return np.asarray(self.q_noise * left @ inverse * variances.q[:, None, :])
        return np.asarray(left @ inverse @ self.q_covariance)

    def _seen(self, S: Floats) -> tuple[Floats, Floats]:
        """The noisy q around the last look's coefficients, of all looks together; and how likely they are to differ so.

        One look's q differs from another's by S times the difference of their coefficients, and by noise. That is taken
        for normal whatever its law: the variances are those of the noise of all looks together.
        """
        looks = [look.xy + S @ (look.around - self.around) for look in self.looks]
        if self.uneven is not None:
            together = self.uneven.pooled(looks)
            gaps = (np.stack(looks) - together) @ self.uneven.axes.along / self.uneven.xy[:, None]
            return together, np.asarray(-0.5 * np.sum(gaps**2, axis=(0, -1)))
        together = np.sum([w * q for w, q in zip(self.q_weights, looks, strict=True)], axis=0)
        apart = np.zeros(len(S))
        for weight, q in zip(self.q_weights, looks, strict=True):
            if len(looks) > 1:
                apart -= 0.5 * np.sum((q - together) ** 2, axis=-1) * weight / self.q_noise
        return together, apart

    def _square(self, S: Floats, q: Floats) -> Floats:
        """The noisy sum of squares around the last look's coefficients, of all looks together."""
        total = np.zeros(len(S))
        for weight, look in zip(self.square_weights, self.looks, strict=True):
            if weight > 0:
                step = self.around - look.around
                total += weight * (look.square - 2 * q @ step - np.einsum("i,cij,j->c", step, S, step))
        return total

    def log_counts(self, S: Floats, q: Floats, squares: Floats) -> Floats:
        """Of the counts of residuals in all looks, where those around the last look's coefficients have these sums."""
        rows, found = self.n * np.clip(self._shortening(S), TUNING.least_shortening, 1.0), np.zeros(squares.shape)
        for law, around, unit in self.counted:
            step = self.around - around
            moved = squares + 2 * q @ step + np.einsum("i,cij,j->c", step, S, step)
            found += law.log_likelihood(np.sqrt(np.maximum(moved, 0.0) / rows) / unit)
        return found

    def _log_mean_counts(
        self, S: Floats, mean: Floats, center: Floats, solved: Floats, covariance: Floats, turned: Floats
    ) -> Floats:
        """Of the counts, averaged over what q may be: all looks' squares of residuals move with it together."""
        rows = self.n * np.clip(self._shortening(S), TUNING.least_shortening, 1.0)
        found = np.repeat(_LOG_WEIGHTS[:, None], len(S), axis=1)
        trace = 2 * np.sum(turned * np.swapaxes(turned, -1, -2), axis=(-1, -2))
        for law, around, unit in self.counted:
            step = self.around - around
            moved = np.maximum(center + 2 * mean @ step + np.einsum("i,cij,j->c", step, S, step), 1e-300)
            slope = solved + step
            spread = np.log1p((trace + 4 * np.einsum("ci,cij,cj->c", slope, covariance, slope)) / moved**2)
            squares = moved * np.exp(_NODES[:, None] * np.sqrt(np.maximum(spread, 0.0)) - spread / 2)
            found += law.log_likelihood(np.sqrt(squares / rows) / unit)
        return np.asarray(np.logaddexp.reduce(found, axis=0))

    def log_likelihood(self, sums: Sums, hyper: Floats, model: NDArray[np.intp], variances: Variances) -> Floats:
        """Of the noisy q and squares; minus infinity where S is not possible."""
        S = sums.S
        possible = np.trace(S, axis1=-2, axis2=-1) <= self.most * (1 + 1e-9)
        found = np.full(S.shape[0], -np.inf)
        rows = np.flatnonzero(possible)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # far-off tries: no number, so not taken
            try:
                found[rows] = self.parts(sums.taken(rows), hyper[rows], model[rows], variances.taken(rows)).log
            except np.linalg.LinAlgError:  # one of them is next to singular
                for row in rows:
                    one = np.array([row])
                    try:
                        found[row] = self.parts(sums.taken(one), hyper[one], model[one], variances.taken(one)).log[0]
                    except np.linalg.LinAlgError:
                        continue
        return np.where(np.isnan(found), -np.inf, found)

    def log_prior(self, hyper: Floats, level: Floats) -> Floats:
        """Of (log n V, logit R2, logit of the power): R2 has a beta law of one shape, and the power is uniform."""
        shares = hyper[:, 1:]
        logistic = np.logaddexp(0, -shares) + np.logaddexp(0, shares)
        shares = logistic @ np.array([self.explained_shape, 1.0])
        return np.asarray(-0.5 * ((hyper[:, 0] - level) / self.doubt[-1]) ** 2 - shares)

    def log_density(self, S: Floats, variances: Variances) -> Floats:
        """Of the noisy S: an off-diagonal term has half the variance of a diagonal one, and is summed twice."""
        if self.uneven is not None:
            along = self.uneven.axes.along
            return np.asarray(-0.5 * np.sum((along.T @ (self.S - S) @ along / self.uneven.xx) ** 2, axis=(-1, -2)))
        return np.asarray(-0.5 * np.sum((self.S - S) ** 2 / variances.S, axis=(-1, -2)) / self.noise**2)

    def log_diagonal(self, S: Floats, level: Floats) -> Floats:
        """The prior of log S_jj, around the level."""
        log = np.log(np.maximum(np.diagonal(S, axis1=-2, axis2=-1), 1e-300))
        return np.asarray(-0.5 * np.sum(((log - level[:, None]) / self.doubt[:-1]) ** 2, axis=-1))


def log_stand_in(gap: Floats, width: Floats) -> Floats:
    """The t law that stands for that of the squares until draws are weighted: of the same mean and spread."""
    return np.asarray(-0.5 * np.log(width) - 0.5 * (TUNING.tail + 1) * np.log1p(gap**2 / (TUNING.tail * width)))


def log_eigenvalues(sums: Sums) -> Floats:
    """Those of log S around their mean, of which the prior has no opinion."""
    logs = np.log(sums.values)
    return np.asarray(logs - logs.mean(axis=-1, keepdims=True))


def log_prior_of_sums(sums: Sums, spread: Floats) -> Floats:
    """Of log S: its eigenvalues are independent and normal with this deviation, and its axes may lie in any direction.

    A symmetric matrix with independent normal terms has eigenvalues that repel one another, as the volume between two
    of them is in proportion to their distance. Here that distance is taken out again (docs/decisions/0034).
    """
    logs = log_eigenvalues(sums)
    one, other = np.triu_indices(logs.shape[-1], 1)
    apart = np.log(np.maximum(np.abs(logs[:, one] - logs[:, other]), _LEAST_APART)).sum(axis=-1)
    return np.asarray(-0.5 * np.sum(logs**2, axis=-1) / spread**2 - apart)


def _share(logit: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-logit)))
