"""The analyst's side: sign a study, invite clients, open and close rounds, add up what the Computes release."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from hubbub.errors import CannotCombine, HubbubError, InvalidInput, MalformedMessage, PerhapsReleased, RoundRefused
from hubbub.privacy import Budget, Population, Release
from hubbub.protocols import RoundSpec, SecureSum, Setting
from hubbub.randomness import Randomness
from hubbub.roles import ComputeSum, Study, combine_sums, decode_release, settle_round
from hubbub.securesum import PublicKey
from hubbub.service.client.draw import fetched_draw
from hubbub.service.client.rounds import RoundStatus, rounds_of
from hubbub.service.wire.canonical import digest, hexed, read_json, read_signed, sign_record, stamp
from hubbub.service.wire.draw import CommitmentRecord, Draw, DrawRequestRecord, checked_request, drawn_study
from hubbub.service.wire.endings import CloseRecord, SumRequestRecord
from hubbub.service.wire.merkle import Tree
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
from hubbub.service.wire.refusals import for_good, unsigned
from hubbub.service.wire.signing import KEY_BYTES, SigningKey
from hubbub.service.wire.web import Unreachable, Web
from hubbub.settings import NETWORK

_INVITED_AT_ONCE = 5000
_SUM_HEAD = 10_000  # bytes around a sum's words; also enough for a problem in its place
_WAIT_FOR = ("agreement-under-way",)
_PAUSE = 0.2
_BRIEFLY = 2.0  # seconds that a Compute is waited for without which the others can go on


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

    def draw(self, samples: Mapping[str, int]) -> None:
        """Fix the list of these clients, who must all be invited, and let the Computes draw who serves whom.

        Nothing happens where every client uses every Compute. The same call again goes on where it was interrupted.
        """
        if not self.study.secure_sum.undrawn:
            return
        signed = [self._ask(place, "commitment") for place in range(len(self.study.computes))]
        values = tuple(read_signed(data, CommitmentRecord)[0].commitment for data in signed)
        tree = Tree.over(samples)
        request = DrawRequestRecord(digest(self.study), tree.root, len(samples), values)
        asked = Draw(sign_record(request, self.key), tuple(signed))
        checked_request(self.study, asked)
        reveals = [self._ask(place, "draw", asked.encode()) for place in range(len(self.study.computes))]
        draw = replace(asked, reveals=tuple(reveals)).encode()
        drawn_study(self.study, draw)
        self._everywhere("reveals", draw)

    def _ask(self, place: int, path: str, body: bytes | None = None) -> bytes:
        """What one Compute answers, to a body or without one."""
        url = f"{self.study.computes[place].url}/v1/studies/{self.study.id}/{path}"
        return (self.web.get(url) if body is None else self.web.post(url, body)).content

    @cached_property
    def drawn(self) -> StudyRecord:
        """The study with the seed of its draw, asked for once; the study as it is where nothing is to be drawn."""
        if not self.study.secure_sum.undrawn:
            return self.study
        return drawn_study(self.study, fetched_draw(self.study, self.web))

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
        present = self._present()
        found = list(present.values())
        rounds = self._fullest(found)
        for position, theirs in present.items():
            compute = self.study.computes[position]
            url = f"{compute.url}/v1/studies/{self.study.id}/rounds"
            try:
                for missed in rounds[len(theirs) :]:
                    self.web.post(url, missed.signed, wait_for=("round-under-way",))
                    if missed.state != "open":
                        self.web.post(f"{url}/{missed.record.number}/close", self._end(missed.record))
            except HubbubError:
                if not self._spare:  # otherwise it counts as one that is away, if the others are enough
                    raise
        held = [max((theirs[i].reports for theirs in found if i < len(theirs)), default=0) for i in range(len(rounds))]
        return [replace(each, reports=reports) for each, reports in zip(rounds, held, strict=True)]

    def rounds(self) -> list[RoundStatus]:
        """All rounds as they stand, from the Compute that knows most."""
        return self._fullest(list(self._present().values()))

    def _fullest(self, found: Sequence[list[RoundStatus]]) -> list[RoundStatus]:
        """The longest list; where a round can do without some Computes, each round as far as any of them has come."""
        rounds = max(found, key=len)
        if not self._spare:
            return rounds
        states = [{theirs[i].state for theirs in found if i < len(theirs)} for i in range(len(rounds))]
        return [replace(each, state=min(said, key=_furthest)) for each, said in zip(rounds, states, strict=True)]

    def _present(self) -> dict[int, list[RoundStatus]]:
        """What each Compute knows of rounds; raises where more fail to say than a round can do without.

        One that answers, but does not know the study or answers nonsense, is no better than one that is silent: it may
        have been set up anew after its disk was lost.
        """
        found, failed = dict[int, list[RoundStatus]](), dict[int, HubbubError]()
        for position, compute in enumerate(self.study.computes):
            try:
                found[position] = rounds_of(self.study, compute, self._brief if self._spare else self.web)
            except HubbubError as error:
                failed[position] = error
                if not self._spare:
                    raise
        if len(failed) > self._spare:
            raise self._away("Computes", len(self.study.computes) - self._spare, len(found), failed)
        return found

    def _away(self, what: str, needed: int, answer: int, failed: Mapping[int, HubbubError]) -> HubbubError:
        """In one line how many are needed and who is away; or the first problem that one of them stated."""
        for error in failed.values():
            if not isinstance(error, Unreachable):
                return error
        names = ", ".join(self.study.computes[place].name for place in failed)
        return Unreachable(
            f"{needed} of {len(self.study.computes)} {what} are needed, {answer} answer{'s' if answer == 1 else ''}; "
            f"{names} {'is' if len(failed) == 1 else 'are'} away; run the same command again"
        )

    @property
    def _spare(self) -> int:
        """How many Computes a round can do without: M - q, none with additive sharing."""
        return len(self.study.computes) - self.study.secure_sum.quorum

    @property
    def _brief(self) -> Web:
        """For Computes without which the others can go on."""
        return self.web.briefly(_BRIEFLY)

    def _end(self, record: RoundRecord) -> bytes:
        return sign_record(CloseRecord(digest(self.study), digest(record)), self.key)

    def open_round(self, record: RoundRecord) -> list[int]:
        """Open the round at every Compute; each checks it and charges its own ledger.

        Returns the places of those that did not; there may be as many as a round can do without (`quorum`).
        """
        least = len(self.study.computes) - self._spare
        return self._everywhere("rounds", sign_record(record, self.key), ("round-under-way",), least)

    def close(self, record: RoundRecord) -> None:
        """End the round at every Compute; one that confirms is enough, since it passes the close on to the others."""
        self._everywhere(f"rounds/{record.number}/close", self._end(record), least=1)

    def release(
        self,
        record: RoundRecord,
        *,
        setting: Setting = NETWORK,
        randomness: Randomness | None = None,
        without: Collection[int] = (),
    ) -> Release:
        """Wait for the sums of the Computes, check them, and put them together.

        All are needed with additive sharing. Where fewer are, those are taken that answer, and the sums of those in
        `without` (counted from 0) are not asked for: CannotCombine names Computes whose sums do not fit the others',
        and the total of the others is found without them.

        RoundRefused where all Computes (or a quorum, where that is fewer) have signed their refusal, so that nothing is
        released and nothing will be; PerhapsReleased where one says that it refused and not enough have signed.
        """
        role = record.checked(self.drawn)
        places = [place for place in range(len(self.study.computes)) if place not in without]
        needed = all(not role.secure_sum.enough(set(places) - {place}) for place in places)
        sums = [self._sum(record, place) for place in places] if needed else self._sums(record, role, places)
        try:
            words, present = combine_sums(role, record.number, sums)
        except CannotCombine as error:
            raise self._by_name(error) from None
        return decode_release(
            role.plan(record.number), words, present, secure_sum=role.secure_sum, setting=setting,
            sealed=role.keys[0].suite, randomness=randomness or Randomness.system(),
        )  # fmt: skip

    def _by_name(self, error: CannotCombine) -> CannotCombine:
        """The same with the names of those whose sums do not fit."""
        names = ", ".join(self.study.computes[place].name for place in error.computes)
        return CannotCombine(error.reason, f"{names}: {error}" if names else str(error), error.computes)

    def _sums(self, record: RoundRecord, role: Study, places: Sequence[int]) -> list[ComputeSum]:
        """The sums of those that answer, once they are enough and nobody else is about to release.

        Computes that release do so within a second of each other; more sums than needed show a wrong one.
        """
        found, latest = dict[int, ComputeSum](), time.monotonic() + self.web.patience.total
        while True:
            failed = dict[int, HubbubError]()
            for place in places:
                try:
                    found[place] = found[place] if place in found else self._asked(record, place, self._brief, ())
                except (Problem, Unreachable) as error:
                    failed[place] = error
            said = {place: error.code for place, error in failed.items() if isinstance(error, Problem)}
            coming = not {*_WAIT_FOR}.isdisjoint(said.values())
            if role.secure_sum.enough(found):
                if not coming or time.monotonic() > latest:
                    return [found[place] for place in sorted(found)]
                latest = min(latest, time.monotonic() + _BRIEFLY)
            else:
                possible = set(places) - {place for place, code in said.items() if code == "round-refused"}
                under_way = coming or bool(found) or len(said) < len(failed)
                if not role.secure_sum.enough(possible) or not under_way or time.monotonic() > latest:
                    raise self._why_not(record, role, len(found), failed)
            time.sleep(_PAUSE)

    def _why_not(self, record: RoundRecord, role: Study, answer: int, failed: Mapping[int, HubbubError]) -> HubbubError:
        """What stands in the way of enough sums: a refusal, another problem, or who is away."""
        for place, error in failed.items():
            if isinstance(error, Problem) and error.code == "round-refused":
                return self._refusal(record, f"{self.study.computes[place].name} says: {error}")
        enough, computes = role.secure_sum.enough, len(self.study.computes)
        needed = next(count for count in range(1, computes + 1) if enough(range(count)))
        return self._away("sums", needed, answer, failed)

    def _sum(self, record: RoundRecord, position: int) -> ComputeSum:
        """The sum of a Compute without which the others are not enough."""
        try:
            return self._asked(record, position, self.web, _WAIT_FOR)
        except Problem as problem:
            if problem.code == "round-refused":
                name = self.study.computes[position].name
                raise self._refusal(record, f"{name} says: {problem}") from None
            raise

    def _asked(self, record: RoundRecord, position: int, web: Web, wait_for: Collection[str]) -> ComputeSum:
        compute, role = self.study.computes[position], record.checked(self.drawn)
        url = f"{compute.url}/v1/studies/{self.study.id}/rounds/{record.number}/sum"
        most = 8 * role.secure_sum.empty(role.plan(record.number).dimension).size + _SUM_HEAD
        if self.study.results == "public":
            body = web.get(url, wait_for=wait_for, most=most).content
        else:
            asked = SumRequestRecord(digest(self.study), digest(record), position, stamp(time.time()))
            body = web.post(url, sign_record(asked, self.key), wait_for=wait_for, most=most).content
        try:
            found = decode_sum(body, compute.verify_key)
            if found.compute != position:
                raise MalformedMessage(f"sum must be its own, got one of Compute {found.compute + 1}; ask its operator")
        except MalformedMessage as error:
            raise CannotCombine("malformed", f"{compute.name} (Compute {position + 1}): {error}", (position,)) from None
        return found

    def _refusal(self, record: RoundRecord, said: str) -> RoundRefused | PerhapsReleased:
        """What the word of one Compute that it refused amounts to, once all have been asked for their signatures."""
        missing = unsigned(self.study, record.number, digest(record), self.web, _WAIT_FOR)
        if for_good(self.study, missing):
            signed = "every Compute has" if not missing else "a quorum of Computes have"
            return RoundRefused("refused", f"{said}; {signed} signed its refusal, nothing is released")
        others = "; ".join(f"{name} has not signed a refusal ({why})" for name, why in missing.items())
        return PerhapsReleased(
            f"{said}; but {others}; so round {record.number} may be released and its charge stays spent until "
            f"{'every Compute has' if not self._spare else 'enough of them have'} signed its refusal"
        )

    def _everywhere(self, path: str, data: bytes, wait_for: Sequence[str] = (), least: int | None = None) -> list[int]:
        """The same record to every Compute, at the same time; `least` of them must confirm (default: all).

        Returns the places of those that did not. Where a round can do without some, these are not waited for long if
        the others confirm at once, and it does not matter what they say instead.
        """
        computes = len(self.study.computes)
        least = computes if least is None else least
        if self._spare and least < computes:
            failed = self._at_once(self._brief, path, data, wait_for)
            if computes - len(failed) >= least:
                return sorted(failed)
        failed = self._at_once(self.web, path, data, wait_for)
        refused = _refusals(failed)
        if computes - len(failed) < least or (refused and not self._spare):
            raise (refused or list(failed.values()))[0]
        return sorted(failed)

    def _at_once(self, web: Web, path: str, data: bytes, wait_for: Sequence[str]) -> dict[int, BaseException]:
        """Post it to every Compute; with which it failed, and why."""
        tail = f"/v1/studies/{self.study.id}/{path}" if path else "/v1/studies"
        with ThreadPoolExecutor(len(self.study.computes)) as pool:
            calls = [pool.submit(web.post, each.url + tail, data, wait_for=wait_for) for each in self.study.computes]
        found = {place: call.exception() for place, call in enumerate(calls)}
        return {place: error for place, error in found.items() if error is not None}


def _furthest(state: str) -> int:
    """Which of several Computes' states of a round counts: one that refuses does not end it for the others."""
    order = ("released", "agreed", "closed", "open", "refused")
    return order.index(state) if state in order else len(order)


def _refusals(failed: Mapping[int, BaseException]) -> list[BaseException]:
    """Those errors that are a Compute's answer, and not its silence."""
    return [error for error in failed.values() if not isinstance(error, Unreachable)]


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
