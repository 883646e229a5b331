"""A mixture of normal distributions with diagonal covariances, from expected statistics (kind "mixture")."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from hubbub.analyses.iterative.expected import Averaged, fingerprint, named_columns, shortened
from hubbub.analyses.iterative.plan import StepPlan
from hubbub.analyses.iterative.report import TrainingReport
from hubbub.analyses.iterative.stepwise import NoisySum, StepState, Stepwise
from hubbub.analyses.iterative.stored import StoredReport
from hubbub.arrays import Floats, finite_rows
from hubbub.errors import whole
from hubbub.protocols import Description, Result
from hubbub.statistics import install
from hubbub.statistics.bounds import positive

MOST_COMPONENTS = 1000
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


class Components(NamedTuple):
    """The posterior of the components, in units of the radius."""

    weights: Floats
    counts: Floats
    means: Floats
    shape: Floats
    rate: Floats


class MixtureState(NamedTuple):
    """The averaged sums, and the components that follow from them (or those it starts from)."""

    sums: Averaged
    components: Components


@dataclass(frozen=True)
class MixtureResult(Result):
    """Posterior means of the components, by falling weight, and their standard deviations.

    The deviations are those of the variational posterior with the noise of the sums added to first order. They do not
    count that components may be the wrong ones: a mixture has many local optima.
    """

    features: tuple[str, ...]
    weights: Floats
    means: Floats
    """(components, features)."""
    variances: Floats
    deviations: tuple[Floats, Floats, Floats]
    """Of weights, means and variances."""
    privacy: TrainingReport | StoredReport

    def nearest(self, X: Any) -> Any:
        """The most probable component of each row."""
        x = finite_rows("X", X, len(self.features))
        distance = np.square(x[:, None] - self.means) / self.variances + np.log(self.variances)
        return np.argmax(np.log(self.weights) - 0.5 * distance.sum(axis=2), axis=1)

    def table(self, level: float = 0.9) -> list[dict[str, Any]]:
        """Weight, means and variances of each component, with intervals as if each were normal."""
        from scipy.special import ndtri

        half, rows = float(ndtri((1 + level) / 2)), []
        for name, mean, std, most in self._quantities():
            low = mean - half * std
            rows.append({
                "name": name, "mean": mean, "std": std, "low": low if most is None else max(low, 0.0),
                "high": mean + half * std if most is None else min(mean + half * std, most),
            })  # fmt: skip
        return rows

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "features": list(self.features), "weights": self.weights.tolist(), "means": self.means.tolist(),
            "variances": self.variances.tolist(), "n": self.privacy.samples,
        }  # fmt: skip

    def _quantities(self) -> list[tuple[str, float, float, float | None]]:
        """Name, mean, deviation and, for what cannot be negative, the largest value."""
        weights, means, variances = self.deviations
        rows: list[tuple[str, float, float, float | None]] = []
        for k in range(self.weights.size):
            rows.append((f"weight[{k}]", float(self.weights[k]), float(weights[k]), 1.0))
            for j, name in enumerate(self.features):
                rows.append((f"mean[{k}] {name}", float(self.means[k, j]), float(means[k, j]), None))
            for j, name in enumerate(self.features):
                rows.append((f"variance[{k}] {name}", float(self.variances[k, j]), float(variances[k, j]), np.inf))
        return rows


@dataclass(frozen=True)
class GaussianMixture(Stepwise[MixtureState, MixtureResult]):
    """A mixture of normal distributions with diagonal covariances, by variational Bayes; every step refits it.

    Parameters
    ----------
    features : names of the columns.
    components : how many. Those that the data do not need stay almost empty.
    x_norm : public bound of the length of a row; longer ones are shortened.
    steps, batch, selection, noise_multiplier, seed : as in `Schedule`; the seed also says where the components start.
    """

    kind: ClassVar[str] = "mixture"
    label: ClassVar[str] = "expected statistics (mixture)"
    features: tuple[str, ...]
    components: int = 2
    x_norm: float = 3.0
    steps: int = field(default=30, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "features", named_columns(self.features))
        components = whole("components", self.components, 1, "give how many groups there may be", most=MOST_COMPONENTS)
        object.__setattr__(self, "components", components)
        object.__setattr__(self, "x_norm", positive("x_norm", self.x_norm))

    @property
    def columns(self) -> tuple[str, ...]:
        """The features."""
        return self.features

    @cached_property
    def program(self) -> MixtureProgram:
        """What clients run; part of hubbub."""
        return MixtureProgram(self.components, len(self.features), self.x_norm)

    @property
    def longest(self) -> float:
        """No vector is longer, so nothing is ever clipped."""
        return float(np.sqrt(3.0))

    def first(self, steps: int) -> MixtureState:
        """Components spread out by the public seed."""
        start = _start(self.program, np.random.default_rng(self.public_seed()))
        return MixtureState(Averaged.empty(self.program.dimension), start)

    def numbers(self, inner: MixtureState) -> Floats:
        """Constant, mean and precision of every component."""
        return _numbers(inner.components)

    def moved(self, inner: MixtureState, noisy: NoisySum, plan: StepPlan) -> MixtureState:
        """The sums averaged, the components refitted to them."""
        sums = inner.sums.with_step(noisy, np.full(self.program.dimension, FORGETTING))
        return MixtureState(sums, _posterior(self.program, sums))

    def found(self, state: StepState[MixtureState], report: TrainingReport) -> MixtureResult:
        """The components by falling weight, in the units of the data."""
        c, r = state.inner.components, self.x_norm
        order = np.argsort(-c.weights)
        variances = c.rate / np.maximum(c.shape - 1, 0.5)
        weights_std, means_std, variances_std = _deviations(c, variances, float(state.inner.sums.variance.max()))
        return MixtureResult(
            self.features, c.weights[order], r * c.means[order], r**2 * variances[order],
            (weights_std[order], r * means_std[order], r**2 * variances_std[order]), report,
        )  # fmt: skip

    def describe(self) -> dict[str, Any]:
        """Names and settings, for a study."""
        return {
            "kind": self.kind, "features": list(self.features), "components": self.components, "x_norm": self.x_norm,
            **self.described(),
        }  # fmt: skip

    @classmethod
    def of(cls, description: Description) -> Self:
        """From its description; a client that reads it can then take part."""
        settings = cls.settings_in(description)
        found = cls(tuple(description["features"]), description["components"], description["x_norm"], **settings)
        install(found.program)
        return found


def _start(program: MixtureProgram, rng: np.random.Generator) -> Components:
    """Components spread out within the ball, and wide: chosen without data."""
    k, d = program.components, program.features
    candidates = rng.standard_normal((64, k, d)) * (0.5 / np.sqrt(d))
    gaps = np.linalg.norm(candidates[:, :, None] - candidates[:, None, :], axis=3) + np.eye(k) * 9
    means = candidates[np.argmax(gaps.min(axis=(1, 2)))]
    return Components(np.full(k, 1 / k), np.ones(k), means, np.full((k, d), 2.0), np.full((k, d), 2.0 * 0.1 / d + 0.02))


def _posterior(program: MixtureProgram, sums: Averaged) -> Components:
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
    return Components(weights, n[:, 0] + strength, means, shape, rate)


def _numbers(c: Components) -> Floats:
    from scipy.special import digamma

    log_precision = digamma(c.shape) - np.log(c.rate)
    constant = np.log(c.weights) + 0.5 * np.sum(log_precision - 1 / c.counts[:, None], axis=1)
    return np.concatenate([constant, c.means.ravel(), (c.shape / c.rate).ravel()])


def _deviations(c: Components, variances: Floats, noise: float) -> tuple[Floats, Floats, Floats]:
    """Of weights (Dirichlet), means and variances (normal-gamma); `noise` is the variance of it in each sum."""
    n = c.counts[:, None]
    total = float(np.sum(c.counts)) + c.counts.size
    weights = c.weights * (1 - c.weights) / (total + 1) + noise / total**2
    spread = np.square(variances) / np.maximum(c.shape - 2, 0.5) + noise / n**2
    return np.sqrt(weights), np.sqrt(variances / n + noise / n**2), np.sqrt(spread)
