"""What the parties sign before a round runs: the study, its rounds, the invitations. How a round ends is in endings.py.

The study says who takes part and what may be spent. A round is a record of its own, bound to the study's digest,
since what the second round sums depends on what the first one released (docs/decisions/0010).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

from hubbub.errors import InvalidInput, invalid, whole
from hubbub.grid import Grid
from hubbub.privacy import MECHANISMS, Budget, EarlyPopulation, Event, GaussianMechanism, Population
from hubbub.protocols import Mechanism, RoundNoise, SecureSum, Statistic
from hubbub.roles import RoundPlan, Study
from hubbub.securesum import SECURE_SUMS, Additive, PublicKey, check_computes
from hubbub.service.wire.canonical import (
    Content,
    canonical,
    check_signature,
    digest,
    hexed,
    instant,
    read_json,
    read_signed,
    text,
)
from hubbub.service.wire.signing import KEY_BYTES
from hubbub.statistics import statistic_from
from hubbub.statistics.preparation import MOST_STEPS, check_steps

VERSION, STUDY_VERSION, ROUND_VERSION = 1, 2, 2
"""Of records in general, and of the study and its rounds."""
MOST_CLIENTS = 10_000_000
MOST_ROUNDS = 1000
Results = Literal["public", "analyst"]
RESULTS: tuple[Results, ...] = ("public", "analyst")
MOST_NAME_BYTES = 100
"""Of a client's name in UTF-8."""
MOST_NAME_IN_ROSTER = 3 * MOST_NAME_BYTES + 3
"""Two bytes of UTF-8 become six characters of JSON, four become twelve; quotes and a comma come on top."""
MOST_ROSTER_HEAD = 1000
"""Of a signed roster, what is not names."""
_MOST_DESCRIPTION_BYTES = 200_000
_ORIGIN = re.compile(r"https?://(?:[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_])?|\[[0-9a-f:.]+\])(?::([1-9][0-9]{0,4}))?")


@dataclass(frozen=True)
class ComputeRecord:
    """One Compute of a study: where it is, what to seal to, and what verifies its signature."""

    name: str
    url: str
    key: PublicKey
    verify_key: bytes

    def content(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "name": self.name, "url": self.url, "suite": self.key.suite, "key": self.key.data.hex(),
            "verify_key": self.verify_key.hex(),
        }  # fmt: skip

    @classmethod
    def of(cls, content: Content) -> Self:
        """The record, or InvalidInput."""
        url = check_origin(content["url"])
        key = PublicKey(content["suite"], bytes.fromhex(text("key", content["key"], 5000)))
        verify_key = hexed("verify_key", content["verify_key"], KEY_BYTES)
        return cls(text("name", content["name"], 100), url, key, verify_key)


