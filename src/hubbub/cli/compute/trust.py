"""`hubbub compute trust`: the analysts and the other Computes that a Compute trusts."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hubbub.cli.extras import needs_service
from hubbub.cli.options import Json
from hubbub.cli.output import console, print_json
from hubbub.errors import InvalidInput


@Parameter(name="*")
@dataclass(frozen=True)
class TrustOptions:
    """The arguments and options of `hubbub compute trust`."""

    key: Annotated[str | None, Parameter(help="An analyst's public key, or another Compute's verify key.")] = None
    _: KW_ONLY
    config: Annotated[Path, Parameter(help="The Compute's configuration.")] = Path("compute.toml")
    peer: Annotated[str | None, Parameter(help="The key is that of the Compute at this address.")] = None
    name: Annotated[str, Parameter(help="What you call its owner, for --list.")] = ""
    remove: Annotated[bool, Parameter(negative="", help="Trust this key no more.")] = False
    show: Annotated[bool, Parameter(name="--list", negative="", help="Show whom this Compute trusts.")] = False
    json: Json = False


DEFAULTS = TrustOptions()


def trust(options: TrustOptions = DEFAULTS) -> None:
    """Name an analyst whose studies this Compute takes, or another Compute that may take part in them.

    Nobody is trusted until named. A study is taken if its analyst is named and each of its other Computes is named
    with the address that the study gives; this Compute calls no other addresses. A running Compute needs no restart.

    For example:

        hubbub compute trust 3d40..8b --config my-compute/compute.toml --name "the registry's analyst"
        hubbub compute trust 91c2..07 --config my-compute/compute.toml --peer https://b.example:8443
        hubbub compute trust 3d40..8b --config my-compute/compute.toml --remove
        hubbub compute trust --config my-compute/compute.toml --list
    """
    run(options)


def run(options: TrustOptions) -> None:
    """Add a key to those that the Compute trusts, or take it away, and print all that are trusted."""
    with needs_service():
        from hubbub.service.node.config import read_config
        from hubbub.service.node.trust import read_trust, write_trust
        from hubbub.service.wire.canonical import hexed, text
        from hubbub.service.wire.signing import KEY_BYTES
    key, peer = options.key, options.peer
    path = read_config(options.config).trust
    named = read_trust(path)
    if options.show != (key is None) or (options.remove and peer is not None):
        raise InvalidInput("trust must be given a key, with --peer, --remove or neither, or --list alone; see --help")
    if key is not None:
        data, called = hexed("key", key, KEY_BYTES), options.name and text("name", options.name, 100)
        if options.remove:
            named = named.without(data)
        else:
            named = named.with_analyst(data, called) if peer is None else named.with_peer(data, peer, called)
        write_trust(path, named)
    if options.json:
        print_json(named.content())
        return
    for each, called in named.analysts.items():
        console.print(f"analyst {each.hex()} {called}".rstrip(), markup=False, soft_wrap=True)
    for each, other in named.peers.items():
        console.print(f"Compute {each.hex()} {other.url} {other.name}".rstrip(), markup=False, soft_wrap=True)
    if not named.analysts:
        console.print("no analyst is named: no study is taken", markup=False)
