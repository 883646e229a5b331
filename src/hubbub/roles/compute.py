"""The Compute: open -> hold until the roster is agreed -> add -> release its sum once.

Every rule of a Compute stands here, once, as a step without I/O. Three callers keep the state between the steps:
`accept` and `release` below keep it in memory (a simulation), the node of the service keeps it in a database
(service/node/uploads.py and agreement.py), and the Spark job has it in a folder of stored reports
(engines/spark/reports.py). What a report must be is decided by `read_report`, `check_new` and `open_share`, and what a
roster must be by `check_roster`.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from hubbub.arrays import Words
from hubbub.errors import CannotOpen, MalformedMessage, ReportRejected, RoundRefused
from hubbub.privacy import Population
from hubbub.protocols import SecureSum
from hubbub.roles.study import Study
from hubbub.securesum import (
    Context,
    PrivateKey,
    Report,
    Session,
    Share,
    decode_report,
    decode_share,
    join_session,
    open_sealed,
    pack,
)

Roster = tuple[str, ...]
"""The clients of a round, sorted."""


class Turnout(NamedTuple):
    """Who is in a sum: how many clients, and how many samples they hold together."""

    clients: int
    samples: int


@dataclass(frozen=True)
class ComputeSum:
    """What a Compute publishes: its sum over the roster, which tells nothing without the others that are needed."""

    study: bytes
    round: int
    compute: int
    roster: bytes
    turnout: Turnout
    words: Words = field(repr=False)


@dataclass(frozen=True)
class Compute:
    """One Compute's state in one round."""

    study: Study
    round: int
    index: int
    key: PrivateKey = field(repr=False)
    held: Mapping[str, Share] = field(default_factory=dict, repr=False)
    sessions: Mapping[str, Session] = field(default_factory=dict, repr=False)
    """With clients that opened one: the next round's state begins with them."""
    released: ComputeSum | None = None
    refused: bool = False


def accept(compute: Compute, reports: Iterable[Report]) -> tuple[Compute, list[ReportRejected]]:
    """The state with every good report held, and the reasons why others were not."""
    held, sessions = dict(compute.held), dict(compute.sessions)
    rejected: list[ReportRejected] = []
    for report in reports:
        try:
            held[report.client] = _checked(compute, held, sessions, report)
        except ReportRejected as error:
            rejected.append(error)
    return replace(compute, held=held, sessions=sessions), rejected


def _checked(
    compute: Compute, held: Mapping[str, Share], sessions: MutableMapping[str, Session], report: Report
) -> Share:
    """The opened share, or ReportRejected with the first reason that applies."""
    check_address(compute, report)
    check_new(report.client, held=report.client in held, is_open=compute.released is None and not compute.refused)
    return open_share(compute, report.client, partial(_opened, compute, sessions, report))


def read_report(compute: Compute, data: bytes) -> Report:
    """A report for this study, round and Compute, from the bytes that travelled; or ReportRejected."""
    try:
        report = decode_report(data)
    except MalformedMessage as error:
        raise ReportRejected("malformed", str(error)) from None
    check_address(compute, report)
    return report


def check_address(compute: Compute, report: Report) -> None:
    """Reject a report for another study, round or Compute."""
    if report.study != compute.study.digest:
        raise ReportRejected("wrong-study", "report is for another study; check the study file's hash")
    if report.round != compute.round:
        raise ReportRejected("wrong-round", f"report must be for round {compute.round}, got round={report.round}")
    if report.compute != compute.index:
        raise ReportRejected(
            "wrong-recipient",
            f"report must be for Compute {compute.index + 1}, got one for Compute {report.compute + 1}",
        )
    if not serves(compute, report.client):
        raise ReportRejected(
            "wrong-recipient", f"client must be one that Compute {compute.index + 1} serves, got another"
        )


