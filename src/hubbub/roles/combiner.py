"""The combiner: add the M sums -> decode -> Release."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hubbub.arrays import Words
from hubbub.errors import CannotCombine
from hubbub.privacy import Protection, Release
from hubbub.randomness import Randomness
from hubbub.roles.compute import ComputeSum, Turnout
from hubbub.roles.study import RoundPlan, Study
from hubbub.securesum import combine


def combine_sums(study: Study, number: int, sums: Sequence[ComputeSum]) -> tuple[Words, Turnout]:
    """The exact integer sum over the roster, and who is in it; refuses sums that do not belong together."""
    if sorted(s.compute for s in sums) != list(range(study.computes)):
        raise CannotCombine(
            "missing-compute",
            f"sums must come from each of the {study.computes} Computes once, got {len(sums)}",
        )
    if any(s.study != study.digest or s.round != number for s in sums):
        raise CannotCombine("wrong-study", "sums must all be of this study and round; fetch them again")
    if len({(s.roster, s.turnout) for s in sums}) != 1:
        raise CannotCombine("rosters-differ", "the Computes' rosters must agree; let them agree again")
    return combine(np.stack([s.words for s in sums])), sums[0].turnout


def decode_release(
    plan: RoundPlan,
    words: Words,
    present: Turnout,
    *,
    computes: int,
    setting: str,
    sealed: str | None,
    randomness: Randomness,
    colluders: int = 0,
) -> Release:
    """The noisy sum as real numbers, with everything its guarantee depends on."""
    mechanism = plan.mechanism
    return Release(
        value=plan.fixed_point.decode(words),
        noise_std=mechanism.sigma_release(present.clients - colluders),
        n=present.samples,
        clients=present.clients,
        event=plan.event,
        protection=Protection(
            population=mechanism.population,
            computes=computes,
            sensitivity=mechanism.sensitivity,
            sigma_std=mechanism.sigma_std,
            sigma_client=mechanism.sigma_client,
            dimension=plan.dimension,
            statistic=str(plan.statistic.describe()["statistic"]),
            fraction_bits=plan.fixed_point.fraction_bits,
            sealed=sealed,
            setting=setting,
            generator=randomness.source,
            secure_generator=randomness.secure,
            colluders=colluders,
        ),
    )
