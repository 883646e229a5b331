"""The numbers of the default regression that were chosen by judgement, with meaning, reason and command.

Not here are grids of candidates, start positions and guards against overflow, on which results should not depend.

A release stores these numbers (`record`), so that a reader of the file knows which ones were in force. Whoever changes
one raises VERSION, runs its command, and writes down what came out (docs/decisions/0020).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, TypeVar

VERSION = 1
"""Of the numbers below: raised with every change of any of them."""

COVERAGE = "hubbub experiment coverage"
FIGURES = "hubbub experiment fig2; hubbub experiment fig3"
TRIED = f"{COVERAGE}; {FIGURES}"
CLIPPING = "python benchmarks/clipping.py"
SPEED = "python benchmarks/posterior.py"
CHAINS = "python benchmarks/chains.py"
CALIBRATION = "pytest tests/analyses/linear/test_noise_aware.py"
FORECAST = "pytest tests/analyses/linear/test_forecast.py"

Value = TypeVar("Value")


def chosen(value: Value, meaning: str, reason: str, command: str) -> Value:
    """A number, what it means, why it is this one, and the command by whose output it was chosen."""
    return field(default=value, metadata={"meaning": meaning, "reason": reason, "command": command})


def by_hand(value: Value, meaning: str, reason: str, check: str) -> Value:
    """A number that no committed command has chosen; `check` is the command to judge a change by."""
    return chosen(value, meaning, reason, f"none was kept; judge a change by: {check}")


# fmt: off
@dataclass(frozen=True)
class Tuning:
    """The numbers. `explain` says of each what it is."""

    # how the budget is shared
    columns_share: float = by_hand(
        0.1, "part of the squared signal for the first round",
        "a tenth leaves the sums 95 % of their signal (decision 7)", FIGURES)
    spread_columns_share: float = by_hand(
        0.18, "the same where rows have a bounded length", "that round is to find means as well", FIGURES)
    spread_share: float = by_hand(
        0.85, "part of that round for the features", "the rest is for the target, a single column", FIGURES)

    # the ball of the second round; `plenty` is the logarithm of clients per noise and column
    least_size: float = by_hand(0.3, "least radius, of sqrt(columns)", "tight where noise rules (decision 7)", FIGURES)
    size_per_plenty: float = by_hand(
        0.22, "radius, of sqrt(columns), per plenty", "wide where there is plenty of data (decision 7)", FIGURES)
    least_y: float = by_hand(0.95, "least bound of y, in standard units", "clipping y biases coefficients", CLIPPING)
    y_lines: tuple[tuple[float, float], ...] = chosen(
        ((0.43, 0.2), (0.55, 0.8)), "bound of y: the largest of a * plenty - b over these (a, b)",
        "of seven bounds, with the seeds that are reported (decision 8)", TRIED)
    target_part: float = by_hand(
        0.85, "of the largest y, weighted, in the ball's radius",
        "X'y gets 1.3 % more noise than it needs, XX' 14 % less; 0.5, 0.6, 0.75 and 1 were tried (decision 7)", FIGURES)

    # reading columns off the first round
    quantile: float = by_hand(
        0.68, "quantile of the distance from the centre that is the scale", "a normal column's deviation", COVERAGE)
    centred: float = by_hand(
        0.8, "prior probability that a column lies around the middle of its bounds", "no record", COVERAGE)
    bin_shape: float = by_hand(
        0.04, "how far a bin's share may lie from that of a normal column, in the choice of that column",
        "columns are not all normal", COVERAGE)
    bin_rest: float = by_hand(
        0.1, "the same in what is read off the counts after it", "the counts are to correct the shape", COVERAGE)
    bin_points: int = by_hand(16, "points within a bin", "no record", COVERAGE)
    sure: float = by_hand(
        0.3, "doubt up to which the target's scale is taken as it comes",
        "beyond it the scale grows: a target clipped too hard tells the wrong thing", COVERAGE)
    spread_doubt: float = by_hand(
        0.3, "doubt of the log scale of a column, where all columns have one", "no record", COVERAGE)

    # undoing the clipping of y
    clipping_counts: float = chosen(
        2 / 3, "part of a normal target's loss by clipping that is put back where no draw says which",
        "the mean of the law of that share, which was one of eight (decision 8)", f"{CLIPPING}; {TRIED}")
    more_growth: float = chosen(
        1.5, "of what clipping takes from a normal target's variance so much is put back",
        "of five, on predictive intervals of the sets that are reported (decision 8)", TRIED)
    most_growth: float = chosen(1.5, "most growth of the residual variance", "as more_growth (decision 8)", TRIED)

    # the prior of the noise-aware posterior
    least_doubt: float = by_hand(
        0.35, "least deviation of the log scale of a column", "columns are not all normal", COVERAGE)
    off_diagonal: tuple[float, float] = by_hand(
        (0.003, 1.0), "range of the deviation of an off-diagonal term of S, of the largest level",
        "from next to none to as large as the diagonal", CALIBRATION)
    least_level: float = by_hand(1e-3, "least level of S, of the largest", "no record", CALIBRATION)
    centred_doubt: float = by_hand(0.3, "doubt up to which a column counts as centred", "no record", COVERAGE)
    off_centre: float = by_hand(
        2.0, "deviation of a column's centre for each unit of doubt beyond that", "no record", COVERAGE)
    open_noise: float = by_hand(
        0.03, "noise, of all that can be seen, from which on centres are open in full",
        "many clients find their columns, whatever the shape", COVERAGE)
    widest_prior: float = by_hand(
        1e4, "largest prior scale or mean, in standard units", "beyond it is all the same", CALIBRATION)

    # few rows for the columns
    few_rows: float = by_hand(
        4.0, "rows a column below which noise is added", "seven settings of n and d were tried (decision 8)", COVERAGE)
    few_rows_of_many: float = by_hand(
        10.0, "the same beyond many_columns", "walkers are few there, too (decision 8)", COVERAGE)
    many_columns: int = by_hand(64, "columns beyond which walkers are few", "the last step of effort", COVERAGE)
    blur: float = by_hand(
        2.0, "noise with one row a column, of S_jj", "0, 0.3, 1 and 3 were tried, too (decision 8)", COVERAGE)

    # the sampler
    effort: tuple[tuple[int | None, int, int, int], ...] = by_hand(
        ((4, 100, 40, 1000), (24, 40, 45, 1000), (64, 16, 40, 100), (None, 8, 25, 25)),
        "up to so many columns: walkers, sweeps before the first draw, most sweeps after it",
        "fewer where each costs more", f"{SPEED}; {CHAINS}")
    tail: float = by_hand(
        4.0, "degrees of freedom of the stand-in law of y'y", "heavier than the truth: bounded weights", CALIBRATION)
    slice_steps: int = by_hand(60, "most shrinkings of one slice", "then the walker stays where it is", CALIBRATION)
    hyper_moves: int = by_hand(3, "moves of (V, R2) in a sweep", "no record", CHAINS)
    hyper_steps: tuple[float, ...] = by_hand(
        (0.4, 0.85, 1.0), "lengths of a move of (V, R2), of a difference between walkers", "no record", CHAINS)
    hyper_jitter: float = by_hand(
        1e-4, "deviation added to such a move", "so that every place can be reached", CHAINS)
    centre_steps: tuple[float, ...] = by_hand(
        (0.3, 0.7, 1.0), "lengths of a move of the centres; half of that where S stays", "no record", CHAINS)
    centre_parts: tuple[float, ...] = by_hand(
        (0.3, 1.0), "shares of the centres that move at once", "no record", CHAINS)
    centre_jitter: float = by_hand(
        0.02, "deviation added to such a move, of the prior's", "so that every place can be reached", CHAINS)
    stretch_step: float = by_hand(
        0.5, "deviation of the log factor that stretches off-diagonal terms", "no record", CHAINS)
    rescue_every: int = by_hand(8, "sweeps between two rescues of lost walkers", "no record", CALIBRATION)
    lost: float = by_hand(
        4.0, "distances from median to lower quartile, below the latter, at which a walker is lost", "no record",
        CALIBRATION)

    # judging the sampler
    chains: int = by_hand(
        4, "groups of walkers that are compared with one another", "Vehtari et al. (2021) ask for four", CHAINS)
    bad_r_hat: float = by_hand(
        1.05, "r-hat beyond which a result is warned of",
        "between the 1.01 of long chains, which these short ones often exceed, and the older 1.1", CHAINS)
    least_ess: float = by_hand(
        100.0, "bulk effective sample size below which a result is warned of",
        "the ends of a 90 % interval then err by about a fifth of a deviation", CHAINS)

    # the closed form
    least_eigenvalue: float = by_hand(0.02, "least eigenvalue of XX', of the mean one", "it needs an inverse", FIGURES)
    least_residual: float = by_hand(0.02, "least residual variance, of the variance of y", "it is positive", FIGURES)

    # what a forecast calls good
    left_open: float = by_hand(
        0.1, "deviation of an off-diagonal term of XX', of its diagonal, beyond which the prior does not go",
        "held against simulated fits", FORECAST)
    useless: float = by_hand(0.6, "posterior deviation, of the prior one, that is hopeless", "no record", FORECAST)
    good: float = by_hand(0.3, "posterior deviation, of the prior one, that is good", "no record", FORECAST)
# fmt: on


TUNING = Tuning()
"""The numbers in force."""


def record() -> dict[str, Any]:
    """Version and values as plain JSON values: what a release file holds."""
    return {"version": VERSION, **{name: _plain(value) for name, value in asdict(TUNING).items()}}


def explain() -> dict[str, dict[str, Any]]:
    """Of each number its value, meaning, reason and command."""
    return {each.name: {"value": getattr(TUNING, each.name), **each.metadata} for each in fields(Tuning)}


def _plain(value: Any) -> Any:
    """Tuples as the lists that JSON makes of them."""
    return [_plain(each) for each in value] if isinstance(value, tuple) else value
