"""What `hubbub contribute` shows a data holder before anything is sent, and the question that it asks."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from hubbub.cli.output import errors
from hubbub.errors import InvalidInput

if TYPE_CHECKING:
    from hubbub.arrays import Floats
    from hubbub.service.client.client import Client
    from hubbub.service.wire.fingerprints import Pins
    from hubbub.service.wire.records import RoundRecord, StudyRecord


def show_consent(client: Client, record: RoundRecord, rows: Floats, pins: Pins, follow: bool) -> None:
    """Show all that a data holder has to know before they agree."""
    from hubbub.service.client.consent import promise

    study = client.study
    unlike = "as you agreed before" if client.consented() else "not compared"
    show(f"Who would get it, in the study {study.title!r}:", _parties(study, pins, unlike))
    show("What would leave this machine:", leaves(client, record, rows))
    show("What is promised:", promise(study))
    covers = "this round, and each further one of the study while this command runs" if follow else "this round alone"
    lines = [
        f"it covers {covers}",
        "so far this command has asked Computes which rounds the study has, without your name, and sent nothing else",
    ]
    if not client.consented() and pins.study is None:
        lines.append("compare what is 'not compared' above with what you were told by another way, before you agree")
    show("Your yes:", lines)


def ask() -> None:
    """Ask whether to send it, and refuse to go on without a yes."""
    if not sys.stdin.isatty():
        raise InvalidInput(
            "yes must be given where nobody can be asked, got no terminal; nothing was sent: add --yes, and "
            "--expect-study with the fingerprint that you were told by another way"
        )
    try:
        answer = input("Send it? [y/N] ").strip().lower()
    except EOFError:
        answer = ""
    if answer not in ("y", "yes"):
        raise InvalidInput("answer must be y to send, got another; nothing was sent, and you are not enrolled by this")


def _parties(study: StudyRecord, pins: Pins, unlike: str) -> list[str]:
    """List study, analyst and Computes, each with its fingerprint and whether it is the one expected."""
    from hubbub.service.wire.fingerprints import analyst_fingerprint, compute_fingerprint, study_fingerprint

    whole = pins.study is not None  # the study's fingerprint covers the keys of all parties
    same = "as you expect"
    analyst = same if whole or pins.analyst else unlike
    lines = [
        f"study {study_fingerprint(study)} ({same if whole else unlike})",
        f"analyst {analyst_fingerprint(study.analyst)} ({analyst})",
    ]
    for compute in study.computes:
        found = compute_fingerprint(compute)
        compared = same if whole or found in pins.computes else unlike
        lines.append(f"Compute {compute.name} at {compute.url}, keys {found} ({compared})")
    return lines


def leaves(client: Client, record: RoundRecord, rows: Floats) -> list[str]:
    """List what would leave this machine in this round."""
    from hubbub.service.client.consent import what_leaves

    return what_leaves(record, record.checked(client.study), rows)


def show(heading: str, lines: list[str]) -> None:
    """Print a heading and indented lines below it, on standard error."""
    errors.print(heading, markup=False, soft_wrap=True)
    for line in lines:
        errors.print(f"  - {line}", markup=False, soft_wrap=True)
