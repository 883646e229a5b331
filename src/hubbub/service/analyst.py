"""The analyst's side: sign a study, invite clients, open and close rounds, add up what the Computes release."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from hubbub.errors import InvalidInput, RoundRefused
from hubbub.privacy import Budget, Release
from hubbub.randomness import Randomness
from hubbub.roles import combine_sums, decode_release, plan_round
from hubbub.securesum import PublicKey
from hubbub.service.canonical import digest, hexed, read_json, sign_record, stamp
from hubbub.service.client import RoundStatus, rounds_of
from hubbub.service.messages import decode_sum, token_digest, token_for
from hubbub.service.problems import Problem
from hubbub.service.records import (
    ClientRecord,
    CloseRecord,
    ComputeRecord,
    InvitationRecord,
    RoundRecord,
    StudyRecord,
    check_client_name,
)
from hubbub.service.signing import KEY_BYTES, SigningKey
from hubbub.service.web import Unreachable, Web
from hubbub.statistics import Statistic
from hubbub.statistics.preparation import Steps

_INVITED_AT_ONCE = 5000
_SUM_HEAD = 10_000  # bytes around a sum's words; also enough for a problem in its place
_WAIT_FOR = ("agreement-under-way", "not-enough-reports", "round-open")


@dataclass(frozen=True)
class Analyst:
    """Who signs the study and its rounds."""

    study: StudyRecord
    key: SigningKey
    web: Web = field(repr=False)

    def register(self) -> None:
        """Make the study known to every Compute."""
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

    def plan(
        self,
        number: int,
        statistic: Statistic,
        noise_multiplier: float,
        label: str,
        steps: Steps = (),
        fraction_bits: int | None = None,
    ) -> RoundRecord:
        """A round of this study, with grid and noise settled."""
        plan = plan_round(
            statistic, noise_multiplier, self.study.clients, self.study.tolerated, fraction_bits, self.study.held
        )
        return RoundRecord(
            study=digest(self.study), number=number, statistic=statistic.describe(),
            fraction_bits=plan.fixed_point.fraction_bits, noise_multiplier=float(noise_multiplier),
            sigma_client=plan.mechanism.sigma_client, deadline=self.study.deadline, label=label, steps=tuple(steps),
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
        self, record: RoundRecord, *, setting: str = "network", randomness: Randomness | None = None
    ) -> Release:
        """Wait for the sums of all Computes, check them, and add them up; RoundRefused where one refused."""
        role = record.checked(self.study)
        sums = [decode_sum(self._sum(record, compute), compute.verify_key) for compute in self.study.computes]
        words, present = combine_sums(role, record.number, sums)
        return decode_release(
            role.plan(record.number), words, present, computes=role.computes, setting=setting,
            sealed=role.keys[0].suite, randomness=randomness or Randomness.system(),
        )  # fmt: skip

    def _sum(self, record: RoundRecord, compute: ComputeRecord) -> bytes:
        url = f"{compute.url}/v1/studies/{self.study.id}/rounds/{record.number}/sum"
        try:
            most = 8 * record.checked(self.study).plan(record.number).dimension + _SUM_HEAD
            return self.web.get(url, wait_for=_WAIT_FOR[:1], most=most).content
        except Problem as problem:
            if problem.code == "round-refused":
                raise RoundRefused("refused", f"{compute.name} says: {problem}") from None
            raise

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
    url = url.rstrip("/")
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
    clients: int,
    tolerated: int,
    budget: Budget | None,
    analyst: SigningKey,
    *,
    seconds: float,
    model: Mapping[str, Any] | None = None,
    held: int = 1,
) -> StudyRecord:
    """A study that ends in so many seconds from now."""
    return StudyRecord(
        title, clients, tolerated, tuple(computes), budget, stamp(time.time() + seconds), analyst.public(),
        dict(model or {}), os.urandom(8).hex(), held,
    )  # fmt: skip
