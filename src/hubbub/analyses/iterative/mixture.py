"""PrivateGaussianMixture: a mixture of normal distributions with diagonal covariances, from expected statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hubbub.analyses.iterative.expected import Averaged, fingerprint, shortened
from hubbub.analyses.iterative.plan import Selection
from hubbub.analyses.iterative.report import TrainingReport
from hubbub.analyses.iterative.settings import Settings, Tick, checked_fit
from hubbub.analyses.iterative.trainer import Method, NoisySum
from hubbub.analyses.rounds import Engine
from hubbub.arrays import Floats, finite_rows
from hubbub.errors import whole
from hubbub.privacy import Budget, Ledger
from hubbub.statistics import install
from hubbub.statistics.bounds import positive

FORGETTING = 0.5  # faster than elsewhere: components have far to go from where they start


@dataclass(frozen=True)
class MixtureProgram:
    """x -> for each component its responsibility r, r x/radius and r x^2/radius^2, with |x| <= radius.

    The responsibilities sum to 1, so a vector is no longer than sqrt(3).
    """

    components: int
    features: int
    radius: float

    @property
    def name(self) -> str:
        """What people call it."""
        return "expected statistics of a Gaussian mixture"

    @property
    def fingerprint(self) -> str:
        """Of name, version and settings."""
        return fingerprint(self.name, 1, self.components, self.features, self.radius)

    @property
    def columns(self) -> int:
        """The features."""
        return self.features

    @property
    def dimension(self) -> int:
        """A count, a sum and a sum of squares for each component."""
        return self.components * (1 + 2 * self.features)

    @property
    def at_once(self) -> int:
        """Rows computed together."""
        return 2048

    def vectors(self, state: Floats, rows: Floats) -> Floats:
        """At (constant, mean, precision) of every component, in units of the radius."""
        k, d = self.components, self.features
        constant, mean, precision = state[:k], state[k : k + k * d].reshape(k, d), state[k + k * d :].reshape(k, d)
        x = shortened(rows, self.radius) / self.radius
        log = constant - 0.5 * np.einsum("nkd,kd->nk", np.square(x[:, None, :] - mean), precision)
        r = np.exp(log - log.max(axis=1, keepdims=True))
        r /= r.sum(axis=1, keepdims=True)
        both = np.concatenate([x, np.square(x)], axis=1)
        return np.hstack([r, (r[:, :, None] * both[:, None, :]).reshape(rows.shape[0], -1)])

    def unpack(self, vector: Floats) -> tuple[Floats, Floats, Floats]:
        """Counts, sums and sums of squares of a sum."""
        k, d = self.components, self.features
        rest = vector[k:].reshape(k, 2 * d)
        return vector[:k], rest[:, :d], rest[:, d:]


class _Components(NamedTuple):
    """The posterior of the components, in units of the radius."""

    weights: Floats
    counts: Floats
    means: Floats
    shape: Floats
    rate: Floats


class PrivateGaussianMixture:
    """A mixture of normal distributions with diagonal covariances, by variational Bayes.

    Parameters
    ----------
    components : how many. Those that the data do not need stay almost empty.
    x_norm : public bound of the length of a row; longer ones are shortened.
    budget, batch, steps, engine, selection, ledger, noise_multiplier, seed, tick : as in PrivateSVI; the seed also
        says where the components start.

    Attributes
    ----------
    weights_, means_, variances_ : posterior means, components by falling weight.   privacy_ : TrainingReport.
    """

    def __init__(
        self,
        components: int = 2,
        budget: Budget | None = None,
        x_norm: float = 3.0,
        batch: int | None = None,
        steps: int = 30,
        engine: Engine | None = None,
        *,
        selection: Selection = "self",
        ledger: Ledger | None = None,
        noise_multiplier: float | None = None,
        seed: int | None = None,
        tick: Tick | None = None,
    ) -> None:
        self.components = whole("components", components, 1, "give how many groups there may be", most=1000)
        self.x_norm = positive("x_norm", x_norm)
        self.settings = Settings(budget, steps, batch, selection, engine, ledger, noise_multiplier, seed, tick)
        self.privacy_: TrainingReport | None = None

    def fit(self, X: Any) -> PrivateGaussianMixture:
        """Run all steps over the rows (one client each)."""
        rows = finite_rows("X", X)
        program = MixtureProgram(self.components, rows.shape[1], self.x_norm)
        plan = self.settings.plan(rows.shape[0])
        install(program)
        start = _start(program, np.random.default_rng(self.settings.public_seed()))
        powers = np.full(program.dimension, FORGETTING)

        def update(state: tuple[Averaged, _Components], noisy: NoisySum) -> tuple[Averaged, _Components]:
            sums = state[0].with_step(noisy, powers)
            return sums, _posterior(program, sums)

        method = Method(
            "expected statistics (mixture)", program, float(np.sqrt(3.0)),
            (Averaged.empty(program.dimension), start), lambda s: _numbers(s[1]), update,
        )  # fmt: skip
        training, self.privacy_ = self.settings.run(method, rows, plan)
        found = training.state[1]
        order = np.argsort(-found.weights)
        self.weights_ = found.weights[order]
        self.means_ = self.x_norm * found.means[order]
        self.variances_ = self.x_norm**2 * (found.rate / np.maximum(found.shape - 1, 0.5))[order]
        return self

    def predict(self, X: Any) -> Any:
        """The most probable component of each row."""
        checked_fit(self.privacy_, "PrivateGaussianMixture")
        x = finite_rows("X", X, self.means_.shape[1])
        distance = np.square(x[:, None] - self.means_) / self.variances_ + np.log(self.variances_)
        return np.argmax(np.log(self.weights_) - 0.5 * distance.sum(axis=2), axis=1)


def _start(program: MixtureProgram, rng: np.random.Generator) -> _Components:
    """Components spread out within the ball, and wide: chosen without data."""
    k, d = program.components, program.features
    candidates = rng.standard_normal((64, k, d)) * (0.5 / np.sqrt(d))
    gaps = np.linalg.norm(candidates[:, :, None] - candidates[:, None, :], axis=3) + np.eye(k) * 9
    means = candidates[np.argmax(gaps.min(axis=(1, 2)))]
    return _Components(
        np.full(k, 1 / k), np.ones(k), means, np.full((k, d), 2.0), np.full((k, d), 2.0 * 0.1 / d + 0.02)
    )


def _posterior(program: MixtureProgram, sums: Averaged) -> _Components:
    """Dirichlet weights (1 each), normal-gamma components around 0 with a weak prior."""
    counts, first, second = program.unpack(sums.value)
    noise = np.sqrt(float(sums.variance.max()))
    n = np.maximum(counts, 0.5 + 2 * noise)[:, None]  # fewer than the noise can make up count as so many
    mean = np.clip(first / n, -1, 1)
    scatter = np.maximum(second - n * mean**2, 1e-4 * n + noise)
    strength = 1e-2
    means = n * mean / (n + strength)
    shape = np.broadcast_to(2.0 + n / 2, mean.shape)
    rate = 0.01 + 0.5 * (scatter + strength * n / (n + strength) * mean**2)
    weights = (1 + n[:, 0]) / np.sum(1 + n[:, 0])
    return _Components(weights, n[:, 0] + strength, means, shape, rate)


def _numbers(c: _Components) -> Floats:
    from scipy.special import digamma

    log_precision = digamma(c.shape) - np.log(c.rate)
    constant = np.log(c.weights) + 0.5 * np.sum(log_precision - 1 / c.counts[:, None], axis=1)
    return np.concatenate([constant, c.means.ravel(), (c.shape / c.rate).ravel()])
