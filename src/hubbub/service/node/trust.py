"""Whom a Compute's operator has named: analysts whose studies are taken, and other Computes that may take part.

The file trust.json lies beside keys.json. It is read again when it changes, so that naming somebody needs no restart.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hubbub.errors import InvalidInput
from hubbub.service.node.private_files import replace_file, to_json
from hubbub.service.wire.canonical import hexed, text
from hubbub.service.wire.problems import Problem
from hubbub.service.wire.records import ComputeRecord, StudyRecord, check_origin
from hubbub.service.wire.signing import KEY_BYTES

TRUST = "trust.json"


@dataclass(frozen=True)
class Peer:
    """Another Compute: the only address at which this one calls it, and what the operator calls it."""

    url: str
    name: str = ""


@dataclass(frozen=True)
class Named:
    """Public keys: of analysts (with the operator's name for each), and of other Computes."""

    analysts: dict[bytes, str] = field(default_factory=dict)
    peers: dict[bytes, Peer] = field(default_factory=dict)

    def content(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "analysts": {key.hex(): name for key, name in self.analysts.items()},
            "peers": {key.hex(): {"url": peer.url, "name": peer.name} for key, peer in self.peers.items()},
        }

    def with_analyst(self, key: bytes, name: str = "") -> Named:
        """The same with one analyst more."""
        return replace(self, analysts={**self.analysts, key: name})

    def with_peer(self, key: bytes, url: str, name: str = "") -> Named:
        """The same with one other Compute more, or with another address for it."""
        return replace(self, peers={**self.peers, key: Peer(check_origin(url), name)})

    def without(self, key: bytes) -> Named:
        """The same without this key; refuses one that is not there."""
        if key not in self.analysts and key not in self.peers:
            raise InvalidInput(f"key must be one that is trusted, got key={key.hex()}; see --list")
        analysts = {each: name for each, name in self.analysts.items() if each != key}
        return Named(analysts, {each: peer for each, peer in self.peers.items() if each != key})


def read_trust(path: Path) -> Named:
    """Who is named in the file; nobody where there is none."""
    if not path.exists():
        return Named()
    try:
        content = json.loads(path.read_text())
        if set(content) != {"analysts", "peers"}:
            raise ValueError
        found = Named()
        for key, name in content["analysts"].items():
            found = found.with_analyst(hexed("key", key, KEY_BYTES), _name(name))
        for key, peer in content["peers"].items():
            found = found.with_peer(hexed("key", key, KEY_BYTES), peer["url"], _name(peer["name"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InvalidInput(f"trust must be a file that `hubbub compute trust` wrote, got trust={path}") from None
    return found


def write_trust(path: Path, named: Named) -> None:
    """Put the file in place as a whole: a running Compute reads the old one or the new one."""
    replace_file(path, to_json(named.content()))


def _name(value: object) -> str:
    return "" if value == "" else text("name", value, 100)


class TrustList:
    """Who is named now. Without a file it is nobody; `anyone` takes all, for tests."""

    def __init__(self, path: Path | None = None, *, anyone: bool = False) -> None:
        self._path, self._anyone = path, anyone
        self._seen: tuple[int, ...] | None = None
        self._named = Named()
        self._lock = threading.Lock()

    def named(self) -> Named:
        """From memory while the file is as it was; a file that cannot be read names nobody, and is a problem."""
        if self._path is None:
            return self._named
        with self._lock:
            try:
                found = self._path.stat()
                seen: tuple[int, ...] = (found.st_ino, found.st_mtime_ns, found.st_size)
            except FileNotFoundError:
                seen = ()
            if seen != self._seen:
                self._named, self._seen = _now(self._path), seen
            return self._named

    def check_study(self, study: StudyRecord, position: int) -> None:
        """Refuse a study unless its analyst and all its other Computes are named."""
        if self._anyone:
            return
        if study.analyst not in self.named().analysts:
            raise Problem(
                "not-allowed",
                f"analyst must be one that this Compute's operator has named, got {study.analyst.hex()}; the operator "
                "names it with `hubbub compute trust KEY`",
            )
        for place, compute in enumerate(study.computes):
            if place != position:
                self.check_peer(compute)

    def check_peer(self, compute: ComputeRecord) -> None:
        """Refuse another Compute unless its key is named together with exactly this address."""
        if self._anyone:
            return
        peer = self.named().peers.get(compute.verify_key)
        if peer is None or peer.url != compute.url:
            known = "its key is not named" if peer is None else f"its key is named with {peer.url}"
            raise Problem(
                "not-allowed",
                f"Compute {compute.name} must be one that this Compute's operator has named, got {compute.url}, and "
                f"{known}; the operator names it with `hubbub compute trust {compute.verify_key.hex()} --peer URL`",
            )


def _now(path: Path) -> Named:
    try:
        return read_trust(path)
    except InvalidInput as error:
        raise Problem("not-ready", str(error)) from None
