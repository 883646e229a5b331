"""hubbub: Bayesian learning from data that never leaves its owners."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hubbub.analyses.driver import run
    from hubbub.analyses.families.discrete import Bernoulli, Categorical, PoissonRate
    from hubbub.analyses.families.normal import Gaussian, GaussianMean
    from hubbub.analyses.glm.release import GLMRelease
    from hubbub.analyses.linear.release import RegressionRelease
    from hubbub.engines import LocalEngine, TrustedAggregator
    from hubbub.engines.network import NetworkEngine
    from hubbub.errors import (
        BudgetExceeded,
        HubbubError,
        InvalidInput,
        OutOfDomainWarning,
        PerhapsReleased,
        PrivacyLeakWarning,
        RoundRefused,
        UntrustworthyWarning,
        WeakPrivacyWarning,
    )
    from hubbub.estimators.glm import PrivateGLM, PrivatePoissonRegression
    from hubbub.estimators.linear_regression import PrivateLinearRegression
    from hubbub.estimators.logistic import VariationalLogisticRegression
    from hubbub.estimators.logistic_regression import PrivateLogisticRegression
    from hubbub.estimators.mixture import PrivateGaussianMixture
    from hubbub.estimators.sgld import PrivateSGLD
    from hubbub.estimators.svi import PrivateSVI
    from hubbub.privacy import Budget, Ledger, Population, PrivacyReport, Release, epsilon_spent, fits
    from hubbub.protocols import Engine
    from hubbub.roles import Turnout, decode_release, settle_round, vectors_of
    from hubbub.statistics import warn_outside

_HOMES = {
    "Bernoulli": "hubbub.analyses.families.discrete",
    "Budget": "hubbub.privacy",
    "BudgetExceeded": "hubbub.errors",
    "Categorical": "hubbub.analyses.families.discrete",
    "Engine": "hubbub.protocols",
    "GLMRelease": "hubbub.analyses.glm.release",
    "Gaussian": "hubbub.analyses.families.normal",
    "GaussianMean": "hubbub.analyses.families.normal",
    "HubbubError": "hubbub.errors",
    "InvalidInput": "hubbub.errors",
    "Ledger": "hubbub.privacy",
    "LocalEngine": "hubbub.engines",
    "NetworkEngine": "hubbub.engines.network",
    "OutOfDomainWarning": "hubbub.errors",
    "PerhapsReleased": "hubbub.errors",
    "PoissonRate": "hubbub.analyses.families.discrete",
    "Population": "hubbub.privacy",
    "PrivacyLeakWarning": "hubbub.errors",
    "PrivacyReport": "hubbub.privacy",
    "PrivateGLM": "hubbub.estimators.glm",
    "PrivateGaussianMixture": "hubbub.estimators.mixture",
    "PrivateLinearRegression": "hubbub.estimators.linear_regression",
    "PrivateLogisticRegression": "hubbub.estimators.logistic_regression",
    "PrivatePoissonRegression": "hubbub.estimators.glm",
    "PrivateSGLD": "hubbub.estimators.sgld",
    "PrivateSVI": "hubbub.estimators.svi",
    "RegressionRelease": "hubbub.analyses.linear.release",
    "Release": "hubbub.privacy",
    "RoundRefused": "hubbub.errors",
    "TrustedAggregator": "hubbub.engines",
    "Turnout": "hubbub.roles",
    "UntrustworthyWarning": "hubbub.errors",
    "VariationalLogisticRegression": "hubbub.estimators.logistic",
    "WeakPrivacyWarning": "hubbub.errors",
    "decode_release": "hubbub.roles",
    "epsilon_spent": "hubbub.privacy",
    "fits": "hubbub.privacy",
    "run": "hubbub.analyses.driver",
    "settle_round": "hubbub.roles",
    "vectors_of": "hubbub.roles",
    "warn_outside": "hubbub.statistics",
}

__version__ = "0.2.0.dev0"
__all__ = [
    "Bernoulli", "Budget", "BudgetExceeded", "Categorical", "Engine", "GLMRelease", "Gaussian", "GaussianMean",
    "HubbubError", "InvalidInput", "Ledger", "LocalEngine", "NetworkEngine", "OutOfDomainWarning", "PerhapsReleased",
    "PoissonRate", "Population", "PrivacyLeakWarning", "PrivacyReport", "PrivateGLM", "PrivateGaussianMixture",
    "PrivateLinearRegression", "PrivateLogisticRegression", "PrivatePoissonRegression", "PrivateSGLD", "PrivateSVI",
    "RegressionRelease", "Release", "RoundRefused", "TrustedAggregator", "Turnout", "UntrustworthyWarning",
    "VariationalLogisticRegression", "WeakPrivacyWarning", "decode_release", "epsilon_spent", "fits", "run",
    "settle_round", "vectors_of", "warn_outside",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Public names are imported when first used (PEP 562), so that `import hubbub` stays fast."""
    if name not in _HOMES:
        raise AttributeError(f"module 'hubbub' has no attribute {name!r}")
    try:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in ("jax", "jaxlib", "numpyro", "optax"):
            raise
        from hubbub.errors import InvalidInput

        text = f"the extra `vi` must be installed for {name}, got no {error.name}; pip install 'hubbub[vi]'"
        raise InvalidInput(text) from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
