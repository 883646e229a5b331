"""The analyst's side: sign a study, invite clients, open and close rounds, add up what the Computes release."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from hubbub.errors import InvalidInput, PerhapsReleased, RoundRefused
from hubbub.privacy import Budget, Population, Release
from hubbub.protocols import RoundSpec, SecureSum, Setting
from hubbub.randomness import Randomness
from hubbub.roles import combine_sums, decode_release, settle_round
from hubbub.securesum import PublicKey
from hubbub.service.client.client import RoundStatus, rounds_of
from hubbub.service.wire.canonical import digest, hexed, read_json, sign_record, stamp
from hubbub.service.wire.endings import CloseRecord, SumRequestRecord
from hubbub.service.wire.messages import decode_sum, token_digest, token_for
from hubbub.service.wire.problems import Problem
from hubbub.service.wire.records import (
    ClientRecord,
    ComputeRecord,
    InvitationRecord,
    Results,
    RoundRecord,
    StudyRecord,
    check_client_name,
    check_origin,
)
from hubbub.service.wire.refusals import unsigned
from hubbub.service.wire.signing import KEY_BYTES, SigningKey
from hubbub.service.wire.web import Unreachable, Web
from hubbub.settings import NETWORK

_INVITED_AT_ONCE = 5000
_SUM_HEAD = 10_000  # bytes around a sum's words; also enough for a problem in its place
_WAIT_FOR = ("agreement-under-way",)


@dataclass(frozen=True)
class Analyst:
    """Who signs the study and its rounds."""

    study: StudyRecord
    key: SigningKey
    web: Web = field(repr=False)

    def register(self) -> None:
        """Make the study known to every Compute."""
        self.study.check_current()
        self._everywhere("", sign_record(self.study, self.key))

    def invite(self, tokens: Mapping[str, tuple[bytes, int]], only: int | None = None) -> None:
        """Tell every Compute (or only one) who may enrol: names with their tokens and numbers of samples."""
        entries = list(tokens.items())
        for start in range(0, len(entries), _INVITED_AT_ONCE):
            chosen = entries[start : start + _INVITED_AT_ONCE]
            for position, compute in enumerate(self.study.computes):
                if only not in (None, position):
                    continue
                clients = tuple(
                    ClientRecord(name, token_digest(token_for(token, compute.verify_key)), samples)
                    for name, (token, samples) in chosen
                )
                record = InvitationRecord(digest(self.study), position, clients)
                url = f"{compute.url}/v1/studies/{self.study.id}/clients"
                self.web.post(url, sign_record(record, self.key))

    def plan(self, number: int, spec: RoundSpec, fraction_bits: int | None = None) -> RoundRecord:
        """A round of this study, with grid and noise settled."""
        plan = settle_round(spec, self.study.population, fraction_bits)
        return RoundRecord(
            study=digest(self.study), number=number, statistic=spec.statistic.describe(),
            mechanism=spec.mechanism.describe(), fraction_bits=plan.noise.grid.fraction_bits,
            sigma_client=plan.noise.sigma_client, deadline=self.study.deadline, label=spec.label,
            steps=tuple(spec.steps),
        )  # fmt: skip

    def catch_up(self) -> list[RoundStatus]:
        """All rounds, after Computes that were away have been given those that they missed; reports of the fullest."""
        found = [rounds_of(self.study, compute, self.web) for compute in self.study.computes]
        rounds = max(found, key=len)
        for compute, theirs in zip(self.study.computes, found, strict=True):
            url = f"{compute.url}/v1/studies/{self.study.id}/rounds"
            for missed in rounds[len(theirs) :]:
                self.web.post(url, missed.signed, wait_for=("round-under-way",))
                if missed.state != "open":
                    self.web.post(f"{url}/{missed.record.number}/close", self._end(missed.record))
        held = [max((theirs[i].reports for theirs in found if i < len(theirs)), default=0) for i in range(len(rounds))]
        return [replace(each, reports=reports) for each, reports in zip(rounds, held, strict=True)]

    def _end(self, record: RoundRecord) -> bytes:
        return sign_record(CloseRecord(digest(self.study), digest(record)), self.key)

    def open_round(self, record: RoundRecord) -> None:
        """Open the round at every Compute; each checks it and charges its own ledger."""
        self._everywhere("rounds", sign_record(record, self.key), wait_for=("round-under-way",))

    def close(self, record: RoundRecord) -> None:
        """End the round at every Compute; one that confirms is enough, since it passes the close on to the others."""
        self._everywhere(f"rounds/{record.number}/close", self._end(record), least=1)

    def release(
        self, record: RoundRecord, *, setting: Setting = NETWORK, randomness: Randomness | None = None
    ) -> Release:
        """Wait for the sums of all Computes, check them, and add them up.

        RoundRefused where all Computes have signed their refusal, so that nothing is released and nothing will be;
        PerhapsReleased where one says that it refused and not all have signed.
        """
        role = record.checked(self.study)
        sums = [
            decode_sum(self._sum(record, position), compute.verify_key)
            for position, compute in enumerate(self.study.computes)
        ]
        words, present = combine_sums(role, record.number, sums)
        return decode_release(
            role.plan(record.number), words, present, secure_sum=role.secure_sum, setting=setting,
            sealed=role.keys[0].suite, randomness=randomness or Randomness.system(),
        )  # fmt: skip

    def _sum(self, record: RoundRecord, position: int) -> bytes:
        compute = self.study.computes[position]
        url = f"{compute.url}/v1/studies/{self.study.id}/rounds/{record.number}/sum"
        try:
            role = record.checked(self.study)
            most = 8 * role.secure_sum.empty(role.plan(record.number).dimension).size + _SUM_HEAD
            if self.study.results == "public":
                return self.web.get(url, wait_for=_WAIT_FOR, most=most).content
            asked = SumRequestRecord(digest(self.study), digest(record), position, stamp(time.time()))
            return self.web.post(url, sign_record(asked, self.key), wait_for=_WAIT_FOR, most=most).content
        except Problem as problem:
            if problem.code == "round-refused":
                raise self._refusal(record, f"{compute.name} says: {problem}") from None
            raise

    def _refusal(self, record: RoundRecord, said: str) -> RoundRefused | PerhapsReleased:
        """What the word of one Compute that it refused amounts to, once all have been asked for their signatures."""
        missing = unsigned(self.study, record.number, digest(record), self.web, _WAIT_FOR)
        if not missing:
            return RoundRefused("refused", f"{said}; every Compute has signed its refusal, nothing is released")
        others = "; ".join(f"{name} has not signed a refusal ({why})" for name, why in missing.items())
        return PerhapsReleased(
            f"{said}; but {others}; so round {record.number} may be released and its charge stays spent until every "
            "Compute has signed its refusal"
        )

    def _everywhere(self, path: str, data: bytes, wait_for: Sequence[str] = (), least: int | None = None) -> None:
        """The same record to every Compute, at the same time; `least` of them must confirm (default: all)."""
        tail = f"/v1/studies/{self.study.id}/{path}" if path else "/v1/studies"
        with ThreadPoolExecutor(len(self.study.computes)) as pool:
            calls = [
                pool.submit(self.web.post, compute.url + tail, data, wait_for=wait_for)
                for compute in self.study.computes
            ]
        failed = [error for error in (call.exception() for call in calls) if error is not None]
        refused = [error for error in failed if not isinstance(error, Unreachable)]
        if refused or len(calls) - len(failed) < (len(calls) if least is None else least):
            raise (refused or failed)[0]


def make_tokens(samples: Mapping[str, int]) -> dict[str, tuple[bytes, int]]:
    """A fresh one-time token for each client, given how many samples each one holds."""
    return {check_client_name(name): (os.urandom(32), count) for name, count in samples.items()}


def find_compute(url: str, web: Web) -> ComputeRecord:
    """The Compute at this address, with the keys it states. Check them with its operator by another way."""
    url = check_origin(url.rstrip("/"))
    content = read_json(web.get(f"{url}/v1/keys").content)
    try:
        key = PublicKey(content["suite"], bytes.fromhex(content["key"]))
        return ComputeRecord.of(
            ComputeRecord(content["name"], url, key, hexed("verify_key", content["verify_key"], KEY_BYTES)).content()
        )
    except (KeyError, TypeError, ValueError):
        raise InvalidInput(f"url must be that of a Compute, got url={url}; check the address") from None


def new_study(
    title: str,
    computes: Sequence[ComputeRecord],
    population: Population,
    budget: Budget | None,
    analyst: SigningKey,
    *,
    seconds: float,
    analysis: Mapping[str, Any] | None = None,
    results: Results = "public",
    secure_sum: SecureSum | None = None,
    noise: str = "gaussian",
) -> StudyRecord:
    """A study that ends in so many seconds from now; sums are shared additively among all Computes by default."""
    study = StudyRecord(
        title, population, tuple(computes), budget, stamp(time.time() + seconds), analyst.public(),
        dict(analysis or {}), os.urandom(8).hex(), results, {} if secure_sum is None else secure_sum.describe(),
        noise,
    )  # fmt: skip
    study.check_current()
    return study
