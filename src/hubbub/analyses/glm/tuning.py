"""The numbers of generalised linear models that were chosen by judgement, with meaning and reason.

`hubbub experiment glm` is the command to judge a change by.
"""

from __future__ import annotations

from dataclasses import dataclass

from hubbub.analyses.linear.tuning import by_hand

GLM = "hubbub experiment glm"


# fmt: off
@dataclass(frozen=True)
class Tuning:
    """The numbers."""

    radius: float = by_hand(
        1.0, "length of a standardised row, of sqrt(columns), from which on its score is shortened",
        "0.5, 0.8 and 1.3 had more error at n = 10000, epsilon = 1, by up to 30 %", GLM)
    room: float = by_hand(
        2.0, "information of a row before it is shortened, of that of the average row of that length",
        "rows that tell more than the average keep their weight; counts had error 1.54 times least with 1, 1.35 with 2 "
        "(n = 10000, epsilon = 1); for logit at most 1/4", GLM)
    trace: float = by_hand(
        0.7, "largest squared score of a row beside its information, in the vector",
        "up to 0.7 it comes for free (docs/privacy.md, 5.1)", GLM)
    band: float = by_hand(
        1.5, "deviations of a count from its mean at which it is clipped",
        "2 and 3 were a little worse at epsilon = 1, and make the noise of the score larger", GLM)
    pilot_band: float = by_hand(
        1.5, "distance of log(y + 1/2) from the linear predictor at which it is clipped", "no record", GLM)
    doubts: tuple[float, ...] = by_hand(
        (0.5, 0.15, 0.05), "doubt of a count's mean in the three Newton steps, of itself",
        "without it large counts are lost from afar: error 27 times least at a mean of 30, with it 1.7", GLM)
    yes_no_shares: tuple[float, ...] = by_hand(
        (0.1, 0.1, 0.3, 0.5), "parts of the squared signal: columns, then three Newton steps",
        "two steps held 56 to 91 % at n = 10000, three 81 to 93 (36 to 120 intervals each)", GLM)
    count_shares: tuple[float, ...] = by_hand(
        (0.1, 0.1, 0.15, 0.2, 0.45), "the same: columns, a look at logarithms, then three Newton steps",
        "a first look at logarithms brought the error from 13 to 2 times least for effects of size 1", GLM)
    curvature: float = by_hand(
        1.0, "deviation of what two looks differ by, of the change of the information between them times half the step",
        "the difference is known to third order only", GLM)
    least_left: float = by_hand(
        0.25, "least squared part of the coefficients that a look from an intercept alone is taken to have left",
        "steps find their way from too small coefficients, and not from too large ones", GLM)
    ratios: tuple[float, float] = by_hand(
        (0.2, 20.0), "least and largest variance of the score, of the information", "guards", GLM)
    known_ratio: float = by_hand(
        10.0, "trace of the information, in deviations of its noise, from which on that ratio is read off the release",
        "below it the ratio is taken for 1, and has little part in the posterior, as noise rules", GLM)
    spread: float = by_hand(
        0.25, "a row's word on its dispersion, of its information, in the vector",
        "two rows differ by up to twice that, which makes the noise 2.5 percent larger", GLM)
    dispersion: float = by_hand(
        0.5, "of y: the median of its prior, and where the first step is", "no record", GLM)
    dispersion_doubt: float = by_hand(
        1.5, "prior deviation of its logarithm", "from 0.04 to 6 in nine of ten", GLM)
    spread_variance: float = by_hand(
        0.03, "variance of a row's word on its dispersion",
        "at most 0.024 for means of 0.05 to 20 and dispersions of 0.1 to 2, summed over all counts", GLM)
    doubt: float = by_hand(
        0.35, "deviation of the log information of a column", "as of the linear regression", GLM)
    intercept: float = by_hand(
        5.0, "largest prior deviation of the intercept of a yes or no at the columns' means", "e^-5 is one in 150", GLM)
    off_origin: float = by_hand(
        1.0, "the same of a yes or no beside the doubt of the share of yes, of 1 + its linear predictor",
        "as `off_centre` of the linear regression; effects draw the share towards a half", GLM)
    count_intercept: float = by_hand(
        10.0, "the same of a count", "e^10 is 22000", GLM)
    dispersed: float = by_hand(
        1.05, "variance of the score, of the information, beyond which counts are called overdispersed",
        "clipping makes it about 0.75 of a Poisson law", GLM)
    arrived: float = by_hand(
        0.15, "deviation of the linear predictor that a step more would change, from which on a result is warned of",
        "beyond it what is left out of second order shows in coverage", GLM)
    hopeless: float = by_hand(
        1.0, "deviation by noise alone of a standardised coefficient that a plan is warned of",
        "the prior's is alike", GLM)
# fmt: on


TUNING = Tuning()
"""The numbers in force."""
