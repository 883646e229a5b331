"""One generator for noise and shares: a cipher keyed by the operating system."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import threading

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy import stats

from conftest import FALSE_ALARM
from hubbub.errors import InvalidInput
from hubbub.randomness import Randomness, fill, keystream


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 64, 32768, 32769, 100_001])
def test_fill_is_the_aes_ctr_keystream(count: int):
    key, nonce = bytes(range(16)), bytes(range(16, 32))
    out = np.empty(count, dtype=np.uint64)
    fill(keystream(key, nonce), out)
    assert out.tobytes() == Cipher(algorithms.AES128(key), modes.CTR(nonce)).encryptor().update(bytes(8 * count))


def test_stream_goes_on_where_it_stopped():
    whole, parts = Randomness.simulation(3), Randomness.simulation(3)
    expected = whole.words(1000)
    got = np.concatenate([parts.words(2 * n) for n in (1, 30, 469)])
    assert (got == expected).all()


def test_system_streams_differ():
    assert not (Randomness.system().words(8) == Randomness.system().words(8)).any()


def test_simulation_is_reproducible_and_says_so():
    first, second = Randomness.simulation(7), Randomness.simulation(7)
    assert (first.normals((5, 4)) == second.normals((5, 4))).all()
    assert not first.secure
    assert "SIMULATION (seed 7)" in first.source
    assert Randomness.of(None).secure


def test_forked_child_does_not_repeat_its_parents_stream():
    randomness = Randomness.system()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, randomness.bytes(64))
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 64) != randomness.bytes(64)


def test_forked_child_does_not_wait_for_its_parents_lock():
    randomness = Randomness.system()
    read, write = os.pipe()
    with randomness._lock:  # as if another thread were drawing at this moment
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # a child that waits is ended, and writes nothing
            worker = threading.Thread(target=lambda: os.write(write, randomness.bytes(8)))
            worker.start()
            worker.join()
            os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    assert len(os.read(read, 8)) == 8


def test_copies_never_draw_the_same_twice():
    randomness = Randomness.simulation(1)
    assert copy.deepcopy(randomness) is randomness
    elsewhere = pickle.loads(pickle.dumps(randomness))
    assert elsewhere.bytes(32) != randomness.bytes(32)
    assert not elsewhere.secure
    assert pickle.loads(pickle.dumps(Randomness.system())).secure


def test_repr_shows_no_key():
    randomness = Randomness.simulation(12)
    assert randomness._key is not None
    assert randomness._key.hex() not in repr(randomness)
    assert repr(randomness._key) not in repr(randomness)


@pytest.mark.parametrize("seed", [-1, 1.5, "1", True])
def test_bad_seed_is_one_line(seed: object):
    with pytest.raises(InvalidInput, match=r"seed must be a whole number >= 0, got seed=.*; give"):
        Randomness.simulation(seed)  # type: ignore[arg-type]


def test_normals_have_the_normal_distribution():
    """Kolmogorov-Smirnov, and the four moments at their standard errors."""
    n = 1_000_000
    draws = Randomness.simulation(0).normals((n,))
    assert stats.kstest(draws, "norm").pvalue > FALSE_ALARM
    z = stats.norm.isf(FALSE_ALARM / 2)
    assert abs(draws.mean()) < z / np.sqrt(n)
    assert abs(draws.var() - 1) < z * np.sqrt(2 / n)
    assert abs(stats.skew(draws)) < z * np.sqrt(6 / n)
    assert abs(stats.kurtosis(draws)) < z * np.sqrt(24 / n)


def test_normals_of_one_pair_are_independent():
    """Both halves of a Box-Muller pair share a radius: their squares must be uncorrelated all the same."""
    block = 8192
    draws = Randomness.simulation(1).normals((200, block))
    first, second = draws[:, : block // 2].ravel(), draws[:, block // 2 :].ravel()
    limit = stats.norm.isf(FALSE_ALARM / 2) / np.sqrt(first.size)
    assert abs(np.corrcoef(first, second)[0, 1]) < limit
    assert abs(np.corrcoef(first**2, second**2)[0, 1]) < limit


@pytest.mark.parametrize("shape", [(1,), (3,), (5, 7), (8192,), (8193,), (100, 100), (0,)])
def test_any_shape_is_filled(shape: tuple[int, ...]):
    draws = Randomness.simulation(2).normals(shape)
    assert draws.shape == shape
    assert np.isfinite(draws).all()
    assert np.unique(draws).size == draws.size
    assert abs(draws).max(initial=0.0) < 9.4
