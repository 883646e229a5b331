"""The noise-aware posterior of a regression: the exact sums are latent, seen through noise of known size.

    S = sum of uu'            seen as S + noise, S positive definite with trace <= n R^2
    q = S beta + N(0, s2 S)   seen as q + noise                      (sum of u y)
    y'y = q' S^-1 q + s2 chi2(n - p)    seen as y'y + noise

No distribution of x is assumed beyond what S says of it. A priori the share R2 of the variance of y that x explains
is uniform, every column's part in it is alike, s2 = (1 - R2) V; log S_jj and log V lie around a common level, as
widely as the first round left their scales open; off-diagonal terms are normal with a learned deviation. Where the
first round left open where columns lie, too, S may have a part of rank one beside the constant's 1: their means.

beta and q are integrated out in closed form, save that the law of y'y given the rest is replaced by a t law of the
same mean and spread; each draw then carries the weight that makes up for it. What is left is sampled by many chains
at once: S by elliptical slice sampling from its normal part, (V, R2) by differential evolution between the chains.

With few rows for the columns S is close to singular, and no chain moves among such matrices. Then noise is added until
they do: the posterior is that of noisier sums, wider and on its way to the prior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Floats
from hubbub.models.released import Released, clipped_target

_TAIL = 4.0  # degrees of freedom of the stand-in law of y'y: heavier than the truth, so that weights are bounded
_DOUBT = 0.35  # the least deviation of a log scale: columns are not all normal
_OFF_DIAGONAL = (0.003, 1.0)  # deviation of an off-diagonal term, of the largest level
_LEAST_LEVEL = 1e-3  # of the largest
_MOST_STEPS = 60  # of shrinking one slice; then the chain stays where it is
_HYPER_MOVES = 3
_MORE, _GROWTH = 1.5, 1.5  # of what clipping takes from a normal target's variance so much is put back; most growth
_CENTRED, _OFF_CENTRE = 0.3, 2.0  # doubt up to which a column counts as centred; what more of it means ...
_OPEN = 0.03  # ... where the noise is at least this part of all that can be seen
_FEW, _BLUR = 4.0, 2.0  # fewer rows a column than this are few; noise that chains move in where there is one, of S_jj
_MANY_COLUMNS, _FEW_OF_MANY = 64, 10.0  # beyond which chains are few, too
_WIDEST = 1e4  # prior scale or mean, in standard units: beyond it is all the same


@dataclass(frozen=True)
class Prior:
    """beta_j ~ N(mean_j, scale_j^2) in the units of the data; without a scale it is learned (R2 uniform)."""

    scale: Floats | None = None
    mean: Floats | None = None

    def shortened(self, factor: float) -> Prior:
        """The prior of coefficients that are all multiplied by the factor."""
        return Prior(*(None if part is None else part * factor for part in (self.scale, self.mean)))


@dataclass(frozen=True)
class Draws:
    """Equally weighted draws from the posterior, in the units of the data."""

    coefficients: Floats
    intercept: Floats
    residual_variance: Floats
    effective: float
    """Effective number of draws behind the importance weights, as a share."""
    models: Floats = field(default_factory=lambda: np.ones(1))
    """Posterior probability of each of the models that were compared."""


def sample_posterior(
    released: Released,
    prior: Prior | None = None,
    *,
    draws: int = 1000,
    seed: int | None = 0,
    models: Sequence[Sequence[int]] | None = None,
) -> Draws:
    """Draws of coefficients, intercept and residual variance; 1000 at d = 10 take less than a second.

    `models` are lists of features, equally likely a priori: the draws then go through all of them, and their
    posterior probabilities compare the models. Post-processing: free, and the seed is harmless.
    """
    prior, rng = prior or Prior(), np.random.default_rng(seed)
    p = released.sums.xy.size
    level = min(float(np.trace(released.sums.xx)), released.n * released.ball.radius**2) / p
    released = released.blurred(enough_noise(released.n, p, level), rng)
    kept = released.left_by_clipping if prior.scale is not None else 1.0  # so that the prior meets it in its units
    target = _Target(released, prior.shortened(kept), models)
    chains, burn, most = _effort(target.p)
    keep = min(-(-draws // chains), most)
    walk = _Walk(target, chains, rng)
    for sweep in range(burn):
        walk.sweep()
        if sweep % 8 == 7:
            walk.rescue()
    walk.probabilities[:] = 0.0
    found = []
    for _ in range(keep):
        walk.sweep()
        found.append(walk.draw())
    beta, s2, square, S, log_weight = (np.concatenate(part) for part in zip(*found, strict=True))
    weights = np.exp(log_weight - log_weight.max())
    weights /= weights.sum()
    chosen = walk.rng.choice(weights.size, draws, p=weights)
    beta, s2, square, S = beta[chosen], s2[chosen], square[chosen], S[chosen]
    attenuation, growth = clipped_target(square, target.bound)
    # what clipping y took away lies between nothing and what it takes from normal data, and rather near the latter
    share = np.sqrt(walk.rng.uniform(size=draws))
    left = 1 - share * (1 - attenuation) if prior.scale is None else np.full(draws, kept)
    coefficients, intercept = released.original(beta / left[:, None])
    # of the residual variance more is put back: a judgement, made on predictive intervals (docs/decisions/0008)
    grown = s2 * np.maximum(1 + share * (growth - 1), np.minimum(1 + _MORE * (growth - 1), _GROWTH))
    residual = grown / released.shortening(S) * released.columns.scale[-1] ** 2
    effective = float(1 / np.sum(weights**2) / weights.size)
    return Draws(coefficients, intercept, residual, effective, walk.probabilities / keep)


def enough_noise(n: int, p: int, level: float) -> float:
    """The least noise that lets chains move: none with many rows a column, twice S_jj with one, more with fewer."""
    few = _FEW if p <= _MANY_COLUMNS else _FEW_OF_MANY
    return _BLUR * level * max(0.0, few * p / n - 1) / (few - 1)


def _effort(p: int) -> tuple[int, int, int]:
    """Chains, sweeps before the first draw, and most sweeps after it: fewer where each costs more."""
    if p <= 4:
        return 100, 40, 1000
    return (40, 45, 1000) if p <= 24 else (16, 40, 100) if p <= 64 else (8, 25, 25)


class _Target:
    """The posterior with beta and q integrated out. Arrays of states have the chains first."""

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
        self.bound = released.ball.y
        self.most = released.n * released.ball.radius**2
        # in a ball that cannot hold the constant every row was shortened to its radius: the trace is known
        self.full = released.intercept and released.ball.radius <= 1
        doubt = 2 * np.maximum(released.columns.doubt, _DOUBT)
        self.doubt = np.concatenate([np.full(first, 2 * _DOUBT), doubt])  # of log S_jj, and last of log n V
        open_ = min(1.0, self.noise / self.most / _OPEN)  # many clients find their columns, whatever the shape
        off_centre = open_ * _OFF_CENTRE * np.maximum(released.columns.doubt[:-1] - _CENTRED, 0.0)
        self.off_centre = np.concatenate([np.zeros(first), off_centre * first])
        # the more open, the more moves; none, and all columns centred, where it is next to nothing
        self.centre_moves = int(np.clip(np.ceil(4 * self.off_centre.max(initial=0.0) - 0.2), 0, 4))
        self.off_centre *= self.centre_moves > 0
        d = released.features
        self.models = np.zeros((1 if models is None else len(models), self.p), dtype=bool)
        for mask, model in zip(self.models, [range(d)] if models is None else models, strict=True):
            mask[[first + j for j in model]] = True
        self.sizes = np.maximum(self.models.sum(axis=1), 1)
        self.scale = None if prior.scale is None else np.square(np.minimum(prior.scale / released.factors, _WIDEST))
        self.mean = np.zeros(self.p)
        if prior.mean is not None:
            self.mean[first:] = np.clip(prior.mean / released.factors, -_WIDEST, _WIDEST)
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

    def parts(
        self, S: Floats, hyper: Floats, model: NDArray[np.intp]
    ) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats]:
        """Log likelihood, its part of y'y, mean and covariance of q, residual variance, prior variances."""
        s2, t = self.variances(S, hyper, model)
        F = t[:, :, None] * S + s2[:, None, None] * self.eye  # S^-1 times the covariance of q
        spread = S @ F
        A = spread + self.q_noise * self.eye
        A = (A + np.swapaxes(A, -1, -2)) / 2
        inverse = np.linalg.inv(A)
        log_det = np.log(np.diagonal(np.linalg.cholesky(A), axis1=-2, axis2=-1)).sum(axis=-1)
        expected = S @ self.mean
        gap = self.q - expected
        a = np.einsum("cij,cj->ci", inverse, gap)
        mean = expected + np.einsum("cij,cj->ci", spread, a)
        solved = self.mean + np.einsum("cij,cj->ci", F, a)  # S^-1 mean
        covariance = self.q_noise * spread @ inverse
        turned = self.q_noise * F @ inverse  # S^-1 covariance
        center = np.sum(mean * solved, axis=-1) + np.trace(turned, axis1=-2, axis2=-1) + self.dof * s2
        width = (
            2 * np.sum(turned * np.swapaxes(turned, -1, -2), axis=(-1, -2))
            + 4 * np.einsum("ci,cij,cj->c", solved, covariance, solved)
            + 2 * self.dof * s2**2
            + self.yy_noise
        )
        of_yy = -0.5 * np.log(width) - 0.5 * (_TAIL + 1) * np.log1p((self.yy - center) ** 2 / (_TAIL * width))
        return -log_det - 0.5 * np.sum(gap * a, axis=-1) + of_yy, of_yy, mean, covariance, s2, t

    def log_likelihood(self, S: Floats, hyper: Floats, model: NDArray[np.intp]) -> Floats:
        """Of the noisy q and y'y; minus infinity where S is not possible."""
        possible = (np.trace(S, axis1=-2, axis2=-1) <= self.most * (1 + 1e-9)) & _positive(S)
        found = np.full(S.shape[0], -np.inf)
        if possible.any():
            found[possible] = self.parts(S[possible], hyper[possible], model[possible])[0]
        return found

    def log_prior(self, hyper: Floats, level: Floats) -> Floats:
        """Of (log n V, logit R2)."""
        return np.asarray(
            -0.5 * ((hyper[:, 0] - level) / self.doubt[-1]) ** 2
            - np.logaddexp(0, -hyper[:, 1])
            - np.logaddexp(0, hyper[:, 1])
        )

    def log_density(self, S: Floats) -> Floats:
        """Of the noisy S."""
        return np.asarray(-0.5 * np.sum((self.S - S) ** 2, axis=(-1, -2)) / self.noise**2)

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


