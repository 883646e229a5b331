"""The client library: enrol once, then contribute to each round. Needs numpy, cryptography and httpx only.

study = read_study(Path("study.json").read_bytes())
client = Client(study, "hospital-7", Outbox("outbox.db"), Web.open())
client.enrol(token)
client.contribute(client.current_round(), rows)
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

import numpy as np

from hubbub.arrays import Floats, number_rows
from hubbub.errors import HubbubError, InvalidInput, ReportRejected, invalid, whole
from hubbub.privacy import Event, fits
from hubbub.protocols import SecureSum, Trust
from hubbub.randomness import Randomness
from hubbub.roles import Study, contribute
from hubbub.securesum import Session, encode_report, join_reports, start_session
from hubbub.service.client.draw import found_draw
from hubbub.service.client.outbox import Identity, Outbox, Parcel
from hubbub.service.wire.canonical import canonical, check_signature, digest, read_json
from hubbub.service.wire.draw import drawn_study
from hubbub.service.wire.fingerprints import analyst_fingerprint, compute_fingerprint
from hubbub.service.wire.messages import ENROL, REPORT_TYPE, enrol_parts, token_for
from hubbub.service.wire.problems import Problem, stated
from hubbub.service.wire.records import ComputeRecord, RoundRecord, StudyRecord, check_client_name, read_round
from hubbub.service.wire.refusals import for_good, unsigned
from hubbub.service.wire.web import MOST_LIST, Unreachable, Web
from hubbub.statistics import bounded_vectors

_BRIEFLY = 5.0  # seconds that a Compute is waited for where others know the same
# the study or the round is not there, or not any more, or this client is not: all that may be otherwise at others
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
        brief, away = self.web.briefly(_BRIEFLY), dict[int, HubbubError]()
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
    """Send until it is confirmed; nothing but a clear refusal or silence ends this early."""
    there = study.computes[compute]
    url = f"{there.url}/v1/studies/{quote(study.id)}/rounds/{record.number}/reports"
    try:
        return web.post(url, join_reports(reports), kind=REPORT_TYPE).content
    except Problem as problem:
        raise _plainly(problem, there.name) from None


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


def current_round(study: StudyRecord, web: Web) -> RoundRecord:
    """The latest round of the study, checked against the analyst's signature."""
    found = rounds_at(study, web)
    if not found:
        raise Problem("not-found", "study must have a round, got none yet; wait until the analyst opens one")
    return found[-1].record


@dataclass(frozen=True)
class RoundStatus:
    """A round, as the analyst signed it, and how it stands at a Compute."""

    record: RoundRecord
    signed: bytes = field(repr=False)
    state: str
    reports: int
    """Clients of whom it holds a report."""


def rounds_at(study: StudyRecord, web: Web) -> list[RoundStatus]:
    """All rounds, from the first Compute that answers; or, where some may be behind the others, from the fullest.

    One that does not know the study, or answers nonsense, is passed over where others know better.
    """
    failed, found = list[HubbubError](), list[list[RoundStatus]]()
    spare = study.secure_sum.quorum < len(study.computes)
    for patient in (web.briefly(_BRIEFLY), web):
        for compute in study.computes:
            try:
                found.append(rounds_of(study, compute, patient))
            except HubbubError as error:
                failed.append(error)
            if found and not spare:
                break
        if found or spare or not all(isinstance(error, Unreachable) for error in failed):
            break
    if not found:
        raise next((error for error in failed if not isinstance(error, Unreachable)), failed[0])
    return max(found, key=len)


def rounds_of(study: StudyRecord, compute: ComputeRecord, web: Web) -> list[RoundStatus]:
    """All rounds that one Compute knows; every signature is checked."""
    reply = read_json(web.get(f"{compute.url}/v1/studies/{study.id}/rounds", most=MOST_LIST).content)
    try:
        entries = [(entry["record"].encode(), str(entry["state"]), int(entry["reports"])) for entry in reply["rounds"]]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidInput(
            f"{compute.name} must answer with the study's rounds, got something else; ask its operator"
        ) from None
    found = []
    for signed, state, reports in entries:
        record, signature = read_round(signed, study)
        check_signature(record, signature, study.analyst, "analyst")
        found.append(RoundStatus(record, signed, state, reports))
    if [each.record.number for each in found] != list(range(len(found))):
        raise InvalidInput(f"{compute.name} must list every round once and in order, got others; ask its operator")
    return found


def promise(study: StudyRecord) -> list[str]:
    """What the study promises to whoever takes part, against whom, and until when."""
    if study.budget is None:
        return ["nothing: the study has no budget, so it is a simulation, which protects nobody"]
    people = study.population
    unit = "each sample" if people.unit == "sample" else "all samples of a client together"
    others = f"up to {people.colluders} clients that collude, " if people.colluders else ""
    absent = f", whichever {people.dropouts} of the {people.clients} clients stay away" if people.dropouts else ""
    conspiring, beyond = _conspiring(study.secure_sum.trust())
    return [
        f"for {unit}, all rounds of the study together are {study.budget}-differentially private, also against "
        f"the analyst together with {others}one more client and {conspiring} above that pool what they hold{absent}",
        "clients that the analyst controls count among those who collude; if more do, less is promised",
        f"this rests on trust that {study.secure_sum.trust().sentence}; if {beyond} conspire, a sample is covered by "
        "nothing but the noise stated above",
        *([beyond_that] if (beyond_that := study.secure_sum.trust().beyond(people.clients)) else []),
        "this machine keeps its own account: it takes part in no round with which all its rounds would exceed that",
        f"the noisy sums are {_READERS[study.results]}",
        f"the study ends at {study.deadline}",
    ]


