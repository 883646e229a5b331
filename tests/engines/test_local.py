"""The local engine: variance of Theorem 1, faults, chunks, and no short cut."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from conftest import FALSE_ALARM
from hubbub.engines import LocalEngine
from hubbub.engines.local import engine as local
from hubbub.errors import InvalidInput, RoundRefused
from hubbub.privacy import gaussian_round
from hubbub.protocols import RoundSpec
from hubbub.randomness import Randomness
from hubbub.securesum import tally
from hubbub.statistics import Means

MARKS = Means((2.0**20,))


@pytest.mark.parametrize(("n", "t"), [(10, 0), (10, 5), (10, 8), (100, 50)])
def test_variance_of_a_release_is_n_over_n_minus_t_minus_1_sigma_std(n: int, t: int):
    """2000 coordinates in each of 5 releases; false alarm FALSE_ALARM."""
    statistic = Means((0.5,) * 2000)
    engine = LocalEngine(computes=3, tolerate=t, theorem1=True, seed=n + t)
    values = np.concatenate(
        [engine.private_sum(np.zeros((n, 2000)), gaussian_round(statistic, 1.0)).value for _ in range(5)]
    )
    sigma_std = engine.settle(gaussian_round(statistic, 1.0), n).noise.sigma_std
    low, high = stats.chi2(values.size).interval(1 - FALSE_ALARM)
    assert low < np.sum(values**2) / (sigma_std**2 * n / (n - t - 1)) < high


@pytest.mark.parametrize(("dropouts", "colluding"), [(4, 0), (0, 4), (3, 2), (5, 5)])
@pytest.mark.parametrize("holds", [1, 10])
def test_dropouts_colluders_and_the_curious_client_together_leave_sigma_std(dropouts: int, colluding: int, holds: int):
    """The adversary lets D clients go missing, has C tell their noise, and subtracts its own: sigma_std is left.

    Whatever number of samples a client holds. Before, colluders or dropouts were covered, counted in samples.
    """
    clients = 12
    statistic = Means((0.5,) * 2000)
    engine = LocalEngine(
        dropouts=dropouts, colluding=colluding, colluders=tuple(range(colluding + 1)), holds=holds, seed=3,
        absent=tuple(range(clients - dropouts, clients)),
    )  # fmt: skip
    release = engine.private_sum(np.zeros((clients * holds, 2000)), gaussian_round(statistic, 1.0))
    assert (release.clients, release.n) == (clients - dropouts, (clients - dropouts) * holds)
    sigma_std = release.protection.sigma_std
    assert release.noise_std == pytest.approx(sigma_std)
    low, high = stats.chi2(2000).interval(1 - FALSE_ALARM)
    assert low < np.sum(release.value**2) / sigma_std**2 < high


@pytest.mark.parametrize("seal", [False, True])
def test_dropouts_at_either_step_are_in_no_sum(seal: bool):
    rows = 2.0 ** np.arange(20)[:, None]  # a unique mark per client: a double count would show
    engine = LocalEngine(computes=3, tolerate=5, absent=(0, 7), lost_halfway=(19,), seal=seal)
    release = engine.private_sum(rows, gaussian_round(MARKS, 0.0))
    assert release.value[0] == 2.0**20 - 1 - 2**0 - 2**7 - 2**19
    assert (release.n, release.clients, release.dropouts, release.colluders_covered) == (17, 17, 3, 5)


@pytest.mark.parametrize("seal", [False, True])
def test_colluders_add_no_noise(seal: bool):
    rows = 2.0 ** np.arange(20)[:, None]
    engine = LocalEngine(computes=3, tolerate=5, colluders=tuple(range(20)), seal=seal)
    assert engine.private_sum(rows, gaussian_round(MARKS, 1.0)).value[0] == 2.0**20 - 1


@pytest.mark.parametrize("seal", [False, True])
def test_more_dropouts_than_tolerated_are_refused(seal: bool):
    engine = LocalEngine(tolerate=1, absent=(0,), lost_halfway=(1,), seal=seal)
    with pytest.raises(RoundRefused, match=r"clients must number at least 19 .*got 18; the round is refused"):
        engine.private_sum(np.zeros((20, 1)), gaussian_round(MARKS, 1.0))


@pytest.mark.parametrize("fault", ["absent", "lost_halfway", "colluders"])
@pytest.mark.parametrize("index", [20, 1000])
def test_fault_of_a_client_that_does_not_exist_is_one_line(fault: str, index: int):
    engine = LocalEngine(tolerate=2, **{fault: (index,)})
    with pytest.raises(InvalidInput, match=rf"client must be a number in 0..19, got client={index}"):
        engine.private_sum(np.zeros((20, 1)), gaussian_round(MARKS, 1.0))


@pytest.mark.parametrize("computes", [2, 3, 7])
@pytest.mark.parametrize("clients", [6, 7, 100, 1001])
def test_chunks_of_any_size_give_the_same_exact_sum(computes: int, clients: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tally, "BLOCK_WORDS", 64)
    monkeypatch.setattr(local, "_ONE_SLICE", 1000)
    monkeypatch.setattr(local, "_LEAST_SLICE", 100)
    rows = np.arange(clients, dtype=float)[:, None] * [1, -2, 3]
    release = LocalEngine(computes=computes, tolerate=2, absent=(2,)).private_sum(
        rows, gaussian_round(Means((4000.0,) * 3), 0.0)
    )
    assert release.value.tolist() == [s * (rows[:, 0].sum() - 2) for s in (1, -2, 3)]


def test_vectors_longer_than_a_chunk():
    rows = np.ones((5, 40_000))
    assert (LocalEngine(computes=3).private_sum(rows, gaussian_round(Means((1.0,) * 40_000), 0.0)).value == 5.0).all()


def test_no_compute_and_no_m_minus_1_of_them_see_the_sum():
    """All clients send the same number: the sums of two Computes out of three do not show it."""
    engine = LocalEngine(computes=3)
    rows = np.ones((50, 8))
    plan = engine.settle(gaussian_round(Means((1.0,) * 8), 0.0), 50)
    sums = engine.compute_sums(plan, rows)
    assert (plan.noise.grid.decode(engine.scheme.unshard(dict(enumerate(sums)))) == 50.0).all()
    again = engine.compute_sums(plan, rows)
    for k in range(3):
        assert (sums[k] != again[k]).all()
        assert np.unique(sums[k]).size == 8
        rest = np.delete(sums, k, axis=0).sum(axis=0, dtype=np.uint64)
        assert np.unique(rest).size == 8


def test_engine_is_not_a_short_cut(monkeypatch: pytest.MonkeyPatch):
    """Take away the masks and the Computes' sums become readable: so the masks are what hides them."""
    monkeypatch.setattr(Randomness, "fill_words", lambda self, out: out.fill(0))
    engine = LocalEngine(computes=3)
    plan = engine.settle(gaussian_round(Means((1.0,)), 0.0), 6)
    readable = plan.noise.grid.decode(engine.compute_sums(plan, np.ones((6, 1))))
    assert readable.ravel().tolist() == [6.0, 0.0, 0.0]  # one Compute got the six masked vectors of this block


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"computes": 1}, "computes must be a whole number in 2..1000, got computes=1"),
        ({"tolerate": -1}, "tolerate must be a whole number >= 0, got tolerate=-1"),
        ({"seal": "RSA"}, "suite must be one of X25519"),
        ({"seed": -3}, "seed must be a whole number"),
        ({"computes": 2.5}, "computes must be a whole number in 2..1000, got computes=2.5"),
        ({"tolerate": 1.5}, "tolerate must be a whole number >= 0, got tolerate=1.5"),
        ({"absent": (-1,)}, "absent must be a whole number >= 0, got absent=-1"),
        ({"absent": 1}, "absent must be a list of row numbers, got absent=1"),
        ({"colluders": (1.5,)}, "colluders must be a whole number"),
    ],
)
def test_bad_engine_is_one_line(arguments: dict[str, object], message: str):
    with pytest.raises(InvalidInput, match=message):
        LocalEngine(**arguments)  # type: ignore[arg-type]


