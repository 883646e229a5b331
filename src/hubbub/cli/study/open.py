"""`hubbub study open`: register a study, invite its clients and open the first round."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hubbub.cli.extras import needs_service
from hubbub.cli.options import Authority, Json, KeyFile, StudyFile
from hubbub.cli.output import say
from hubbub.cli.study.access import as_analyst
from hubbub.cli.study.rounds import open_next
from hubbub.cli.tokens import invited_clients


@Parameter(name="*")
@dataclass(frozen=True)
class OpenOptions:
    """The arguments and options of `hubbub study open`."""

    file: StudyFile
    _: KW_ONLY
    key: KeyFile = None
    tokens: Annotated[Path | None, Parameter(help="The clients' tokens [default: beside the study].")] = None
    authority: Authority = None
    json: Json = False


def open_study(options: OpenOptions) -> None:
    """Register the study at every Compute, invite its clients, and open the first round.

    Where each client uses some of the Computes only (scheme subset), they are drawn before the first round, and nobody
    can be invited from then on.

    For example:

        hubbub study open study.json
    """
    run(options)


def run(options: OpenOptions) -> None:
    """Register the study at every Compute, invite the clients, and open the first round."""
    with needs_service():
        from hubbub.service.wire.draw import check_ties
    analyst = as_analyst(options.file, options.key, options.authority)
    tokens = invited_clients(analyst.study, options.tokens or options.file.with_suffix(".tokens.csv"))
    analyst.register()
    analyst.invite(tokens)
    analyst.draw({name: samples for name, (_, samples) in tokens.items()})
    check_ties(analyst.drawn, list(tokens))
    label = open_next(analyst, [])
    content: dict[str, object] = {"study": analyst.study.id, "round": 0, "label": label}
    say(options.json, content, f"round 0 ({label}) is open: clients can contribute now")
