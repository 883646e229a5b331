"""What a data holder is told before anything leaves: what a study promises and what a round would send.

And what a data holder may demand of a study: how many dishonest Computes it must withstand.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from hubbub.arrays import Floats
from hubbub.errors import invalid, whole
from hubbub.protocols import SecureSum, Trust
from hubbub.randomness import Randomness
from hubbub.roles import Study
from hubbub.service.wire.records import RoundRecord, StudyRecord
from hubbub.statistics import bounded_vectors


def promise(study: StudyRecord) -> list[str]:
    """What the study promises to whoever takes part, against whom, and until when."""
    if study.budget is None:
        return ["nothing: the study has no budget, so it is a simulation, which protects nobody"]
    people = study.population
    unit = "each sample" if people.unit == "sample" else "all samples of a client together"
    others = f"up to {people.colluders} clients that collude, " if people.colluders else ""
    absent = f", whichever {people.dropouts} of the {people.clients} clients stay away" if people.dropouts else ""
    conspiring, beyond = _conspiring(study.secure_sum.trust())
    return [
        f"for {unit}, all rounds of the study together are {study.budget}-differentially private, also against "
        f"the analyst together with {others}one more client and {conspiring} above that pool what they hold{absent}",
        "clients that the analyst controls count among those who collude; if more do, less is promised",
        f"this rests on trust that {study.secure_sum.trust().sentence}; if {beyond} conspire, a sample is covered by "
        "nothing but the noise stated above",
        *([beyond_that] if (beyond_that := study.secure_sum.trust().beyond(people.clients)) else []),
        "this machine keeps its own account: it takes part in no round with which all its rounds would exceed that",
        f"the noisy sums are {_READERS[study.results]}",
        f"the study ends at {study.deadline}",
    ]


def withstands(scheme: SecureSum) -> tuple[int, int]:
    """How many Computes may pool what they hold, and how many may sign contradicting statements about one round.

    Two quorums share 2q - M Computes, one of whom must be honest: so one fewer may contradict themselves.
    """
    return scheme.trust().conspiring, 2 * scheme.quorum - scheme.computes - 1


def check_withstands(study: StudyRecord, pooling: int, contradicting: int) -> None:
    """Refuse a study that gives way to so many Computes that pool what they hold, or that contradict themselves."""
    computes, (may_pool, may_contradict) = len(study.computes), withstands(study.secure_sum)
    whole("trust", pooling, 1, "say how many Computes may pool what they hold", most=computes - 1)
    whole("trust_cheating", contradicting, 0, "say how many may contradict themselves", most=computes - 1)
    what = f"of its {computes} Computes (scheme {study.scheme.get('scheme')})"
    if may_pool < pooling:
        bound = f"at most {may_pool}, as more {what} would read vectors if they pooled what they hold"
        raise invalid("trust", bound, pooling, "do not take part, or accept less")
    if may_contradict < contradicting:
        raise invalid(
            "trust_cheating", f"at most {may_contradict}, as more {what} that sign contradicting statements about one "
            "round could have several totals released", contradicting,
            f"do not take part, or, if you take it that no more do, give --trust-cheating {may_contradict}",
        )  # fmt: skip


def _conspiring(trust: Trust) -> tuple[str, str]:
    """Which Computes may conspire, and which must not, in words."""
    if trust.conspiring == trust.computes - 1:
        return f"all but one of the {trust.computes} Computes", "all these Computes"
    return f"any {trust.conspiring} of the {trust.computes} Computes", f"more than {trust.conspiring} of these Computes"


_READERS = {
    "public": "public: each Compute serves its own to whoever asks",
    "analyst": "for the analyst, who may pass them on: each Compute serves its own to nobody else; but a later round's "
    "record, which all parties see, may show something of the earlier sums",
}


def what_leaves(record: RoundRecord, role: Study, rows: Floats) -> list[str]:
    """What a data holder is shown first: what is computed, how it is hidden, and how much is sent."""
    plan = role.plan(record.number)
    vectors, _ = bounded_vectors(plan.statistic, rows[:1000], plan.steps)
    sigma, samples = plan.noise.sigma_client, rows.shape[0]
    together = "" if samples == 1 else f" of their sum over the {samples} samples"
    often_none = (
        "a share of Laplace noise is often zero where clients are many: what protects is the sum over all of them, and "
        f"that no more than {role.secure_sum.trust().conspiring} of the Computes pool what they hold"
    )
    return [
        f"round {record.number} ({record.label}): {plan.statistic.describe()['statistic']}, {plan.dimension} number(s) "
        f"from each of {samples} sample(s), none larger than {plan.statistic.magnitude:.4g}",
        f"before they leave, a share of {plan.noise.law(1).law} noise of standard deviation {sigma:.4g} (mechanism "
        f"{plan.mechanism.describe()['mechanism']}) is added to every number{together}; one sample's "
        f"numbers have a mean square of {float(np.mean(np.square(vectors))):.4g} beside {sigma**2:.4g} of the noise",
        f"the result is split into {_shares(role.secure_sum)}, any {role.secure_sum.trust().conspiring} of which "
        f"together tell nothing: {_sizes(role.secure_sum, plan.dimension)}, sealed with {role.keys[0].suite}",
        *([] if plan.noise.law(1).shape is None else [often_none]),
        "the columns themselves are not sent, in no form",
        *([] if plan.mechanism.reservation is None else [plan.mechanism.reservation]),
    ]


def _shares(scheme: SecureSum) -> str:
    """How many shares there are, and for whom where that is not everybody."""
    count = len(scheme.shard(np.zeros(1, dtype=np.uint64), "nobody", Randomness.system()))
    if count == scheme.computes:
        return f"{count} shares"
    return f"{count} shares for {count} of the {scheme.computes} Computes, drawn by lot when all clients were invited"


def _sizes(scheme: SecureSum, dimension: int) -> str:
    """How many bytes go to each Compute, from the shares of a vector of zeros."""
    shares = scheme.shard(np.zeros(dimension, dtype=np.uint64), "nobody", Randomness.system())
    sizes = Counter(len(share.body) for share in shares)
    most = max(sizes, key=lambda size: sizes[size])
    others = [size for size in sizes.elements() if size != most]
    if not others:
        return f"{most} bytes to each Compute"
    if len(others) == 1:
        return f"{others[0]} bytes to one Compute, {most} to each other one"
    return f"at most {max(sizes)} bytes to each Compute"
