"""Three ways to compute: what each really costs."""

from __future__ import annotations

import pytest

from hubbub.errors import InvalidInput
from hubbub.experiments.methods import METHODS
from hubbub.experiments.modes import EXPLANATIONS, MODES, noise_of
from hubbub.privacy import Budget
from hubbub.statistics import Box

BOUND = Box((7.5,) * 11, 7.5)
EPSILONS = [1.0, 3.16, 10.0, 31.6]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_sound_is_a_guarantee_for_every_method(epsilon: float):
    noise = noise_of("sound", Budget(epsilon, 1e-4), BOUND)
    for spent in (noise.spent_plain, noise.spent_projected, noise.spent_input):
        assert spent == pytest.approx(epsilon, rel=1e-6)
    assert [noise.is_guarantee(m) for m in METHODS] == [None, True, True, True, True, True, True]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_published_overspends_on_the_projected_methods(epsilon: float):
    noise = noise_of("published", Budget(epsilon, 1e-4), BOUND)
    assert noise.spent_projected > 1.7 * epsilon
    assert noise.is_guarantee("proj DDP") is False
    assert noise.is_guarantee("hubbub") is True


def test_paper_wastes_noise_at_small_epsilon_and_falls_short_at_large():
    small, large = (noise_of("paper", Budget(e, 1e-4), BOUND) for e in (1.0, 31.6))
    assert small.spent_plain < 0.6
    assert small.is_guarantee("proj DDP")
    assert large.spent_plain > 31.6
    assert not large.is_guarantee("DDP")


def test_published_and_paper_differ_where_the_program_differs_from_the_text():
    paper, published = (noise_of(mode, Budget(1.0, 1e-4), BOUND) for mode in ("paper", "published"))
    assert published.projected[0] == pytest.approx(paper.projected[0] / 7.5)
    assert published.projected[1] == paper.projected[1]
    assert (paper.noise_power, published.noise_power) == (1, 4)


def test_every_way_is_explained():
    assert set(EXPLANATIONS) == set(MODES)
    with pytest.raises(InvalidInput, match="as must be one of sound, paper, published"):
        noise_of("guess", Budget(1, 1e-4), BOUND)  # type: ignore[arg-type]
