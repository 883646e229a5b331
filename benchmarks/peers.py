"""hubbub's secure sum beside its peers', in one run: `python benchmarks/peers.py [--only NAME ..] [--json]`.

Each peer is installed from PyPI into an environment of its own (once, in `--venv`) and runs its program of
benchmarks/peers/ in a fresh process; hubbub follows on the same rows. Timed is, inside each program, from having
the rows to having the sum, after a small sum to warm up: starting processes, connecting them and making
Paillier's key are left out; the keys that Flower makes for every round are in. docs/peers.md says what each protects.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import venv
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

PROGRAMS = Path(__file__).parent / "peers"
TIME_LIMIT = 900.0  # seconds for one program; installing may take longer
NUMPY, GMPY2 = "numpy==2.4.6", "gmpy2==2.3.2"


class PeerFailed(Exception):
    """A peer does not install, does not run or gives a wrong sum: one line."""


@dataclass(frozen=True)
class Peer:
    """A peer, how to get it, what to measure, and what it protects.

    `installs` are pip's arguments, one call each. `parties` is what the program is given: processes, or for Flower
    how many clients hold a share of each client's keys. `computes` is how many Computes hubbub runs beside it.
    """

    title: str
    program: str
    installs: tuple[tuple[str, ...], ...]
    cells: tuple[tuple[int, int], ...]
    parties: int
    parties_are: str
    computes: int
    repeats: int
    protects: str
    arguments: tuple[str, ...] = ()


PEERS = {
    "crypten": Peer(
        title="CrypTen 0.4.1",
        program="crypten_sum.py",
        installs=(
            ("--no-deps", "crypten==0.4.1"),  # it requires `sklearn`, a name on PyPI that refuses to install
            ("torch==2.13.0", NUMPY, "onnx", "omegaconf", "pyyaml"),
        ),
        cells=((10_000, 1000), (100_000, 10), (10_000, 100)),
        parties=10,
        parties_are="10 processes",
        computes=10,
        repeats=10,
        protects="each party sees its clients' rows in the clear; no noise; no dropouts; 32-bit mask seeds",
    ),
    "mpyc": Peer(
        title="MPyC 0.11",
        program="mpyc_sum.py",
        installs=(("mpyc==0.11", NUMPY, GMPY2, "uvloop"),),
        cells=((1000, 1000),),
        parties=3,
        parties_are="3 processes",
        computes=3,
        repeats=5,
        protects="each party sees its clients' rows in the clear, any two see all; no noise; no dropouts",
        arguments=("-M3",),
    ),
    "flower": Peer(
        title="Flower 1.41.0 SecAgg+",
        program="flower_sum.py",
        installs=(("flwr==1.41.0", NUMPY),),
        cells=((100, 1000),),
        parties=11,
        parties_are="1 server, 10 neighbours each",
        computes=10,
        repeats=1,
        protects="semi-honest server sees the exact sum, no row; no noise; dropouts; 32-bit mask seeds",
    ),
    "paillier": Peer(
        title="python-paillier 1.5.0",
        program="paillier_sum.py",
        installs=(("phe==1.5.0", NUMPY, GMPY2),),
        cells=((100, 100),),
        parties=1,
        parties_are="1 key holder, 2048 bits",
        computes=10,
        repeats=1,
        protects="one key opens every row: its holder must never get them; exact sum, no noise; dropouts are left out",
    ),
}
HUBBUB_PROTECTS = "M-1 Computes together see no row; the sum carries the noise of differential privacy; dropouts"


@dataclass(frozen=True)
class Comparison:
    """One line of the table. `hubbub_sealed_seconds`: every share encrypted too; None where that was not measured."""

    peer: str
    N: int
    d: int
    parties: str
    seconds: float
    computes: int
    hubbub_seconds: float
    ratio: float
    hubbub_sealed_seconds: float | None
    ratio_sealed: float | None
    protects: str


def environment(name: str, installs: tuple[tuple[str, ...], ...], folder: Path) -> Path:
    """The Python of the peer's own environment, made and filled on the first call; `installs` as in Peer."""
    home = folder / name
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp, wanted = home / "installed.json", json.dumps(installs)
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    say(f"{name}: installing {' '.join(word for words in installs for word in words)}")
    venv.create(home, clear=True, with_pip=False)
    for words in installs:
        install(name, python, words)
    stamp.write_text(wanted)
    return python