@dataclass(frozen=True)
class StudyRecord:
    """What all parties agree on before the first round; its digest is the study's name.

    Without a budget it is a simulation, which protects nobody: Computes take it only if their configuration allows.
    """

    LABEL: ClassVar[bytes] = b"hubbub study v2"
    title: str
    population: Population
    computes: tuple[ComputeRecord, ...]
    budget: Budget | None
    deadline: str
    analyst: bytes
    analysis: Content = field(default_factory=dict)
    """Which sums will be asked for, as the analysis describes itself; empty where no analysis is named."""
    nonce: str = ""
    """Tells apart two studies that are otherwise the same."""
    results: Results = "public"
    """Who is served the sums: everybody who reaches a Compute, or the analyst alone."""
    scheme: Content = field(default_factory=dict)
    """How sums are kept secret, as the secure sum describes itself; additive sharing among all Computes by default."""
    noise: str = "gaussian"
    """The law of the noise by the name of its mechanism; how much of it follows from budget, clients and analysis."""
    seed: str = field(default="", compare=False)
    """What the Computes have drawn together, where the scheme asks for it (draw.py); no part of the signed record."""

    def __post_init__(self) -> None:
        text("title", self.title, 200)
        whole("samples", self.population.n, 2, "enrol more", most=MOST_CLIENTS)
        check_computes(len(self.computes))
        for what in ("name", "url", "key", "verify_key"):
            if len({getattr(compute, what) for compute in self.computes}) != len(self.computes):
                raise InvalidInput(f"computes must be distinct, got one {what} twice; each needs its own")
        instant("deadline", self.deadline)
        if self.results not in RESULTS:
            raise invalid("results", " or ".join(RESULTS), repr(self.results)[:40], "say who may read the sums")
        if not self.scheme:
            object.__setattr__(self, "scheme", Additive(len(self.computes)).describe())
        for what, described in (("analysis", self.analysis), ("scheme", self.scheme)):
            if (size := len(canonical(described))) > _MOST_DESCRIPTION_BYTES:
                raise invalid(what, f"at most {_MOST_DESCRIPTION_BYTES} bytes", size, "shorten it")
        trust = self.secure_sum.trust()
        if not 1 <= trust.conspiring < len(self.computes):
            raise invalid(
                "scheme", "one that hides vectors from each single Compute, and not from all of them together",
                f"one that hides them from {trust.conspiring} of {len(self.computes)}", "choose another scheme",
            )  # fmt: skip
        if self.secure_sum.computes != len(self.computes):
            raise invalid(
                "scheme", f"for the study's {len(self.computes)} Computes", self.secure_sum.computes, "make it again"
            )

    def content(self) -> dict[str, Any]:
        """Plain JSON values."""
        budget = None if self.budget is None else {"epsilon": self.budget.epsilon, "delta": self.budget.delta}
        return {
            "hubbub": STUDY_VERSION, "title": self.title, **self._population(),
            "computes": [compute.content() for compute in self.computes], "budget": budget,
            "deadline": self.deadline, "analyst": self.analyst.hex(), "analysis": dict(self.analysis),
            "nonce": self.nonce, "results": self.results, "scheme": dict(self.scheme),
            "noise": self.noise,
        }  # fmt: skip

    def _population(self) -> dict[str, Any]:
        return {"population": {name: getattr(self.population, name) for name in _POPULATION}}

    @classmethod
    def of(cls, content: Content) -> Self:
        """The record, or InvalidInput."""
        check_version(content, STUDY_VERSION)
        population = Population(**{name: content["population"][name] for name in _POPULATION})
        if not content["scheme"]:
            raise invalid("scheme", "described in full", repr(content["scheme"])[:40], "name the sharing scheme")
        return cls._of(content, population, content["analysis"], content["scheme"])

    @classmethod
    def _of(cls, content: Content, population: Population, analysis: Content, scheme: Content) -> Self:
        budget, nonce = content["budget"], content["nonce"]
        return cls(
            title=content["title"],
            population=population,
            computes=tuple(ComputeRecord.of(compute) for compute in content["computes"]),
            budget=None if budget is None else Budget(budget["epsilon"], budget["delta"]),
            deadline=content["deadline"],
            analyst=hexed("analyst", content["analyst"], KEY_BYTES),
            analysis=analysis,
            nonce=nonce if nonce == "" else text("nonce", nonce, 64),
            results=content.get("results", "public"),
            scheme=scheme,
            noise=text("noise", content.get("noise", "gaussian"), 100),
        )

    def check_current(self) -> None:
        """Refuse to take part in a study that cannot run on live nodes; `EarlyStudyRecord` refuses every one."""
        if self.draws and not SECURE_SUMS.read(self.scheme).undrawn:
            raise invalid(
                "seed", "drawn by the Computes after the list of clients is fixed, on live nodes",
                repr(self.scheme.get("seed"))[:40], "leave it out: a seed must be drawn, not chosen",
            )  # fmt: skip

    @property
    def draws(self) -> bool:
        """True where each client uses a few of the Computes only, who are drawn after the list of clients is fixed."""
        return type(self.secure_sum).recipients is not SecureSum.recipients

    @property
    def id(self) -> str:
        """The digest in hexadecimal."""
        return digest(self).hex()

    @cached_property
    def secure_sum(self) -> SecureSum:
        """How sums are kept secret, with the drawn seed if there is one; InvalidInput if it is not installed here."""
        found = SECURE_SUMS.read(self.scheme)
        return found.drawn(self.seed) if self.seed else found

    @property
    def keys(self) -> tuple[PublicKey, ...]:
        """What shares are sealed to, in the order of the Computes."""
        return tuple(compute.key for compute in self.computes)


_POPULATION = ("clients", "samples", "largest", "dropouts", "colluders", "unit")


@dataclass(frozen=True)
class EarlyStudyRecord(StudyRecord):
    """A study made by hubbub 0.1. It can be read, and its result computed; nobody takes part in it any more."""

    LABEL: ClassVar[bytes] = b"hubbub study v1"

    def content(self) -> dict[str, Any]:
        """Plain JSON values, as 0.1 wrote them."""
        content = {**super().content(), "hubbub": VERSION, "model": dict(self.analysis)}
        for later in ("results", "scheme", "analysis", "noise"):
            del content[later]
        return content

    def _population(self) -> dict[str, Any]:
        assert isinstance(self.population, EarlyPopulation)
        return {
            "clients": self.population.clients, "tolerated": self.population.dropouts, "held": self.population.held,
        }  # fmt: skip

    @classmethod
    def of(cls, content: Content) -> Self:
        """The record, or InvalidInput."""
        check_version(content)
        samples, tolerated, held = content["clients"], content["tolerated"], content["held"]
        whole("held", held, 1, "make the study again")
        early = EarlyPopulation(samples, tolerated, tolerated, samples, held, theorem1=True, held=held)
        return cls._of(content, early, content["model"], {})

    def check_current(self) -> None:
        """Refuse to take part: its noise counts samples where its promise says clients."""
        raise InvalidInput(
            "study must be of version 2, got one made by hubbub 0.1, which counts samples where it promises for "
            "clients; let the analyst make it again"
        )


