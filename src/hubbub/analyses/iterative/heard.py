"""What the releases of a run say of a model's latent sites: a normal likelihood that counts the privacy noise.

Every release is the (clipped) gradient of the log likelihood at a known position, plus noise of a known deviation. Near
the optimum gradients fall on a plane, so a regression of releases on positions finds where the gradient is zero. Its
slope is the curvature H. What the noise of K steps with variance V adds to that place is H^-1 V H^-1 / K, however the
optimiser went. H itself is known up to noise only: it is drawn from its posterior, and the covariances are averaged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from hubbub.arrays import Floats

WINDOW = 0.75  # share of the steps, from the last one back, that the regression uses: docs/decisions/0029
_SPREADS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.6, 1.0)  # of H's entries beside its level: the likeliest is taken
_LEAST, _DRAWS, _ROUNDS = 0.1, 60, 3  # of H's eigenvalues, in its levels; draws of H; turns of level and spread


@dataclass(frozen=True)
class Heard:
    """The likelihood of the numbers that rows look at: N(centre, covariance) in their real numbers."""

    centre: Floats
    covariance: Floats
    curvature: Floats
    """H, the most likely one."""
    variance: Floats
    """Of the noise in a release, batches included."""
    doubt: float
    """The largest relative deviation of a site's curvature: how well its widths are known."""
    reach: float
    """How far the centre lies from the mean of the positions, in standard deviations of these, at most."""
    over: Floats | float = 1.0
    """By how much the curvature of each number had come out too large."""
    wider: Floats | float = 1.0
    """By how much the deviation of each number was widened so that nine intervals in ten hold the answer."""


def heard(
    positions: Floats,
    releases: Floats,
    noise_std: float,
    sites: Sequence[NDArray[np.intp]],
    over: Floats | float = 1.0,
    seed: int = 0,
) -> Heard:
    """From (steps, d) positions and noisy sums of gradients there.

    `sites` are the coordinates of each latent site; `over` says for each number by how much its curvature comes out too
    large on average, since positions follow the noise (`replay.py` finds it).
    """
    at, mean, steps = positions.mean(axis=0), releases.mean(axis=0), len(positions)
    found, variance = regression(positions, releases, noise_std, sites)
    scale = np.sqrt(np.outer(*(np.broadcast_to(over, len(at)),) * 2))
    inverses = np.linalg.inv(found.draws(_DRAWS, np.random.default_rng(seed))) * scale
    curvature = found.likeliest / scale
    centre, centres = np.linalg.solve(curvature, mean), inverses @ mean
    covariance = inverses.mean(axis=0) + np.mean((inverses * (variance / steps)) @ inverses, axis=0)
    covariance += np.cov(centres.T).reshape(covariance.shape)
    reach = float(np.max(np.abs(centre) / np.maximum(positions.std(axis=0), 1e-300)))
    return Heard(at + centre, covariance, curvature, variance, float(found.doubt.max()), reach)


def regression(
    positions: Floats, releases: Floats, noise_std: float, sites: Sequence[NDArray[np.intp]]
) -> tuple[Curvature, Floats]:
    """The curvature, and the variance of the noise in a release: never less than what is known of it."""
    away, swing = positions - positions.mean(axis=0), releases - releases.mean(axis=0)
    ordinary = np.linalg.lstsq(away, swing, rcond=None)[0]
    freedom = max(1, len(away) - 1 - away.shape[1])
    rest = np.square(swing - away @ ordinary).sum(axis=0) / freedom  # batches add to what is known
    variance = np.maximum(np.maximum(rest, noise_std**2), 1e-9 * np.square(swing).mean(axis=0) + 1e-12)
    return _curvature(away.T @ away, -away.T @ swing, variance, sites), variance


