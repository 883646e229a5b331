"""The whole protocol of one round, to be read from top to bottom."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from hubbub.arrays import Floats, Words
from hubbub.randomness import Randomness
from hubbub.roles.client import contribute
from hubbub.roles.combiner import combine_sums
from hubbub.roles.compute import Compute, Turnout, accept, agree, release, roster_of
from hubbub.roles.study import Study
from hubbub.securesum import PrivateKey, decode_report, encode_report


def run_round(
    study: Study,
    number: int,
    keys: Sequence[PrivateKey],
    samples: Mapping[str, Floats],
    randomness: Randomness,
    lost_halfway: Collection[str] = (),
    withholding: Collection[str] = (),
) -> tuple[Words, Turnout]:
    """The exact sum of the clients' noisy vectors, and who is in it; a client's sample is a row, or several."""
    inboxes: list[list[bytes]] = [[] for _ in keys]
    for client, sample in samples.items():
        reports = contribute(study, number, client, sample, randomness, withhold_noise=client in withholding)
        reached = reports[:1] if client in lost_halfway else reports
        for report in reached:
            inboxes[report.compute].append(encode_report(report))

    computes = [
        accept(Compute(study, number, k, key), map(decode_report, inbox))[0]
        for k, (key, inbox) in enumerate(zip(keys, inboxes, strict=True))
    ]
    roster = agree(study, [roster_of(compute) for compute in computes])
    held = {client: 1 if sample.ndim == 1 else sample.shape[0] for client, sample in samples.items()}
    sums = [release(compute, roster, held)[1] for compute in computes]
    return combine_sums(study, number, sums)
