"""`hubbub refit`: another prior, fewer features or a comparison of models, from a saved release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from hubbub.cli.options import CoefficientsPlot, Json, ModelOut, PriorScale
from hubbub.cli.output import PICTURES, check_distinct, check_writable, console, print_json
from hubbub.errors import InvalidInput, invalid

if TYPE_CHECKING:
    from hubbub.analyses.saved import AnyModel, AnyRelease


@Parameter(name="*")
@dataclass(frozen=True)
class RefitOptions:
    """The arguments and options of `hubbub refit`."""

    release: Annotated[Path, Parameter(help="A release written by `hubbub fit --release`.")]
    _: KW_ONLY
    prior_scale: PriorScale = None
    features: Annotated[str | None, Parameter(help="Keep these features, comma-separated [default: all].")] = None
    compare: Annotated[
        str | None, Parameter(help="Models to compare, such as 'a,b;a;0': lists of features, 0 for none.")
    ] = None
    out: ModelOut = None
    plot: CoefficientsPlot = None
    json: Json = False


def refit(options: RefitOptions) -> None:
    """Fit again from released sums: another prior, fewer features, or a comparison of models.

    Costs no privacy: nothing but the release is looked at, as often as you like. Of a generalised linear model
    another prior only.

    For example:

        hubbub refit release.json --prior-scale 0.5
        hubbub refit release.json --features age,dose --out small.json --plot small.png
        hubbub refit release.json --compare "age,dose;age;dose;0"
    """
    run(options)


def run(options: RefitOptions) -> None:
    """Read the release, fit the model again and print it."""
    from numpy.linalg import LinAlgError

    from hubbub.analyses.linear.ranges import parse_numbers
    from hubbub.analyses.saved import load_release
    from hubbub.cli.model import noise_budget, plot_model, print_model

    release, out, plot = options.release, options.out, options.plot
    check_distinct(release=release, out=out, plot=plot)
    check_writable("--plot", plot, endings=PICTURES)
    check_writable("--out", out, endings=(".json",))
    saved = _chosen(load_release(release), options)
    guarantee, statement = _statement(saved, release)
    scales = None if options.prior_scale is None else parse_numbers(options.prior_scale, saved.names, "prior_scale")
    try:
        stored, comparison = _fitted(saved, scales, options.compare)
    except LinAlgError:
        raise InvalidInput(f"release must hold sums that fit together, got others in {release}; fit it again") from None
    if options.json:
        print_json({**stored.summary(), "n": saved.n, "models": comparison, "further_epsilon": 0.0,
                    "privacy": saved.privacy})  # fmt: skip
    else:
        print_model(stored)
        if comparison:
            _print_comparison(comparison)
        console.print(f"No privacy was spent: this was computed from {release} alone.\n{statement}", markup=False)
    if out is not None:
        stored.save(out)
    if plot is not None:
        plot_model(plot, stored, f"{saved.target}, refitted, {guarantee}", scales, noise_budget(saved))


def _chosen(saved: AnyRelease, options: RefitOptions) -> AnyRelease:
    """Return the release of the chosen features, or refuse what a generalised linear model does not have."""
    from hubbub.analyses.glm.release import GLMRelease
    from hubbub.cli.table import split_names

    if not isinstance(saved, GLMRelease):
        return (
            saved
            if options.features is None
            else saved.restricted(split_names("features", options.features, saved.names))
        )
    for option, value in (("features", options.features), ("compare", options.compare)):
        if value is not None:
            raise invalid(
                option, "left out for a generalised linear model", value, "its steps were made for all features"
            )
    return saved


def _fitted(
    saved: AnyRelease, scales: list[float] | None, compare: str | None
) -> tuple[AnyModel, list[dict[str, Any]]]:
    """Return the model under this prior, and the probabilities of the models that are to be compared."""
    from hubbub.analyses.glm.release import GLMRelease
    from hubbub.analyses.linear.stored import INTERVALS, StoredModel

    if isinstance(saved, GLMRelease):
        return saved.stored(saved.posterior(prior_scale=scales)), []
    posterior = saved.posterior(prior_scale=scales)
    stored = StoredModel(list(saved.names), saved.target, posterior, saved.privacy, INTERVALS["auto"])
    if compare is None:
        return stored, []
    models = _models(compare, saved.names)
    found = zip(models, saved.compare(models, prior_scale=scales), strict=True)
    return stored, [{"features": model, "probability": probability} for model, probability in found]


def _models(text: str, names: Sequence[str]) -> list[list[str]]:
    """Read `a,b;a;0` as lists of features, where 0 is the model without any feature."""
    from hubbub.cli.table import split_names

    parts = [part.strip() for part in text.split(";")]
    models = [[] if part == "0" and "0" not in names else split_names("compare", part, names) for part in parts]
    if len(models) < 2 or len({frozenset(model) for model in models}) != len(models):
        raise invalid("compare", "at least two different models", text, "give for example 'a,b;a;0'")
    return models


def _statement(saved: AnyRelease, path: Path) -> tuple[str, str]:
    """Return the guarantee in short and in full, as the release carries it."""
    from hubbub.privacy import Budget

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
