"""The open `with Ledger` blocks of a process, made known to the processes that come from it.

A process with an open block keeps a note in a folder that belongs to its user alone: which ledgers are open. A fit in
any other process looks for the notes of its ancestors, so it finds the block also where a pool of workers was started
before the block was opened. A process that was detached from its ancestors is found through its environment, which
names the process that had a block open when it was started.

Not found: a process of another user, one on another machine whose environment was not passed on, and one that is
detached from its ancestors and was started before the block or with an empty environment. Such a process must be given
the ledger itself. Nor is a block found that has been open for longer than the system keeps files in /tmp (often ten
days).
"""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from hubbub.errors import InvalidInput

VARIABLE = "HUBBUB_LEDGER_PROCESS"
"""In the environment of a process that is started while a block is open: machine and process of the block."""


@dataclass(frozen=True)
class Block:
    """An open block: the ledger's budget, and its file; None where it lives in memory."""

    epsilon: float
    delta: float
    path: str | None


@dataclass
class _Announced:
    """What this process has made known: its note, and what the environment said before."""

    pid: int
    note: Path
    environment: str | None


_announced: list[_Announced] = []  # one at most, and of another process after a fork


def announce(blocks: Sequence[Block]) -> None:
    """Make these known as all the blocks that this process has open; the caller holds a lock."""
    if _announced and _announced[0].pid != os.getpid():
        _announced.clear()  # a forked child: the note is its parent's
    if blocks:
        if not _announced:
            _announced.append(_new_note())
        _write(_announced[0].note, json.dumps([asdict(block) for block in blocks]))
    elif _announced:
        known = _announced.pop()
        known.note.unlink(missing_ok=True)
        if known.environment is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = known.environment


def inherited() -> tuple[Block, ...]:
    """The open blocks of the nearest ancestor that has any; none where no ancestor has."""
    if not hasattr(os, "getuid"):  # Windows, where `_new_note` refuses every block
        return ()
    folders = [folder for folder in _folders() if _is_ours(folder) and any(folder.iterdir())]
    named = os.environ.get(VARIABLE)
    if not folders and named is None:
        return ()
    for name in (*_ancestors(), *_named(named)):
        for folder in folders:
            blocks = _read(folder / name)
            if blocks:
                return blocks
    return ()


def _new_note() -> _Announced:
    me = os.getpid()
    name = _name(me) if hasattr(os, "getuid") else None
    if name is None:
        raise InvalidInput(
            "block must be opened where processes can be told apart, got Windows, or neither /proc nor ps; "
            "pass ledger= to every fit"
        )
    note, before = _own_folder() / name, os.environ.get(VARIABLE)
    os.environ[VARIABLE] = f"{socket.gethostname()}/{name}"
    return _Announced(me, note, before)


def _folders() -> list[Path]:
    """Where notes may lie. /tmp comes first, because a worker may have another TMPDIR than its parent."""
    places = dict.fromkeys(["/tmp", tempfile.gettempdir()])
    return [Path(place) / f"hubbub-ledgers-{os.getuid()}" for place in places]


def _is_ours(folder: Path) -> bool:
    """A real folder that nobody else can write to."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


def _own_folder() -> Path:
    for folder in _folders():
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
        except OSError:
            continue
        if _is_ours(folder) and os.access(folder, os.W_OK | os.X_OK):
            return folder
    raise InvalidInput(
        f"block must be noted where other processes see it, got no folder {_folders()[0]} that is writable and this "
        "user's alone; pass ledger= to every fit instead"
    )


def _write(note: Path, text: str) -> None:
    draft = note.with_suffix(".draft")
    draft.write_text(text)
    os.replace(draft, note)


def _read(note: Path) -> tuple[Block, ...]:
    try:
        return tuple(Block(**entry) for entry in json.loads(note.read_text()))
    except FileNotFoundError:
        return ()


def _named(value: str | None) -> Iterator[str]:
    """The process that the environment names, if it still runs and is not this one."""
    if value is None:
        return
    host, _, name = value.rpartition("/")
    if host != socket.gethostname():
        raise InvalidInput(
            f"ledger must be reachable, got a process that was started inside a `with Ledger` block on {host}; "
            f"pass ledger= here, or unset {VARIABLE} if that block is over"
        )
    pid = name.partition("-")[0]
    if pid.isdecimal() and int(pid) != os.getpid() and _name(int(pid)) == name:
        yield name


def _ancestors() -> Iterator[str]:
    """The names of this process's parent, its parent, and so on."""
    born = _born(os.getpid())
    while born is not None and born[0] > 0:
        pid = born[0]
        born = _born(pid)
        if born is not None:
            yield f"{pid}-{born[1]}"


def _name(pid: int) -> str | None:
    """Number and time of birth, since numbers are used again; None for a process that does not run.

    So the note of a process that died inside a block speaks of nobody else. It is left where it is: another container
    may share the folder, and its processes cannot be told from dead ones.
    """
    born = _born(pid)
    return None if born is None else f"{pid}-{born[1]}"


def _born(pid: int) -> tuple[int, str] | None:
    """The parent of a process, and when it was started."""
    if Path("/proc/self/stat").exists():
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return None
        return int(fields[1]), fields[19]
    return _born_by_ps(pid)


def _born_by_ps(pid: int) -> tuple[int, str] | None:
    """The same on systems without /proc (macOS)."""
    command = ["ps", "-o", "ppid=,lstart=", "-p", str(pid)]
    settings = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}  # so that every process reads the same time
    try:
        done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    parent, _, start = done.stdout.strip().partition(" ")
    return int(parent), "".join(letter for letter in start if letter.isalnum())
