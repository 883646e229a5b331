"""Writes tests/vectors/v1: run it once per version of the wire format, never to make a test pass.

HPKE draws a fresh ephemeral key for every message, so sealed vectors are made once and then only opened.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from hubbub.securesum import (
    Context,
    PrivateKey,
    Report,
    encode_report,
    encode_share,
    expand_seed,
    seal,
    start_session,
)
from hubbub.securesum.additive import expanded
from seams import masked, seeded

HERE = Path(__file__).parent / "v1"


def write(name: str, content: object) -> None:
    (HERE / name).write_text(json.dumps(content, indent=1) + "\n")


def expansion() -> list[dict[str, object]]:
    seeds = [bytes(32), bytes(range(32)), b"\xff" * 32]  # the last one starts at the counter's end
    return [{"seed": s.hex(), "words": [f"{w:016x}" for w in expand_seed(s, 5).tolist()]} for s in seeds]


def shares() -> dict[str, object]:
    long = masked(np.array([1, 2**64 - 1], dtype=np.uint64))
    short = seeded(bytes(range(32)), 2)
    a, b = encode_share(long), encode_share(short)
    return {
        "good": [
            {"name": "masked", "bytes": a.hex(), "dimension": 2, "words": [f"{w:016x}" for w in [1, 2**64 - 1]]},
            {
                "name": "seed",
                "bytes": b.hex(),
                "dimension": 2,
                "words": [f"{w:016x}" for w in expanded(short).tolist()],
            },
        ],
        "bad": [
            {"name": "empty", "bytes": "", "dimension": 2},
            {"name": "header only", "bytes": a[:5].hex(), "dimension": 2},
            {"name": "future version", "bytes": (b"\x02" + a[1:]).hex(), "dimension": 2},
            {"name": "unknown kind", "bytes": (a[:1] + b"\x07" + a[2:]).hex(), "dimension": 2},
            {"name": "other dimension", "bytes": a.hex(), "dimension": 3},
            {"name": "truncated words", "bytes": a[:-1].hex(), "dimension": 2},
            {"name": "leftover byte", "bytes": (a + b"\x00").hex(), "dimension": 2},
            {"name": "truncated seed", "bytes": b[:-1].hex(), "dimension": 2},
            {"name": "seed with leftover", "bytes": (b + b"\x00").hex(), "dimension": 2},
            {"name": "seed called masked", "bytes": (b[:1] + b"\x01" + b[2:]).hex(), "dimension": 2},
        ],
    }


def reports() -> dict[str, object]:
    report = Report(bytes(range(32)), 7, "client-ä", 2, b"sealed bytes")
    good = encode_report(report)
    short = encode_report(Report(bytes(31), 7, "a", 2, b""))
    nameless = encode_report(Report(bytes(32), 7, "", 2, b""))
    long_name = encode_report(Report(bytes(32), 7, "x" * 129, 2, b""))
    return {
        "good": [{
            "name": "plain", "bytes": good.hex(), "study": report.study.hex(), "round": 7, "client": "client-ä",
            "compute": 2, "sealed": b"sealed bytes".hex(),
        }],
        "bad": [
            {"name": "empty", "bytes": ""},
            {"name": "future version", "bytes": (b"\x02" + good[1:]).hex()},
            {"name": "truncated", "bytes": good[:-1].hex()},
            {"name": "cut in a length", "bytes": good[:3].hex()},
            {"name": "leftover byte", "bytes": (good + b"\x00").hex()},
            {"name": "other label", "bytes": good.replace(b"hubbub report", b"hubbub reqort").hex()},
            {"name": "short study", "bytes": short.hex()},
            {"name": "no client", "bytes": nameless.hex()},
            {"name": "client too long", "bytes": long_name.hex()},
            {"name": "client not UTF-8", "bytes": good.replace("ä".encode(), b"\xff\xff").hex()},
            {"name": "length beyond the end", "bytes": (good[:1] + b"\xff\xff\xff\xff" + good[5:]).hex()},
        ],
    }  # fmt: skip


def sealed() -> list[dict[str, object]]:
    vectors: list[dict[str, object]] = []
    context = Context(bytes(range(32)), 3, "client-1", 1)
    for suite in ("X25519", "MLKEM768-X25519"):
        key = PrivateKey.generate(suite)  # type: ignore[arg-type]
        message = b"one share"
        vectors.append({
            "suite": suite, "private_key": key.data.hex(), "public_key": key.public().data.hex(),
            "study": context.study.hex(), "round": context.round, "client": context.client, "compute": context.compute,
            "plaintext": message.hex(), "sealed": seal(message, key.public(), context).hex(),
        })  # fmt: skip
    return vectors


def sessions() -> list[dict[str, object]]:
    context, found = Context(b"\x05" * 32, 7, "client-1", 2), []
    for suite in ("X25519", "MLKEM768-X25519"):
        key = PrivateKey.generate(suite)
        session = start_session(key.public(), context.study, context.client, context.compute)
        sealed = session.seal(bytes(range(40)), context)
        found.append({"suite": suite, "private_key": key.data.hex(), "opening": session.opening.hex(),
                      "plaintext": bytes(range(40)).hex(), "sealed": sealed.hex()})  # fmt: skip
    return found


def extensions() -> dict[str, object]:
    """What was added to version 1 later: seeds expanded by SHAKE-128, and reports sealed in a session."""
    short = seeded(bytes(range(32)), 3, "SHAKE-128")
    share = encode_share(short)
    report = Report(b"\x05" * 32, 7, "client-1", 2, b"sealed", b"opening")
    data = encode_report(report)
    return {
        "share": {"bytes": share.hex(), "dimension": 3, "words": [f"{w:016x}" for w in expanded(short).tolist()]},
        "bad_shares": [share[:-1].hex(), (share + b"\0").hex(), (share[:1] + b"\x04" + share[2:]).hex()],
        "report": {"bytes": data.hex(), "opening": b"opening".hex(), "sealed": b"sealed".hex()},
        "bad_reports": [
            data[:-1].hex(),
            (data + b"\0").hex(),
            data[: -4 - len(b"opening")].hex(),
            (data[: -4 - len(b"opening")] + bytes(4)).hex(),
            data.replace(b"session", b"sessiom").hex(),
        ],
    }


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    write("expansion.json", expansion())
    write("shares.json", shares())
    write("reports.json", reports())
    write("sealed.json", sealed())
    write("sessions.json", sessions())
    write("extensions.json", extensions())
