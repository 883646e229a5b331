"""Three Computes in one process, without HTTP: their node logic on real databases, and clients to play with."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from hubbub.privacy import Budget, GaussianMechanism, Population
from hubbub.protocols import SecureSum
from hubbub.randomness import Randomness
from hubbub.roles import combine_sums, contribute
from hubbub.securesum import PrivateKey, Session, encode_report, start_session
from hubbub.service.node import agreement, draw, matching
from hubbub.service.node import compute as node
from hubbub.service.node.commitments import DrawBox
from hubbub.service.node.compute import Limits, Node, NodeKeys
from hubbub.service.node.store import Store
from hubbub.service.node.trust import TrustList
from hubbub.service.node.uploads import Outcome, Upload, accept_uploads
from hubbub.service.node.vault import Vault
from hubbub.service.wire.canonical import digest, read_signed, sign_record, stamp
from hubbub.service.wire.draw import CommitmentRecord, Draw, DrawRequestRecord
from hubbub.service.wire.endings import CloseRecord
from hubbub.service.wire.merkle import Tree
from hubbub.service.wire.messages import ENROL, decode_sum, enrol_parts, token_digest, token_for
from hubbub.service.wire.records import ClientRecord, ComputeRecord, InvitationRecord, RoundRecord, StudyRecord
from hubbub.service.wire.signing import SigningKey
from hubbub.statistics import Means
from seams import planned

N, T, M = 6, 1, 3
STATISTIC = Means((8.0, 8.0))


@dataclass
class Clock:
    """A clock that tests move."""

    now: float = field(default_factory=time.time)

    def __call__(self) -> float:
        return self.now


@dataclass
class Person:
    """One client: its name, its token and its key."""

    name: str
    samples: int = 1
    token: bytes = field(default_factory=lambda: np.random.default_rng().bytes(32))
    key: SigningKey = field(default_factory=SigningKey.generate)
    sessions: dict[int, Session] = field(default_factory=dict)


@dataclass
class Stage:
    nodes: list[Node]
    analyst: SigningKey
    study: StudyRecord
    people: list[Person]
    clock: Clock

    @property
    def id(self) -> str:
        return self.study.id

    def round(self, number: int = 0, multiplier: float = 10.0, statistic=STATISTIC, **changes) -> RoundRecord:
        plan = planned(statistic, multiplier, self.study.population)
        record = RoundRecord(
            digest(self.study), number, statistic.describe(), GaussianMechanism(multiplier).describe(),
            plan.noise.grid.fraction_bits, plan.noise.sigma_client, stamp(self.clock.now + 3600), f"round {number}",
        )  # fmt: skip
        return replace(record, **changes)

    def register(self) -> None:
        self.invite()
        if self.study.draws:
            self.draw()
        for person in self.people:
            for k in self.drawn.secure_sum.recipients(person.name):
                self.enrol(k, person)

    def invite(self) -> None:
        for k, each in enumerate(self.nodes):
            node.register_study(each, sign_record(self.study, self.analyst))
            node.invite(each, self.id, self.invitation(k, self.people))

    def asked(self, people: list[Person] | None = None, key: SigningKey | None = None) -> Draw:
        """What the analyst sends for the draw: the list of these people, and the commitments of all Computes."""
        signed = tuple(draw.commitment(each, self.id) for each in self.nodes)
        values = tuple(read_signed(each, CommitmentRecord)[0].commitment for each in signed)
        tree = Tree.over({person.name: person.samples for person in people or self.people})
        request = DrawRequestRecord(digest(self.study), tree.root, len(tree.names), values)
        return Draw(sign_record(request, key or self.analyst), signed)

    def revealed(self) -> Draw:
        """The draw with what all Computes reveal."""
        asked = self.asked()
        return replace(asked, reveals=tuple(draw.reveal(each, self.id, asked.encode()) for each in self.nodes))

    def draw(self) -> None:
        data = self.revealed().encode()
        for each in self.nodes:
            draw.finish(each, self.id, data)

    @property
    def drawn(self) -> StudyRecord:
        """The study as the nodes know it, with the seed of its draw."""
        return node.known_study(self.nodes[0], self.id)[0] if self.study.secure_sum.undrawn else self.study

    def invitation(self, k: int, people: list[Person]) -> bytes:
        verify_key = self.study.computes[k].verify_key
        clients = tuple(ClientRecord(p.name, token_digest(token_for(p.token, verify_key)), p.samples) for p in people)
        return sign_record(InvitationRecord(digest(self.study), k, clients), self.analyst)

    def enrol(self, k: int, person: Person, key: SigningKey | None = None, token: bytes | None = None) -> node.Receipt:
        key = key or person.key
        shown = token_for(token or person.token, self.study.computes[k].verify_key)
        opening = self.session(k, person).opening
        signature = key.sign(
            ENROL, *enrol_parts(digest(self.study), k, person.name, person.samples, key.public(), opening)
        )
        enrolment = node.Enrolment(self.id, person.name, person.samples, shown, key.public(), opening, signature)
        (outcome,) = node.enrol(self.nodes[k], [enrolment])
        if isinstance(outcome, node.Problem):
            raise outcome
        return outcome

    def session(self, k: int, person: Person) -> Session:
        if k not in person.sessions:
            person.sessions[k] = start_session(self.study.computes[k].key, digest(self.study), person.name, k)
        return person.sessions[k]

    def open(self, record: RoundRecord) -> None:
        for each in self.nodes:
            node.open_round(each, self.id, sign_record(record, self.analyst))

    def reports(self, record: RoundRecord, person: Person) -> list[bytes]:
        """For every Compute the encoded report of the person's samples, which carry a unique mark.

        It is empty for those that do not serve the person.
        """
        role = record.checked(self.drawn)
        sessions = [self.session(k, person).short() for k in range(len(self.nodes))]
        mark = self.people.index(person) % N if person in self.people else 0
        rows = np.tile([2.0**mark / 16, -float(mark)], (person.samples, 1))
        made = contribute(role, record.number, person.name, rows, Randomness.system(), sessions=sessions)
        found = {report.compute: encode_report(report) for report in made}
        return [found.get(k, b"") for k in range(len(self.nodes))]

    def upload(self, record: RoundRecord, *bodies: bytes) -> Upload:
        return Upload(self.id, record.number, bodies)

    def accept(self, k: int, uploads: list[Upload]) -> list[Outcome]:
        """What Compute k makes of each report."""
        return [outcome for outcomes in accept_uploads(self.nodes[k], uploads) for outcome in outcomes]

    def send(self, record: RoundRecord, person: Person, computes=None) -> list[Outcome]:
        reports = self.reports(record, person)
        places = self.drawn.secure_sum.recipients(person.name) if computes is None else computes
        return [self.accept(k, [self.upload(record, reports[k])])[0] for k in places]

    def close(self, record: RoundRecord) -> None:
        data = sign_record(CloseRecord(digest(self.study), digest(record)), self.analyst)
        for each in self.nodes:
            agreement.close(each, self.id, record.number, data)

    def run_to_rosters(self, record: RoundRecord, people: list[Person] | None = None) -> None:
        """Open the round, let these people report, close it, and let the Computes exchange their rosters."""
        self.open(record)
        for person in self.people if people is None else people:
            self.send(record, person)
        self.close(record)
        self.exchange(record.number)

    def exchange(self, number: int = 0) -> None:
        for each in self.nodes:
            for other in self.nodes:
                if other is not each:
                    agreement.receive_roster(each, self.id, number, agreement.own_roster(other, self.id, number))

    def settle(self, number: int = 0) -> list[str]:
        states = [agreement.settle(each, self.id, number) for each in self.nodes]
        for each, state in zip(self.nodes, states, strict=True):
            for other, there in zip(self.nodes, states, strict=True):
                if state in ("agreed", "released") and there == "agreed" and other is not each:
                    own = matching.own_agreement(each, self.id, number)
                    matching.receive_agreement(other, self.id, number, own)
        return [agreement.settle(each, self.id, number) for each in self.nodes]

    def total(self, record: RoundRecord) -> tuple[np.ndarray, int]:
        role = record.checked(self.drawn)
        sums = [
            decode_sum(agreement.released_sum(each, self.id, record.number), compute.verify_key)
            for each, compute in zip(self.nodes, self.study.computes, strict=True)
        ]
        words, present = combine_sums(role, record.number, sums)
        return role.plan(record.number).noise.grid.decode(words), present.samples


def make_stage(
    urls: list[str],
    budget: Budget | None = None,
    people: list[Person] | None = None,
    colluders: int = 0,
    folders: list[Path] | None = None,
    secure_sum: SecureSum | None = None,
    **limits,
) -> Stage:
    clock, analyst = Clock(), SigningKey.generate()
    keys = [NodeKeys(PrivateKey.generate(), SigningKey.generate()) for _ in urls]
    settings = Limits(**{"simulation": True, "anyone": True, **limits})
    people = people or [Person(f"c{i}") for i in range(N)]
    counts = [person.samples for person in people]
    population = Population(len(people), min(T, len(people) - 2), colluders, sum(counts), max(counts))
    nodes = [
        Node(
            f"compute-{k}",
            Store(url),
            key,
            settings,
            clock,
            TrustList(anyone=settings.anyone),
            Vault(None if folders is None else folders[k] / "round-keys"),
            DrawBox(None if folders is None else folders[k] / "draws"),
        )
        for k, (url, key) in enumerate(zip(urls, keys, strict=True))
    ]
    computes = tuple(
        ComputeRecord(f"compute-{k}", f"http://compute-{k}.example:8000", key.seal.public(), key.sign.public())
        for k, key in enumerate(keys)
    )
    study = StudyRecord(
        "a test", population, computes, budget, stamp(clock.now + 86400), analyst.public(), {"a": 1}, "n",
        scheme={} if secure_sum is None else secure_sum.describe(),
    )  # fmt: skip
    return Stage(nodes, analyst, study, people, clock)
