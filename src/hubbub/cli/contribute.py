"""`hubbub contribute`: show who would get what, ask, and only then enrol and send."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar
from urllib.parse import quote

from cyclopts import Parameter

from hubbub.cli.consent import ask, leaves, show, show_consent
from hubbub.cli.extras import needs_service
from hubbub.cli.options import Authority, Json, StudyFile, Whole
from hubbub.cli.output import errors, print_json
from hubbub.cli.study.access import signed_study, web_to
from hubbub.cli.tokens import VARIABLE, ask_token, given_token
from hubbub.errors import InvalidInput, OutOfDomainWarning

Answer = TypeVar("Answer")

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hubbub.arrays import Floats
    from hubbub.service.client.client import Client
    from hubbub.service.client.outbox import Outbox
    from hubbub.service.wire.fingerprints import Pins
    from hubbub.service.wire.records import RoundRecord, StudyRecord

_NAMED = 10  # cells that are no number, of which a data holder is told one by one


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Expected:
    """The fingerprints that the data holder was told by another way, as they were typed."""

    expect_study: Annotated[
        str | None, Parameter(help="Fingerprint of the study that you were told by another way; --yes needs it.")
    ] = None
    expect_analyst: Annotated[str | None, Parameter(help="The same of the analyst's key.")] = None
    expect_compute: Annotated[
        tuple[str, ...], Parameter(negative="", help="The same of a Compute's keys; can be given several times.")
    ] = ()

    def pins(self) -> Pins:
        """Read the fingerprints, or refuse what is none."""
        from hubbub.service.wire.fingerprints import Pins

        return Pins.of(self.expect_study, self.expect_analyst, self.expect_compute)


NOTHING_EXPECTED = Expected()


@Parameter(name="*")
@dataclass(frozen=True)
class ContributeOptions:
    """The arguments and options of `hubbub contribute`."""

    file: StudyFile
    data: Annotated[Path, Parameter(help="CSV file with the study's columns; one row is one sample.")]
    _: KW_ONLY
    client: Annotated[str, Parameter(help="The name you were invited under.")]
    token: Annotated[
        str | None,
        Parameter(help="Your one-time token, needed the first time; visible to other users of this machine."),
    ] = field(default=None, repr=False)
    token_file: Annotated[
        Path | None,
        Parameter(help="A file that holds the token [default: the variable HUBBUB_TOKEN, or you are asked]."),
    ] = None
    expected: Expected = NOTHING_EXPECTED
    trust: Annotated[
        int | None,
        Whole,
        Parameter(help="Refuse a study that gives way to so many dishonest Computes, whichever they are."),
    ] = None
    trust_cheating: Annotated[
        int | None,
        Whole,
        Parameter(
            help="How many of those may sign contradicting statements about one round, where the others only pool what "
            "they hold; 0 for none [default: all of them]."
        ),
    ] = None
    outbox: Annotated[Path | None, Parameter(help="Where sent reports are kept [default: beside the study].")] = None
    yes: Annotated[bool, Parameter(negative="", help="Send without asking.")] = False
    follow: Annotated[bool, Parameter(negative="", help="Stay for the rounds that follow.")] = False
    authority: Authority = None
    json: Json = False


def contribute(options: ContributeOptions) -> None:
    """Take part in a study: shows who would get what, asks, and only then enrols you and sends it.

    Interrupted, the same command sends the same bytes again: no sample ever gets two different noises in one round.

    For example:

        hubbub contribute study.json patients.csv --client hospital-1 --token-file token.txt
        hubbub contribute study.json patients.csv --client hospital-1 --trust 2
        hubbub contribute study.json patients.csv --client hospital-1 --trust 1 --trust-cheating 0
        hubbub contribute study.json patients.csv --client hospital-1 --yes --follow --expect-study "1f0a 99c2 ..."
    """
    run(options)


def run(options: ContributeOptions) -> None:
    """Take part in this round, or in all rounds as they open.

    Before the data holder has said yes, no Compute learns the client's name.
    """
    with needs_service():
        from hubbub.service.client.client import Client
        from hubbub.service.client.outbox import Outbox
        from hubbub.service.wire.records import check_client_name
    from hubbub.analyses import ANALYSES

    name, yes, follow = options.client, options.yes, options.follow
    study, pins = signed_study(options.file), options.expected.pins()
    pins.check(study)
    demand = _demanded(options, study)
    rows = _rows(options.data, list(ANALYSES.read(study.analysis).columns))
    check_client_name(name)
    box = Outbox(options.outbox or options.file.with_name(f"{options.file.stem}.{quote(name, safe='')}.outbox"))
    _held_to(box, study, demand)
    client = Client(study, name, box, web_to(options.authority), rows.shape[0], waits=_say_waiting)
    _check_before(client, pins, yes)
    secret = given_token(options.token, options.token_file)
    _check_token(client, secret, yes)
    record = client.current_round()
    show_consent(client, record, rows, pins, follow)
    if not yes:
        ask()
    client.consent()
    if demand is not None:
        box.keep_demand(*demand)
    if not box.enrolled(study.id, name):
        client.enrol(secret or ask_token())
    _show_serving(client)
    done = [_send(client, record, rows)]
    rounds = _rounds_of(study) if follow else 1
    while follow and _answered(client, record) < rounds:
        record = _staying(partial(_after, client, record))
        show("A further round of the study, which your yes covers:", leaves(client, record, rows))
        done.append(_staying(partial(_send, client, record, rows)))
    if options.json:
        print_json({"study": study.id, "client": name, "rounds": done})


def _demanded(options: ContributeOptions, study: StudyRecord) -> tuple[int, int] | None:
    """Read how many Computes may pool and how many may contradict themselves, and refuse a study that allows fewer."""
    from hubbub.service.client.consent import check_withstands

    pooling, contradicting = options.trust, options.trust_cheating
    if pooling is None:
        if contradicting is not None:
            raise InvalidInput("trust must be given with --trust-cheating, got none; add for example --trust 1")
        return None
    demand = pooling, pooling if contradicting is None else contradicting
    check_withstands(study, *demand)
    return demand


def _held_to(box: Outbox, study: StudyRecord, demand: tuple[int, int] | None) -> None:
    """Refuse a study that does not keep to what was demanded with an earlier yes, where nothing is demanded now."""
    from hubbub.service.client.consent import check_withstands

    if demand is None and (before := box.demand()) is not None:
        check_withstands(study, *before)


def _say_waiting(names: Sequence[str]) -> None:
    """Name the Computes that are waited for."""
    line = f"waiting for {', '.join(names)}, up to a minute or so; whoever answered has been told"
    errors.print(line, markup=False, soft_wrap=True)


def _rows(data: Path, columns: list[str]) -> Floats:
    """Read the samples.

    A cell that is no number does not stop the contribution: to stay away would tell others that there is such a cell.
    """
    from hubbub.cli.table import not_numbers, read_table

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


def _check_before(client: Client, pins: Pins, yes: bool) -> None:
    """Refuse what can be refused before anybody is asked."""
    client.check_parties()
    if client.outbox.enrolled(client.study.id, client.name):
        _ = client.identity  # refuses another number of samples than was enrolled
    if yes and pins.study is None and not client.consented():
        raise InvalidInput(
            "expect_study must be given with --yes the first time, got none; add --expect-study with the fingerprint "
            "that you were told by another way, or leave out --yes and compare the fingerprints yourself"
        )


def _check_token(client: Client, secret: bytes | None, yes: bool) -> None:
    """Refuse to go on if the token is missing and nobody can be asked for it."""
    enrolled = client.outbox.enrolled(client.study.id, client.name)
    if yes and secret is None and not enrolled and not sys.stdin.isatty():
        raise InvalidInput(
            f"token must be given the first time, got none; give it in a file with --token-file, or in {VARIABLE}"
        )


def _show_serving(client: Client) -> None:
    """Name the Computes that serve this client, where they were drawn by lot."""
    if client.study.draws:
        names = ", ".join(compute.name for compute in client.serving)
        line = f"your Computes, drawn by lot: {names}; you are on the list that was fixed before the draw"
        errors.print(line, markup=False, soft_wrap=True)


def _send(client: Client, record: RoundRecord, rows: Floats) -> dict[str, object]:
    samples = client.contribute(record, rows)
    who = "every Compute that serves you" if client.study.draws else "every Compute"
    if lost := [client.study.computes[parcel.compute].name for parcel in client.unsent(record)]:
        who += f" but {', '.join(lost)}, which the round can do without,"
    errors.print(f"round {record.number} ({record.label}): {who} has confirmed", markup=False, soft_wrap=True)
    return {"round": record.number, "label": record.label, "samples": samples}


def _staying(call: Callable[[], Answer]) -> Answer:
    """What the call gives, however long a Compute is away: who follows a study stays through that."""
    from hubbub.service.wire.web import Unreachable

    said = False
    while True:
        try:
            return call()
        except Unreachable as error:
            if not said:
                errors.print(f"waiting: {error} if this one is stopped", markup=False, soft_wrap=True)
            said = True


def _rounds_of(study: StudyRecord) -> int:
    """Return how many rounds the study has, by the plan that everybody can make from its public numbers."""
    from hubbub.cli.study.rounds import replay_of

    return replay_of(study).plan.count


def _answered(client: Client, record: RoundRecord) -> int:
    """Count the rounds up to this one, without those that were refused and run again."""
    from hubbub.service.client.rounds import rounds_at

    found = [each for each in rounds_at(client.study, client.web) if each.record.number <= record.number]
    return sum(each.state != "refused" for each in found)


def _after(client: Client, record: RoundRecord) -> RoundRecord:
    """Wait until the next round is open, and return it."""
    while (following := client.current_round()).number == record.number:
        time.sleep(1.0)
    return following
