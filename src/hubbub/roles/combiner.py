"""The combiner: put the Computes' sums together -> decode -> Release."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from hubbub.arrays import Words
from hubbub.errors import CannotCombine
from hubbub.protocols import Protection, Release, SecureSum, Setting
from hubbub.randomness import Randomness
from hubbub.roles.compute import ComputeSum, Turnout
from hubbub.roles.study import RoundPlan, Study


def combine_sums(study: Study, number: int, sums: Sequence[ComputeSum]) -> tuple[Words, Turnout]:
    """The exact integer sum over the roster, and who is in it; refuses sums that do not belong together."""
    found = [s.compute for s in sums]
    if len(set(found)) != len(found) or not study.secure_sum.enough(found):
        raise CannotCombine(
            "missing-compute",
            f"sums must come from enough of the {study.computes} Computes, one from each, got {len(sums)}; fetch more",
        )
    if others := [s.compute for s in sums if s.study != study.digest or s.round != number]:
        raise _unfit("wrong-study", "of this study and round", others)
    if len({(s.roster, s.turnout) for s in sums}) != 1:
        raise _rosters_differ(study, sums)
    shape = study.secure_sum.empty(study.plan(number).dimension).shape
    if others := [s.compute for s in sums if s.words.shape != shape]:
        raise _unfit("wrong-length", "as long as the study's statistic asks for", others)
    return study.secure_sum.unshard({s.compute: s.words for s in sums}), sums[0].turnout


def _numbered(computes: Collection[int]) -> str:
    """Computes as people count them, from 1."""
    return ", ".join(str(place + 1) for place in computes)


def _unfit(reason: str, bound: str, computes: Sequence[int]) -> CannotCombine:
    """Some sums are not even what every sum must be; whose they are."""
    got = f"got {len(computes)} other(s), of Compute {_numbered(computes)}"
    return CannotCombine(reason, f"sums must all be {bound}, {got}; ask there", tuple(computes))


def _rosters_differ(study: Study, sums: Sequence[ComputeSum]) -> CannotCombine:
    """The sums are over different clients: those of the fewer Computes are named, if most agree.

    Their clients and samples are signed beside the sum, so a Compute that states others than most has cheated, or was
    set back: Computes release over one roster only.
    """
    groups = Counter((s.roster, s.turnout) for s in sums)
    most, count = groups.most_common(1)[0]
    fitting = [s.compute for s in sums if (s.roster, s.turnout) == most]
    others = tuple(sorted({s.compute for s in sums} - set(fitting)))
    if 2 * count <= len(sums):
        every = _numbered(sorted(s.compute for s in sums))
        return CannotCombine(
            "rosters-differ",
            f"sums must be over the same clients, got {len(groups)} rosters of Compute {every} and none that most "
            "state; ask their operators, and start a new round",
        )
    remedy = "combine the sums of the others" if study.secure_sum.enough(fitting) else "start a new round"
    return CannotCombine(
        "rosters-differ",
        f"sums must be over the same clients, got another roster in {len(others)} of {len(sums)}, of Compute "
        f"{_numbered(others)}; ask the operator, and {remedy}",
        others,
    )


def decode_release(
    plan: RoundPlan,
    words: Words,
    present: Turnout,
    *,
    secure_sum: SecureSum,
    setting: Setting,
    sealed: str | None,
    randomness: Randomness,
    colluders: int = 0,
) -> Release:
    """The noisy sum as real numbers, with everything its guarantee depends on."""
    noise = plan.noise
    return Release(
        value=noise.grid.decode(words),
        noise=noise.law(present.clients - colluders),
        n=present.samples,
        clients=present.clients,
        event=plan.event,
        protection=Protection(
            population=noise.population,
            trust=secure_sum.trust(),
            sensitivity=noise.sensitivity,
            sigma_std=noise.sigma_std,
            sigma_client=noise.sigma_client,
            dimension=plan.dimension,
            statistic=str(plan.statistic.describe()["statistic"]),
            mechanism=str(plan.mechanism.describe()["mechanism"]),
            reservation=plan.mechanism.reservation,
            fraction_bits=noise.grid.fraction_bits,
            sealed=sealed,
            setting=setting,
            generator=randomness.source,
            secure_generator=randomness.secure,
            colluders=colluders,
        ),
    )
