"""What sealing and opening costs: HPKE for every share, and session keys after one exchange per client and Compute."""

from __future__ import annotations

import time

from hubbub.experiments.runner import Row
from hubbub.securesum import Context, PrivateKey, join_session, open_sealed, seal, start_session
from hubbub.securesum.seeds import SEED_BYTES
from hubbub.securesum.wire.codec import SHARE_HEADER

SAMPLE = 40
"""Clients whose M shares are really sealed and opened; the time is scaled up to N."""


def sealing_seconds(clients: int, dimension: int, computes: int) -> Row:
    """Seconds on one core for all N clients' shares of one round: one masked vector and M-1 seeds each."""
    sample = min(clients, SAMPLE)
    keys = [PrivateKey.generate() for _ in range(computes)]
    payloads = [bytes(SHARE_HEADER + (8 * dimension if k == 0 else SEED_BYTES)) for k in range(computes)]
    contexts = [Context(bytes(32), 0, "client", k) for k in range(computes)]
    parts = list(zip(keys, [key.public() for key in keys], payloads, contexts, strict=True))

    started = time.perf_counter()
    for _ in range(sample):
        for key, public, payload, context in parts:
            open_sealed(seal(payload, public, context), key, context)
    hpke = time.perf_counter()
    for _ in range(sample):
        ours = [start_session(public, bytes(32), "client", k) for k, (_, public, _, _) in enumerate(parts)]
        theirs = [join_session(ours[k].opening, key, bytes(32), "client", k) for k, key in enumerate(keys)]
    opened = time.perf_counter()
    for _ in range(sample):
        for (_, _, payload, context), mine, yours in zip(parts, ours, theirs, strict=True):
            yours.open(mine.seal(payload, context), context)
    session = time.perf_counter()
    scale = clients / sample
    return {
        "hpke_seconds": (hpke - started) * scale,
        "session_start_seconds": (opened - hpke) * scale,
        "session_round_seconds": (session - opened) * scale,
        "sealed_clients": sample,
    }
