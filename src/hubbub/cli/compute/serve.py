"""`hubbub compute serve`: run a Compute node."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hubbub.cli.extras import needs_service


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """The options of `hubbub compute serve`."""

    config: Annotated[Path, Parameter(help="The file that `hubbub compute init` wrote.")]


def serve(options: ServeOptions) -> None:
    """Serve until stopped; logs are JSON lines on standard error.

    For example:

        hubbub compute serve --config my-compute/compute.toml
    """
    run(options)


def run(options: ServeOptions) -> None:
    """Serve until the process is stopped."""
    with needs_service():
        from hubbub.service.node.serve import serve as serve_node
    serve_node(options.config)
