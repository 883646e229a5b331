"""The numbers of the default regression that were chosen by judgement, with meaning, reason and command.

Not here are grids of candidates, start positions and guards against overflow, on which results should not depend.

A release stores these numbers (`record`), so that a reader of the file knows which ones were in force. Whoever changes
one raises VERSION, runs its command, and writes down what came out (docs/decisions/0020).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, TypeVar

VERSION = 5
"""Of the numbers below: raised with every change of any of them."""

COVERAGE = "hubbub experiment coverage"
FIGURES = "hubbub experiment fig2; hubbub experiment fig3"
REAL = "hubbub experiment real --sets choosing"
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
    counts_share: float = chosen(
        0.05, "part of each later round for counts of residuals", "0.1 was no better (decision 25)", REAL)
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
    off_middle: float = by_hand(
        0.3, "deviation of a column's centre from the middle of its bounds, of half their width", "no record", REAL)
    bin_shape: float = by_hand(
        0.04, "how far a bin's share may lie from that of a kind of columns",
        "columns are of no kind exactly; 0.01 and 0.02 were alike", REAL)
    usual_scale: float = by_hand(
        0.25, "deviation of a column that one expects, of half the width of its bounds", "no record", REAL)
    scale_octaves: float = by_hand(
        1.5, "deviation of the logarithm of that, to the base of 2", "no record", REAL)
    elsewhere: float = by_hand(
        0.1, "prior probability that a centre lies anywhere in the bounds, and that a scale is any", "no record", REAL)
    any_scale: float = by_hand(
        0.02, "prior weight of any scale, of the usual one", "bounds may be far too wide", REAL)
    wide_bins: int = by_hand(
        10, "parts of a column's bounds that the first round tells apart", "8, 12 and 16 were tried", REAL)
    loud: float = by_hand(
        0.05, "noise of a count in the first round, of the clients, beyond which it counts as loud",
        "0.08 was tried, too", REAL)
    places: tuple[int, int] = by_hand(
        (64, 32), "parts of each wide bin that are told apart, where counts are quiet and where they are loud",
        "16 to 96 were tried: with 64 bounds may be a hundred times too wide", REAL)
    wide_share: tuple[float, float] = by_hand(
        (0.7, 0.85), "share of that round for the wide bins, where counts are quiet and where they are loud",
        "0.7, 0.75, 0.8 and 0.85 were tried", REAL)
    long_tails: float = by_hand(
        0.3, "prior probability that a column has a long tail",
        "0.07 to 0.75 were tried: more suits long tails and less suits wide bounds", REAL)
    two_values: float = by_hand(
        0.7, "prior probability that a column with bounds 0 and 1 has these two values only", "0.5 was alike", REAL)
    few_two_values: float = by_hand(0.1, "the same of any other column", "the ends of bounds are rarely met", REAL)
    sure: float = by_hand(
        0.3, "doubt up to which the target's scale is taken as it comes",
        "beyond it the scale grows: a target clipped too hard tells the wrong thing", COVERAGE)
    spread_doubt: float = by_hand(
        0.3, "doubt of the log scale of a column, where all columns have one", "no record", COVERAGE)

    # undoing the clipping of y
    clipping_counts: float = chosen(
        2 / 3, "part of a normal target's loss by clipping that is put back in the first sums",
        "the mean of the law of that share, which was one of eight (decision 8)", f"{CLIPPING}; {TRIED}")
    least_left: float = by_hand(
        0.35, "least share of residuals taken to be not clipped", "what divides by it must not explode", REAL)
    least_shortening: float = by_hand(
        0.02, "least mean squared factor by which rows are taken to be shortened", "the same", REAL)

    # turning the rows of later rounds
    most_turned: int = by_hand(
        128, "columns beyond which rows are not turned",
        "the description of a round holds a matrix of so many rows and columns, and an answer is at most 1 MB", SPEED)
    least_turned_length: float = by_hand(
        0.1, "least mean squared length that turned rows are given, of that of standard ones",
        "noise must not make them next to nothing", REAL)

    # reading the width of residuals off their counts
    residual_doubt: float = by_hand(
        0.5, "doubt of the log width of residuals before they are counted", "no record", REAL)
    residual_shape: float = by_hand(
        0.005, "how far a bin's share may lie from that of a law", "residuals follow no law exactly", REAL)
    least_unexplained: float = by_hand(
        0.15, "least part of the first residuals' variance that better coefficients leave, in the closed form",
        "no record", REAL)

    # the prior of the noise-aware posterior
    explained_shape: float = by_hand(
        0.5, "both shapes of the beta law of R2, the share of the variance of y that x explains",
        "the arcsine law: x often explains next to nothing or nearly all; 9 of 72 points had predictive intervals "
        "outside 85 to 95 %, 13 with 1, the uniform law (decision 27)", REAL)
    off_centre: float = by_hand(
        1.0, "deviation of the intercept beside that of y, in standard units",
        "where noise hides the target's centre it is missed by about a scale (decision 27)", REAL)
    least_doubt: float = by_hand(
        0.35, "least deviation of the log scale of a column", "columns are not all normal", COVERAGE)
    spread: tuple[float, float] = by_hand(
        (0.05, 3.0), "range of the deviation of the logarithms of S's eigenvalues",
        "from next to uncorrelated columns to eigenvalues that differ by factors of thousands", CALIBRATION)
    most_power: float = by_hand(
        2.0, "largest power of S^-1 in the prior covariance of the coefficients",
        "1 held 64 % of the coefficients of nearly equal columns where 2 holds 82 (cigarettes, epsilon = 1)", REAL)
    least_level: float = by_hand(1e-3, "least level of S, of the largest", "no record", CALIBRATION)
    widest_prior: float = by_hand(
        1e4, "largest prior scale or mean, in standard units", "beyond it is all the same", CALIBRATION)

    # few rows for the columns
    few_rows: float = by_hand(
        4.0, "rows a column below which sums are taken for noisier than they are",
        "seven settings of n and d were tried (decision 8)", COVERAGE)
    few_rows_of_many: float = by_hand(
        10.0, "the same beyond many_columns", "walkers are few there, too (decision 8)", COVERAGE)
    many_columns: int = by_hand(64, "columns beyond which walkers are few", "a step of effort", COVERAGE)
    blur: float = by_hand(
        2.0, "noise with one row a column, of S_jj", "0, 0.3, 1 and 3 were tried, too (decision 8)", COVERAGE)

    # the sampler
    effort: tuple[tuple[int | None, int, int, int, int], ...] = by_hand(
        ((4, 40, 30, 1000, 200), (24, 32, 30, 1000, 250), (64, 16, 30, 100, 250), (128, 8, 30, 30, 60),
         (None, 8, 4, 5, 5)),
        "up to so many columns: walkers, sweeps before the first draw, most sweeps after it for as many draws as are "
        "asked for, and most where chains do not agree",
        "fewer where each costs more", f"{SPEED}; {CHAINS}")
    tail: float = by_hand(
        4.0, "degrees of freedom of the stand-in law of y'y", "heavier than the truth: bounded weights", CALIBRATION)
    slice_steps: int = by_hand(
        3, "most tries of one slice, after which a walker stays where it is",
        "60 take twice the time for as many effective draws; 2, 4, 6 and 12 were tried, too", f"{SPEED}; {CHAINS}")
    together_steps: tuple[float, ...] = chosen(
        (0.3, 2.0), "deviations of a move of the level or the spread of log S together with log S",
        "short ones where the sums say something of S, long ones where noise hides it", CALIBRATION)
    hyper_moves: int = by_hand(3, "moves of (V, R2, power) in a sweep", "no record", CHAINS)
    hyper_steps: tuple[float, ...] = by_hand(
        (0.4, 0.85, 1.0), "lengths of such a move, of a difference between walkers", "no record", CHAINS)
    hyper_jitter: float = by_hand(
        1e-4, "deviation added to such a move", "so that every place can be reached", CHAINS)
    tries: int = by_hand(
        8, "draws of the coefficients in a state, of which one is kept by its weight",
        "one alone often has a weight of next to nothing where the noise is large", CALIBRATION)

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
