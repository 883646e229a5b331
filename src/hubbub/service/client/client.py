"""The client library: enrol once, then contribute to each round. Needs numpy, cryptography and httpx only.

study = read_study(Path("study.json").read_bytes())
client = Client(study, "hospital-7", Outbox("outbox.db"), Web.open())
client.enrol(token)
client.contribute(client.current_round(), rows)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from hubbub.arrays import Floats, number_rows
from hubbub.errors import HubbubError, InvalidInput, ReportRejected, invalid
from hubbub.privacy import Event, fits
from hubbub.randomness import Randomness
from hubbub.roles import Study, contribute
from hubbub.securesum import Session, encode_report, join_reports, start_session
from hubbub.service.client.draw import found_draw
from hubbub.service.client.outbox import Identity, Outbox, Parcel
from hubbub.service.client.rounds import BRIEFLY, current_round, rounds_at
from hubbub.service.wire.canonical import canonical, digest, read_json
from hubbub.service.wire.draw import drawn_study
from hubbub.service.wire.fingerprints import analyst_fingerprint, compute_fingerprint
from hubbub.service.wire.messages import ENROL, REPORT_TYPE, enrol_parts, token_for
from hubbub.service.wire.problems import Problem, stated
from hubbub.service.wire.records import ComputeRecord, RoundRecord, StudyRecord, check_client_name
from hubbub.service.wire.refusals import for_good, unsigned
from hubbub.service.wire.web import Unreachable, Web

# the study or the round is not there, or not any more, or this client is not: all that may be otherwise at others
_OPENING = 10.0  # seconds in which a round that is open at one Compute is opened at the others
_LOST = ("not-found", "closed", "round-refused", "unknown-client")
BATCH = 100
"""Reports in one request of `send_together`."""


@dataclass(frozen=True)
class Client:
    """One client in one study: a person with one sample, or a party that holds several."""

    study: StudyRecord
    name: str
    outbox: Outbox = field(repr=False)
    web: Web = field(repr=False)
    samples: int = 1
    randomness: Randomness = field(default_factory=Randomness.system, repr=False)
    simulation: bool = False
    """Take part in a study without a budget, which protects nobody."""
    waits: Callable[[Sequence[str]], None] | None = field(default=None, repr=False)
    """Told the names of Computes that do not answer, before they are waited for."""

    def __post_init__(self) -> None:
        check_client_name(self.name)
        self.study.check_current()
        if self.study.budget is None and not self.simulation:
            raise InvalidInput("study must have a budget, got a simulation, which protects nobody; do not take part")

    def check_parties(self) -> None:
        """Refuse another analyst or other Computes than those that were first agreed to in this outbox."""
        self.outbox.check_parties(*self._parties())

    def consent(self) -> None:
        """Remember that the data holder has agreed to this study and its parties."""
        self.outbox.agree(self.study.id, self.name, *self._parties())

    def consented(self) -> bool:
        """True where the data holder has agreed to this very study before."""
        return self.outbox.agreed(self.study.id, self.name)

    def _parties(self) -> tuple[str, list[str]]:
        return analyst_fingerprint(self.study.analyst), [compute_fingerprint(each) for each in self.study.computes]

    @property
    def identity(self) -> Identity:
        """What the client signs with and seals in; kept in the outbox before it is used."""
        return self.outbox.identity(self.study.id, self.name, self.samples, self._start)

    @property
    def _serving(self) -> Sequence[int]:
        """The places of the Computes that serve this client, in order."""
        return self.drawn.secure_sum.recipients(self.name)

    @property
    def _spare(self) -> int:
        """How many Computes a round can do without: M - q, none with additive sharing."""
        return len(self.study.computes) - self.study.secure_sum.quorum

    @property
    def serving(self) -> tuple[ComputeRecord, ...]:
        """The Computes that serve this client, once they are drawn."""
        return tuple(self.study.computes[place] for place in self._serving)

    def _start(self) -> list[Session]:
        study, computes = digest(self.study), self.study.computes
        return [start_session(computes[place].key, study, self.name, place) for place in self._serving]

    @property
    def drawn(self) -> StudyRecord:
        """The study with the seed of its draw, from the outbox; the study as it is where nothing is to be drawn."""
        if not self.study.secure_sum.undrawn:
            return self.study
        if (draw := self.outbox.draw(self.study.id, self.name)) is None:
            raise InvalidInput("draw must be checked before reports are made, got none; enrol first")
        return drawn_study(self.study, draw)

    def check_draw(self) -> None:
        """See who serves this client, and that nobody could choose that; done once, and kept in the outbox.

        The draw must be signed by all Computes, and the client must be on the list of names that it was made for.
        """
        if self.study.secure_sum.undrawn and self.outbox.draw(self.study.id, self.name) is None:
            draw = found_draw(self.study, self.name, self.samples, self.web)
            self.outbox.keep_draw(self.study.id, self.name, draw)

    def enrol(self, token: bytes) -> None:
        """Bind this client's key and sessions to its name at every Compute that serves it, with its one-time token.

        Where a round can do without some Computes, as many may fail to answer, or not know the study any more; the same
        call again tries them again.
        """
        self.check_draw()
        me = self.identity
        if self.outbox.enrolled(self.study.id, self.name):
            return
        key, study, sessions = me.key, digest(self.study), dict(zip(self._serving, me.sessions, strict=True))

        def tell(position: int, web: Web) -> None:
            compute, session = self.study.computes[position], sessions[position]
            parts = enrol_parts(study, position, self.name, self.samples, key.public(), session.opening)
            content = {
                "client": self.name, "samples": self.samples, "token": token_for(token, compute.verify_key).hex(),
                "key": key.public().hex(), "opening": session.opening.hex(), "signature": key.sign(ENROL, *parts).hex(),
            }  # fmt: skip
            web.post(f"{compute.url}/v1/studies/{self.study.id}/enrolments", canonical(content))

        if not self._tell(sessions, tell):
            self.outbox.mark_enrolled(self.study.id, self.name)

    def _tell(
        self, places: Iterable[int], tell: Callable[[int, Web], None], without: Collection[int] = ()
    ) -> dict[int, HubbubError]:
        """Tell something to these Computes, first to those that answer at once. Returns with whom it failed, and why.

        Silent ones are waited for together, until patience is over, where the round cannot do without them; those that
        answer that they are busy always are. Raises where more fail than the round can do without, and, at once, where
        one refuses for a reason that is the same everywhere.
        """
        brief, away = self.web.briefly(BRIEFLY), dict[int, HubbubError]()
        for place in places:
            if place in without:
                name = self.study.computes[place].name
                away[place] = Unreachable(f"{name} is away; run the same command again")
            elif error := _lost(tell, place, brief):
                away[place] = error
            over = [error for error in away.values() if not isinstance(error, Unreachable)]
            if len(over) > self._spare:
                raise over[0]
        self._wait_for(away, tell, without)
        if len(away) > self._spare:
            raise next(iter(away.values()))
        return away

    def _wait_for(
        self, away: dict[int, HubbubError], tell: Callable[[int, Web], None], without: Collection[int]
    ) -> None:
        """Tell those who were silent, too, if the round cannot do without them or they said that they were busy."""
        silent = {p: e for p, e in away.items() if isinstance(e, Unreachable) and p not in without}
        needed = [place for place, error in silent.items() if error.busy or len(away) > self._spare]
        if needed and self.waits is not None:
            self.waits([self.study.computes[place].name for place in needed])
        latest = time.monotonic() + self.web.patience.total
        for place in needed:
            if not silent[place].busy and len(away) <= self._spare:
                continue
            error = _lost(tell, place, self.web.briefly(max(0.0, round(latest - time.monotonic(), 1))))
            if error is None:
                del away[place]
            else:
                away[place] = error

    def current_round(self) -> RoundRecord:
        """The latest round that the analyst signed, from the first Compute that answers."""
        return current_round(self.study, self.web)

    def contribute(self, record: RoundRecord, rows: Floats, sent: Callable[[int], None] | None = None) -> int:
        """Check the round, make the reports (or take those made before), store them, send them. Returns how many.

        Raises ReportRejected where a Compute says that they do not count (it may still be that all of them count them),
        and Unreachable where one did not answer: then the same call again sends the same bytes.
        """
        self.make(record, rows)
        return self.send(record, sent)

    def make(self, record: RoundRecord, rows: Floats) -> None:
        """Check the round, make the reports and store them; nothing is done where that has been done before."""
        role, mark = record.checked(self.drawn), digest(record)
        if not self.outbox.parcels(self.study.id, self.name, record.number, mark):
            event = record.event(self.study)
            self._check_budget(event)
            parcels = self._make(record, role, number_rows("rows", rows))
            self.outbox.put(self.study.id, self.name, record.number, mark, event, parcels)

    def send(
        self, record: RoundRecord, sent: Callable[[int], None] | None = None, without: Collection[int] = ()
    ) -> int:
        """Send what is stored for this round and not yet confirmed. Returns the number of samples.

        Computes in `without` (counted from 0) are not tried, as nobody is there. Where a round can do without some
        Computes, as many may fail to answer, or answer that the round has ended there; the same call again tries them
        again. If one of these is on the agreed roster all the same, this client is left out, as whoever is missing.
        """
        parcels = {parcel.compute: parcel for parcel in self.unsent(record)}

        def tell(place: int, web: Web) -> None:
            _post(self.study, web, record, place, [parcels[place].body])
            self.outbox.mark_sent(self.study.id, self.name, record.number, parcels[place])
            if sent is not None:
                sent(place)

        self._tell(parcels, tell, without)
        return self.samples

    def unsent(self, record: RoundRecord) -> list[Parcel]:
        """What is stored for this round and no Compute has confirmed."""
        stored = self.outbox.parcels(self.study.id, self.name, record.number, digest(record))
        return [parcel for parcel in stored if not parcel.sent]

    def _check_budget(self, event: Event) -> None:
        """A client keeps its own account: the study's budget must cover all rounds it takes part in.

        A round costs nothing where every Compute has signed its refusal, since an honest one signs only where the total
        cannot be formed any more. What Computes merely say gives nothing back.
        """
        before = self.outbox.spent(self.study.id, self.name)
        if self._affordable([*before.values(), event]):
            return
        refused = self._refused()
        events = [event, *(spent for number, spent in before.items() if number not in refused)]
        if not self._affordable(events):
            raise InvalidInput(
                f"budget must cover all rounds, got {self.study.budget} for {len(events)} which spend more; "
                "do not take part in this one"
            )

    def _refused(self) -> set[int]:
        """The rounds that this client answered and of which it now holds the signed refusals of all Computes."""
        answered = self.outbox.answered(self.study.id, self.name)
        said = {each.record.number for each in rounds_at(self.study, self.web) if each.state == "refused"}
        return {
            number for number, mark in answered.items()
            if number in said and for_good(self.study, unsigned(self.study, number, mark, self.web))
        }  # fmt: skip

    def _affordable(self, events: Sequence[Event]) -> bool:
        return self.study.budget is None or fits(events, self.study.budget)

    def _make(self, record: RoundRecord, role: Study, rows: Floats) -> list[Parcel]:
        """One sealed report for every Compute that serves this client, of all samples together."""
        if rows.shape[0] != self.samples:
            raise invalid("rows", f"{self.samples}, as {self.name} was invited", rows.shape[0], "check the file")
        sessions = {
            place: session.short() for place, session in zip(self._serving, self.identity.sessions, strict=True)
        }
        reports = contribute(role, record.number, self.name, rows, self.randomness, sessions=sessions)
        return [Parcel(report.compute, encode_report(report)) for report in reports]


def _lost(tell: Callable[[int, Web], None], place: int, web: Web) -> Unreachable | Problem | ReportRejected | None:
    """Why this Compute cannot be told, where others may still be; raises what they would say as well."""
    try:
        tell(place, web)
    except Unreachable as error:
        return error
    except Problem as error:
        if error.code not in _LOST:
            raise
        return error
    except ReportRejected as error:
        if error.reason not in _LOST:
            raise
        return error
    return None


def send_together(clients: Sequence[Client], record: RoundRecord, without: Collection[int] = ()) -> None:
    """Send the stored reports of clients of one study, in batches: for whoever relays those of many.

    Computes in `without` (counted from 0) are not tried.

    A report that a Compute refuses raises, once all others are sent; what is confirmed is not sent again.
    """
    waiting: dict[int, list[tuple[Client, Parcel]]] = {}
    for client in clients:
        for parcel in client.unsent(record):
            waiting.setdefault(parcel.compute, []).append((client, parcel))
    refused: list[Exception] = []
    for compute, parcels in waiting.items():
        if compute in without:
            continue
        for start in range(0, len(parcels), BATCH):
            refused += _send_batch(compute, parcels[start : start + BATCH], record)
    if refused:
        raise refused[0]


def _send_batch(compute: int, parcels: Sequence[tuple[Client, Parcel]], record: RoundRecord) -> list[Exception]:
    """Why some of them do not count."""
    study, web = parcels[0][0].study, parcels[0][0].web
    reply = _post(study, web, record, compute, [parcel.body for _, parcel in parcels])
    refused = _refusals(reply, len(parcels))
    for place, (client, parcel) in enumerate(parcels):
        if place not in refused:
            client.outbox.mark_sent(study.id, client.name, record.number, parcel)
    return [_plainly(problem, study.computes[compute].name) for problem in refused.values()]


def _post(study: StudyRecord, web: Web, record: RoundRecord, compute: int, reports: Sequence[bytes]) -> bytes:
    """Send until it is confirmed; nothing but a clear refusal or silence ends this early.

    The analyst opens a signed round at one Compute after the other. Who learned of it from the first one may be here
    before it is open: that is waited for.
    """
    there, deadline = study.computes[compute], time.monotonic() + _OPENING
    url = f"{there.url}/v1/studies/{quote(study.id)}/rounds/{record.number}/reports"
    while True:
        try:
            return web.post(url, join_reports(reports), kind=REPORT_TYPE).content
        except Problem as problem:
            if problem.code != "not-found" or time.monotonic() > deadline:
                raise _plainly(problem, there.name) from None
        time.sleep(0.2)


def _refusals(reply: bytes, reports: int) -> dict[int, Problem]:
    """Which reports of a batch a Compute has refused, by their places."""
    if reports == 1:
        return {}
    try:
        found = {int(each["report"]): stated(each["code"], each["detail"]) for each in read_json(reply)["refused"]}
    except (KeyError, TypeError, ValueError):
        raise InvalidInput("reply to a batch must list what was refused, got another; update hubbub") from None
    return found


def _plainly(problem: Problem, compute: str) -> Exception:
    """What the user is told when a Compute refuses."""
    if problem.code == "round-refused":
        return ReportRejected(
            problem.code,
            f"{compute} says: {problem}; by its word your report is deleted there. This round counts in your own "
            "account until enough Computes have signed their refusal: all of them, or a quorum where fewer must agree",
        )
    if problem.code == "closed":
        return ReportRejected("closed", f"{compute} says: {problem}; your report is not counted in this round")
    return ReportRejected(problem.code, f"{compute} does not take the report ({problem.code}): {problem}")
