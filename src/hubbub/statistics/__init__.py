"""sample -> vector, and its bound: every bound states its own sensitivity."""

from hubbub.statistics.base import Statistic
from hubbub.statistics.bounds import Ball, Box, Formula
from hubbub.statistics.counts import Count, OneHot
from hubbub.statistics.histogram import ColumnHistogram
from hubbub.statistics.moments import MeanAndSquare, Means, SecondMoments
from hubbub.statistics.registry import statistic_from
from hubbub.statistics.regression import Gram, Regression
from hubbub.statistics.spread import Spread
from hubbub.statistics.stacked import Stacked

__all__ = [
    "Ball", "Box", "ColumnHistogram", "Count", "Formula", "Gram", "MeanAndSquare", "Means", "OneHot", "Regression",
    "SecondMoments", "Spread", "Stacked", "Statistic", "statistic_from",
]  # fmt: skip