def test_ring_that_is_too_small_is_one_line():
    with pytest.raises(InvalidInput, match=r"fraction_bits must be at most \d+ .*got fraction_bits=50; use \d+"):
        LocalEngine(fraction_bits=50).private_sum(np.zeros((1000, 1)), gaussian_round(Means((1000.0,)), 1.0))


def test_copies_and_pickles_work_and_share_no_noise():
    engine = LocalEngine(seed=4, tolerate=1)
    rows = np.zeros((5, 1))
    assert copy.deepcopy(engine) == engine
    elsewhere = pickle.loads(pickle.dumps(engine))
    assert elsewhere == engine
    assert (
        elsewhere.private_sum(rows, gaussian_round(MARKS, 1.0)).value
        != engine.private_sum(rows, gaussian_round(MARKS, 1.0)).value
    )


@pytest.mark.parametrize("bits", [-1, 0, 2])
def test_grid_that_would_swallow_the_noise_is_refused(bits: int):
    """100000 clients with little noise each: on a coarse grid all of it would be rounded away."""
    engine = LocalEngine(fraction_bits=bits)
    with pytest.raises(
        InvalidInput, match=r"fraction_bits must be so large that a step is at most 1/8 of a client's noise"
    ):
        engine.private_sum(np.ones((100_000, 1)), gaussian_round(Means((1.0,)), 1.0))