def check_new(client: str, *, held: bool, is_open: bool) -> None:
    """Reject a second report of a client of whom one is held, and one that comes after the round was closed."""
    if held:
        raise ReportRejected("duplicate", f"{client} has sent another report in this round already; that one counts")
    if not is_open:
        raise ReportRejected("closed", "round takes no more reports; it came too late")


def open_report(compute: Compute, report: Report) -> Share:
    """The share inside, opened with this Compute's key alone; or ReportRejected."""
    return open_share(compute, report.client, partial(_opened, compute, {}, report))


def open_share(compute: Compute, client: str, opened: Callable[[Context], bytes]) -> Share:
    """The share that this client sealed for this Compute and round; or ReportRejected.

    `opened` gives the bytes that were sealed in a context, or raises CannotOpen.
    """
    study = compute.study
    try:
        plaintext = opened(Context(study.digest, compute.round, client, compute.index))
        return decode_share(plaintext, study.secure_sum, study.plan(compute.round).dimension)
    except CannotOpen as error:
        raise ReportRejected("cannot-open", str(error)) from None
    except MalformedMessage as error:
        raise ReportRejected("malformed", str(error)) from None


def _opened(compute: Compute, sessions: MutableMapping[str, Session], report: Report, context: Context) -> bytes:
    """The share's bytes; a session is kept once a message in it could be read."""
    if not report.opening:
        return open_sealed(report.sealed, compute.key, context)
    session = sessions.get(report.client)
    if session is None or session.opening != report.opening:
        session = join_session(report.opening, compute.key, report.study, report.client, report.compute)
    plaintext = session.open(report.sealed, context)
    sessions[report.client] = session
    return plaintext


def roster_of(compute: Compute) -> Roster:
    """The clients whose share this Compute holds."""
    return tuple(sorted(compute.held))


def serves(compute: Compute, client: str) -> bool:
    """True where the study's scheme has this client send a share to this Compute."""
    return compute.index in compute.study.secure_sum.recipients(client)


def serves_all(compute: Compute) -> bool:
    """True where the study's scheme has every client send a share to every Compute."""
    return type(compute.study.secure_sum).recipients is SecureSum.recipients


def agree(study: Study, rosters: Iterable[Roster], places: Sequence[int] | None = None) -> Roster:
    """The clients that every Compute holds that serves them; `rosters` are those of all Computes, in their order.

    With `places` they are those of these Computes only, who must be as many as must sign the roster
    (`SecureSum.quorum`). Refuses a round that lacks more than D, and one whose sums would tell more than the total.
    """
    found = range(study.computes) if places is None else places
    held = {place: set(roster) for place, roster in zip(found, rosters, strict=True)}
    if len(held) < (least := study.secure_sum.quorum):
        raise RoundRefused("no-agreement", f"rosters must be of at least {least} Computes, got {len(held)}; fetch more")
    recipients = study.secure_sum.recipients
    everybody = sorted(set().union(*held.values()))
    common = tuple(c for c in everybody if all(c in held[k] for k in recipients(c) if k in held))
    check_roster(study, common)
    return common


def check_turnout(population: Population, present: int) -> None:
    """At least K - D clients (and no more than K), or the round is refused."""
    if present < (least := population.clients - population.dropouts):
        raise RoundRefused(
            "too-few-clients",
            f"clients must number at least {least} (all {population.clients} but {population.dropouts} dropouts), got "
            f"{present}; the round is refused: wait for more clients or cover more dropouts",
        )
    if present > population.clients:
        raise RoundRefused(
            "too-many-clients",
            f"clients must number at most {population.clients}, got {present}; enrol them in a new study",
        )


