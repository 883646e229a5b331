"""The model that `hubbub fit` fits: which options go together, and the estimator that they ask for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hubbub.analyses.glm.families import FAMILIES, Family
from hubbub.analyses.glm.stored import ZERO_ONE
from hubbub.analyses.linear.ranges import parse_numbers, parse_ranges
from hubbub.engines import ENGINES
from hubbub.errors import InvalidInput, invalid
from hubbub.estimators.glm import PrivateGLM
from hubbub.estimators.linear_regression import PrivateLinearRegression

if TYPE_CHECKING:
    from hubbub.analyses.saved import AnyModel, AnyRelease
    from hubbub.cli.fit import FitOptions
    from hubbub.cli.fit_data import FitData


def check_options(options: FitOptions) -> None:
    """Refuse options that do not go together, before any budget is spent."""
    x_bound, x_norm, method, prior_scale = options.x_bound, options.x_norm, options.method, options.prior_scale
    if (x_bound is None) == (x_norm is None):
        what = "neither" if x_bound is None else "both"
        raise InvalidInput(f"x-bound or x-norm must be given, one of the two, got {what}; give e.g. --x-bound 7.5")
    if method != "auto":
        for option, value in (("x-norm", x_norm), ("prior-scale", prior_scale), ("release", options.release)):
            if value is not None:
                raise invalid(option, f"left out for method {method}", value, "use --method auto")
    if options.posterior == "shrinkage" and prior_scale is not None:
        raise invalid("prior-scale", "left out for posterior shrinkage", prior_scale, "use --posterior noise-aware")
    if options.family is not None:
        _check_family(options)
    elif options.classes is not None:
        raise invalid("classes", "given together with --family", options.classes, "add --family bernoulli")
    elif options.exposure is not None:
        raise invalid("exposure", "given together with --family", options.exposure, "add --family poisson")
    elif options.y_bound is None:
        raise InvalidInput("y-bound must be given, got none; give e.g. --y-bound 10 or 0:10")
    _check_engine(options)


def _check_family(options: FitOptions) -> None:
    """Refuse what only the linear regression has, and what this family has not."""
    family = family_named(options.family)
    others = (
        ("x-norm", options.x_norm, None), ("method", options.method, "auto"), ("intercept", options.intercept, True),
        ("posterior", options.posterior, "noise-aware"),
    )  # fmt: skip
    for option, value, only in others:
        if value not in (None, "auto", only):
            raise invalid(option, "left out with --family", value, "it is for the linear regression alone")
    if not family.yes_no and options.classes is not None:
        raise invalid("classes", f"left out for family {family.name}", options.classes, "only a yes or no has classes")
    family_y_bound(family, options.y_bound)
    if (options.exposure is None) != (options.exposure_bound is None):
        lacking = "exposure" if options.exposure is None else "exposure-bound"
        raise InvalidInput(f"{lacking} must be given with the other, got none; give --exposure and --exposure-bound")
    if options.exposure is not None and family.yes_no:
        raise invalid("exposure", f"left out for family {family.name}", options.exposure, "use a family of counts")


def family_y_bound(family: Family, text: str | None) -> Any:
    """The public bound of y as the family takes it, a number or (low, high); None for a yes or no, which has none."""
    if family.yes_no:
        if text is not None:
            raise invalid("y-bound", f"left out for family {family.name}", text, "y has two values")
        return None
    if text is None:
        raise InvalidInput(f"y-bound must be given for family {family.name}, got none; give e.g. --y-bound 20")
    ((low, high),) = parse_ranges(text, ["y"], "y_bound")
    return (low, high) if ":" in text else high


def family_named(name: str | None) -> Family:
    """The family of this name, or one line that names all."""
    if name not in FAMILIES:
        raise invalid("family", f"one of {', '.join(FAMILIES)}", name, "check the spelling")
    return FAMILIES[name]


def labels(options: FitOptions) -> tuple[str, str] | None:
    """The two labels of a yes or no, 0 and 1 where none are given; None where y is a number."""
    if options.family is None or not family_named(options.family).yes_no:
        return None
    if options.classes is None:
        return ZERO_ONE
    found = [label.strip() for label in options.classes.split(",")]
    if len(found) != 2 or "" in found or found[0] == found[1]:
        raise invalid("classes", "two distinct labels", options.classes, "give that of no first, such as no,yes")
    return found[0], found[1]


def _check_engine(options: FitOptions) -> None:
    """Refuse an engine that is not installed, and what the Spark engine does not do."""
    ENGINES.find(options.engine)
    if options.engine != "spark":
        return
    if options.method != "auto":
        raise invalid("method", "auto for the engine spark", options.method, "use --method auto")
    if options.seal:
        raise InvalidInput("seal must be left out for the engine spark, got --seal; nothing leaves the cluster")
    if labels(options) not in (None, ZERO_ONE):
        raise invalid("classes", "left out for the engine spark", options.classes, "code the column as 0 and 1")


def unfitted(options: FitOptions, names: list[str], **common: Any) -> PrivateLinearRegression | PrivateGLM:
    """The estimator that was asked for."""
    scales = None if options.prior_scale is None else parse_numbers(options.prior_scale, names, "prior_scale")
    x_range = None if options.x_bound is None else parse_ranges(options.x_bound, names)
    if options.family is not None:
        y_bound = family_y_bound(family_named(options.family), options.y_bound)
        if options.exposure_bound is not None:
            (common["exposure_bound"],) = parse_ranges(
                options.exposure_bound, [str(options.exposure)], "exposure_bound"
            )
        return PrivateGLM(options.family, x_bound=x_range, y_bound=y_bound, prior_scale=scales, **common)
    return PrivateLinearRegression(
        x_bound=x_range, x_norm=options.x_norm, y_bound=parse_ranges(str(options.y_bound), [options.target], "y_bound"),
        method=options.method, posterior=options.posterior, prior_scale=scales,
        fit_intercept="auto" if options.intercept is None else options.intercept, **common,
    )  # fmt: skip


def found(
    model: PrivateLinearRegression | PrivateGLM, data: FitData, options: FitOptions
) -> tuple[AnyModel, AnyRelease | None]:
    """The fitted model as it is stored, and its release where there is one: with the names of the file's columns."""
    names, target = tuple(data.names), options.target
    if isinstance(model, PrivateGLM):
        offset = model.release_.offset
        named = replace(
            model.release_, names=names, target=target, labels=data.labels or ZERO_ONE,
            offset=None if offset is None else replace(offset, column=str(options.exposure)),
        )  # fmt: skip
        return named.stored(model.posterior_), named
    stored, release = model.stored(data.names, target), getattr(model, "release_", None)
    return stored, None if release is None else replace(release, names=names, target=target)
