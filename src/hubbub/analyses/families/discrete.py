"""Counts and categories: Bernoulli, Categorical and PoissonRate. Each is an Analysis of one sum.

The posterior of a yes or no, and of categories, mixes the conjugate posteriors of all exact sums that may lie behind
the noisy one (`plausible`). Counts are clipped at a bound, and their sum is taken for one of clipped counts
(`clipped`). Values that the family does not know (NaN, a Bernoulli 7, an unknown category) do not stop a fit, because a
refusal would tell that there is one: they count as zero (for `Categorical`: for no category), and whoever holds them is
warned of how many there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from hubbub.analyses.families.clipped import clipped_counts, log_likelihood, rough_log_likelihood
from hubbub.analyses.families.family import Family
from hubbub.analyses.families.grids import FAR, FAR_OUT, line
from hubbub.analyses.families.plausible import plausible_count, plausible_counts
from hubbub.analyses.families.posteriors import DirichletPosterior, GridPosterior, ScalarPosterior
from hubbub.analyses.families.priors import pair, prior_number
from hubbub.arrays import Floats
from hubbub.errors import invalid, whole
from hubbub.protocols import Description, Release, Statistic
from hubbub.statistics import Count, OneHot

_LEAST_LOG = -690.0  # of a rate


@dataclass(frozen=True)
class Bernoulli(Family[ScalarPosterior]):
    """x in {0, 1} with success probability theta ~ Beta(a, b)."""

    kind: ClassVar[str] = "bernoulli"
    label: ClassVar[str] = "successes"
    prior: tuple[float, float] = (1.0, 1.0)
    column: str = "value"

    def checked(self) -> Bernoulli:
        """With every setting as a plain number, or one line that says what is wrong."""
        return Bernoulli(pair(self.prior, "a", "b"), str(self.column))

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.column,)

    @property
    def statistic(self) -> Statistic:
        """1 for a success."""
        return Count(1.0, whole=True)

    def posterior(self, release: Release) -> ScalarPosterior:
        """Of the success probability."""
        (a, b), n = self.checked().prior, release.n
        count, weights = plausible_count(
            lambda k: _log_ways(k, a) + _log_ways(n - k, b), release.value[0], release.noise, n
        )
        return ScalarPosterior(weights, "beta", (a + count, b + (n - count)))

    def quantities(self) -> tuple[str, ...]:
        """The probability."""
        return ("probability",)

    def settings(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"prior": list(self.checked().prior), "column": self.column}

    @classmethod
    def of(cls, description: Description) -> Self:
        """From its description."""
        a, b = description["prior"]
        return cls((a, b), description["column"])


@dataclass(frozen=True)
class Categorical(Family[DirichletPosterior]):
    """x in 0..k-1 with probabilities theta ~ Dirichlet(prior, .., prior)."""

    kind: ClassVar[str] = "categorical"
    label: ClassVar[str] = "categories"
    categories: int
    prior: float = 1.0
    column: str = "value"

    def checked(self) -> Categorical:
        """With every setting as a plain number, or one line that says what is wrong."""
        return Categorical(OneHot(self.categories).categories, prior_number("prior", self.prior), str(self.column))

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.column,)

    @property
    def statistic(self) -> Statistic:
        """1 for the category."""
        return OneHot(self.categories)

    def posterior(self, release: Release) -> DirichletPosterior:
        """Of the probabilities."""
        prior = self.checked().prior
        counts, weights = plausible_counts(release.n, release.value, release.noise, prior)
        return DirichletPosterior(weights, prior + counts)

    def quantities(self) -> tuple[str, ...]:
        """The probability of each category."""
        return tuple(f"probability of {k}" for k in range(self.categories))

    def settings(self) -> dict[str, Any]:
        """Plain JSON values."""
        me = self.checked()
        return {"categories": me.categories, "prior": me.prior, "column": me.column}

    @classmethod
    def of(cls, description: Description) -> Self:
        """From its description."""
        categories = whole("categories", description["categories"], 2, "name every category", most=1_000_000)
        return cls(categories, description["prior"], description["column"])


@dataclass(frozen=True)
class PoissonRate(Family[GridPosterior]):
    """x ~ Poisson(rate), with rate ~ Gamma(shape, rate) where a prior is given.

    Counts are clipped to the bound (to its whole part), and the posterior counts that and the noise: prior times the
    density of a noisy sum of clipped counts. Without a prior of its own the rate has the density rate^-1/2 as far as
    the bound, and beyond it thins out as rate^-2, so that a bound which hides the rate leaves it open by factors.
    """

    kind: ClassVar[str] = "poisson"
    label: ClassVar[str] = "events"
    bound: float
    prior: tuple[float, float] | None = None
    column: str = "value"

    def checked(self) -> PoissonRate:
        """With every setting as a plain number, or one line that says what is wrong."""
        prior = None if self.prior is None else pair(self.prior, "shape", "rate")
        bound = Count(self.bound).bound
        if bound < 1:
            raise invalid("bound", "at least 1", bound, "give the most events that one client may count with")
        return PoissonRate(float(np.floor(bound)), prior, str(self.column))

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.column,)

    @property
    def statistic(self) -> Statistic:
        """The clipped number of events."""
        bound = self.checked().bound
        return Count(bound, whole=bound > 1)  # with a bound of 1 and `whole` a 2 would be no count

    def posterior(self, release: Release) -> GridPosterior:
        """Of the rate."""
        from scipy.special import gammaincinv

        me = self.checked()
        if me.prior is None:
            most = FAR_OUT * me.bound
        else:
            shape, rate = me.prior
            most = max(gammaincinv(shape, 1 - 1e-12) / rate, FAR * me.bound)

        def log_prior(x: Floats) -> Floats:
            if me.prior is None:
                return np.asarray(0.5 * x - 1.5 * np.maximum(x - np.log(me.bound), 0.0))
            return np.asarray(shape * x - rate * np.exp(x))

        def log_weight(x: Floats, likelihood: Callable[..., Floats]) -> Floats:
            law = clipped_counts(np.exp(x), me.bound)
            return log_prior(x) + likelihood(law, release.n, float(release.value[0]), release.noise, whole=True)

        x, weights = line(
            lambda x: log_weight(x, log_likelihood), _LEAST_LOG, np.log(most),
            lambda x: log_weight(x, rough_log_likelihood),
        )  # fmt: skip
        return GridPosterior(np.exp(x), weights)

    def beyond(self, posterior: GridPosterior) -> float:
        """Of all counts."""
        from scipy.special import pdtrc

        return float(posterior.weights @ pdtrc(self.checked().bound, posterior.points))

    def quantities(self) -> tuple[str, ...]:
        """The rate."""
        return ("rate",)

    def settings(self) -> dict[str, Any]:
        """Plain JSON values."""
        me = self.checked()
        return {"bound": me.bound, "prior": me.prior and list(me.prior), "column": me.column}

    @classmethod
    def of(cls, description: Description) -> Self:
        """From its description."""
        prior = description["prior"]
        return cls(description["bound"], prior and tuple(prior), description["column"])


def _log_ways(count: Floats, prior: float) -> Floats:
    """Logarithm of Gamma(prior + count) / count!."""
    from scipy.special import gammaln

    return np.asarray(gammaln(prior + count) - gammaln(count + 1))