@pytest.mark.parametrize("bits", [8, 12, None])
def test_noise_survives_the_coarsest_grid_that_is_allowed(bits: int | None):
    """Data exactly on the grid, so that only the noise can be rounded; variance as stated (FALSE_ALARM)."""
    statistic = Means((1.0,) * 100)
    engine = LocalEngine(fraction_bits=bits, seed=1)
    releases = [engine.private_sum(np.ones((2000, 100)), gaussian_round(statistic, 0.5)) for _ in range(10)]
    z = np.concatenate([(r.value - 2000) / r.noise_std for r in releases])
    low, high = stats.chi2(z.size).interval(1 - FALSE_ALARM)
    assert low < np.sum(z**2) < 1.01 * high


@pytest.mark.parametrize("scale", [1e-40, 1e-8, 1e8, 1e40])
def test_units_do_not_matter(scale: float):
    rows = np.random.default_rng(0).uniform(-1, 1, size=(500, 2))
    unit = LocalEngine(seed=2).private_sum(rows, gaussian_round(Means((1.0, 1.0)), 1.0))
    scaled = LocalEngine(seed=2).private_sum(rows * scale, gaussian_round(Means((scale, scale)), 1.0))
    np.testing.assert_allclose(scaled.value / scale, unit.value, rtol=1e-6)


def test_colluders_named_twice_count_once():
    engine = LocalEngine(tolerate=3, colluders=(1, 1, 1))
    assert engine.private_sum(np.zeros((20, 1)), gaussian_round(MARKS, 1.0)).protection.colluders == 1


def test_rows_in_fortran_order():
    rows = np.asfortranarray(np.ones((50, 3)))
    assert (
        LocalEngine(computes=3).private_sum(rows, gaussian_round(Means((1.0,) * 3), 0.0)).value.tolist() == [50.0] * 3
    )


