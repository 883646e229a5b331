"""sample -> vector, and its bound: every bound states its own sensitivity."""

from hubbub.statistics.base import Statistic, probability_of, rows_at_once
from hubbub.statistics.bounds import Ball, Box, Formula
from hubbub.statistics.clipped import Clipped, Program, install
from hubbub.statistics.counts import Count, OneHot
from hubbub.statistics.domain import bounded_vectors, outside, tell_outside, warn_outside
from hubbub.statistics.histogram import ColumnHistogram
from hubbub.statistics.moments import MeanAndSquare, Means, SecondMoments
from hubbub.statistics.registry import statistic_from
from hubbub.statistics.regression import Gram, Regression
from hubbub.statistics.spread import Spread
from hubbub.statistics.stacked import Stacked

__all__ = [
    "Ball",
    "Box",
    "Clipped",
    "ColumnHistogram",
    "Count",
    "Formula",
    "Gram",
    "MeanAndSquare",
    "Means",
    "OneHot",
    "Program",
    "Regression",
    "SecondMoments",
    "Spread",
    "Stacked",
    "Statistic",
    "bounded_vectors",
    "install",
    "outside",
    "probability_of",
    "rows_at_once",
    "statistic_from",
    "tell_outside",
    "warn_outside",
]  # fmt: skip
