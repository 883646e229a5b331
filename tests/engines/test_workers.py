"""Worker processes: the same sums as in one process, for any number of them, and nothing lost when one dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from hubbub.engines import LocalEngine
from hubbub.engines.local import engine as local
from hubbub.engines.local.pool import POOL, Workers
from hubbub.errors import HubbubError, InvalidInput, OutOfDomainWarning
from hubbub.privacy import gaussian_round
from hubbub.statistics import Means

STATISTIC = Means((2.0**30, 2.0**30, 4.0))
N = 4000


@pytest.fixture(autouse=True)
def always_worth_it(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Small rounds go to the workers, too, in many slices."""
    for name in ("_ONE_SLICE", "_WORTH_SENDING", "_WORTH_STARTING"):
        monkeypatch.setattr(local, name, 0)
    monkeypatch.setattr(local, "_LEAST_SLICE", 300)
    yield
    POOL.close()


def rows() -> np.ndarray:
    """A mark for each client whose sum shows a client that is missing or counted twice."""
    index = np.arange(N, dtype=float)
    return np.column_stack([index, index**2, np.ones(N)])


@pytest.mark.parametrize("shares", ["raw", "seeds"])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_every_client_is_counted_once(workers: int, shares: str):
    ticks: list[int] = []
    engine = LocalEngine(computes=3, workers=workers, shares=shares, tick=ticks.append)
    for _ in range(2):  # the second round finds the workers warm
        assert engine.private_sum(rows(), gaussian_round(STATISTIC, 0.0)).value.tolist() == rows().sum(axis=0).tolist()
    assert sum(ticks) == 2 * N


def test_absent_clients_are_left_out():
    engine = LocalEngine(computes=3, workers=2, tolerate=4, absent=(0, 17), lost_halfway=(N - 1,))
    expected = np.delete(rows(), [0, 17, N - 1], axis=0).sum(axis=0)
    assert engine.private_sum(rows(), gaussian_round(STATISTIC, 0.0)).value.tolist() == expected.tolist()


def test_a_seed_gives_the_same_release_for_any_number_of_workers():
    values = [
        LocalEngine(seed=7, workers=w).private_sum(rows(), gaussian_round(STATISTIC, 1.0)).value.tolist()
        for w in (1, 2, 3)
    ]
    assert values[0] == values[1] == values[2]


def test_without_a_seed_noise_never_repeats():
    engine = LocalEngine(workers=2)
    values = [engine.private_sum(rows(), gaussian_round(STATISTIC, 1.0)).value[2] for _ in range(5)]
    assert len(set(values)) == 5


def test_noise_has_the_stated_size():
    """4000 clients in some 40 slices by 2 workers; 300 releases of 3 coordinates, within 6 standard errors."""
    engine = LocalEngine(workers=2, tolerate=10)
    exact = rows().sum(axis=0)
    releases = [engine.private_sum(rows(), gaussian_round(STATISTIC, 2.0)) for _ in range(100)]
    z = np.concatenate([(r.value - exact) / r.noise_std for r in releases])
    assert abs(np.mean(z**2) - 1) < 6 * np.sqrt(2 / z.size)


def test_threads_take_turns():
    engine, found = LocalEngine(workers=2), []
    threads = [
        threading.Thread(
            target=lambda: found.append(engine.private_sum(rows(), gaussian_round(STATISTIC, 0.0)).value.tolist())
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [rows().sum(axis=0).tolist()] * 4


def test_a_killed_worker_is_one_line_and_the_next_round_works():
    engine = LocalEngine(workers=2)
    engine.warm_up()
    victim = POOL.use(2, lambda workers: workers._links[0].process)
    os.kill(victim.pid, signal.SIGKILL)
    victim.wait()
    with pytest.raises(HubbubError, match=r"worker processes must live until the round ends, .*nothing was released"):
        engine.private_sum(rows(), gaussian_round(STATISTIC, 0.0))
    assert engine.private_sum(rows(), gaussian_round(STATISTIC, 0.0)).value.tolist() == rows().sum(axis=0).tolist()


def test_an_interrupt_ends_the_workers():
    def interrupted(workers: Workers) -> None:
        raise KeyboardInterrupt

    LocalEngine(workers=2).warm_up()
    links = POOL.use(2, lambda workers: workers._links)
    with pytest.raises(KeyboardInterrupt):
        POOL.use(2, interrupted)
    assert not POOL.warm(2)
    assert all(link.process.poll() is not None for link in links)


@dataclass(frozen=True)
class Homemade(Means):
    """A statistic of this test alone: no other process can import it."""

    __module__ = "__main__"


def test_a_statistic_that_only_this_process_knows_stays_here():
    release = LocalEngine(workers=2).private_sum(rows(), gaussian_round(Homemade(STATISTIC.bounds), 0.0))
    assert release.value.tolist() == rows().sum(axis=0).tolist()


@dataclass(frozen=True)
class Faulty(Means):
    def vectors(self, rows: np.ndarray) -> np.ndarray:
        raise InvalidInput("sample must be kind, got sample=unkind; be kind")


def test_what_a_statistic_refuses_is_the_same_line(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTHONPATH", os.path.dirname(__file__), prepend=os.pathsep)
    with pytest.raises(InvalidInput, match="sample must be kind, got sample=unkind; be kind"):
        LocalEngine(workers=2).private_sum(rows(), gaussian_round(Faulty(STATISTIC.bounds), 0.0))


def test_what_is_not_finite_counts_as_zero_and_the_parent_is_told_how_many():
    wrong = rows()
    wrong[[3, 2000, 2001], 1] = np.nan
    expected = np.delete(rows(), [3, 2000, 2001], axis=0).sum(axis=0)
    with pytest.warns(OutOfDomainWarning, match=f"got 3 of {N} that are not; each of them counts as zero"):
        found = LocalEngine(workers=2).private_sum(wrong, gaussian_round(STATISTIC, 0.0))
    assert found.value.tolist() == expected.tolist()


def test_workers_end_with_their_parent():
    code = (
        "import os, time; from hubbub.engines import LocalEngine; from hubbub.engines.local.pool import POOL\n"
        "LocalEngine(workers=2).warm_up()\n"
        "print(*[link.process.pid for link in POOL._workers._links], flush=True)\n"
        "time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pids = [int(word) for word in parent.stdout.readline().split()]
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 20
    while any(os.path.exists(f"/proc/{pid}") for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(pids) == 2
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)


@pytest.mark.parametrize("workers", [0, -1, 1.5])
def test_bad_number_of_workers_is_one_line(workers: float):
    with pytest.raises(InvalidInput, match="workers must be a whole number >= 1, got workers="):
        LocalEngine(workers=workers)  # type: ignore[arg-type]