def test_threads_share_an_engine_and_no_noise_is_damaged():
    """Two threads draw from one stream: every release is finite, different, and has the stated variance."""
    engine, statistic = LocalEngine(seed=5), Means((1.0,) * 200)
    with ThreadPoolExecutor(4) as pool:
        releases = list(
            pool.map(lambda _: engine.private_sum(np.zeros((300, 200)), gaussian_round(statistic, 1.0)), range(60))
        )
    z = np.concatenate([r.value / r.noise_std for r in releases])
    low, high = stats.chi2(z.size).interval(1 - FALSE_ALARM)
    assert low < np.sum(z**2) < high
    assert np.unique(z).size == z.size


@pytest.mark.parametrize("seal", [False, True])
@pytest.mark.parametrize("samples", [97, 100])
def test_parties_of_any_size_give_the_same_exact_sum(seal: bool, samples: int, monkeypatch: pytest.MonkeyPatch):
    """Parties of 10, the last of 7 or 10; one is absent with all its samples, and slices never cut a party in two."""
    monkeypatch.setattr(local, "_ONE_SLICE", 50)
    monkeypatch.setattr(local, "_LEAST_SLICE", 30)
    monkeypatch.setattr(tally, "BLOCK_WORDS", 16)
    rows = np.arange(samples, dtype=float)[:, None] * [1, -2]
    engine = LocalEngine(dropouts=1, colluding=1, holds=10, absent=(3,), seal=seal)
    release = engine.private_sum(rows, gaussian_round(Means((400.0, 400.0)), 0.0))
    assert release.value.tolist() == [s * (rows[:, 0].sum() - rows[30:40, 0].sum()) for s in (1, -2)]
    assert (release.clients, release.n, release.dropouts) == (9, samples - 10, 1)


@pytest.mark.parametrize("seal", [False, True])
def test_a_client_adds_one_share_of_noise_whatever_it_holds(seal: bool):
    """5 hospitals of 40 samples, one of which may be missing and one may collude: noise of 5/2 sigma_std^2 in all."""
    engine = LocalEngine(dropouts=1, colluding=1, holds=40, seed=5, seal=seal)
    release = engine.private_sum(np.zeros((200, 500)), gaussian_round(Means((0.5,) * 500), 1.0))
    assert release.protection.population.shares == 2
    assert release.noise_std == pytest.approx(release.protection.sigma_std * np.sqrt(5 / 2))
    low, high = stats.chi2(500).interval(1 - FALSE_ALARM)
    assert low < np.sum(release.value**2) / release.noise_std**2 < high


def test_workers_and_parties_give_the_same_exact_sum():
    rows = np.arange(60_000, dtype=float)[:, None] % 977 * np.ones(20)
    engine = LocalEngine(computes=4, workers=2, holds=7, dropouts=1, absent=(11,))
    local.POOL.use(2, lambda _: None)
    release = engine.private_sum(rows, gaussian_round(Means((1000.0,) * 20), 0.0))
    assert (release.value == rows[:, 0].sum() - rows[77:84, 0].sum()).all()


def test_picked_batches_need_a_client_for_every_row():
    with pytest.raises(InvalidInput, match="selection must be 'self' where clients hold several samples"):
        LocalEngine(holds=2).private_sum(np.zeros((10, 1)), replace(gaussian_round(MARKS, 1.0), chosen=np.arange(4)))


@pytest.mark.parametrize("seal", [False, True])
def test_only_picked_clients_are_in_the_sum_and_faults_keep_their_numbers(seal: bool):
    rows = 2.0 ** np.arange(20)[:, None]
    engine = LocalEngine(tolerate=1, absent=(7,), colluders=(3, 12), seal=seal)
    spec: RoundSpec = replace(gaussian_round(MARKS, 0.0), chosen=np.array([12, 7, 0, 1, 19]))
    release = engine.private_sum(rows, spec)
    assert release.value[0] == 2**12 + 2**0 + 2**1 + 2**19
    assert (release.n, release.clients, release.dropouts) == (4, 4, 1)
    assert release.protection.population.clients == 5
    assert release.protection.colluders == 1  # 3 was not picked
