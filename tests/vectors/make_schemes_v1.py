"""Writes tests/vectors/v1/schemes.json: the shares of replicated and Shamir's sharing, and the draw of subsets.

Run it once, never to make a test pass. Shares are made from a fixed stream, so a client's bytes are pinned as well.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from hubbub.protocols import SecureSum
from hubbub.randomness import Randomness
from hubbub.securesum import Replicated, Shamir, Subset, encode_share
from hubbub.securesum.field import expand_elements
from hubbub.securesum.replicated import held_by

PATH = Path(__file__).parent / "v1" / "schemes.json"
SCHEMES: dict[str, SecureSum] = {
    "replicated 2 of 3": Replicated(3, 2),
    "replicated 3 of 4": Replicated(4, 3),
    "shamir 2 of 3": Shamir(3, 2),
    "shamir 3 of 5": Shamir(5, 3),
    "subset 2 of 5": Subset(5, 2, "a seed"),
}
CLIENTS = ("client-1", "client-ä")


def words_of(dimension: int) -> np.ndarray:
    """1, -1, and the ends of what a signed word holds, as often as they fit."""
    return np.resize(np.array([1, -1, 2**63 - 1, -(2**63)], dtype=np.int64), dimension).view(np.uint64)


def good() -> list[dict[str, object]]:
    """For each share its bytes, and what a Compute that has no other adds up to."""
    found: list[dict[str, object]] = []
    for name, scheme in SCHEMES.items():
        for client in CLIENTS:
            for dimension in (2, 65):  # seeds expanded by SHAKE-128, and by AES-128-CTR
                shares = scheme.shard(words_of(dimension), client, Randomness.simulation(1))
                for compute, share in zip(scheme.recipients(client), shares, strict=True):
                    total = scheme.empty(dimension)
                    scheme.accumulate(total, share)
                    found.append({
                        "scheme": name, "client": client, "compute": compute, "dimension": dimension,
                        "bytes": encode_share(share).hex(), "words": [f"{word:016x}" for word in total[-3:].tolist()],
                    })  # fmt: skip
    return found


def bad() -> list[dict[str, object]]:
    """Damaged in every way that the header and the length can show."""
    found: list[dict[str, object]] = []

    def add(scheme: str, what: str, data: bytes) -> None:
        found.append({"scheme": scheme, "name": what, "bytes": data.hex(), "dimension": 2})

    for name, scheme in SCHEMES.items():
        for share in map(encode_share, scheme.shard(words_of(2), "client-1", Randomness.simulation(1))):
            add(name, "truncated", share[:-1])
            add(name, "leftover byte", share + b"\0")
            add(name, "future version", b"\x02" + share[1:])
            add(name, "other dimension", share[:5] + b"\x03" + share[6:])
            for form in {0, 1, 4, 5, 7, 8, 10, 255} - set(scheme.forms(2)):
                add(name, f"form {form}", share[:1] + bytes([form]) + share[2:])
    for form in (14, 15):
        add("replicated 2 of 3", "a third piece of two", bytes([1, form, 0, 0, 0, 2]) + bytes(48))
    add("replicated 2 of 3", "seeds called long", bytes([1, 11, 0, 0, 0, 2]) + bytes(64))
    add("replicated 2 of 3", "long called seeds", bytes([1, 9, 0, 0, 0, 2]) + bytes(48))
    add("shamir 2 of 3", "a seed called values", bytes([1, 4, 0, 0, 0, 2]) + bytes(32))
    return found


def content() -> dict[str, object]:
    """All of the file."""
    seeds = [bytes(32), bytes(range(32)), bytes(range(28)) + b"\0\0\0\x02"]
    draws = [Subset(50, 3, "a seed"), Subset(7, 7, "x"), Subset(1000, 5, "\N{SNOWMAN}")]
    return {
        "schemes": {name: scheme.describe() for name, scheme in SCHEMES.items()},
        "good": good(),
        "bad": bad(),
        "elements": [
            {"seed": s.hex(), "generator": g, "words": [f"{w:016x}" for w in expand_elements(s, 3, g).tolist()]}
            for s in seeds
            for g in ("AES-128-CTR", "SHAKE-128")
        ],
        "pieces": {f"{t} of {m}": [list(held) for held in held_by(m, t)] for m, t in ((3, 2), (4, 3), (5, 3))},
        "draws": [
            {**s.describe(), "client": c, "computes drawn": list(s.recipients(c))} for s in draws for c in CLIENTS
        ],
    }


if __name__ == "__main__":
    PATH.write_text(json.dumps(content(), indent=1) + "\n")
