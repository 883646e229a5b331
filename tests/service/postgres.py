"""A private PostgreSQL server for the tests: started once, in a folder of its own, on a socket only."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import psycopg


class PrivatePostgres:
    """initdb and pg_ctl from Debian's postgresql package; they refuse to run as root, so root steps down."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="hubbub-pg-"))
        self._user = None
        if os.geteuid() == 0:
            names = {entry.pw_name for entry in pwd.getpwall()}
            self._user = "postgres" if "postgres" in names else "nobody"
            shutil.chown(self.folder, self._user)
        self._count = 0
        self._run("initdb", "-D", self.folder / "data", "-U", "hubbub", "--auth=trust", "--no-sync")
        self.start()

    def _run(self, program: str, *arguments: object) -> None:
        subprocess.run([str(part) for part in (found(program), *arguments)], check=True, user=self._user, cwd=self.folder,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip

    def start(self) -> None:
        options = (
            f"-k {self.folder} -c listen_addresses='' -c max_connections=200 -c fsync=off"  # no test cuts the power
        )
        self._run("pg_ctl", "-D", self.folder / "data", "-o", options, "-w", "-l", self.folder / "log", "start")

    def stop(self, mode: str = "immediate") -> None:
        self._run("pg_ctl", "-D", self.folder / "data", "-m", mode, "-w", "stop")

    def database(self) -> str:
        """The URL of a fresh schema, which is a database of its own to whoever uses it."""
        self._count += 1
        name = f"t{self._count}"
        with psycopg.connect(host=str(self.folder), user="hubbub", dbname="postgres", autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return f"postgresql+psycopg://hubbub@/postgres?host={self.folder}&options=-csearch_path%3D{name}"

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def found(program: str) -> str | None:
    """Debian keeps the server's programs off the path."""
    return shutil.which(program) or next(map(str, sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"))), None)


def available() -> bool:
    return found("initdb") is not None and found("pg_ctl") is not None
