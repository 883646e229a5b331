"""`hubbub compute status`: what a Compute is doing."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from hubbub.cli.extras import needs_service
from hubbub.cli.options import Json
from hubbub.cli.output import console, print_json
from hubbub.errors import InvalidInput


@Parameter(name="*")
@dataclass(frozen=True)
class StatusOptions:
    """The arguments and options of `hubbub compute status`."""

    url: Annotated[str, Parameter(help="Address of a Compute, such as http://127.0.0.1:8000.")]
    _: KW_ONLY
    authority: Annotated[Path | None, Parameter(help="PEM file that its certificate is checked with.")] = None
    json: Json = False


def status(options: StatusOptions) -> None:
    """Show what a Compute is doing: studies, reports, rosters, ledger.

    For example:

        hubbub compute status http://127.0.0.1:8000
    """
    run(options)


def run(options: StatusOptions) -> None:
    """Ask a Compute for its status and print the answer."""
    with needs_service():
        from hubbub.service.wire.canonical import read_json
        from hubbub.service.wire.problems import one_line
        from hubbub.service.wire.web import MOST_LIST, Patience, Web
    url, authority = options.url, options.authority
    web = Web.open(None if authority is None else str(authority), Patience(total=5.0))
    content: dict[str, Any] = read_json(web.get(f"{url.rstrip('/')}/v1/status", most=MOST_LIST).content)
    if not isinstance(content, dict) or not {"name", "studies"} <= set(content):
        raise InvalidInput(f"url must be that of a Compute, got url={url}; check the address")
    if options.json:
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
