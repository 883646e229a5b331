"""Which sums to ask for, and what they mean together: linear regression, one-sum families, methods of many steps."""

from typing import Any

from hubbub.protocols import Analysis
from hubbub.registry import Registry

_FAMILIES, _LINEAR, _ITERATIVE = (
    "hubbub.analyses.families",
    "hubbub.analyses.linear",
    "hubbub.analyses.iterative",
)

ANALYSES: Registry[Analysis[Any, Any]] = Registry(
    "hubbub.analyses",
    "kind",
    {
        "linear": f"{_LINEAR}.auto:LinearRegression",
        "linear-projected": f"{_LINEAR}.projected:ProjectedRegression",
        "linear-plain": f"{_LINEAR}.projected:PlainRegression",
        "glm": "hubbub.analyses.glm.analysis:GLM",
        "bernoulli": f"{_FAMILIES}.discrete:Bernoulli",
        "categorical": f"{_FAMILIES}.discrete:Categorical",
        "gaussian": f"{_FAMILIES}.normal:Gaussian",
        "gaussian-mean": f"{_FAMILIES}.normal:GaussianMean",
        "poisson": f"{_FAMILIES}.discrete:PoissonRate",
        "logistic": f"{_ITERATIVE}.logistic:LogisticRegression",
        "mixture": f"{_ITERATIVE}.mixture:GaussianMixture",
        "svi": f"{_ITERATIVE}.svi:VariationalInference",
        "sgld": f"{_ITERATIVE}.sgld:LangevinSampling",
    },
)
"""Every analysis that is installed here."""
