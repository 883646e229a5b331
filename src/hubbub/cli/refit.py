"""`hubbub refit`: another prior, fewer features or a comparison of models, from a saved release."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.linalg import LinAlgError
from rich.table import Table
from rich.text import Text

from hubbub.cli.model import plot_model, print_model
from hubbub.cli.output import PICTURES, check_distinct, check_writable, console, print_json
from hubbub.cli.table import parse_numbers, split_names
from hubbub.errors import InvalidInput, invalid
from hubbub.estimators.release import RegressionRelease
from hubbub.estimators.stored import INTERVALS, StoredModel
from hubbub.models.posterior import LinearPosterior
from hubbub.privacy import Budget


def run(
    release: Path, prior_scale: str | None, features: str | None, compare: str | None, out: Path | None,
    plot: Path | None, json: bool,
) -> None:  # fmt: skip
    """Read, refit, print."""
    check_distinct(release=release, out=out, plot=plot)
    check_writable("--plot", plot, endings=PICTURES)
    check_writable("--out", out, endings=(".json",))
    saved = RegressionRelease.load(release)
    guarantee, statement = _statement(saved, release)
    names = list(saved.names) if features is None else split_names("features", features, saved.names)
    models = None if compare is None else _models(compare, names)
    scales = None if prior_scale is None else parse_numbers(prior_scale, names, "prior_scale")
    try:
        stored, comparison = _refit(saved, names, scales, models)
    except LinAlgError:
        raise InvalidInput(f"release must hold sums that fit together, got others in {release}; fit it again") from None
    if json:
        print_json({**stored.summary(), "n": saved.released.n, "models": comparison, "further_epsilon": 0.0,
                    "privacy": saved.privacy})  # fmt: skip
    else:
        print_model(stored)
        if comparison is not None:
            _print_comparison(comparison)
        console.print(f"No privacy was spent: this was computed from {release} alone.\n{statement}", markup=False)
    if out is not None:
        stored.save(out)
    if plot is not None:
        title = f"{saved.target}, refitted, {guarantee}"
        plot_model(plot, stored, title, scales, saved.noise_budget() if features is None else None)


def _refit(
    saved: RegressionRelease, names: list[str], scales: list[float] | None, models: list[list[str]] | None
) -> tuple[StoredModel, list[dict[str, Any]] | None]:
    """The model of these features alone, and the probabilities of the models."""
    scale = None if scales is None else [dict(zip(names, scales, strict=True)).get(name, 1.0) for name in saved.names]
    draws = saved.posterior(prior_scale=scale, features=names).draws
    assert draws is not None
    chosen = draws[:, [saved.names.index(name) for name in names]]
    posterior = LinearPosterior.of_draws(chosen, draws[:, -2], draws[:, -1])
    stored = StoredModel(names, saved.target, posterior, saved.privacy, INTERVALS["auto"])
    if models is None:
        return stored, None
    probabilities = saved.compare(models, prior_scale=scale)
    return stored, [{"features": m, "probability": p} for m, p in zip(models, probabilities, strict=True)]


def _models(text: str, names: Sequence[str]) -> list[list[str]]:
    """`a,b;a;0` -> lists of features; 0 is the model without any."""
    parts = [part.strip() for part in text.split(";")]
    models = [[] if part == "0" and "0" not in names else split_names("compare", part, names) for part in parts]
    if len(models) < 2 or len({frozenset(model) for model in models}) != len(models):
        raise invalid("compare", "at least two different models", text, "give for example 'a,b;a;0'")
    return models


def _statement(saved: RegressionRelease, path: Path) -> tuple[str, str]:
    """The guarantee in short and in full, as the release carries it."""
    try:
        p = saved.privacy
        budget = Budget(p["budget"]["epsilon"], p["budget"]["delta"])
        if p["guarantee"] is True:
            return f"{budget}-DP", f"It was released with {budget}-differential privacy: {p['meaning']}."
        reasons = "; ".join(p["reservations"])
        return f"{budget}-DP (simulation, not a guarantee)", f"NOT A GUARANTEE: {reasons}."
    except (KeyError, TypeError, ValueError):
        raise InvalidInput(
            f"release must carry its privacy report, got a damaged one in {path}; fit it again"
        ) from None


def _print_comparison(comparison: list[dict[str, Any]]) -> None:
    table = Table("model", "posterior probability")
    for row in comparison:
        probability = f"{row['probability']:.3f}" if row["probability"] >= 0.001 else "< 0.001"
        table.add_row(Text(", ".join(row["features"]) or "no feature"), probability)
    console.print(table)
    console.print("All models are taken to be equally likely beforehand.\n")
