"""The engine on live Computes: what it does besides what every engine must do (contracts/test_engines.py)."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub.engines.network import NetworkEngine
from hubbub.errors import InvalidInput
from hubbub.privacy import MECHANISMS, Budget, GaussianMechanism, gaussian_round
from hubbub.protocols import RoundSpec
from hubbub.securesum import Additive
from hubbub.service.devnet import LocalComputes
from hubbub.statistics import Means
from hubbub.statistics.preparation import clip, shift

ROWS = np.arange(12.0).reshape(6, 2)
MEANS = Means((16.0, 16.0))


def test_rounds_follow_one_another_in_one_study(live: LocalComputes):
    engine = NetworkEngine(live.urls, tolerate=1)
    for number in range(2):
        release = engine.private_sum(engine.hold(ROWS), gaussian_round(MEANS, 0.0, f"round {number}"))
        np.testing.assert_array_equal(release.value, ROWS.sum(axis=0))
    assert release.protection.setting.name == "network on one machine"
    assert release.protection.trust == Additive(3).trust()
    (study,) = engine._live.values()
    assert study.rounds == ["round 0", "round 1"]


@pytest.mark.parametrize("holds", [1, 4])
def test_rows_take_the_public_steps_at_their_client_and_once(live: LocalComputes, holds: int):
    steps = (shift([1.0, 1.0]), clip([5.0, 20.0]))
    spec = RoundSpec("prepared", MEANS, GaussianMechanism(0.0), steps)
    release = NetworkEngine(live.urls, holds=holds).private_sum(ROWS, spec)
    np.testing.assert_array_equal(release.value, np.clip(ROWS - 1, [-5, -20], [5, 20]).sum(axis=0))


def test_with_a_budget_the_noise_is_that_of_the_mechanism(live: LocalComputes):
    budget = Budget(1.0, 1e-5)
    (mechanism,) = GaussianMechanism().within(budget, [1.0])
    engine = NetworkEngine(live.urls, budget=budget, seed=3)
    release = engine.private_sum(ROWS, RoundSpec("noisy", MEANS, mechanism))
    assert release.noise_std == pytest.approx(mechanism.settled(MEANS, engine.population(6)).sigma_client * np.sqrt(6))
    assert release.event == mechanism.event()


def test_what_it_cannot_do_is_one_line_before_anything_is_sent():
    engine = NetworkEngine(("http://127.0.0.1:9", "http://127.0.0.1:10"))
    assert engine.secure_sum == Additive(2)
    chosen = RoundSpec("chosen", MEANS, GaussianMechanism(1.0), chosen=np.arange(3))
    with pytest.raises(InvalidInput, match="selection must be 'self' on a network.*got 'trainer'"):
        engine.private_sum(ROWS, chosen)
    with pytest.raises(InvalidInput, match="rows must be an array with 2 columns"):
        engine.private_sum(np.zeros((6, 3)), gaussian_round(MEANS, 1.0))
    with pytest.raises(InvalidInput, match="secure_sum must be for the 2 Computes, got secure_sum=3"):
        NetworkEngine(engine.urls, secure_sum=Additive(3))


def test_with_a_budget_the_rounds_over_the_same_rows_have_one_law(live: LocalComputes, monkeypatch: pytest.MonkeyPatch):
    class Other(GaussianMechanism):
        def describe(self) -> dict[str, object]:
            return {**super().describe(), "mechanism": "other"}

    monkeypatch.setitem(MECHANISMS._own, "other", Other)
    engine = NetworkEngine(live.urls, budget=Budget(1.0, 1e-5))
    engine.private_sum(ROWS, gaussian_round(MEANS, 20.0))
    with pytest.raises(InvalidInput, match="mechanism must be gaussian in all rounds over the same rows"):
        engine.private_sum(ROWS, RoundSpec("second", MEANS, Other(20.0)))
