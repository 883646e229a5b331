"""What the parties sign before a round runs: the study, its rounds, the invitations. How a round ends is in endings.py.

The study says who takes part and what may be spent. A round is a record of its own, bound to the study's digest,
since what the second round sums depends on what the first one released (docs/decisions/0010).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

from hubbub.errors import InvalidInput, invalid, whole
from hubbub.privacy import Budget, DistributedGaussian, EarlyPopulation, Population, SampledGaussianEvent
from hubbub.roles import RoundPlan, Study, check_finest, sensitivity_on_grid
from hubbub.securesum import Grid, PublicKey, check_computes
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
from hubbub.statistics import probability_of, statistic_from
from hubbub.statistics.preparation import MOST_STEPS, check_steps

VERSION, STUDY_VERSION = 1, 2
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
_MOST_MODEL_BYTES = 200_000
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
    model: Content = field(default_factory=dict)
    nonce: str = ""
    """Tells apart two studies that are otherwise the same."""
    results: Results = "public"
    """Who is served the sums: everybody who reaches a Compute, or the analyst alone."""

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
        if len(canonical(self.model)) > _MOST_MODEL_BYTES:
            raise invalid("model", f"at most {_MOST_MODEL_BYTES} bytes", len(canonical(self.model)), "shorten it")

    def content(self) -> dict[str, Any]:
        """Plain JSON values."""
        budget = None if self.budget is None else {"epsilon": self.budget.epsilon, "delta": self.budget.delta}
        return {
            "hubbub": STUDY_VERSION, "title": self.title, **self._population(),
            "computes": [compute.content() for compute in self.computes], "budget": budget,
            "deadline": self.deadline, "analyst": self.analyst.hex(), "model": dict(self.model), "nonce": self.nonce,
            "results": self.results,
        }  # fmt: skip

    def _population(self) -> dict[str, Any]:
        return {"population": {name: getattr(self.population, name) for name in _POPULATION}}

    @classmethod
    def of(cls, content: Content) -> Self:
        """The record, or InvalidInput."""
        check_version(content, STUDY_VERSION)
        population = content["population"]
        return cls._of(content, Population(**{name: population[name] for name in _POPULATION}))

    @classmethod
    def _of(cls, content: Content, population: Population) -> Self:
        budget, nonce = content["budget"], content["nonce"]
        return cls(
            title=content["title"],
            population=population,
            computes=tuple(ComputeRecord.of(compute) for compute in content["computes"]),
            budget=None if budget is None else Budget(budget["epsilon"], budget["delta"]),
            deadline=content["deadline"],
            analyst=hexed("analyst", content["analyst"], KEY_BYTES),
            model=content["model"],
            nonce=nonce if nonce == "" else text("nonce", nonce, 64),
            results=content.get("results", "public"),
        )

    def check_current(self) -> None:
        """Refuse to take part in a study that an earlier version made; `EarlyStudyRecord` does."""

    @property
    def id(self) -> str:
        """The digest in hexadecimal."""
        return digest(self).hex()

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
        content = {**super().content(), "hubbub": VERSION}
        del content["results"]
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
        return cls._of(content, early)

    def check_current(self) -> None:
        """Refuse to take part: its noise counts samples where its promise says clients."""
        raise InvalidInput(
            "study must be of version 2, got one made by hubbub 0.1, which counts samples where it promises for "
            "clients; let the analyst make it again"
        )


@dataclass(frozen=True)
class RoundRecord:
    """One round: what is summed, on which grid, with how much noise, and until when reports are taken."""

    LABEL: ClassVar[bytes] = b"hubbub round v1"
    study: bytes
    number: int
    statistic: Content
    fraction_bits: int
    noise_multiplier: float
    sigma_client: float
    deadline: str
    label: str
    steps: tuple[Content, ...] = ()
    """What becomes of a row before the statistic sees it."""

    def __post_init__(self) -> None:
        whole("round", self.number, 0, "count rounds from 0", most=MOST_ROUNDS)
        text("label", self.label, 100)
        instant("deadline", self.deadline)
        whole("steps", len(self.steps), 0, "combine some", most=MOST_STEPS)

    def content(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "hubbub": VERSION, "study": self.study.hex(), "number": self.number, "statistic": dict(self.statistic),
            "fraction_bits": self.fraction_bits, "noise_multiplier": self.noise_multiplier,
            "sigma_client": self.sigma_client, "deadline": self.deadline, "label": self.label,
            "steps": [dict(step) for step in self.steps],
        }  # fmt: skip

    @classmethod
    def of(cls, content: Content) -> Self:
        """The record, or InvalidInput."""
        check_version(content)
        return cls(
            study=hexed("study", content["study"], 32),
            number=content["number"],
            statistic=content["statistic"],
            fraction_bits=content["fraction_bits"],
            noise_multiplier=_real("noise_multiplier", content["noise_multiplier"]),
            sigma_client=_real("sigma_client", content["sigma_client"]),
            deadline=content["deadline"],
            label=content["label"],
            steps=tuple(content["steps"]),
        )

    def event(self, study: StudyRecord) -> SampledGaussianEvent:
        """What the round costs: a sample counts in it surely, or by a coin that its holder flips."""
        plan = self.checked(study).plan(self.number)
        return SampledGaussianEvent(self.noise_multiplier, probability_of(plan.statistic))

    def checked(self, study: StudyRecord) -> Study:
        """What the roles work on, after every check that a party can make on its own.

        The statistic is built from its description and says its own sensitivity; the noise must follow from that.
        """
        if self.study != digest(study):
            raise InvalidInput("round must be of this study, got another one's; take both from the same source")
        if instant("deadline", self.deadline) > instant("deadline", study.deadline):
            raise invalid("deadline", f"at most the study's, {study.deadline}", self.deadline, "choose an earlier one")
        statistic, grid = statistic_from(self.statistic), Grid(self.fraction_bits)
        sensitivity = sensitivity_on_grid(statistic, grid, study.population)
        mechanism = DistributedGaussian(self.noise_multiplier, sensitivity, study.population)
        if not math.isclose(self.sigma_client, mechanism.sigma_client, rel_tol=1e-9):
            raise invalid(
                "sigma_client", f"{mechanism.sigma_client:.9g}, which the multiplier asks for", self.sigma_client,
                "do not take part: the round misstates its noise",
            )  # fmt: skip
        if self.noise_multiplier == 0 and study.budget is not None:
            raise invalid("noise_multiplier", "positive", 0.0, "only a simulation has no noise")
        check_steps(self.steps, statistic.columns)
        plan = RoundPlan(statistic, mechanism, grid)
        if not isinstance(study, EarlyStudyRecord):
            check_finest(plan)
        return Study(study.population, study.keys, (plan,), first=self.number, agreement=digest(self))


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
