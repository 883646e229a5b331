"""`hubbub compute`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hubbub.cli.extras import needs_service
from hubbub.cli.output import console, print_json
from hubbub.errors import InvalidInput
from hubbub.securesum import SuiteName


def init(folder: Path, name: str | None, listen: str, database: str, suite: SuiteName, json: bool) -> None:
    """Write keys and configuration, and say what to give to analysts."""
    with needs_service():
        from hubbub.service.node.config import init_compute, read_config, read_keys
        from hubbub.service.wire.fingerprints import key_fingerprint
    config = init_compute(folder, name or folder.resolve().name, listen, database=database, suite=suite)
    keys = read_keys(read_config(config).keys)
    verify_key, found = keys.sign.public().hex(), key_fingerprint(keys.seal.public(), keys.sign.public())
    if json:
        print_json({"config": str(config), "suite": suite, "key": keys.seal.public().data.hex(),
                    "verify_key": verify_key, "fingerprint": found})  # fmt: skip
        return
    console.print(f"{config} and {folder / 'keys.json'} (secret) are written.", markup=False)
    console.print(
        f"Tell analysts and data holders this fingerprint of both keys by a way you trust: {found}", markup=False
    )
    console.print(f"Tell the operators of the other Computes its verify key: {verify_key}", markup=False)
    console.print("It takes nobody's studies yet. Name the analysts, and the study's other Computes:", markup=False)
    console.print(f"  hubbub compute trust ANALYSTS_KEY --config {config}", markup=False)
    console.print(
        f"  hubbub compute trust VERIFY_KEY --peer https://their.address:8443 --config {config}", markup=False
    )
    console.print(f"Start it: hubbub compute serve --config {config}", markup=False)


def trust(
    key: str | None, config: Path, peer: str | None, name: str, remove: bool, show: bool, json: bool
) -> None:  # fmt: skip
    """Add a key to those that the Compute trusts, or take it away, or show them all."""
    with needs_service():
        from hubbub.service.node.config import read_config
        from hubbub.service.node.trust import read_trust, write_trust
        from hubbub.service.wire.canonical import hexed, text
        from hubbub.service.wire.signing import KEY_BYTES
    path = read_config(config).trust
    named = read_trust(path)
    if show != (key is None) or (remove and peer is not None):
        raise InvalidInput("trust must be given a key, with --peer, --remove or neither, or --list alone; see --help")
    if key is not None:
        data, called = hexed("key", key, KEY_BYTES), name and text("name", name, 100)
        if remove:
            named = named.without(data)
        else:
            named = named.with_analyst(data, called) if peer is None else named.with_peer(data, peer, called)
        write_trust(path, named)
    if json:
        print_json(named.content())
        return
    for each, called in named.analysts.items():
        console.print(f"analyst {each.hex()} {called}".rstrip(), markup=False, soft_wrap=True)
    for each, other in named.peers.items():
        console.print(f"Compute {each.hex()} {other.url} {other.name}".rstrip(), markup=False, soft_wrap=True)
    if not named.analysts:
        console.print("no analyst is named: no study is taken", markup=False)


def serve(config: Path) -> None:
    """Serve until stopped."""
    with needs_service():
        from hubbub.service.node import serve as server
    server.serve(config)


def status(url: str, authority: Path | None, json: bool) -> None:
    """Ask a Compute, and print what it says."""
    with needs_service():
        from hubbub.service.wire.canonical import read_json
        from hubbub.service.wire.problems import one_line
        from hubbub.service.wire.web import MOST_LIST, Patience, Web
    web = Web.open(None if authority is None else str(authority), Patience(total=5.0))
    content: dict[str, Any] = read_json(web.get(f"{url.rstrip('/')}/v1/status", most=MOST_LIST).content)
    if not isinstance(content, dict) or not {"name", "studies"} <= set(content):
        raise InvalidInput(f"url must be that of a Compute, got url={url}; check the address")
    if json:
        print_json(content)
        return
    console.print(one_line(f"{content['name']}: {len(content['studies'])} registered"), markup=False)
    for study in content["studies"]:
        for line in _study_lines(study):
            indent = line[: len(line) - len(line.lstrip())]
            console.print(indent + one_line(line), markup=False)


def _study_lines(study: dict[str, Any]) -> list[str]:
    budget = study["budget"]
    spent = "a simulation" if budget is None else f"epsilon {budget['spent']:.3g} of {budget['epsilon']:g} spent"
    lines = [
        f"{study['study'][:12]} {study['title']}: {study['clients']} clients, {study['dropouts']} may be missing, "
        f"{study['colluders']} may collude, "
        f"{study['enrolled']} clients enrolled, {spent}"
    ]
    for round_ in study["rounds"]:
        reason = f" ({round_['reason']})" if round_["reason"] else ""
        agreed = "" if round_["roster"] is None else f", {round_['roster']} agreed"
        lines.append(f"  round {round_['number']}: {round_['state']}{reason}, {round_['reports']} reports{agreed}")
    return lines
