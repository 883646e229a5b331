"""`hubbub compute`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hubbub.cli.extras import needs_service
from hubbub.cli.output import console, print_json
from hubbub.securesum import SuiteName


def init(folder: Path, name: str | None, listen: str, database: str, suite: SuiteName, json: bool) -> None:
    """Write keys and configuration, and say what to give to analysts."""
    with needs_service():
        from hubbub.service.config import init_compute, read_config, read_keys
        from hubbub.service.fingerprints import key_fingerprint
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
    console.print(f"Its verify key: {verify_key}", markup=False)
    console.print(f"Start it: hubbub compute serve --config {config}", markup=False)


def serve(config: Path) -> None:
    """Serve until stopped."""
    with needs_service():
        from hubbub.service import serve as server
    server.serve(config)


def status(url: str, authority: Path | None, json: bool) -> None:
    """Ask a Compute, and print what it says."""
    with needs_service():
        from hubbub.service.web import Patience, Web
    web = Web.open(None if authority is None else str(authority), Patience(total=5.0))
    content: dict[str, Any] = web.get(f"{url.rstrip('/')}/v1/status").json()
    if json:
        print_json(content)
        return
    console.print(f"{content['name']}: {len(content['studies'])} registered", markup=False)
    for study in content["studies"]:
        for line in _study_lines(study):
            console.print(line, markup=False)


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