def withstands(scheme: SecureSum) -> tuple[int, int]:
    """How many Computes may pool what they hold, and how many may sign contradicting statements about one round.

    Two quorums share 2q - M Computes, one of whom must be honest: so one fewer may contradict themselves.
    """
    return scheme.trust().conspiring, 2 * scheme.quorum - scheme.computes - 1


def check_withstands(study: StudyRecord, pooling: int, contradicting: int) -> None:
    """Refuse a study that gives way to so many Computes that pool what they hold, or that contradict themselves."""
    computes, (may_pool, may_contradict) = len(study.computes), withstands(study.secure_sum)
    whole("trust", pooling, 1, "say how many Computes may pool what they hold", most=computes - 1)
    whole("trust_cheating", contradicting, 0, "say how many may contradict themselves", most=computes - 1)
    what = f"of its {computes} Computes (scheme {study.scheme.get('scheme')})"
    if may_pool < pooling:
        bound = f"at most {may_pool}, as more {what} would read vectors if they pooled what they hold"
        raise invalid("trust", bound, pooling, "do not take part, or accept less")
    if may_contradict < contradicting:
        raise invalid(
            "trust_cheating", f"at most {may_contradict}, as more {what} that sign contradicting statements about one "
            "round could have several totals released", contradicting,
            f"do not take part, or, if you take it that no more do, give --trust-cheating {may_contradict}",
        )  # fmt: skip


def _conspiring(trust: Trust) -> tuple[str, str]:
    """Which Computes may conspire, and which must not, in words."""
    if trust.conspiring == trust.computes - 1:
        return f"all but one of the {trust.computes} Computes", "all these Computes"
    return f"any {trust.conspiring} of the {trust.computes} Computes", f"more than {trust.conspiring} of these Computes"


_READERS = {
    "public": "public: each Compute serves its own to whoever asks",
    "analyst": "for the analyst, who may pass them on: each Compute serves its own to nobody else; but a later round's "
    "record, which all parties see, may show something of the earlier sums",
}


def what_leaves(record: RoundRecord, role: Study, rows: Floats) -> list[str]:
    """What a data holder is shown first: what is computed, how it is hidden, and how much is sent."""
    plan = role.plan(record.number)
    vectors, _ = bounded_vectors(plan.statistic, rows[:1000], plan.steps)
    sigma, samples = plan.noise.sigma_client, rows.shape[0]
    together = "" if samples == 1 else f" of their sum over the {samples} samples"
    often_none = (
        "a share of Laplace noise is often zero where clients are many: what protects is the sum over all of them, and "
        f"that no more than {role.secure_sum.trust().conspiring} of the Computes pool what they hold"
    )
    return [
        f"round {record.number} ({record.label}): {plan.statistic.describe()['statistic']}, {plan.dimension} number(s) "
        f"from each of {samples} sample(s), none larger than {plan.statistic.magnitude:.4g}",
        f"before they leave, a share of {plan.noise.law(1).law} noise of standard deviation {sigma:.4g} (mechanism "
        f"{plan.mechanism.describe()['mechanism']}) is added to every number{together}; one sample's "
        f"numbers have a mean square of {float(np.mean(np.square(vectors))):.4g} beside {sigma**2:.4g} of the noise",
        f"the result is split into {_shares(role.secure_sum)}, any {role.secure_sum.trust().conspiring} of which "
        f"together tell nothing: {_sizes(role.secure_sum, plan.dimension)}, sealed with {role.keys[0].suite}",
        *([] if plan.noise.law(1).shape is None else [often_none]),
        "the columns themselves are not sent, in no form",
        *([] if plan.mechanism.reservation is None else [plan.mechanism.reservation]),
    ]


def _shares(scheme: SecureSum) -> str:
    """How many shares there are, and for whom where that is not everybody."""
    count = len(scheme.shard(np.zeros(1, dtype=np.uint64), "nobody", Randomness.system()))
    if count == scheme.computes:
        return f"{count} shares"
    return f"{count} shares for {count} of the {scheme.computes} Computes, drawn by lot when all clients were invited"


def _sizes(scheme: SecureSum, dimension: int) -> str:
    """How many bytes go to each Compute, from the shares of a vector of zeros."""
    shares = scheme.shard(np.zeros(dimension, dtype=np.uint64), "nobody", Randomness.system())
    sizes = Counter(len(share.body) for share in shares)
    most = max(sizes, key=lambda size: sizes[size])
    others = [size for size in sizes.elements() if size != most]
    if not others:
        return f"{most} bytes to each Compute"
    if len(others) == 1:
        return f"{others[0]} bytes to one Compute, {most} to each other one"
    return f"at most {max(sizes)} bytes to each Compute"
