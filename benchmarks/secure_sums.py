"""What each secure sum costs beside additive sharing, in one run: `python benchmarks/secure_sums.py [--json]`.

- The local engine, 10^4 clients with 10^3 numbers each: seconds of a whole round, and how many times those of the same
  round with additive sharing among as many Computes (subsets: among three). The schemes take turns, and the best of
  each counts.
- One client: bytes of all its shares together, before they are sealed, and milliseconds to make them.
- The combiner: milliseconds to put all sums together, with the check that they fit.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from hubbub.engines import LocalEngine
from hubbub.experiments.table1 import same_sample
from hubbub.privacy import gaussian_round
from hubbub.protocols import SecureSum
from hubbub.randomness import Randomness
from hubbub.securesum import Additive, Replicated, Shamir, Subset
from hubbub.statistics import Means

CLIENTS, DIMENSION, REPEATS, ALONE = 10_000, 1000, 7, 50
SCHEMES: dict[str, SecureSum] = {
    "additive, 3": Additive(3),
    "additive, 5": Additive(5),
    "replicated, 2 of 3": Replicated(3, 2),
    "replicated, 3 of 5": Replicated(5, 3),
    "shamir, 2 of 3": Shamir(3, 2),
    "shamir, 3 of 5": Shamir(5, 3),
    "subset, 3 of 50": Subset(50, 3),
}
BESIDE = {"subset, 3 of 50": "additive, 3"}
"""What a scheme is compared with, where that is not additive sharing among as many Computes."""
LIMITS = {"replicated, 2 of 3": 2.0, "shamir, 3 of 5": 6.0, "subset, 3 of 50": 1.5}


def best(action: Callable[[], object], repeats: int) -> float:
    found = float("inf")
    for _ in range(repeats):
        started = time.perf_counter()
        action()
        found = min(found, time.perf_counter() - started)
    return found


def rounds() -> dict[str, float]:
    rows, spec = same_sample(CLIENTS, DIMENSION), gaussian_round(Means((1.0,) * DIMENSION), 1.0)
    engines = {name: LocalEngine(secure_sum=scheme) for name, scheme in SCHEMES.items()}
    next(iter(engines.values())).warm_up()
    found = dict.fromkeys(engines, float("inf"))
    for _ in range(REPEATS):
        for name, engine in engines.items():
            found[name] = min(found[name], best(lambda engine=engine: engine.private_sum(rows, spec), 1))
    return found


def alone(scheme: SecureSum) -> dict[str, float]:
    """One client, and the combiner."""
    words, randomness = np.arange(DIMENSION, dtype=np.uint64), Randomness.system()
    tally = scheme.tally(DIMENSION, randomness)
    for rows, columns in tally.blocks(10):
        tally.add(np.tile(words, (10, 1))[rows, columns], columns)
    sums = dict(enumerate(tally.sums))
    return {
        "bytes": sum(len(share.body) for share in scheme.shard(words, "client", randomness)),
        "client_ms": 1000 * best(lambda: scheme.shard(words, "client", randomness), ALONE),
        "combiner_ms": 1000 * best(lambda: scheme.unshard(sums), ALONE),
    }


def measure() -> list[dict[str, Any]]:
    seconds = rounds()
    return [
        {
            "scheme": name,
            "seconds": seconds[name],
            "times": seconds[name] / seconds[BESIDE.get(name, f"additive, {scheme.computes}")],
            "limit": LIMITS.get(name),
            **alone(scheme),
        }
        for name, scheme in SCHEMES.items()
    ]


def table(found: list[dict[str, Any]]) -> str:
    lines = [
        "| scheme | a round, s | times additive | limit | bytes a client | client, ms | combiner, ms |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in found:
        limit = "" if row["limit"] is None else row["limit"]
        lines.append(
            f"| {row['scheme']} | {row['seconds']:.3f} | {row['times']:.2f} | {limit} | {row['bytes']} "
            f"| {row['client_ms']:.2f} | {row['combiner_ms']:.2f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    result = measure()
    if "--json" in sys.argv:
        print(json.dumps({"clients": CLIENTS, "dimension": DIMENSION, "schemes": result}, indent=2))
    else:
        print(table(result))