@dataclass(frozen=True)
class RoundRecord:
    """One round: what is summed, with which noise, on which grid, and until when reports are taken.

    Statistic and mechanism stand here as they describe themselves. Everybody builds both from their descriptions with
    what is installed on their own machine, and settles the noise of the round anew (`checked`).
    """

    LABEL: ClassVar[bytes] = b"hubbub round v2"
    study: bytes
    number: int
    statistic: Content
    mechanism: Content
    fraction_bits: int
    sigma_client: float
    """Standard deviation of what one client adds, as the analyst has worked it out; others compare."""
    deadline: str
    label: str
    steps: tuple[Content, ...] = ()
    """What becomes of a row before the statistic sees it."""

    def __post_init__(self) -> None:
        whole("round", self.number, 0, "count rounds from 0", most=MOST_ROUNDS)
        Grid(self.fraction_bits)
        text("label", self.label, 100)
        instant("deadline", self.deadline)
        whole("steps", len(self.steps), 0, "combine some", most=MOST_STEPS)

    def content(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "hubbub": ROUND_VERSION, "study": self.study.hex(), "number": self.number,
            "statistic": dict(self.statistic), "mechanism": dict(self.mechanism), "fraction_bits": self.fraction_bits,
            "sigma_client": self.sigma_client, "deadline": self.deadline, "label": self.label,
            "steps": [dict(step) for step in self.steps],
        }  # fmt: skip

    @classmethod
    def of(cls, content: Content) -> Self:
        """The record, or InvalidInput."""
        check_version(content, ROUND_VERSION)
        return cls._of(content, content["mechanism"])

    @classmethod
    def _of(cls, content: Content, mechanism: Content) -> Self:
        return cls(
            study=hexed("study", content["study"], 32),
            number=content["number"],
            statistic=content["statistic"],
            mechanism=mechanism,
            fraction_bits=content["fraction_bits"],
            sigma_client=_real("sigma_client", content["sigma_client"]),
            deadline=content["deadline"],
            label=content["label"],
            steps=tuple(content["steps"]),
        )

    def event(self, study: StudyRecord) -> Event:
        """What the round costs: the mechanism's event where a sample counts with the statistic's probability."""
        return self.checked(study).plan(self.number).event

    def checked(self, study: StudyRecord) -> Study:
        """What the roles work on, after every check that a party can make on its own.

        The statistic is built from its description and says its own sensitivity; the noise must follow from that.
        """
        self._check_place(study)
        statistic, mechanism = statistic_from(self.statistic), MECHANISMS.read(self.mechanism)
        if (law := mechanism.describe()["mechanism"]) != study.noise:
            raise invalid("mechanism", f"{study.noise!r}, as the study says", repr(law), "do not take part")
        noise = self._settled(mechanism, statistic, study.population)
        if not math.isclose(self.sigma_client, noise.sigma_client, rel_tol=1e-9):
            raise invalid(
                "sigma_client", f"{noise.sigma_client:.9g}, which the multiplier asks for", self.sigma_client,
                "do not take part: the round misstates its noise",
            )  # fmt: skip
        if noise.sigma_client == 0 and study.budget is not None:
            raise invalid("sigma_client", "positive", 0.0, "only a simulation has no noise")
        check_steps(self.steps, statistic.columns)
        return self._role(study, RoundPlan(statistic, noise, mechanism, self.steps))

    def _check_place(self, study: StudyRecord) -> None:
        """Refuse a study that is not this round's, and a deadline after the study's."""
        if self.study != digest(study):
            raise InvalidInput("round must be of this study, got another one's; take both from the same source")
        if instant("deadline", self.deadline) > instant("deadline", study.deadline):
            raise invalid("deadline", f"at most the study's, {study.deadline}", self.deadline, "choose an earlier one")

    def _settled(self, mechanism: Mechanism, statistic: Statistic, population: Population) -> RoundNoise:
        """The noise of the round on its grid, worked out here; refuses a grid that is not safe."""
        return mechanism.settled(statistic, population, self.fraction_bits)

    def _role(self, study: StudyRecord, plan: RoundPlan) -> Study:
        return Study(study.population, study.keys, (plan,), self.number, digest(self), study.secure_sum)