@dataclass(frozen=True)
class Curvature:
    """Posterior of H: a level for every latent site, around which its entries are spread."""

    level: Floats
    """(d,): what the diagonal is around."""
    doubt: Floats
    """(d,): relative standard deviation of the level."""
    slope: Floats
    """Posterior mean."""
    root: Floats
    """(d, d): the entries of column k are root @ (normal numbers / shrunk[:, k])."""
    shrunk: Floats | None
    """None where the entries have no spread beside the levels."""

    @property
    def likeliest(self) -> Floats:
        """H."""
        return self.positive(self.slope)

    def draws(self, size: int, rng: np.random.Generator) -> Floats:
        """(size, d, d)."""
        if self.shrunk is not None:
            return self.positive(
                self.slope + self.root @ (rng.standard_normal((size, *self.slope.shape)) / self.shrunk)
            )
        levels, site = np.unique(self.level, return_inverse=True)
        factor = np.maximum(1 + self.doubt * rng.standard_normal((size, levels.size))[:, site], _LEAST)
        return self.positive(self.slope * np.sqrt(factor[:, :, None] * factor[:, None, :]))

    def positive(self, slope: Floats) -> Floats:
        """Symmetric, with no eigenvalue below a tenth of the levels."""
        scale = np.sqrt(np.outer(self.level, self.level))
        values, vectors = np.linalg.eigh((slope + slope.swapaxes(-1, -2)) / 2 / scale)
        raised = vectors * np.maximum(values, _LEAST)[..., None, :]
        return np.asarray(scale * (raised @ vectors.swapaxes(-1, -2)))


def _curvature(gram: Floats, cross: Floats, variance: Floats, sites: Sequence[NDArray[np.intp]]) -> Curvature:
    """Empirical Bayes: H_jk ~ N(level_j if j = k else 0, spread^2 level_j level_k), cross = gram H + noise."""
    level, doubt = np.empty(len(gram)), np.empty(len(gram))
    for site in sites:
        weight = np.diag(gram)[site] / variance[site]
        deviation = float(weight.sum() ** -0.5)
        around = float(np.sum(np.diag(cross)[site] / variance[site])) * deviation**2
        level[site], spread = _positive_normal(around, deviation)
        doubt[site] = spread / level[site]
    for _ in range(_ROUNDS):
        values, vectors = np.linalg.eigh(np.sqrt(level)[:, None] * gram * np.sqrt(level))
        turned = np.maximum(values, 0), np.sqrt(level)[:, None] * vectors
        fits = [_fit(gram, cross, variance, level, spread, *turned) for spread in _SPREADS]
        _, slope, root, shrunk = max(fits, key=lambda fit: fit[0])
        if shrunk is None:
            break
        for site in sites:
            better = float(np.diag(slope)[site].mean())
            if better > 0.3 * level[site[0]]:
                level[site] = better
    return Curvature(level, doubt, slope, root, shrunk)


def _fit(
    gram: Floats, cross: Floats, variance: Floats, level: Floats, spread: float, values: Floats, root: Floats
) -> tuple[float, Floats, Floats, Floats | None]:
    """Log evidence (up to a constant), posterior mean of H, and what its deviations are made of."""
    evidence = float(np.sum((np.diag(cross) * level - level**2 * np.diag(gram) / 2) / variance))
    if spread == 0:
        return evidence, np.diag(level), root, None
    prior = spread**2 * level / variance
    shrink = 1 + np.outer(values, prior)
    rest = root.T @ (cross - gram * level)
    evidence += 0.5 * float(np.sum(prior / variance * np.square(rest) / shrink - np.log(shrink)))
    slope = np.diag(level) + root @ (prior * rest / shrink)
    return evidence, slope, root, np.sqrt(shrink) / (spread * np.sqrt(level))


def _positive_normal(mean: float, deviation: float) -> tuple[float, float]:
    """Mean and standard deviation of a normal number that is known to be positive."""
    at = -mean / deviation
    ratio = float(np.exp(-0.5 * at**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(-at)))
    return mean + deviation * ratio, deviation * float(np.sqrt(max(1 + at * ratio - ratio**2, 1e-12)))
