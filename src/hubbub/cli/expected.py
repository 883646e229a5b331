"""What `hubbub explain` says to expect of a regression: widths of intervals, a verdict, and what would be better."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hubbub.analyses.glm.families import FAMILIES
from hubbub.analyses.glm.forecast import SIGNAL, forecast, guess_of_mean
from hubbub.analyses.linear.forecast import Forecast, advised
from hubbub.analyses.linear.forecast import advice as linear_advice
from hubbub.analyses.linear.forecast import forecast as linear_forecast
from hubbub.cli.output import console
from hubbub.errors import invalid
from hubbub.privacy import Budget, Population
from hubbub.protocols import Mechanism

if TYPE_CHECKING:
    from hubbub.analyses.glm.analysis import GLM


def expected_linear(population: Population, features: int, budget: Budget, law: Mechanism) -> dict[str, object]:
    """Forecast what the default linear regression will find of ordinary data, and what would make it better."""
    clients, not_counted = population.clients, population.not_counted
    found = linear_forecast(clients, features, budget, not_counted, law)
    assumed = "x explains half of y"
    unit = "deviations of y per deviation of x"
    return _content(found, linear_advice(clients, features, budget, not_counted, law), assumed, unit, "predictions")


def expected_glm(
    analysis: GLM, mean: float | None, population: Population, budget: Budget, law: Mechanism
) -> dict[str, object]:
    """The same of a generalised linear model; `mean` is a guess of the mean of y."""
    family, (low, high) = FAMILIES[analysis.family], analysis.y_bound
    about = guess_of_mean(analysis.family, (low, high)) if mean is None else mean
    if not low < about < high:
        raise invalid("mean", f"between {low:g} and {high:g}", about, "give about what y is on average")
    found = forecast(analysis, about, budget, population, law)

    def good(clients: int, features: int, epsilon: float) -> bool:
        fewer = replace(analysis, features=analysis.features[:features], x_bound=analysis.x_bound[:features])
        people = Population(clients, population.dropouts, population.colluders)
        return forecast(fewer, about, Budget(epsilon, budget.delta), people, law).good

    better = advised(good, population.clients, len(analysis.features), budget.epsilon)
    of_y = f"{about:.3g} of all y are 1" if family.yes_no else f"y has a mean of {about:.3g}"
    assumed = (
        "columns are about normal (skewed ones make intervals wider, several times where rows are few), have effects "
        f"of one size that give the linear predictor a deviation of {SIGNAL:g}, and {of_y}"
        f"{' (--mean says otherwise)' if mean is None else ''}"
    )
    unit = "of the linear predictor per deviation of x"
    return {**_content(found, better, assumed, unit, "coefficients"), "mean": about}


def _content(found: Forecast, advice: list[str], assumed: str, unit: str, errors_of: str) -> dict[str, object]:
    return {
        "interval_width": found.width, "interval_width_without_data": found.prior_width,
        "error_over_non_private": found.error_ratio, "verdict": _verdict(found), "advice": advice,
        "assumed": assumed, "unit": unit, "error_of": errors_of,
    }  # fmt: skip


def _verdict(found: Forecast) -> str:
    """Return one line on what to expect."""
    if found.hopeless:
        return "hopeless: clients are too few for the noise and the columns; the posterior will be close to the prior"
    if found.good:
        return "good: so, coefficients of an ordinary size can be expected to be told from zero"
    return "rough: so, only large effects can be expected to be told from zero"


def print_expected(expected: dict[str, Any]) -> None:
    """Print the forecast, what it assumes, the verdict and the advice."""
    least = "at least " if str(expected["verdict"]).startswith("hopeless") else ""
    width, known = expected["interval_width"], expected["interval_width_without_data"]
    console.print(
        f"Expected, if {expected['assumed']}: 90 % intervals of width {least}{width:.2g} ({expected['unit']}; "
        f"{known:.2g} where only scales are known), {expected['error_of']} with "
        f"{expected['error_over_non_private']:.3g} times the non-private error."
    )
    console.print(f"Verdict: {expected['verdict']}.")
    for line in expected["advice"]:
        console.print(f"  Better with {line}.", markup=False)
