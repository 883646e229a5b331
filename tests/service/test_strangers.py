"""Computes and clients with parts that another package brings: a scheme, a law of noise, an event."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import dp_accounting
import numpy as np
import pytest

from hubbub.errors import InvalidInput
from hubbub.events import Event
from hubbub.privacy import MECHANISMS, Budget, GaussianMechanism
from hubbub.protocols import Share
from hubbub.securesum import SECURE_SUMS, Additive
from hubbub.service.client.outbox import Outbox, Parcel
from hubbub.service.node import store as db
from hubbub.service.wire.charges import event_from, event_text
from service.stage import M, Stage, make_stage

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
