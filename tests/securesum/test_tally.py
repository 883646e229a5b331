"""The Computes' sums over many clients at once."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub.errors import InvalidInput
from hubbub.randomness import Randomness
from hubbub.securesum import Additive, AdditiveTally, tally
from hubbub.securesum.tally import add_rows


@pytest.mark.parametrize("masks", ["auto", "raw", "seeds"])
@pytest.mark.parametrize("computes", [2, 3, 10, 20])
@pytest.mark.parametrize(("clients", "d"), [(1, 7), (5, 1), (64, 100), (40, 2500), (1, 70_000), (5000, 9)])
def test_sums_add_up_exactly(masks: str, computes: int, clients: int, d: int, rng: np.random.Generator):
    vectors = rng.integers(0, 2**64, size=(clients, d), dtype=np.uint64)
    sums = Additive(computes, masks).tally(d, Randomness.system())
    for rows, columns in sums.blocks(clients):
        sums.add(vectors[rows, columns].copy(), columns)
    assert (Additive(computes).unshard(dict(enumerate(sums.sums))) == vectors.sum(axis=0, dtype=np.uint64)).all()


@pytest.mark.parametrize("masks", ["raw", "seeds"])
@pytest.mark.parametrize(("clients", "d"), [(1, 1), (3000, 10), (33, 1024), (40, 10_000), (1, 1_000_000), (7, 65_537)])
def test_blocks_cover_everything_once(masks: str, clients: int, d: int):
    seen = np.zeros((clients, d), dtype=int)
    for block in AdditiveTally(2, d, Randomness.system(), masks).blocks(clients):
        assert masks == "seeds" or seen[block].size <= tally.BLOCK_WORDS
        assert masks == "raw" or seen[block].shape[1] == d
        seen[block] += 1
    assert (seen == 1).all()


def test_the_masked_vectors_are_spread_over_the_computes():
    """Without masks a Compute holds the plain words of those calls in which it got the masked vector."""

    class NoMask(Randomness):
        def fill_words(self, out: np.ndarray) -> None:
            out[...] = 0

    sums = AdditiveTally(3, 1, NoMask.simulation(0), "raw")
    for value in (1, 10, 100, 1000):
        sums.add(np.array([[value]], dtype=np.uint64), slice(0, 1))
    assert sums.sums.ravel().tolist() == [1001, 10, 100]


def test_seeds_are_expanded_by_the_compute_too(monkeypatch: pytest.MonkeyPatch):
    """If a Compute could not expand what it was sent, the masks would not cancel."""
    calls = []

    def counting(honest):
        def count(seeds, *rest):
            calls.append(len(seeds))
            return honest(seeds, *rest)

        return count

    for name in ("expand_seeds", "expand_keys"):
        monkeypatch.setattr(tally, name, counting(getattr(tally, name)))
    for d in (8, 800):
        calls.clear()
        AdditiveTally(4, d, Randomness.system(), "seeds").add(np.zeros((5, d), dtype=np.uint64), slice(0, d))
        assert calls == [5] * 6  # three masks, once by the client and once by the Compute


@pytest.mark.parametrize("shape", [(1, 1), (7, 1), (513, 3), (100, 512), (3, 5000), (0, 4)])
def test_added_rows_wrap_around_like_the_ring(shape: tuple[int, int], rng: np.random.Generator):
    words = rng.integers(0, 2**64, size=shape, dtype=np.uint64)
    total = np.full(shape[1], 2**64 - 1, dtype=np.uint64)
    add_rows(words, total)
    assert total.tolist() == [(sum(int(w) for w in column) - 1) % 2**64 for column in words.T]


def test_unknown_masks_is_one_line():
    with pytest.raises(InvalidInput, match="shares must be one of auto, raw, seeds, got shares='plain'; use auto"):
        AdditiveTally(3, 1, Randomness.system(), "plain")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="shares must be one of auto, raw, seeds, got shares='plain'; use auto"):
        Additive(3, "plain")  # type: ignore[arg-type]
