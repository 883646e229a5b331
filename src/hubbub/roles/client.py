"""The client: sample -> statistic -> bound -> fixed point -> noise share -> M shares -> seal.

A party that holds several samples adds up their vectors and adds one share of noise: one vector leaves, whatever it
holds. Vectors and noise are rounded to the grid before they are added, so that the sum is exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hubbub.arrays import Floats, number_rows
from hubbub.errors import InvalidInput, invalid
from hubbub.privacy import Budget, EarlyPopulation, fits
from hubbub.randomness import Randomness
from hubbub.roles.selection import Outside, vectors_of
from hubbub.roles.study import Study
from hubbub.securesum import Context, Report, Session, Share, encode_share, seal, start_session
from hubbub.statistics import warn_outside

_AT_ONCE = 500  # samples of one client


def contribute(
    study: Study,
    number: int,
    client: str,
    sample: Floats,
    randomness: Randomness,
    *,
    budget: Budget | None = None,
    sessions: Sequence[Session] | Mapping[int, Session] | None = None,
    withhold_noise: bool = False,
) -> tuple[Report, ...]:
    """One sealed report for each Compute that serves this client: all that ever leaves the client.

    `sample` is one row, or a row for each sample that the client holds; one share of noise is added to their sum. A
    sample outside the statistic's domain counts as zero, of which this process alone is warned (OutOfDomainWarning).

    With a `budget` the client refuses a study whose rounds together would spend more than that on its sample.

    `sessions`, one for each Compute that serves the client (`start_sessions`), make every round after the first cheap
    to seal.

    `withhold_noise` is how a simulation makes a colluder; the noise allows for C of them.
    """
    if budget is not None and not fits([plan.event for plan in study.rounds], budget):
        raise InvalidInput(
            f"budget must cover the study's {len(study.rounds)} round(s), got {budget}; "
            "do not take part, or ask for more noise"
        )
    if isinstance(study.population, EarlyPopulation):
        raise InvalidInput(
            "study must count clients, got one made by hubbub 0.1, which counts samples; do not take part"
        )
    plan = study.plan(number)
    rows = number_rows("sample", np.atleast_2d(sample), None if plan.steps else plan.statistic.columns)
    if rows.shape[0] > (largest := study.population.largest):
        raise invalid("sample", f"at most {largest} row(s), as the study says", rows.shape[0], "agree on it first")
    words, outside = np.zeros(plan.dimension, dtype=np.uint64), Outside()
    for start in range(0, rows.shape[0], _AT_ONCE):
        vectors, found = vectors_of(plan, rows[start : start + _AT_ONCE], randomness, hide=True)
        outside = outside.and_then(found, start)
        words += plan.noise.encoded(vectors).sum(axis=0, dtype=np.uint64)
    warn_outside(f"sample of {client}", plan.statistic, outside.number, rows.shape[0], outside.first)
    if not withhold_noise:
        words += plan.noise.shares(1, plan.dimension, randomness)[0]
    scheme = study.secure_sum
    shares = zip(scheme.recipients(client), scheme.shard(words, client, randomness), strict=True)
    return tuple(_report(study, number, client, k, share, sessions) for k, share in shares)


def _report(
    study: Study,
    number: int,
    client: str,
    compute: int,
    share: Share,
    sessions: Sequence[Session] | Mapping[int, Session] | None,
) -> Report:
    """The share sealed to its Compute: by itself, or in the session with it."""
    context, payload = Context(study.digest, number, client, compute), encode_share(share)
    if sessions is None:
        return Report(study.digest, number, client, compute, seal(payload, study.keys[compute], context))
    session = sessions[compute]
    return Report(study.digest, number, client, compute, session.seal(payload, context), session.opening)


def start_sessions(study: Study, client: str) -> tuple[Session, ...]:
    """One session with each Compute, for all rounds of the study."""
    return tuple(start_session(key, study.digest, client, k) for k, key in enumerate(study.keys))