class _Walk:
    """All chains, one sweep at a time."""

    def __init__(self, target: _Target, chains: int, rng: np.random.Generator) -> None:
        self.target, self.rng, self.chains = target, rng, chains
        p, top = target.p, target.most / target.p
        start = np.trace(target.S) / p + target.noise / np.sqrt(p) * rng.standard_normal(chains)
        self.level = np.log(np.clip(start, 0.05 * top, 0.95 * top))
        least, most = np.log(_OFF_DIAGONAL)
        self.off = top * np.exp(rng.uniform(least, most, chains))
        loose = self._symmetric() * 0.2 / np.sqrt(p) * (1 - target.eye)
        self.away = self._first_guess()
        self.S = np.exp(self.level)[:, None, None] * target.pattern(self.away, target.eye + loose)
        room = target.most / np.maximum(np.trace(self.S, axis1=-2, axis2=-1), 1e-300)
        self.S *= (room if target.full else np.minimum(1.0, 0.9 * room))[:, None, None]
        self.hyper = np.column_stack([self.level + rng.normal(0, 0.3, chains), rng.normal(0, 1, chains)])
        self.model = rng.integers(len(target.models), size=chains)
        self.likelihood = target.log_likelihood(self.S, self.hyper, self.model)
        self.probabilities = np.zeros(len(target.models))

    def _first_guess(self) -> Floats:
        """How far columns lie from zero, by the noisy row of the constant in S."""
        target, level = self.target, np.exp(self.level)[:, None]
        noise, prior = target.noise**2 / 2, target.off_centre**2
        precision = level**2 * prior + noise
        mean, deviation = prior * level * target.S[0] / precision, np.sqrt(prior * noise / precision)
        return np.asarray(mean + deviation * self.rng.standard_normal(mean.shape))

    def sweep(self) -> None:
        """Every part of the state once."""
        self._move_level()
        if self.target.p > 1:
            self._move_off_diagonal()
        self._move_sums()
        for _ in range(self.target.centre_moves):
            self._move_centres(carry=True)
            self._move_centres(carry=False)
        for _ in range(_HYPER_MOVES):
            self._move_hyper()
        self._move_model()

    def rescue(self) -> None:
        """Chains far below the others, which the others' differences no longer move, start again from one of them.

        Before the first draw only: afterwards it would change the law.
        """
        height = self.likelihood + self.target.log_prior(self.hyper, self.level)
        low, middle = np.quantile(height, [0.25, 0.5])
        lost = np.flatnonzero(height < low - 4 * (middle - low) - 2)
        found = self.rng.choice(np.flatnonzero(height >= low), lost.size)
        for part in (self.level, self.off, self.away, self.S, self.hyper, self.model, self.likelihood):
            part[lost] = part[found]

    def draw(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """beta, residual variance, mean square of y and S of each chain, and the logarithm of their weight."""
        target, S = self.target, self.S
        _, of_yy, mean, covariance, s2, t = target.parts(S, self.hyper, self.model)
        values, vectors = np.linalg.eigh((covariance + np.swapaxes(covariance, -1, -2)) / 2)
        normal = np.sqrt(np.maximum(values, 0.0)) * self.rng.standard_normal(mean.shape)
        q = mean + np.einsum("cij,cj->ci", vectors, normal)
        root = np.sqrt(t)
        precision = target.eye + root[:, :, None] * S * root[:, None, :] / s2[:, None, None]
        gap = root * (q - S @ target.mean) / s2[:, None]
        normal = self.rng.standard_normal((*mean.shape, 1))
        turned = np.linalg.solve(np.swapaxes(np.linalg.cholesky(precision), -1, -2), normal)
        beta = target.mean + root * (np.linalg.solve(precision, gap[..., None]) + turned)[..., 0]
        center = np.sum(q * np.linalg.solve(S, q[..., None])[..., 0], axis=-1) + target.dof * s2
        width = 2 * target.dof * s2**2 + target.yy_noise
        exact = -0.5 * np.log(width) - 0.5 * (target.yy - center) ** 2 / width
        return beta, s2, center / target.n, S.copy(), exact - of_yy

    def _move_level(self) -> None:
        """The common level of log S_jj and log n V: normal, cut off where the trace would exceed its bound."""
        from scipy.special import ndtr, ndtri

        target = self.target
        pattern = target.pattern(self.away)
        log = np.log(np.diagonal(self.S, axis1=-2, axis2=-1) / np.diagonal(pattern, axis1=-2, axis2=-1))
        logs = np.column_stack([log, self.hyper[:, 0]])
        precision = 1 / target.doubt**2
        mean, deviation = logs @ precision / precision.sum(), 1 / np.sqrt(precision.sum())
        top = np.log(target.most / target.p)
        low, high = (ndtr((end - mean) / deviation) for end in (top + np.log(_LEAST_LEVEL), top))
        uniform = np.clip(low + (high - low) * self.rng.uniform(size=self.chains), 1e-12, 1 - 1e-12)
        level = np.clip(mean + deviation * ndtri(uniform), top + np.log(_LEAST_LEVEL), top)
        if target.centre_moves:  # off-diagonal terms have something to say, too
            old, new = (np.exp(each)[:, None, None] * pattern for each in (self.level, level))
            gain = _log_off(self.S, new, self.off) - _log_off(self.S, old, self.off)
            level = np.where(np.log(self.rng.uniform(size=self.chains)) < gain, level, self.level)
        self.level = level

    def _move_centres(self, carry: bool) -> None:
        """How far columns lie from zero, along differences between chains; S moves with it, or stays."""
        target, rng, half = self.target, self.rng, self.chains // 2
        step = rng.choice([0.3, 0.7, 1.0]) / (1.0 if carry else 2.0)
        for mine, others in ((slice(0, half), slice(half, None)), (slice(half, None), slice(0, half))):
            away, pool, S = self.away[mine], self.away[others], self.S[mine]
            one, two = rng.integers(len(pool), size=(2, len(away)))
            jump = step * (pool[one] - pool[two]) + 0.02 * target.off_centre * rng.standard_normal(away.shape)
            proposed = away + jump * (rng.uniform(size=away.shape) < rng.choice([0.3, 1.0]))
            level = np.exp(self.level[mine])[:, None, None]
            old, new = level * target.pattern(away), level * target.pattern(proposed)
            moved, likelihood = (S + target.kept(new - old), None) if carry else (S, self.likelihood[mine])
            gain = target.log_centres(proposed) - target.log_centres(away)
            gain += target.log_diagonal(moved, np.diagonal(new, axis1=-2, axis2=-1))
            gain -= target.log_diagonal(S, np.diagonal(old, axis1=-2, axis2=-1))
            if likelihood is None:
                likelihood = target.log_likelihood(moved, self.hyper[mine], self.model[mine])
                gain += likelihood - self.likelihood[mine] + target.log_density(moved) - target.log_density(S)
            else:
                gain += _log_off(S, new, self.off[mine]) - _log_off(S, old, self.off[mine])
            taken = np.log(rng.uniform(size=len(away))) < gain
            self.away[mine] = np.where(taken[:, None], proposed, away)
            self.S[mine] = np.where(taken[:, None, None], moved, S)
            self.likelihood[mine] = np.where(taken, likelihood, self.likelihood[mine])

    def _move_off_diagonal(self) -> None:
        """The deviation of off-diagonal terms: given them, and together with them."""
        from scipy.special import gammainc, gammaincinv

        target, top = self.target, self.target.most / self.target.p
        low, high = (share * top for share in _OFF_DIAGONAL)
        expected = np.exp(self.level)[:, None, None] * target.pattern(self.away)
        squares = np.maximum(np.sum((self.S - expected) ** 2 * (1 - target.eye), axis=(-1, -2)), 1e-300)
        half = target.p * (target.p - 1) / 4
        a, b = gammainc(half, squares / (2 * high**2)), gammainc(half, squares / (2 * low**2))
        gamma = gammaincinv(half, np.clip(a + (b - a) * self.rng.uniform(size=self.chains), 1e-300, 1 - 1e-15))
        self.off = np.clip(np.sqrt(squares / (2 * np.maximum(gamma, 1e-300))), low, high)
        step = np.exp(self.rng.normal(0, 0.5, self.chains))
        proposed = np.where(target.eye > 0, self.S, expected + (self.S - expected) * step[:, None, None])
        likelihood = target.log_likelihood(proposed, self.hyper, self.model)
        gain = likelihood - self.likelihood + target.log_density(proposed) - target.log_density(self.S)
        off = self.off * step
        taken = (np.log(self.rng.uniform(size=self.chains)) < gain) & (off > low) & (off < high)
        self.off = np.where(taken, off, self.off)
        self.S = np.where(taken[:, None, None], proposed, self.S)
        self.likelihood = np.where(taken, likelihood, self.likelihood)

    def _move_sums(self) -> None:
        """S by elliptical slice sampling around what its noisy value and its prior say."""
        target, eye, chains = self.target, self.target.eye, self.chains
        expected = np.exp(self.level)[:, None, None] * target.pattern(self.away)
        center = np.diagonal(expected, axis1=-2, axis2=-1)
        prior = np.where(eye > 0, ((center * target.doubt[:-1]) ** 2)[:, :, None], (self.off**2)[:, None, None])
        trust = prior / (prior + target.noise**2)
        mean = expected * (1 - trust) + trust * target.S
        other = self._symmetric() * np.sqrt(trust) * target.noise
        if target.full:  # given the trace
            share = np.where(eye > 0, trust, 0.0) / np.trace(trust, axis1=-2, axis2=-1)[:, None, None]
            mean += share * (target.most - np.trace(mean, axis1=-2, axis2=-1))[:, None, None]
            other -= share * np.trace(other, axis1=-2, axis2=-1)[:, None, None]
        here = self.S - mean
        least = self.likelihood + target.log_shape(self.S, center) + np.log(self.rng.uniform(size=chains))
        angle = self.rng.uniform(0, 2 * np.pi, chains)
        low, high = angle - 2 * np.pi, angle.copy()
        todo = np.arange(chains)
        for _ in range(_MOST_STEPS):
            turn = angle[todo, None, None]
            proposed = mean[todo] + np.cos(turn) * here[todo] + np.sin(turn) * other[todo]
            likelihood = target.log_likelihood(proposed, self.hyper[todo], self.model[todo])
            good = likelihood + target.log_shape(proposed, center[todo]) > least[todo]
            self.S[todo[good]], self.likelihood[todo[good]] = proposed[good], likelihood[good]
            todo = todo[~good]
            if not todo.size:
                return
            back = angle[todo] < 0
            low[todo] = np.where(back, angle[todo], low[todo])
            high[todo] = np.where(back, high[todo], angle[todo])
            angle[todo] = self.rng.uniform(low[todo], high[todo])

    def _move_hyper(self) -> None:
        """(V, R2) of one half of the chains, along differences within the other half."""
        target, rng, half = self.target, self.rng, self.chains // 2
        step = rng.choice([0.4, 0.85, 1.0])
        for mine, others in ((slice(0, half), slice(half, None)), (slice(half, None), slice(0, half))):
            hyper, size = self.hyper[mine], len(self.hyper[mine])
            pool = self.hyper[others]
            one, two = rng.integers(len(pool), size=(2, size))
            proposed = hyper + step * (pool[one] - pool[two]) + 1e-4 * rng.standard_normal(hyper.shape)
            likelihood = target.log_likelihood(self.S[mine], proposed, self.model[mine])
            level = self.level[mine]
            gain = likelihood - self.likelihood[mine]
            gain += target.log_prior(proposed, level) - target.log_prior(hyper, level)
            taken = np.log(rng.uniform(size=size)) < gain
            self.hyper[mine] = np.where(taken[:, None], proposed, hyper)
            self.likelihood[mine] = np.where(taken, likelihood, self.likelihood[mine])

    def _move_model(self) -> None:
        """Which model each chain is in, from their likelihoods; the probabilities add up over the walk."""
        models = len(self.target.models)
        if models == 1:
            self.probabilities += 1.0
            return
        all_in = np.full(self.chains, 1)
        each = np.array([self.target.log_likelihood(self.S, self.hyper, m * all_in) for m in range(models)])
        probability = np.exp(each - each.max(axis=0))
        probability /= probability.sum(axis=0)
        self.probabilities += probability.mean(axis=1)
        self.model = (np.cumsum(probability, axis=0) < self.rng.uniform(size=self.chains)).sum(axis=0)
        self.model = np.minimum(self.model, models - 1)
        self.likelihood = each[self.model, np.arange(self.chains)]

    def _symmetric(self) -> Floats:
        """Symmetric normal matrices: deviation 1 on the diagonal, 1/sqrt(2) off it."""
        normal = self.rng.standard_normal((self.chains, self.target.p, self.target.p))
        return np.asarray((normal + np.swapaxes(normal, -1, -2)) / 2)


def _log_off(S: Floats, expected: Floats, deviation: Floats) -> Floats:
    """The prior of the off-diagonal terms."""
    outside = (S - expected) * (1 - np.eye(S.shape[-1]))
    return np.asarray(-0.5 * np.sum(outside**2, axis=(-1, -2)) / deviation**2)


def _positive(S: Floats) -> NDArray[np.bool_]:
    """Which matrices are positive definite."""
    try:
        np.linalg.cholesky(S)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.eigvalsh(S)[:, 0] > 0)
    return np.ones(S.shape[0], dtype=bool)
