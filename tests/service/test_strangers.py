"""Computes and clients with parts that another package brings: a scheme, a law of noise, an event."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import dp_accounting
import httpx
import numpy as np
import pytest

from hubbub.errors import InvalidInput
from hubbub.events import Event
from hubbub.privacy import MECHANISMS, Budget, GaussianMechanism
from hubbub.protocols import Share
from hubbub.release import Trust
from hubbub.securesum import SECURE_SUMS, Additive
from hubbub.service.client.outbox import Outbox, Parcel
from hubbub.service.client.rounds import rounds_of
from hubbub.service.node import agreement
from hubbub.service.node import store as db
from hubbub.service.node.answers import signed_refusal
from hubbub.service.node.compute import open_round
from hubbub.service.wire.canonical import digest, sign_record
from hubbub.service.wire.charges import event_from, event_text
from hubbub.service.wire.web import Web
from service.stage import M, Stage, make_stage
from service.test_node import code_of

PACKAGE = {"package": "hubbub-elsewhere"}


class Counting(Additive):
    """Additive sharing whose sums are one word longer: the last one counts the shares."""

    def empty(self, dimension: int) -> np.ndarray:
        return np.zeros(dimension + 1, dtype=np.uint64)

    def accumulate(self, total: np.ndarray, share: Share) -> None:
        super().accumulate(total[:-1], share)
        total[-1] += np.uint64(1)

    def unshard(self, sums) -> np.ndarray:
        assert len({int(words[-1]) for words in sums.values()}) == 1
        return super().unshard({k: words[:-1] for k, words in sums.items()})

    def describe(self) -> dict[str, object]:
        return {"scheme": "counting", "computes": self.computes, **PACKAGE}


@dataclass(frozen=True)
class Doubled(GaussianMechanism):
    """A law that is charged as two Gaussian mechanisms, in the words of dp_accounting."""

    def event(self, probability: float = 1.0) -> Event:
        one = dp_accounting.GaussianDpEvent(2 * self.noise_multiplier)
        return dp_accounting.ComposedDpEvent([one, one])

    def describe(self) -> dict[str, object]:
        return {"mechanism": "doubled", "noise_multiplier": float(self.noise_multiplier), **PACKAGE}


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SECURE_SUMS._own, "counting", Counting)
    monkeypatch.setitem(MECHANISMS._own, "doubled", Doubled)


@pytest.fixture
def stage(elsewhere: None, tmp_path: Path) -> Iterator[Stage]:
    made = make_stage([f"sqlite:///{tmp_path}/compute-{k}.db" for k in range(M)], Budget(1.0, 1e-5))
    made.study = replace(made.study, scheme=Counting(M).describe(), noise="doubled")
    made.register()
    yield made
    for node in made.nodes:
        node.store.close()


def test_a_round_goes_through_another_scheme_and_another_law(stage: Stage):
    record = stage.round(multiplier=20.0, mechanism=Doubled(20.0).describe())
    stage.run_to_rosters(record, stage.people[:5])
    assert stage.settle() == ["released"] * M
    value, samples = stage.total(record)
    assert (value.shape, samples) == ((2,), 5)
    for node in stage.nodes:
        with node.store.read() as connection:
            assert db.ledger_events(connection, stage.id) == [Doubled(20.0).event()]


def test_a_round_has_the_law_that_the_study_names(stage: Stage):
    with pytest.raises(InvalidInput, match="mechanism must be 'doubled', as the study says, got mechanism='gaussian'"):
        stage.round(multiplier=20.0).checked(stage.study)


def test_the_outbox_keeps_any_event(tmp_path: Path):
    outbox = Outbox(tmp_path / "outbox.db")
    outbox.put("study", "c0", 0, b"digest", Doubled(3.0).event(), [Parcel(0, b"body")])
    outbox.put("study", "c0", 1, b"digest", GaussianMechanism(3.0).event(0.1), [])
    assert outbox.spent("study", "c0") == {0: Doubled(3.0).event(), 1: GaussianMechanism(3.0).event(0.1)}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"noise_multiplier": "x"}', '{"dp_event": {"class": "os"}}'])
def test_what_is_no_event_is_one_line(text: str):
    with pytest.raises(InvalidInput, match="event must be written as hubbub writes it"):
        event_from(text)
    assert event_from(event_text(GaussianMechanism(2.0).event())) == GaussianMechanism(2.0).event()


class Spare(Counting):
    """The sums of two Computes are enough."""

    def enough(self, computes) -> bool:
        return len(set(computes)) >= 2

    def trust(self) -> Trust:
        return replace(super().trust(), conspiring=1)

    def describe(self) -> dict[str, object]:
        return {"scheme": "spare", "computes": self.computes, **PACKAGE}


@pytest.mark.parametrize("spare", [False, True])
def test_a_compute_that_has_agreed_gives_back_only_where_its_sum_is_needed(
    elsewhere: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spare: bool
):
    """The others may hold all agreements and release: with a spare sum the total may be out although this one stops."""
    monkeypatch.setitem(SECURE_SUMS._own, "spare", Spare)
    made = make_stage([f"sqlite:///{tmp_path}/compute-{k}.db" for k in range(M)], Budget(1.0, 1e-5))
    made.study = replace(made.study, scheme=(Spare if spare else Counting)(M).describe())
    made.register()
    made.run_to_rosters(made.round())
    node = made.nodes[0]
    assert agreement.settle(node, made.id, 0) == "agreed"
    agreement.refuse(node, made.id, 0, "agreement-timeout", "the others did not answer")
    with node.store.read() as connection:
        left = db.ledger_events(connection, made.id)
        assert db.find_round(connection, made.id, 0).reason == ("perhaps-released" if spare else "agreement-timeout")
    if spare:
        assert left == [GaussianMechanism(10.0).event()]
        assert code_of(signed_refusal, node, made.id, 0) == "not-refused"
    else:
        assert left == []
        assert signed_refusal(node, made.id, 0)
    open_round(node, made.id, sign_record(made.round(1), made.analyst))
    agreement.refuse(node, made.id, 1, "agreement-timeout", "the others did not answer")
    assert signed_refusal(node, made.id, 1)  # it had not agreed, so nobody holds its agreement


@pytest.mark.parametrize("conspiring", [0, M])
def test_a_scheme_hides_vectors_from_one_compute_at_least(stage: Stage, conspiring: int, monkeypatch):
    trust = replace(Counting(M).trust(), conspiring=conspiring)
    monkeypatch.setattr(Counting, "trust", lambda self: trust)
    with pytest.raises(
        InvalidInput, match=f"scheme must be one that hides vectors.*hides them from {conspiring} of {M}"
    ):
        replace(stage.study, title="another")


@pytest.mark.parametrize("numbers", [[0, 0], [1, 0], [1], [0, 2]])
def test_a_compute_that_repeats_or_hides_rounds_is_one_line(stage: Stage, numbers: list[int]):
    """A client counts the rounds it takes part in; one that a Compute shows twice must not pass for two."""
    records = [stage.round(k, mechanism=Doubled(20.0).describe()) for k in numbers]
    signed = [sign_record(record, stage.analyst).decode() for record in records]
    reply = {"rounds": [{"record": each, "state": "released", "reports": 5} for each in signed]}
    web = Web(httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200, json=reply))))
    with pytest.raises(InvalidInput, match="compute-0 must list every round once and in order, got others"):
        rounds_of(stage.study, stage.study.computes[0], web)


def test_an_amount_of_noise_beyond_all_numbers_is_one_line(stage: Stage):
    study = replace(stage.study, noise="gaussian")
    record = replace(stage.round(), study=digest(study), mechanism=GaussianMechanism(1e308).describe())
    with pytest.raises(InvalidInput, match="noise_multiplier must be so small that the noise is a number"):
        record.checked(study)
