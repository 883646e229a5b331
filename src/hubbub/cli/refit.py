"""`hubbub refit`: another prior, fewer features or a comparison of models, from a saved release."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.linalg import LinAlgError
from rich.table import Table
from rich.text import Text

from hubbub.analyses.linear.release import RegressionRelease
from hubbub.cli.model import plot_model, print_model
from hubbub.cli.output import PICTURES, check_distinct, check_writable, console, print_json
from hubbub.cli.table import parse_numbers, split_names
from hubbub.errors import InvalidInput, invalid
from hubbub.estimators.stored import INTERVALS, StoredModel
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
    if features is not None:
        saved = saved.restricted(split_names("features", features, saved.names))
    models = None if compare is None else _models(compare, saved.names)
    scales = None if prior_scale is None else parse_numbers(prior_scale, saved.names, "prior_scale")
    try:
        posterior = saved.posterior(prior_scale=scales)
        probabilities = [] if models is None else saved.compare(models, prior_scale=scales)
    except LinAlgError:
        raise InvalidInput(f"release must hold sums that fit together, got others in {release}; fit it again") from None
    stored = StoredModel(list(saved.names), saved.target, posterior, saved.privacy, INTERVALS["auto"])
    comparison = [{"features": m, "probability": p} for m, p in zip(models or [], probabilities, strict=True)]
    if json:
        print_json({**stored.summary(), "n": saved.released.n, "models": comparison, "further_epsilon": 0.0,
                    "privacy": saved.privacy})  # fmt: skip
    else:
        print_model(stored)
        if comparison:
            _print_comparison(comparison)
        console.print(f"No privacy was spent: this was computed from {release} alone.\n{statement}", markup=False)
    if out is not None:
        stored.save(out)
    if plot is not None:
        plot_model(plot, stored, f"{saved.target}, refitted, {guarantee}", scales, saved.noise_budget())


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
