"""sample -> vector, and its bound: every bound states its own sensitivity."""

from hubbub.statistics.bounds import Ball, Box, Formula
from hubbub.statistics.clipped import Clipped, Program, install
from hubbub.statistics.counts import Count, OneHot
from hubbub.statistics.distances import Distances
from hubbub.statistics.domain import bounded_vectors, warn_outside
from hubbub.statistics.histogram import ColumnHistogram
from hubbub.statistics.moments import MeanAndSquare, Means, SecondMoments
from hubbub.statistics.newton import NewtonStep
from hubbub.statistics.registry import STATISTICS, statistic_from
from hubbub.statistics.regression import Gram, Regression
from hubbub.statistics.spread import Spread
from hubbub.statistics.stacked import Stacked

__all__ = [
    "STATISTICS",
    "Ball",
    "Box",
    "Clipped",
    "ColumnHistogram",
    "Count",
    "Distances",
    "Formula",
    "Gram",
    "MeanAndSquare",
    "Means",
    "NewtonStep",
    "OneHot",
    "Program",
    "Regression",
    "SecondMoments",
    "Spread",
    "Stacked",
    "bounded_vectors",
    "install",
    "statistic_from",
    "warn_outside",
]  # fmt: skip
