"""What every statistic must do: bounded vectors of the stated length, whatever the sample.

A new statistic is one line in STATISTICS. A package with a statistic of its own calls `check_statistic` in its tests.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

from contracts.structure import satisfies
from hubbub.analyses.iterative.logistic import JaakkolaProgram
from hubbub.protocols import Statistic
from hubbub.statistics import (
    STATISTICS as REGISTRY,
)
from hubbub.statistics import (
    Ball,
    Box,
    Clipped,
    ColumnHistogram,
    Count,
    Distances,
    MeanAndSquare,
    Means,
    NewtonStep,
    OneHot,
    Regression,
    SecondMoments,
    Spread,
    Stacked,
    bounded_vectors,
    install,
)
from hubbub.statistics.log_link import Counts, Logarithms, OverdispersedCounts, PositiveNumbers
from hubbub.statistics.responses import Logit, Probit

PROGRAM = JaakkolaProgram(2, radius=2.0)
install(PROGRAM)
STATISTICS: dict[str, Statistic] = {
    "regression in a box": Regression(Box((1.0, 0.5), 2.0)),
    "regression in a ball": Regression(Ball(1.0, 2, y=2.0, weight=0.5), target_square=True),
    "second moments": SecondMoments((1.0, 2.0, 3.0)),
    "means": Means((1.0, 2.0, 3.0)),
    "mean and square": MeanAndSquare(2.0),
    "count": Count(2.0),
    "count of whole numbers": Count(2.0, whole=True),
    "yes or no": Count(1.0, whole=True),
    "one-hot": OneHot(3),
    "column histogram": ColumnHistogram((1.0, 2.0), 3, 4),
    "distances": Distances((0.5, 1.0, 3.0)),
    "spread": Spread(1.5, 2),
    "clipped program": Clipped(PROGRAM, np.eye(3).ravel(), 0.5),
    "clipped program, self-selected": Clipped(PROGRAM, np.eye(3).ravel(), 0.5, probability=0.5),
    "newton step, logit": NewtonStep(Logit(), (0.1, -1.0, 2.0), 0.7, 0.6, 0.9, 0.3),
    "newton step, probit": NewtonStep(Probit(), (0.1, -1.0), 0.7, 0.6, 0.3, 0.3),
    "newton step, counts": NewtonStep(Counts(1.5, 0.2), (0.1, -1.0, 0.3), 3.0, 5.0, 0.9, 0.3),
    "newton step, logarithms": NewtonStep(Logarithms(), (0.1, -1.0), 2.0, 1.0, 0.9, 0.3),
    "newton step, overdispersed counts": NewtonStep(
        OverdispersedCounts(1.5, 0.2, 0.7), (0.1, -1.0, 0.3), 3.0, 5.0, 0.9, 0.3, 1.1
    ),
    "newton step, positive numbers": NewtonStep(PositiveNumbers(), (0.1, -1.0), 3.0, 5.0, 0.9, 0.3, 0.7, True),
    "stacked": Stacked((Spread(1.5, 2), ColumnHistogram((2.0,), 3, 4)), (0.7, 0.3)),
}
SLACK = 1 + 1e-12


def outside(statistic: Statistic, rows: np.ndarray) -> np.ndarray | None:
    """Which samples the statistic has no vector for; None where there are none."""
    return bounded_vectors(statistic, rows)[1]


def rows_for(statistic: Statistic, rng: np.random.Generator, n: int = 30) -> np.ndarray:
    """Samples that the statistic has vectors for: three times as wide as standard ones, or whole numbers."""
    rows = 3 * rng.standard_normal((n, statistic.columns))
    wrong = outside(statistic, rows)
    while wrong is not None:
        rows[wrong] = rng.integers(0, 10, size=(int(wrong.sum()), statistic.columns))
        wrong = outside(statistic, rows)
    return rows


def wild_rows(statistic: Statistic, rng: np.random.Generator, n: int = 5000) -> np.ndarray:
    """Samples of all sizes, those far beyond any bound among them."""
    wild = rows_for(statistic, rng, n) * np.exp(3 * rng.standard_normal((n, statistic.columns)))
    wrong = outside(statistic, wild)
    return wild if wrong is None else np.where(wrong[:, None], rows_for(statistic, rng, n), wild)


def it_has_all_members(statistic: Statistic, rng: np.random.Generator) -> None:
    satisfies(statistic, Statistic)
    assert statistic.columns >= 1
    assert statistic.dimension >= 1
    assert 0 < statistic.probability <= 1
    assert 0 < statistic.magnitude < np.inf
    assert 0 < statistic.sensitivity <= statistic.sensitivity_l1 * SLACK
    assert statistic.domain


def vectors_have_the_stated_length_and_magnitude(statistic: Statistic, rng: np.random.Generator) -> None:
    vectors = statistic.vectors(wild_rows(statistic, rng))
    assert vectors.shape == (5000, statistic.dimension)
    assert vectors.dtype == np.float64
    assert np.isfinite(vectors).all()
    assert np.abs(vectors).max() <= statistic.magnitude * SLACK


def no_two_samples_are_further_apart_than_the_sensitivity(statistic: Statistic, rng: np.random.Generator) -> None:
    vectors = statistic.vectors(wild_rows(statistic, rng))
    difference = vectors - rng.permutation(vectors)
    assert np.linalg.norm(difference, axis=1).max() <= statistic.sensitivity * SLACK
    assert np.abs(difference).sum(axis=1).max() <= statistic.sensitivity_l1 * SLACK


def zero_is_within_the_sensitivity_of_every_vector(statistic: Statistic, rng: np.random.Generator) -> None:
    """What a sample outside the domain counts as, and a client that is not there; half of it where a coin decides."""
    vectors = statistic.vectors(wild_rows(statistic, rng))
    most = statistic.sensitivity / (1 if statistic.probability == 1 else 2)
    assert np.linalg.norm(vectors, axis=1).max() <= most * SLACK
    assert np.abs(vectors).sum(axis=1).max() <= statistic.sensitivity_l1 * SLACK


def each_row_is_treated_on_its_own(statistic: Statistic, rng: np.random.Generator) -> None:
    """A client computes its vector alone: the same as in a batch."""
    rows = wild_rows(statistic, rng)[:50]
    alone = np.vstack([statistic.vectors(row[None]) for row in rows])
    np.testing.assert_array_equal(alone, statistic.vectors(rows))


def rows_are_left_alone_and_vectors_are_fresh(statistic: Statistic, rng: np.random.Generator) -> None:
    """Roles write into the vectors."""
    rows = wild_rows(statistic, rng)[:50]
    before = rows.copy()
    vectors = statistic.vectors(rows)
    vectors[:] = 7.0
    np.testing.assert_array_equal(rows, before)
    assert statistic.vectors(rows).flags.writeable


def a_sample_outside_the_domain_gives_zero_and_changes_no_other(statistic: Statistic, rng: np.random.Generator) -> None:
    rows = rows_for(statistic, rng, 20)
    for value in (np.nan, np.inf, -np.inf):
        expected, wrong = statistic.vectors(rows), rows.copy()
        wrong[7, -1], expected[7] = value, 0.0
        found, where = bounded_vectors(statistic, wrong)
        np.testing.assert_array_equal(found, expected)
        assert where is not None
        assert np.flatnonzero(where).tolist() == [7]


def description_is_canonical_json_and_reads_back(statistic: Statistic, rng: np.random.Generator) -> None:
    description = json.loads(json.dumps(statistic.describe(), allow_nan=False))
    assert description["statistic"]
    again = REGISTRY.read(description)
    assert type(again) is type(statistic)
    assert again.describe() == statistic.describe()
    numbers = ("columns", "dimension", "magnitude", "sensitivity", "sensitivity_l1", "probability", "domain")
    assert [getattr(again, name) for name in numbers] == [getattr(statistic, name) for name in numbers]
    rows = rows_for(statistic, rng)
    np.testing.assert_array_equal(again.vectors(rows), statistic.vectors(rows))


CHECKS: list[Callable[[Statistic, np.random.Generator], None]] = [
    it_has_all_members,
    vectors_have_the_stated_length_and_magnitude,
    no_two_samples_are_further_apart_than_the_sensitivity,
    zero_is_within_the_sensitivity_of_every_vector,
    each_row_is_treated_on_its_own,
    rows_are_left_alone_and_vectors_are_fresh,
    a_sample_outside_the_domain_gives_zero_and_changes_no_other,
    description_is_canonical_json_and_reads_back,
]


def check_statistic(statistic: Statistic) -> None:
    """All of the contract, for one statistic; for the tests of a package that brings one."""
    for check in CHECKS:
        check(statistic, np.random.default_rng(1))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", STATISTICS)
def test_contract(name: str, check: Callable[[Statistic, np.random.Generator], None], rng: np.random.Generator):
    check(STATISTICS[name], rng)


def test_every_registered_statistic_is_here():
    assert {str(statistic.describe()["statistic"]) for statistic in STATISTICS.values()} >= set(REGISTRY._own)


def test_a_forgotten_member_is_found():
    class Forgetful(Means):
        sensitivity = Statistic.sensitivity

    with pytest.raises(AssertionError, match="Forgetful.sensitivity is the empty one of Statistic"):
        satisfies(Forgetful((1.0,)), Statistic)

    class Other(Means):
        def vectors(self, samples: np.ndarray) -> np.ndarray:
            return samples

    with pytest.raises(AssertionError, match="Other.vectors takes"):
        satisfies(Other((1.0,)), Statistic)
