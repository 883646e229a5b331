"""Files that only their owner may read or write: how they are made, and how others are refused."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from hubbub.errors import InvalidInput, invalid

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def write_new(path: Path, content: str) -> None:
    """A new file with mode 0600, on disk when this returns; never overwrites one."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, content: str) -> None:
    """The file with this content and mode 0600: a reader finds the old content or the new one, never a part."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")  # mkstemp makes it with mode 0600
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def to_json(content: dict[str, Any]) -> str:
    """As these files hold it."""
    return json.dumps(content, indent=1) + "\n"


def database_file(url: str) -> Path | None:
    """The file of an SQLite database; None for another database, or one in memory."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        return None
    if parsed.get_backend_name() != "sqlite" or not parsed.database or parsed.database == ":memory:":
        return None
    return Path(parsed.database)


def make_database_file(url: str) -> None:
    """Make the SQLite file with mode 0600 before SQLite does; its -wal and -shm files get the mode of the database."""
    if (path := database_file(url)) is not None:
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise invalid("database", "a file that can be written", f"{path}: {error.strerror}", "check it") from None


def check_private(paths: Iterable[Path]) -> None:
    """Refuse files that group or others may read or write, and say which command corrects that."""
    if os.name != "posix":
        return
    found = [(path, path.stat().st_mode) for path in paths if path.exists()]
    open_ones = [(path, mode) for path, mode in found if mode & _OTHERS]
    if open_ones:
        first, mode = open_ones[0]
        raise InvalidInput(
            f"{first.name} must be readable and writable by its owner only, got mode {stat.S_IMODE(mode):04o}; "
            f"run: {_remedy([path for path, _ in open_ones])}"
        )


def _remedy(paths: list[Path]) -> str:
    """The commands that make files, and folders, their owner's alone."""
    files, folders = [str(p) for p in paths if not p.is_dir()], [str(p) for p in paths if p.is_dir()]
    commands = [["chmod", mode, *names] for mode, names in (("600", files), ("700", folders)) if names]
    return " && ".join(shlex.join(command) for command in commands)


def database_files(url: str) -> list[Path]:
    """The SQLite file and those that SQLite keeps beside it."""
    path = database_file(url)
    return [] if path is None else [path, *(path.with_name(path.name + ending) for ending in ("-wal", "-shm"))]