@dataclass(frozen=True)
class EarlyRoundRecord(RoundRecord):
    """A round of a study made by hubbub 0.1, which knew Gaussian noise and additive sharing only."""

    LABEL: ClassVar[bytes] = b"hubbub round v1"

    def content(self) -> dict[str, Any]:
        """Plain JSON values, as 0.1 wrote them."""
        multiplier = self.mechanism["noise_multiplier"]
        content = {**super().content(), "hubbub": VERSION, "noise_multiplier": multiplier}
        del content["mechanism"]
        return content

    @classmethod
    def of(cls, content: Content) -> Self:
        """The record, or InvalidInput."""
        check_version(content)
        return cls._of(content, GaussianMechanism(_real("noise_multiplier", content["noise_multiplier"])).describe())

    def _check_place(self, study: StudyRecord) -> None:
        """A study of hubbub 0.1 alone has such rounds."""
        if not isinstance(study, EarlyStudyRecord):
            raise invalid("hubbub", f"version {ROUND_VERSION}", VERSION, "let the analyst make the round again")
        super()._check_place(study)

    def _settled(self, mechanism: Mechanism, statistic: Statistic, population: Population) -> RoundNoise:
        """On the grid that 0.1 chose, which may be finer than is taken for safe today."""
        assert isinstance(mechanism, GaussianMechanism)  # as `of` has made it
        return mechanism.on(statistic, population, Grid(self.fraction_bits))

    def _role(self, study: StudyRecord, plan: RoundPlan) -> Study:
        """As 0.1 hashed it: without the steps, which the digest of this record covers, and without a scheme."""
        return Study(study.population, study.keys, (replace(plan, steps=()),), self.number, digest(self))


@dataclass(frozen=True)
class ClientRecord:
    """One who may enrol: its name, the digest of its one-time token at one Compute, and how many samples it holds."""

    client: str
    token: bytes
    samples: int = 1

    def content(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"client": self.client, "token": self.token.hex(), "samples": self.samples}

    @classmethod
    def of(cls, content: Content) -> Self:
        """The record, or InvalidInput."""
        client = check_client_name(content["client"])
        samples = whole("samples", content["samples"], 1, "a client holds one at least", most=MOST_CLIENTS)
        return cls(client, hexed("token", content["token"], 32), samples)


@dataclass(frozen=True)
class InvitationRecord:
    """Those whom the analyst invites at one Compute."""

    LABEL: ClassVar[bytes] = b"hubbub invitation v1"
    study: bytes
    compute: int
    clients: tuple[ClientRecord, ...]

    def content(self) -> dict[str, Any]:
        """Plain JSON values."""
        clients = [client.content() for client in self.clients]
        return {"hubbub": VERSION, "study": self.study.hex(), "compute": self.compute, "clients": clients}

    @classmethod
    def of(cls, content: Content) -> Self:
        """The record, or InvalidInput."""
        check_version(content)
        clients = tuple(ClientRecord.of(client) for client in content["clients"])
        return cls(
            hexed("study", content["study"], 32), whole("compute", content["compute"], 0, "count from 0"), clients
        )


def read_study(data: bytes) -> StudyRecord:
    """A study that its own analyst signed; one made by hubbub 0.1 is read as it was made."""
    record, signature = read_signed(data, _study_kind(data))
    check_signature(record, signature, record.analyst, "analyst")
    return record


def read_round(data: bytes, study: StudyRecord) -> tuple[RoundRecord, bytes]:
    """A round of this study and its signature, which is still to be checked."""
    return read_signed(data, EarlyRoundRecord if isinstance(study, EarlyStudyRecord) else RoundRecord)


def _study_kind(data: bytes) -> type[StudyRecord]:
    parsed = read_json(data)
    record = parsed.get("record") if isinstance(parsed, dict) else None
    early = isinstance(record, dict) and record.get("hubbub") == VERSION
    return EarlyStudyRecord if early else StudyRecord


def check_origin(value: object) -> str:
    """Scheme, host in lower case, and perhaps a port: nothing that could lead a request elsewhere on that host."""
    url = text("url", value, 300)
    found = _ORIGIN.fullmatch(url)
    if found is None or int(found[1] or 1) > 65535:
        raise invalid(
            "url", "such as https://compute.example.org:8000", url,
            "give scheme, host in lower case and port, and nothing before or after them",
        )  # fmt: skip
    return url


def check_client_name(name: object) -> str:
    """What a client is called in rosters."""
    return text("client", name, MOST_NAME_BYTES)


def check_version(content: Content, version: int = VERSION) -> None:
    """Refuse a record of another version than this one reads."""
    if content["hubbub"] != version or isinstance(content["hubbub"], bool):
        raise invalid("hubbub", f"version {version}", repr(content["hubbub"])[:40], "update hubbub")


def _real(name: str, value: object) -> float:
    if not isinstance(value, float) or not math.isfinite(value):
        raise invalid(name, "a finite number with a decimal point", repr(value)[:80], "make the record again")
    return value