def install(name: str, python: Path, words: tuple[str, ...]) -> None:
    """One call of this environment's pip, for the other environment."""
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if line.lower().startswith("error")]
        raise PeerFailed(f"{name} does not install: {(errors or ['pip gave no reason'])[0]}")


def run(python: Path | str, program: str, *arguments: object) -> dict[str, float]:
    """What the program printed last; it and the parties it started are ended when they take too long."""
    command = [str(python), str(PROGRAMS / program), *(str(argument) for argument in arguments)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        out, err = process.communicate(timeout=TIME_LIMIT)
    except subprocess.TimeoutExpired:
        raise PeerFailed(f"{program} gave no sum within {TIME_LIMIT:.0f} s") from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if process.returncode != 0 or not out.strip():
        raise PeerFailed(f"{program} failed: {(err.strip() or 'without a word').splitlines()[-1]}")
    return checked(program, json.loads(out.splitlines()[-1]))


def checked(program: str, measured: dict[str, float]) -> dict[str, float]:
    """Speed counts only for a right sum."""
    if not measured["error"] <= measured["tolerance"]:
        raise PeerFailed(f"{program} gave a wrong sum: off by {measured['error']:.3g}")
    return measured


def compare(name: str, folder: Path) -> Iterator[Comparison]:
    """The peer, then hubbub, cell by cell."""
    peer = PEERS[name]
    python = environment(name, peer.installs, folder)
    for clients, dimension in peer.cells:
        say(f"{name}: N = {clients}, d = {dimension}")
        theirs = run(python, peer.program, clients, dimension, peer.parties, peer.repeats, *peer.arguments)
        ours = run(sys.executable, "hubbub_sum.py", clients, dimension, peer.computes, peer.repeats)
        sealed = ours.get("sealed_seconds")
        yield Comparison(
            peer=peer.title,
            N=clients,
            d=dimension,
            parties=peer.parties_are,
            seconds=theirs["seconds"],
            computes=peer.computes,
            hubbub_seconds=ours["seconds"],
            ratio=theirs["seconds"] / ours["seconds"],
            hubbub_sealed_seconds=sealed,
            ratio_sealed=None if sealed is None else theirs["seconds"] / sealed,
            protects=peer.protects,
        )


def table(rows: list[Comparison]) -> str:
    """As Markdown."""
    head = ("peer", "N", "d", "parties", "seconds", "hubbub: M", "seconds", "ratio", "sealed", "ratio", "protection")
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, ("---",) * len(head), *map(table_line, rows)))


def table_line(row: Comparison) -> tuple[str, ...]:
    theirs = (row.peer, f"{row.N}", f"{row.d}", row.parties, number(row.seconds))
    ours = (f"{row.computes}", number(row.hubbub_seconds), ratio(row.ratio))
    return (*theirs, *ours, number(row.hubbub_sealed_seconds), ratio(row.ratio_sealed), row.protects)


def number(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.3g}"


def ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}" if value < 10 else f"{value:.0f}"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PEERS, default=list(PEERS), metavar="NAME", help=", ".join(PEERS))
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    parser.add_argument("--venv", type=Path, default=Path(".peers"), help="folder for the peers' environments")
    return parser.parse_args()


def main() -> None:
    chosen = arguments()
    rows: list[Comparison] = []
    failures: list[str] = []
    for name in chosen.only:
        try:
            for row in compare(name, chosen.venv.absolute()):
                rows.append(row)
        except PeerFailed as failure:
            failures.append(str(failure))
    if chosen.json:
        print(json.dumps({"rows": [asdict(row) for row in rows], "hubbub": HUBBUB_PROTECTS, "failures": failures}))
        return
    print(table(rows))
    print(f"\nhubbub: {HUBBUB_PROTECTS}.")
    for failure in failures:
        print(f"Not compared: {failure}")


if __name__ == "__main__":
    main()
