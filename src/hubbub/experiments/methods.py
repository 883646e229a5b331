"""The methods that the paper's figures compare, each from training rows to a posterior."""

from __future__ import annotations

from hubbub.analyses.driver import run
from hubbub.analyses.linear.projected import PlainRegression, ProjectedRegression, normal_posterior
from hubbub.analyses.linear.thresholds import find_thresholds
from hubbub.analyses.posterior import LinearPosterior
from hubbub.arrays import Floats
from hubbub.engines import LocalEngine, TrustedAggregator
from hubbub.estimators.linear_regression import PosteriorKind, PrivateLinearRegression
from hubbub.experiments.baselines import exact_gram, input_perturbation_gram
from hubbub.experiments.given_noise import GivenNoise, numbered_columns
from hubbub.experiments.modes import Noise
from hubbub.experiments.runner import seed_of
from hubbub.protocols import Engine
from hubbub.randomness import Randomness
from hubbub.statistics import Box, Gram

METHODS = ("NP", "input perturbation", "TA", "proj TA", "DDP", "proj DDP", "hubbub")
COMPUTES = 3


def posterior_of(
    method: str,
    train: Floats,
    bound: Box,
    noise: Noise,
    label: str,
    *,
    norm: float | None = None,
    posterior: PosteriorKind = "auto",
) -> LinearPosterior:
    """The posterior; `label` names the run and so seeds its noise.

    The paper's posterior (plug-in, negative eigenvalues flipped) for its methods, which have no intercept; the
    library's default, or the named posterior, for `hubbub`, which may also use a bound of the rows' length.
    """
    seed = seed_of(label, method, noise.budget.epsilon)
    if method == "hubbub":
        engine = LocalEngine(computes=COMPUTES, seed=seed)
        model = PrivateLinearRegression(
            noise.budget,
            x_bound=bound.x if norm is None else None,
            x_norm=norm,
            y_bound=bound.y,
            posterior=posterior,
            engine=engine,
        ).fit(train[:, :-1], train[:, -1])
        return model.posterior_
    normal = normal_posterior(_gram(method, train, bound, noise, seed), repair="flip")
    return LinearPosterior.without_intercept(normal, 1.0)


def _gram(method: str, train: Floats, bound: Box, noise: Noise, seed: int) -> Gram:
    if method == "NP":
        return exact_gram(train)
    if method == "input perturbation":
        return input_perturbation_gram(train, bound, noise.plain, Randomness.simulation(seed))
    engine: Engine = TrustedAggregator(seed) if method.endswith("TA") else LocalEngine(COMPUTES, seed=seed)
    names, y, x = numbered_columns(bound)
    if method in ("TA", "DDP"):
        plain = PlainRegression(names, "y", y, x, formula=noise.formula)
        return run(plain, train, engine, noise.budget, mechanism=GivenNoise((noise.plain,))).gram
    thresholds = find_thresholds(
        train.shape[0], bound.features, noise.projected[1], formula=noise.formula, noise_power=noise.noise_power
    )
    projected = ProjectedRegression(
        names, "y", y, x, formula=noise.formula, thresholds=thresholds, fallback=noise.fallback
    )
    return run(projected, train, engine, noise.budget, mechanism=GivenNoise(noise.projected)).gram
