"""`hubbub contribute`: show who would get what, ask, and only then enrol and send."""

from __future__ import annotations

import getpass
import os
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from hubbub.analyses.linear.scaled import LABELS
from hubbub.arrays import Floats
from hubbub.cli.extras import needs_service
from hubbub.cli.output import errors, print_json
from hubbub.cli.study import signed_study, web_to
from hubbub.cli.table import not_numbers, read_table
from hubbub.errors import InvalidInput, OutOfDomainWarning
from hubbub.estimators.staged import RegressionPlan

if TYPE_CHECKING:
    from hubbub.service.client.contributor import Contributor
    from hubbub.service.wire.fingerprints import Pins
    from hubbub.service.wire.records import RoundRecord, StudyRecord

TOKEN = "HUBBUB_TOKEN"
"""The environment variable that may hold the token."""
_NAMED = 10  # cells that are no number, of which a data holder is told one by one


class Expected(NamedTuple):
    """Fingerprints as they were typed."""

    study: str | None = None
    analyst: str | None = None
    computes: tuple[str, ...] = ()


def contribute(
    file: Path, data: Path, client: str, token: str | None, token_file: Path | None, expected: Expected,
    outbox: Path | None, yes: bool, follow: bool, authority: Path | None, json: bool,
) -> None:  # fmt: skip
    """Take part in this round, or in all rounds as they open. Before the yes no Compute learns the client's name."""
    with needs_service():
        from hubbub.service.client.contributor import Contributor
        from hubbub.service.client.outbox import Outbox
        from hubbub.service.wire.fingerprints import Pins
        from hubbub.service.wire.records import check_client_name
    study, pins = signed_study(file), Pins.of(*expected)
    pins.check(study)
    rows = _rows(data, list(RegressionPlan.of(study.model).columns))
    check_client_name(client)
    box = Outbox(outbox or file.with_name(f"{file.stem}.{quote(client, safe='')}.outbox"))
    person = Contributor(study, client, box, web_to(authority), rows.shape[0])
    _check_before(person, pins, yes)
    secret = _token(token, token_file)
    _check_token(person, secret, yes)
    record = person.current_round()
    _confirm(person, record, rows, pins, yes, follow)
    person.consent()
    if not box.enrolled(study.id, client):
        person.enrol(secret or _ask_token())
    done = [_send(person, record, rows)]
    while follow and record.label != LABELS[-1]:
        record = _after(person, record)
        _show("A further round of the study, which your yes covers:", _leaves(person, record, rows))
        done.append(_send(person, record, rows))
    if json:
        print_json({"study": study.id, "client": client, "rounds": done})


def _rows(data: Path, columns: list[str]) -> Floats:
    """The samples. What is no number does not stop them: staying away would tell the others that there is one."""
    table = read_table(data)
    rows = table.marked(columns)
    wrong = not_numbers(table, columns, rows)
    for place in wrong[:_NAMED]:
        errors.print(f"Take care: {place} is no finite number, so that row counts as zero.", markup=False)
    if wrong:
        errors.print(
            f"{len(wrong)} cell(s) like this: correct them if you can. This is said here only; nobody else learns it.",
            markup=False,
        )
        warnings.simplefilter("ignore", OutOfDomainWarning)  # which says the same without line and column
    return rows


def _check_before(person: Contributor, pins: Pins, yes: bool) -> None:
    """What can be refused before anybody is asked."""
    person.check_parties()
    if person.outbox.enrolled(person.study.id, person.name):
        _ = person.identity  # refuses another number of samples than was enrolled
    if yes and pins.study is None and not person.consented():
        raise InvalidInput(
            "expect_study must be given with --yes the first time, got none; add --expect-study with the fingerprint "
            "that you were told by another way, or leave out --yes and compare the fingerprints yourself"
        )


def _check_token(person: Contributor, secret: bytes | None, yes: bool) -> None:
    """Refuse to go on where the token will be missing and nobody can be asked for it."""
    enrolled = person.outbox.enrolled(person.study.id, person.name)
    if yes and secret is None and not enrolled and not sys.stdin.isatty():
        raise InvalidInput(
            f"token must be given the first time, got none; give it in a file with --token-file, or in {TOKEN}"
        )


def _confirm(person: Contributor, record: RoundRecord, rows: Floats, pins: Pins, yes: bool, follow: bool) -> None:
    """The consent screen, and the question."""
    from hubbub.service.client.contributor import promise

    study = person.study
    unlike = "as you agreed before" if person.consented() else "not compared"
    _show(f"Who would get it, in the study {study.title!r}:", _parties(study, pins, unlike))
    _show("What would leave this machine:", _leaves(person, record, rows))
    _show("What is promised:", promise(study))
    covers = "this round, and each further one of the study while this command runs" if follow else "this round alone"
    lines = [
        f"it covers {covers}",
        "so far this command has asked Computes which rounds the study has, without your name, and sent nothing else",
    ]
    if not person.consented() and pins.study is None:
        lines.append("compare what is 'not compared' above with what you were told by another way, before you agree")
    _show("Your yes:", lines)
    if not yes:
        _ask()


def _ask() -> None:
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
    """The study, the analyst and the Computes, each with its fingerprint and whether it is the one expected."""
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


def _leaves(person: Contributor, record: RoundRecord, rows: Floats) -> list[str]:
    from hubbub.service.client.contributor import what_leaves

    return what_leaves(record, record.checked(person.study), rows)


def _show(heading: str, lines: list[str]) -> None:
    errors.print(heading, markup=False, soft_wrap=True)
    for line in lines:
        errors.print(f"  - {line}", markup=False, soft_wrap=True)


def _send(person: Contributor, record: RoundRecord, rows: Floats) -> dict[str, object]:
    samples = person.contribute(record, rows)
    errors.print(f"round {record.number} ({record.label}): every Compute has confirmed", markup=False)
    return {"round": record.number, "label": record.label, "samples": samples}


def _after(person: Contributor, record: RoundRecord) -> RoundRecord:
    """The next round, once it is open."""
    while (following := person.current_round()).number == record.number:
        time.sleep(1.0)
    return following


def _token(text: str | None, file: Path | None) -> bytes | None:
    """From the arguments, a file or the environment; None where it is in none of them."""
    if text is not None and file is not None:
        raise InvalidInput("token must be given once, got --token and --token-file; leave one of them out")
    if text is not None:
        errors.print(
            "--token can be read by other users of this machine in the list of processes: rather use --token-file or "
            f"the variable {TOKEN}",
            markup=False,
            soft_wrap=True,
        )
    elif file is not None:
        try:
            text = file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "no text"
            raise InvalidInput(f"token_file must be readable, got token_file={file}: {why}; check the path") from None
    else:
        text = os.environ.get(TOKEN) or None
    return None if text is None else _read_token(text)


def _ask_token() -> bytes:
    try:
        return _read_token(getpass.getpass("Your one-time token (it is not shown): "))
    except EOFError:
        raise InvalidInput("token must be typed or given with --token-file, got the end of the input") from None


def _read_token(text: str) -> bytes:
    try:
        token = bytes.fromhex(text.strip())
    except ValueError:
        token = b""
    if len(token) != 32:
        raise InvalidInput("token must be 64 hexadecimal digits, got something else; copy it whole")
    return token
