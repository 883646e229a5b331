"""`hubbub compute init`: the keys and the configuration of a new Compute."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from hubbub.cli.extras import needs_service
from hubbub.cli.options import Json
from hubbub.cli.output import console, print_json


@Parameter(name="*")
@dataclass(frozen=True)
class InitOptions:
    """The arguments and options of `hubbub compute init`."""

    folder: Annotated[Path, Parameter(help="A new folder for keys, configuration and database.")]
    _: KW_ONLY
    name: Annotated[str | None, Parameter(help="As studies will call it [default: the folder's name].")] = None
    listen: Annotated[str, Parameter(help="Address and port to listen on.")] = "127.0.0.1:8000"
    database: Annotated[str, Parameter(help="SQLite file or PostgreSQL URL.")] = "sqlite:///compute.db"
    suite: Annotated[
        Literal["X25519", "MLKEM768-X25519"], Parameter(help="What shares are sealed with; the second is post-quantum.")
    ] = "X25519"
    json: Json = False


def init(options: InitOptions) -> None:
    """Make the keys and the configuration file of a new Compute.

    For example:

        hubbub compute init my-compute --listen 0.0.0.0:8443
        hubbub compute init my-compute --database postgresql+psycopg://hubbub@localhost/hubbub
    """
    run(options)


def run(options: InitOptions) -> None:
    """Write keys and configuration, and print what the operator has to tell others."""
    with needs_service():
        from hubbub.service.node.config import init_compute, read_config, read_keys
        from hubbub.service.wire.fingerprints import key_fingerprint
    folder, suite = options.folder, options.suite
    name = options.name or folder.resolve().name
    config = init_compute(folder, name, options.listen, database=options.database, suite=suite)
    keys = read_keys(read_config(config).keys)
    verify_key, found = keys.sign.public().hex(), key_fingerprint(keys.seal.public(), keys.sign.public())
    if options.json:
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
