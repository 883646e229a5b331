"""Writes tests/vectors/v2/draw.json: run it once per version of the records of a draw, never to make a test pass.

Good: the records of one draw with their signatures, the seed and who serves whom, and proofs for lists of several sizes.
Bad: draws that everybody must refuse, each with a word of the reason.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from hubbub.privacy import Budget, Population
from hubbub.securesum import PublicKey, Subset
from hubbub.service.wire.canonical import digest, sign_record
from hubbub.service.wire.draw import CommitmentRecord, Draw, DrawRequestRecord, RevealRecord, commit, drawn_study
from hubbub.service.wire.merkle import Tree
from hubbub.service.wire.records import ComputeRecord, StudyRecord
from hubbub.service.wire.signing import SigningKey

PATH = Path(__file__).parent / "v2" / "draw.json"
ANALYST = SigningKey(bytes([1]) * 32)
COMPUTES = tuple(SigningKey(bytes([k]) * 32) for k in (2, 3, 4))
SECRETS = tuple(bytes([k]) * 32 for k in (50, 60, 70))
CLIENTS = {"a": 1, "a/0": 2, "b": 1, "\N{SNOWMAN}": 7, "z": 1}
SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 33)


def study() -> StudyRecord:
    computes = tuple(
        ComputeRecord(
            f"compute-{k}", f"https://c{k}.example:8443", PublicKey("X25519", bytes([k + 9]) * 32), key.public()
        )
        for k, key in enumerate(COMPUTES)
    )
    population = Population(5, 1, 0, samples=12, largest=7)
    return StudyRecord(
        "a draw", population, computes, Budget(1.0, 1e-5), "2030-01-01T00:00:00Z", ANALYST.public(), {"kind": "none"},
        "7", scheme=Subset(3, 2).describe(),
    )  # fmt: skip


def commitments(secrets: tuple[bytes, ...] = SECRETS) -> tuple[bytes, ...]:
    name = digest(study())
    return tuple(
        sign_record(CommitmentRecord(name, k, commit(name, k, secret), f"c{k}"), key)
        for k, (key, secret) in enumerate(zip(COMPUTES, secrets, strict=True))
    )


def request(**changes: object) -> DrawRequestRecord:
    name, tree = digest(study()), Tree.over(CLIENTS)
    values = tuple(commit(name, k, secret) for k, secret in enumerate(SECRETS))
    return replace(DrawRequestRecord(name, tree.root, len(CLIENTS), values), **changes)


def reveal(k: int, key: SigningKey | None = None, **changes: object) -> bytes:
    record = RevealRecord(digest(study()), k, digest(request()), SECRETS[k], f"r{k}")
    return sign_record(replace(record, **changes), key or COMPUTES[k])


def good() -> Draw:
    return Draw(sign_record(request(), ANALYST), commitments(), tuple(reveal(k) for k in range(3)))


def bad() -> dict[str, tuple[Draw, str]]:
    right, other = good(), bytes(32)
    values = request().commitments
    return {
        "another secret": (_with(1, reveal(1, secret=other)), "fit its commitment"),
        "for another list": (_with(1, reveal(1, request=digest(request(root=other)))), "this list"),
        "of another study": (_with(1, reveal(1, study=other)), "record of Compute 1"),
        "of another Compute": (_with(1, reveal(1, compute=0)), "record of Compute 1"),
        "signed by another": (_with(1, reveal(1, COMPUTES[0])), "signature"),
        "one is missing": (replace(right, reveals=right.reveals[:2]), "signed by all 3"),
        "one twice": (replace(right, reveals=(*right.reveals[:2], right.reveals[1])), "signature"),
        "another list after the reveals": (replace(right, request=sign_record(request(root=other), ANALYST)), "list"),
        "one client more": (replace(right, request=sign_record(request(clients=6), ANALYST)), "list"),
        "another analyst": (replace(right, request=sign_record(request(), COMPUTES[0])), "signature"),
        "a commitment that nobody signed": (
            replace(right, request=sign_record(request(commitments=(values[0], other, values[2])), ANALYST)),
            "commitment of Compute 1",
        ),
        "a commitment less": (
            replace(right, request=sign_record(request(commitments=values[:2]), ANALYST)), "one of each of the 3",
        ),
    }  # fmt: skip


def _with(k: int, data: bytes) -> Draw:
    reveals = list(good().reveals)
    reveals[k] = data
    return replace(good(), reveals=tuple(reveals))


def content() -> dict[str, object]:
    drawn = drawn_study(study(), good().encode())
    trees = {}
    for size in SIZES:
        names = {f"client-{i}": 1 + i for i in range(size)}
        tree = Tree.over(names)
        last = f"client-{size - 1}"
        trees[str(size)] = {"root": tree.root.hex(), "client": last, "samples": size, **tree.proof(last).content()}
    return {
        "study": sign_record(study(), ANALYST).decode(), "study_digest": digest(study()).hex(),
        "secrets": [each.hex() for each in SECRETS], "draw": good().encode().decode(),
        "request_digest": digest(request()).hex(), "seed": drawn.seed,
        "serving": {name: list(drawn.secure_sum.recipients(name)) for name in CLIENTS},
        "clients": CLIENTS, "trees": trees,
        "bad": {name: {"draw": draw.encode().decode(), "reason": why} for name, (draw, why) in bad().items()},
    }  # fmt: skip


if __name__ == "__main__":
    PATH.write_text(json.dumps(content(), indent=1) + "\n")
