"""Scores of the games are likelihood ratios of what was released."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from scipy.stats import laplace, norm

from hubbub.arrays import Floats
from hubbub.audit.games import played
from hubbub.budget import Budget
from hubbub.engines import LocalEngine
from hubbub.privacy import mechanism_named
from hubbub.protocols import Engine, Release, RoundSpec
from hubbub.statistics import Means, SecondMoments


@pytest.mark.parametrize(("law", "density"), [("discrete-gaussian", norm), ("discrete-laplace", laplace)])
def test_scores_are_likelihood_ratios_over_all_rounds(law: str, density):
    """Of two rounds over 5 rows, by the densities of scipy; the sums of each data set by hand."""
    rng = np.random.default_rng(0)
    data = [np.clip(rng.standard_normal((5, 2)), -0.9, 0.9) for _ in range(2)]
    statistics = Means((1.0, 1.0)), SecondMoments((1.0, 1.0))
    sums = [[rows.sum(axis=0) for rows in data], [SecondMoments((1.0, 1.0)).vectors(rows).sum(axis=0) for rows in data]]
    mechanisms = mechanism_named(law).within(Budget(2.0, 0.0 if density is laplace else 1e-5), (1.0, 1.0))
    specs = [RoundSpec("audit", each, mechanism) for each, mechanism in zip(statistics, mechanisms, strict=True)]
    expected: list[float] = []

    def rounds(engine: Engine, rows: Floats) -> Iterator[tuple[RoundSpec, Release]]:
        expected.append(0.0)
        for spec, (first, second) in zip(specs, sums, strict=True):
            release = engine.private_sum(rows, spec)
            scale = release.noise.std / (1.0 if release.noise.shape is None else np.sqrt(2 * release.noise.shape))
            logs = [density.logpdf(release.value, at, scale).sum() for at in (first, second)]
            expected[-1] += logs[1] - logs[0]
            yield spec, release

    scores = played(rounds, LocalEngine, data, data, 3)
    np.testing.assert_allclose(np.concatenate([scores.first, scores.second]), expected, rtol=1e-9)
