"""A posterior as ArviZ's InferenceData: its chains, and what they say of rows of the caller's own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.analyses.posterior import LinearPosterior
from hubbub.arrays import Floats
from hubbub.errors import InvalidInput
from hubbub.protocols import Statement

if TYPE_CHECKING:
    from hubbub.analyses.glm.posterior import GLMPosterior

FROM_ROWS = "computed from rows as they are: of private rows outside the privacy guarantee"
Groups = dict[str, dict[str, Floats]]


def linear_groups(posterior: LinearPosterior, X: Floats | None, y: Floats | None, seed: int | None) -> Groups:
    """Of a linear regression: beta, intercept and sigma; for rows also y as it is drawn, and its log likelihood."""
    chains = posterior.kept_apart()
    sigma = np.sqrt(chains[..., -1])
    groups: Groups = {"posterior": {"beta": chains[..., :-2], "intercept": chains[..., -2], "sigma": sigma}}
    if X is not None:
        on_rows = chains[..., :-1] if posterior.chains_on_rows is None else posterior.chains_on_rows
        mean = _predictors(on_rows, X)
        rng, width = np.random.default_rng(seed), sigma[..., None]
        groups |= _of_rows(
            mean + width * rng.standard_normal(mean.shape), y,
            lambda given: -0.5 * ((given - mean) / width) ** 2 - np.log(width) - 0.5 * np.log(2 * np.pi),
        )  # fmt: skip
    return groups


def glm_groups(
    posterior: GLMPosterior, X: Floats | None, y: Floats | None, seed: int | None, offset: Floats | float = 0.0
) -> Groups:
    """Of a generalised linear model: beta and intercept, and the dispersion where there is one.

    For rows also y as it is drawn, and its log likelihood.
    """
    from hubbub.analyses.glm.laws import law_of

    chains, rng = posterior.linear.kept_apart(), np.random.default_rng(seed)
    groups: Groups = {"posterior": {"beta": chains[..., :-2], "intercept": chains[..., -2]}}
    dispersion = posterior.dispersions(rng, chains.shape[:-1])
    if posterior.dispersion is not None:
        groups["posterior"]["dispersion"] = dispersion
    if X is not None:
        law, wide = law_of(posterior.family), dispersion[..., None]
        on_rows = chains[..., :-1] if posterior.linear.chains_on_rows is None else posterior.linear.chains_on_rows
        eta = _predictors(on_rows, X) + offset
        groups |= _of_rows(law.drawn(rng, eta, wide), y, lambda given: law.log_likelihood(eta, given, wide))
    return groups


def inference_data(groups: Mapping[str, Mapping[str, Any]], report: Statement, names: Sequence[str] = ()) -> Any:
    """The groups, with names of coefficients and the privacy report in the attributes of those that it covers."""
    try:
        import arviz
    except ImportError:
        raise InvalidInput("to_arviz needs the package arviz, got none; run: pip install 'hubbub[arviz]'") from None
    told = {"privacy_report": json.dumps(report.as_dict()), "inference_library": "hubbub"}
    shown = {"privacy": FROM_ROWS, "inference_library": "hubbub"}
    attributes = {group: told if group == "posterior" else shown for group in groups}
    labels: dict[str, Any] = {}
    if names:
        labels = {"coords": {"feature": list(names)}, "dims": {"beta": ["feature"], "y": ["row"]}}
    if int(arviz.__version__.split(".")[0]) >= 1:
        return arviz.from_dict({**groups}, attrs=attributes, **labels)
    of_groups: dict[str, Any] = {f"{group}_attrs": found for group, found in attributes.items()}
    whole = told if len(groups) == 1 else shown
    return arviz.from_dict(**groups, **of_groups, attrs=whole, **labels)  # type: ignore[arg-type]  # its groups are keywords


def _predictors(joint: Floats, X: Floats) -> Floats:
    """(chains, draws, rows)."""
    return np.asarray(joint[..., :-1] @ X.T + joint[..., -1:])


def _of_rows(drawn: Floats, y: Floats | None, log_likelihood: Callable[[Floats], Floats]) -> Groups:
    groups: Groups = {"posterior_predictive": {"y": drawn}}
    if y is not None:
        groups["log_likelihood"] = {"y": np.asarray(log_likelihood(y))}
        groups["observed_data"] = {"y": y}
    return groups
