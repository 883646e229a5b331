"""`hubbub study key`: make an analyst's key or show its public part."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hubbub.cli.extras import needs_service
from hubbub.cli.options import Json
from hubbub.cli.output import say
from hubbub.cli.study.access import read_key


@Parameter(name="*")
@dataclass(frozen=True)
class KeyOptions:
    """The arguments and options of `hubbub study key`."""

    file: Annotated[Path, Parameter(help="The analyst's key: made if there is none, and never overwritten.")]
    _: KW_ONLY
    json: Json = False


def key(options: KeyOptions) -> None:
    """Make an analyst's key, or show the public part of one, which Compute operators need before they take a study.

    For example:

        hubbub study key analyst.key
        hubbub study create study.toml --key analyst.key
    """
    run(options)


def run(options: KeyOptions) -> None:
    """Make the analyst's key if there is none, and print its public part."""
    with needs_service():
        from hubbub.service.node.config import write_secret
        from hubbub.service.wire.signing import SigningKey
    file = options.file
    if not file.exists():
        write_secret(file, {"sign": SigningKey.generate().data.hex()})
    public = read_key(file).public().hex()
    line = (
        f"{public}\nTell it to the Computes' operators by a way they trust: "
        f"they name it with `hubbub compute trust`. Keep {file} secret."
    )
    say(options.json, {"key": public, "file": str(file)}, line)
