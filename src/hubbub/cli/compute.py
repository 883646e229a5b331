"""`hubbub compute`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from hubbub.cli.extras import needs_service
from hubbub.cli.output import console, print_json
from hubbub.securesum import SuiteName


def init(folder: Path, name: str | None, listen: str, database: str, suite: SuiteName, json: bool) -> None:
    """Write keys and configuration, and say what to give to analysts."""
    with needs_service():
        from hubbub.service.config import init_compute, read_config, read_keys
    config = init_compute(folder, name or folder.resolve().name, listen, database=database, suite=suite)
    keys = read_keys(read_config(config).keys)
    verify_key = keys.sign.public().hex()
    if json:
        print_json(
            {"config": str(config), "suite": suite, "key": keys.seal.public().data.hex(), "verify_key": verify_key}
        )
        return
    console.print(f"{config} and {folder / 'keys.json'} (secret) are written.", markup=False)
    console.print(f"Tell analysts this verify key by a way you trust: {verify_key}", markup=False)
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
    table = Table("study", "title", "clients", "enrolled", "round", "state", "reports", "epsilon spent")
    for study in content["studies"]:
        for round_ in study["rounds"] or [{}]:
            spent = (
                "simulation"
                if study["budget"] is None
                else f"{study['budget']['spent']:.3g} of {study['budget']['epsilon']:g}"
            )
            table.add_row(
                study["study"][:12], Text(study["title"]), str(study["clients"]), str(study["enrolled"]),
                str(round_.get("number", "")), round_.get("state", ""), str(round_.get("reports", "")), spent,
            )  # fmt: skip
    console.print(f"{content['name']}: {len(content['studies'])} studies", markup=False)
    console.print(table)