def release(compute: Compute, roster: Roster, samples: Mapping[str, int] | None = None) -> tuple[Compute, ComputeSum]:
    """This Compute's sum over the roster: once, and for this roster only.

    `samples` says how many each client holds, where that is not one.
    """
    digest = roster_digest(compute.study, compute.round, roster)
    if compute.released is not None:
        if compute.released.roster != digest:
            raise RoundRefused(
                "second-roster",
                "roster must be the one already released: two sums that differ by a client would reveal that client",
            )
        return compute, compute.released
    if compute.refused:
        raise RoundRefused("refused", "round was refused and its shares are deleted; start a new round")
    result = sum_over(compute, roster, samples, ((name, compute.held[name]) for name in roster if name in compute.held))
    return replace(compute, held={}, released=result), result


def check_roster(study: Study, roster: Roster) -> None:
    """Refuse a roster that names a client twice, lacks more clients than the noise allows for, or over which the sums
    would tell more than the total (`SecureSum.vetted`)."""
    check_turnout(study.population, len(set(roster)))
    if len(set(roster)) != len(roster):
        raise _named_twice()
    deque(_vetted(study, roster), maxlen=0)


def read_roster(study: Study, number: int, clients: Iterable[str]) -> tuple[int, bytes]:
    """The same check for names that come one by one, sorted, and are not kept: how many they are, and their digest."""
    count, last, found = 0, None, _roster_hash(study, number)
    for client in _vetted(study, clients):
        if client == last:
            raise _named_twice()
        found.update(pack(client.encode()))
        count, last = count + 1, client
    check_turnout(study.population, count)
    return count, found.digest()


def _vetted(study: Study, clients: Iterable[str]) -> Iterator[str]:
    """The clients, in whose sums nobody may find more than the total: not C colluding clients and a curious one."""
    return study.secure_sum.vetted(clients, study.population.colluders + 1)


def _named_twice() -> RoundRefused:
    return RoundRefused("unknown-client", "roster must hold distinct clients, got some twice; agree on it again")


def sum_over(
    compute: Compute, roster: Roster, samples: Mapping[str, int] | None, shares: Iterable[tuple[str, Share]]
) -> ComputeSum:
    """The sum of the shares of those clients of the roster that this Compute serves, each counted once.

    `shares` may come from a store, one by one.

    RoundRefused where one of them is missing or comes twice: a sum over others would not be the one agreed on.
    """
    check_roster(compute.study, roster)
    scheme, wanted = compute.study.secure_sum, {client for client in roster if serves(compute, client)}
    total = scheme.empty(compute.study.plan(compute.round).dimension)
    for client, share in shares:
        if client not in wanted:
            raise RoundRefused("unknown-client", "shares must be of clients of the roster, each once, got another")
        wanted.remove(client)
        scheme.accumulate(total, share)
    if wanted:
        raise RoundRefused(
            "unknown-client", f"roster must hold distinct clients of this Compute, {len(wanted)} are not"
        )
    return compute_sum(compute, roster_digest(compute.study, compute.round, roster), turnout_of(roster, samples), total)


def compute_sum(compute: Compute, roster: bytes, turnout: Turnout, total: Words) -> ComputeSum:
    """What this Compute publishes, given the digest of the roster and the sum over its clients."""
    return ComputeSum(compute.study.digest, compute.round, compute.index, roster, turnout, total)


def turnout_of(roster: Roster, samples: Mapping[str, int] | None = None) -> Turnout:
    """How many clients and samples are in a sum over this roster."""
    held = len(roster) if samples is None else sum(samples[client] for client in roster)
    return Turnout(len(roster), held)


def refuse(compute: Compute) -> Compute:
    """The round is given up: the shares are deleted, and nothing will ever be released for it."""
    return compute if compute.released is not None else replace(compute, held={}, refused=True)


def roster_digest(study: Study, number: int, roster: Roster) -> bytes:
    """What the Computes compare: a hash over study, round and the sorted clients."""
    found = _roster_hash(study, number)
    found.update(pack(*(client.encode() for client in sorted(roster))))
    return found.digest()


def _roster_hash(study: Study, number: int) -> hashlib._Hash:
    """The hash before the first client; each one is added with its length before it."""
    return hashlib.sha256(pack(study.digest, number.to_bytes(4, "big")))
