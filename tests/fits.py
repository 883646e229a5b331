"""Regressions with given noise on a box, as tests want them: short names for `run` with an analysis."""

from types import SimpleNamespace

from hubbub.analyses.driver import run
from hubbub.analyses.linear.auto import LABELS, LinearRegression
from hubbub.analyses.linear.projected import PlainRegression, ProjectedRegression
from hubbub.experiments.given_noise import GivenNoise, numbered_columns
from hubbub.privacy import Budget

BUDGET = Budget(1.0, 1e-5)


def fit_auto(rows, bound, multipliers, engine, *, intercept=True, norm=None, ledger=None):
    names, y, x = numbered_columns(bound)
    analysis = LinearRegression(names, "y", y, () if norm is not None else x, norm, intercept)
    multipliers = (
        *multipliers,
        *multipliers[-1:] * (len(LABELS) - len(multipliers)),
    )  # the last one for further rounds
    result = run(analysis, rows, engine, BUDGET, ledger, mechanism=GivenNoise(multipliers))
    return SimpleNamespace(released=result.release.released, rounds=result.privacy.rounds)


def _boxed(kind, rows, bound, multipliers, engine, ledger, options):
    names, y, x = numbered_columns(bound)
    result = run(kind(names, "y", y, x, **options), rows, engine, BUDGET, ledger, mechanism=GivenNoise(multipliers))
    return SimpleNamespace(
        gram=result.gram, n=result.n, bound=result.bound, rounds=result.privacy.rounds, noise_std=result.noise_std
    )


def fit_plain(rows, bound, multiplier, engine, *, ledger=None, **options):
    return _boxed(PlainRegression, rows, bound, (multiplier,), engine, ledger, options)


def fit_projected(rows, bound, multipliers, engine, *, ledger=None, **options):
    return _boxed(ProjectedRegression, rows, bound, multipliers, engine, ledger, options)
