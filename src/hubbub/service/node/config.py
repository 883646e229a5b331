"""A Compute's files: its configuration (TOML, with comments) and its keys (JSON, readable by the owner only)."""

from __future__ import annotations

import json
import ssl
import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from hubbub.errors import InvalidInput, invalid
from hubbub.securesum import PrivateKey, SuiteName, check_suite
from hubbub.service.node.commitments import DrawBox
from hubbub.service.node.compute import Limits, Node, NodeKeys
from hubbub.service.node.private_files import check_private, database_files, to_json, write_new
from hubbub.service.node.store import Store
from hubbub.service.node.trust import TRUST, TrustList, read_trust
from hubbub.service.node.vault import Vault
from hubbub.service.wire.canonical import hexed, text
from hubbub.service.wire.signing import KEY_BYTES, SigningKey

CONFIG, KEYS, ROUND_KEYS, DRAWS = "compute.toml", "keys.json", "round-keys", "draws"
WITH_PARENT = "HUBBUB_WITH_PARENT"
"""Where the environment has this, a Compute ends when whoever started it does, however that ends."""

_TEMPLATE = """\
# A Compute of hubbub. Start it with: hubbub compute serve --config {config}

name = {name}              # as studies call it
listen = {listen}    # address and port to listen on
database = {database}  # or postgresql+psycopg://user:password@host/name
keys = "{keys}"             # secret: whoever has this file can open this Compute's shares
round_keys = "{round_keys}"      # folder of the keys of open rounds, erased as each ends; never back it up
proxies = []                   # addresses of reverse proxies, whose word on who is calling is taken

# [tls]                        # without it traffic is plain HTTP, for tests only: enrolments can be intercepted
# certificate = "server.pem"
# key = "server.key"
# authority = "ca.pem"         # verifies the other Computes, where they use a private authority

[limits]
studies = {limits.studies}                  # that may be under way; one whose deadline has passed counts no more
studies_per_analyst = {limits.studies_per_analyst}       # of these, of one analyst
clients_per_analyst = {limits.clients_per_analyst}   # in all studies of one analyst that are under way
dimension = {limits.dimension}             # numbers in one sum
body_bytes = {limits.body_bytes}          # of one request
roster_bytes = {limits.roster_bytes}        # of one roster: a study with more clients than surely fit is not taken
requests_per_second = {limits.requests_per_second}   # from one address
upload_seconds = {limits.upload_seconds}          # for a body to arrive
bodies_bytes = {limits.bodies_bytes}        # of all requests that are being read or worked on; the slowest give way
header_seconds = {limits.header_seconds}          # for a connection to be made and a request's header to arrive
connections = {limits.connections}             # at the same time; those that wait for a request give way to new ones
connections_per_address = {limits.connections_per_address}  # not of `proxies`
agreement_seconds = {limits.agreement_seconds}     # for the other Computes to answer at the end of a round
missing_seconds = {limits.missing_seconds}         # of these, for one without which the others can agree
unfinished_draws = {limits.unfinished_draws}           # of one analyst, revealed for, and no round released since
simulation = {simulation}             # take studies without a budget: they protect nobody
anyone = {anyone}                 # for tests: take the studies of any analyst, with any other Computes. Without
                               # it only those count that you name with: hubbub compute trust KEY
"""


@dataclass(frozen=True)
class Tls:
    """Certificate files; None means plain HTTP, or the system's authorities."""

    certificate: Path | None = None
    key: Path | None = None
    authority: Path | None = None

    def verify(self) -> ssl.SSLContext | bool:
        """What checks the certificates of others."""
        return verify_with(self.authority)


@dataclass(frozen=True)
class Config:
    """What a Compute is started with."""

    name: str
    host: str
    port: int
    database: str
    keys: Path
    limits: Limits
    tls: Tls = field(default_factory=Tls)
    round_keys: Path | None = None
    """The folder of the keys under which reports are stored; None for one beside `keys`."""
    proxies: tuple[str, ...] = ()
    """Reverse proxies whose X-Forwarded-For is believed; nobody's else."""

    @property
    def trust(self) -> Path:
        """Whom the operator has named."""
        return self.keys.with_name(TRUST)

    @property
    def _round_keys(self) -> Path:
        return self.round_keys or self.keys.parent / ROUND_KEYS

    @property
    def _draws(self) -> Path:
        """What this Compute brings to draws, apart from the database."""
        return self.keys.parent / DRAWS

    def node(self) -> Node:
        """The Compute, with its database open."""
        read_trust(self.trust)  # what cannot be read is said now, not when the first study comes
        trust = TrustList(self.trust, anyone=self.limits.anyone)
        vault, draws = Vault(self._round_keys), DrawBox(self._draws)
        keys, store = read_keys(self.keys), Store(self.database)
        return Node(self.name, store, keys, self.limits, trust=trust, vault=vault, draws=draws)

    def check_private(self, config: Path) -> None:
        """Refuse to start with files that others can read or write."""
        files = [config, self.keys, self.trust, self._round_keys, self._draws]
        check_private([*files, *database_files(self.database)])


def verify_with(authority: Path | None) -> ssl.SSLContext | bool:
    """A TLS context that trusts this authority, or True for the system's."""
    if authority is None:
        return True
    try:
        return ssl.create_default_context(cafile=str(authority))
    except (OSError, ssl.SSLError):
        raise invalid("authority", "a readable PEM file", authority, "check the path") from None


def init_compute(
    folder: Path,
    name: str,
    listen: str = "127.0.0.1:8000",
    *,
    database: str = "sqlite:///compute.db",
    suite: SuiteName = "X25519",
    limits: Limits | None = None,
) -> Path:
    """Write keys and configuration into a new folder; never overwrites keys."""
    check_suite(suite)
    _address(listen)
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / CONFIG
    if config.exists() or (folder / KEYS).exists():
        raise invalid("folder", "without a Compute in it", folder, "choose another, or keep the one there is")
    keys = NodeKeys(PrivateKey.generate(suite), SigningKey.generate())
    write_secret(folder / KEYS, {"suite": suite, "seal": keys.seal.data.hex(), "sign": keys.sign.data.hex()})
    chosen = limits or Limits()
    content = _TEMPLATE.format(
        config=CONFIG, name=json.dumps(text("name", name, 100)), listen=json.dumps(listen),
        database=json.dumps(database), keys=KEYS, round_keys=ROUND_KEYS, limits=chosen,
        simulation=str(chosen.simulation).lower(), anyone=str(chosen.anyone).lower(),
    )  # fmt: skip
    write_new(config, content)  # it may hold the database's password
    return config


def write_secret(path: Path, content: dict[str, Any]) -> None:
    """A JSON file that only its owner can read, on disk when this returns."""
    write_new(path, to_json(content))


def read_keys(path: Path) -> NodeKeys:
    """The keys that `init_compute` wrote."""
    try:
        content = json.loads(path.read_text())
        suite, seal = content["suite"], bytes.fromhex(content["seal"])
        return NodeKeys(PrivateKey(suite, seal), SigningKey(hexed("sign", content["sign"], KEY_BYTES)))
    except (OSError, ValueError, KeyError, TypeError):
        raise InvalidInput(f"keys must be a file written by `hubbub compute init`, got keys={path}") from None


def read_config(path: Path) -> Config:
    """The configuration, or one line that says what is wrong with it; paths are relative to the file."""
    try:
        content = tomllib.loads(path.read_text())
    except OSError as error:
        raise InvalidInput(f"config must be readable, got config={path}: {error.strerror}; check the path") from None
    except ValueError as error:
        raise InvalidInput(f"config must be TOML, got config={path}: {error}; correct that line") from None
    _only("config", content, {"name", "listen", "database", "keys", "round_keys", "proxies", "tls", "limits"})
    try:
        host, port = _address(content["listen"])
        return Config(
            text("name", content["name"], 100), host, port, _database(path.parent, content["database"]),
            path.parent / content["keys"], _limits(content.get("limits", {})),
            _tls(path.parent, content.get("tls", {})), path.parent / str(content.get("round_keys", ROUND_KEYS)),
            _proxies(content.get("proxies", [])),
        )  # fmt: skip
    except KeyError as error:
        raise InvalidInput(f"config must have the entry {error.args[0]}, got config={path}; add it") from None


def _address(listen: object) -> tuple[str, int]:
    host, _, port = str(listen).rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise invalid("listen", "address:port such as 0.0.0.0:8000", repr(listen), "give both")
    return host.strip("[]"), int(port)


def _database(folder: Path, url: object) -> str:
    """A relative SQLite file lies beside the configuration, wherever the Compute is started from."""
    prefix, found = "sqlite:///", str(url)
    if found.startswith(prefix) and not found.startswith(prefix + "/"):
        return prefix + str((folder / found.removeprefix(prefix)).resolve())
    return found


def _limits(content: dict[str, Any]) -> Limits:
    _only("limits", content, {entry.name for entry in fields(Limits)})
    for name, value in content.items():
        default = getattr(Limits(), name)
        if isinstance(default, bool) != isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise invalid(f"limits.{name}", f"like {default}", repr(value), "correct the configuration")
    return Limits(**content)


def _proxies(found: object) -> tuple[str, ...]:
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise invalid("proxies", 'a list of addresses such as ["127.0.0.1"]', repr(found), "correct the configuration")
    return tuple(found)


def _tls(folder: Path, content: dict[str, Any]) -> Tls:
    _only("tls", content, {"certificate", "key", "authority"})
    if ("certificate" in content) != ("key" in content):
        raise InvalidInput("tls must have certificate and key together, got one of them; add the other")
    return Tls(**{name: folder / str(value) for name, value in content.items()})


def _only(where: str, content: dict[str, Any], known: set[str]) -> None:
    if unknown := sorted(set(content) - known):
        raise invalid(where, f"made of {', '.join(sorted(known))}", unknown[0], "check the spelling")
