"""Of many Computes each client uses few: who they are, what a group of them learns, and what their sums tell."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from conftest import FALSE_ALARM
from hubbub.engines.local import LocalEngine
from hubbub.errors import InvalidInput, RoundRefused
from hubbub.privacy import gaussian_round
from hubbub.randomness import Randomness
from hubbub.securesum import SECURE_SUMS, Additive, Subset, conspiring_sizes, least_clients, smallest_k
from hubbub.securesum.exposure import hold_together
from hubbub.securesum.subset import _tied, add_rows_to, drawn_computes
from hubbub.statistics import Means

MANY = Subset(50, 3, "a seed")


def test_all_sums_together_give_the_exact_total():
    words = np.random.default_rng(0).integers(0, 2**64, size=(200, 70), dtype=np.uint64)
    sums = {k: MANY.empty(70) for k in range(50)}
    for client, row in enumerate(words):
        shares = MANY.shard(row, f"client-{client}", Randomness.system())
        assert len(shares) == 3
        for k, share in zip(MANY.recipients(f"client-{client}"), shares, strict=True):
            MANY.accumulate(sums[k], share)
    assert (MANY.unshard(sums) == words.sum(axis=0, dtype=np.uint64)).all()
    assert MANY.enough(range(50))
    assert not MANY.enough(range(49))


def test_a_client_sends_what_it_would_send_to_k_computes():
    words = np.arange(100, dtype=np.uint64)
    sizes = [[len(s.body) for s in scheme.shard(words, "a", Randomness.system())] for scheme in (MANY, Additive(3))]
    assert sorted(sizes[0]) == sorted(sizes[1]) == [32, 32, 800]
    assert MANY.forms(100) == Additive(3).forms(100)


def test_the_draw_is_the_same_everywhere():
    """Pinned: a change would send clients of a running study to other Computes."""
    assert MANY.recipients("client-1") == (20, 25, 41)
    assert MANY.recipients("\N{SNOWMAN}") == Subset(50, 3, "a seed").recipients("\N{SNOWMAN}")
    assert MANY.recipients("client-1") != Subset(50, 3, "another seed").recipients("client-1")
    assert Subset(4, 4, "x").recipients("whoever") == (0, 1, 2, 3)
    assert Subset(50, 3, "ab").recipients("c") != Subset(50, 3, "a").recipients("bc")


def test_every_set_of_computes_is_equally_likely():
    """20000 names among the 20 sets of 3 of 6, by the hash and in a simulation: chi-squared, FALSE_ALARM each."""
    sets = list(combinations(range(6), 3))
    scheme, drawn = Subset(6, 3, "a seed"), drawn_computes(20_000, 6, 3, Randomness.simulation(4))
    hashed = [sets.index(scheme.recipients(f"client-{i}")) for i in range(20_000)]
    simulated = [sets.index(tuple(sorted(each))) for each in drawn.T.tolist()]
    for found in (hashed, simulated):
        assert stats.chisquare(np.bincount(found, minlength=20)).pvalue > FALSE_ALARM
    for place in drawn:
        assert stats.chisquare(np.bincount(place, minlength=6)).pvalue > FALSE_ALARM


# ------------------------------------------------------------------------------------------------------- exposure


@pytest.mark.parametrize("conspiring", [5, 10, 20])
def test_the_predicted_number_of_exposed_clients_is_what_is_counted(conspiring: int):
    """N = 100000 clients, 50 Computes, k = 3: a binomial count, within its FALSE_ALARM interval."""
    clients, group = 100_000, set(range(conspiring))
    counted = sum(group.issuperset(recipients) for recipients in map(MANY.recipients, NAMES))
    expected = MANY.exposure(conspiring, clients)
    assert expected == pytest.approx(
        clients * conspiring * (conspiring - 1) * (conspiring - 2) / (50 * 49 * 48), rel=1e-12
    )
    low, high = stats.binom(clients, expected / clients).interval(1 - FALSE_ALARM)
    assert low <= counted <= high


def test_a_simulation_exposes_as_many_and_its_sum_is_exact():
    """The same in the local engine, whose clients have no names: the count is binomial, within FALSE_ALARM."""
    rows = np.arange(100_000.0)[:, None] % 1000
    release = LocalEngine(secure_sum=Subset(50, 3)).private_sum(rows, gaussian_round(Means((1024.0,)), 0.0))
    assert (release.value.tolist(), release.clients) == ([rows.sum()], 100_000)
    sealed = LocalEngine(secure_sum=Subset(6, 3), seal=True).private_sum(rows[:60], gaussian_round(Means((64.0,)), 0.0))
    assert sealed.value.tolist() == [rows[:60].sum()], "where the roles themselves run, the engine draws a seed"
    drawn = drawn_computes(100_000, 50, 3, Randomness.simulation(7))
    for conspiring in (5, 10, 20):
        counted = int((drawn < conspiring).all(axis=0).sum())
        expected = stats.binom(100_000, MANY.exposure(conspiring, 1))
        low, high = expected.interval(1 - FALSE_ALARM)
        assert low <= counted <= high


NAMES = [f"client-{number}" for number in range(100_000)]


def test_fewer_than_k_conspirators_expose_nobody_and_all_expose_everybody():
    assert MANY.exposure(2, 10**9) == 0
    assert MANY.exposure(50, 1234) == 1234
    for wrong in (-1, 51, 2.5):
        with pytest.raises(InvalidInput, match="conspiring must be a whole number in 0..50"):
            MANY.exposure(wrong, 10)


def test_the_smallest_k_meets_the_risk_and_no_smaller_one_does():
    for computes, conspiring, clients, risk in (
        (50, 10, 10**5, 1.0),
        (50, 25, 10**6, 0.01),
        (5, 4, 10, 0.5),
        (9, 1, 10, 1),
    ):
        k = smallest_k(computes, conspiring, clients, risk)
        assert Subset(computes, k, "s").exposure(conspiring, clients) <= risk
        assert k == 2 or Subset(computes, k - 1, "s").exposure(conspiring, clients) > risk
    assert smallest_k(50, 10, 10**5, 1.0) == 7
    with pytest.raises(InvalidInput, match="conspiring must be a whole number in 0..49, got conspiring=50"):
        smallest_k(50, 50, 10, 0.1)
    with pytest.raises(InvalidInput, match="risk must be a number of clients above 0"):
        smallest_k(50, 5, 10, 0.0)


# ---------------------------------------------------------------------------------------- what the sums would tell


def names_for(scheme: Subset, *wanted: tuple[int, ...]) -> list[str]:
    """Clients that these Computes serve."""
    found = []
    for serving in wanted:
        names = (f"{serving}-{i}" for i in range(100_000))
        found.append(next(name for name in names if scheme.recipients(name) == serving))
    return found


def test_sums_over_clients_that_nobody_ties_together_tell_parts_of_the_total():
    """The attack that `vetted` is there for: Computes 0 and 1 share their clients, and so do 2 and 3."""
    scheme = Subset(4, 2, "a seed")
    roster = names_for(scheme, (0, 1), (2, 3))
    sums = {k: scheme.empty(1) for k in range(4)}
    for name, word in zip(roster, (7, 100), strict=True):
        for k, share in zip(
            scheme.recipients(name),
            scheme.shard(np.array([word], dtype=np.uint64), name, Randomness.system()),
            strict=True,
        ):
            scheme.accumulate(sums[k], share)
    assert (sums[0] + sums[1]).tolist() == [7], "one client's words, from published sums alone"
    with pytest.raises(RoundRefused) as caught:
        list(scheme.vetted(roster))
    assert caught.value.reason == "loose-computes"


def test_one_conspirator_could_cut_a_chain():
    """Clients at (0, 1) and (1, 2): the sums tell the total alone, but not to Compute 1, which k - 1 = 1 may be."""
    scheme = Subset(3, 2, "a seed")
    with pytest.raises(RoundRefused):
        list(scheme.vetted(names_for(scheme, (0, 1), (1, 2))))
    whole = names_for(scheme, (0, 1), (1, 2), (0, 2))
    assert list(scheme.vetted(whole)) == whole
    assert list(scheme.vetted(whole[:1])) == whole[:1], "a Compute without clients is tied to nobody, and tells nothing"


def test_colluding_clients_tie_nothing():
    """A triangle of one client each: whoever knows the shares of one has a chain before them, and cuts it."""
    scheme = Subset(3, 2, "a seed")
    triangle = names_for(scheme, (0, 1), (1, 2), (0, 2))
    assert list(scheme.vetted(triangle)) == triangle
    with pytest.raises(RoundRefused):
        list(scheme.vetted(triangle, 1))
    twice = [name for i in range(200) if scheme.recipients(name := f"again-{i}")]
    assert list(scheme.vetted(twice, 40)) == twice
    with pytest.raises(RoundRefused):
        list(scheme.vetted(twice, 100))


@pytest.mark.parametrize("colluding", [0, 1, 2])
@pytest.mark.parametrize(("computes", "each"), [(5, 2), (6, 3), (8, 3), (7, 2), (6, 4)])
def test_a_roster_that_passes_holds_together_whoever_conspires(computes: int, each: int, colluding: int):
    """Random rosters of all lengths, and every group of k - 1: what is left is connected where `vetted` says so.

    Colluding clients are taken away at random, and those of one Compute first.
    """
    scheme, passed, refused = Subset(computes, each, "another seed"), 0, 0
    rng = np.random.default_rng(0)
    for trial in range(200):
        roster = [f"{trial}-{i}" for i in range(1 + trial % 40)]
        try:
            assert list(scheme.vetted(roster, colluding)) == roster
        except RoundRefused:
            refused += 1
            continue
        passed += 1
        groups = [set(scheme.recipients(name)) for name in roster]
        rarest = min(range(computes), key=lambda k: sum(k in group for group in groups))
        for gone in combinations(range(computes), each - 1):
            targets = sorted(groups, key=lambda group: (rarest not in group, len(group - set(gone))))
            for left in (targets[colluding:], [groups[i] for i in rng.permutation(len(groups))[colluding:]]):
                assert connected([group - set(gone) for group in left if group - set(gone)])
    assert passed > 10
    assert refused > 10


def connected(groups: list[set[int]]) -> bool:
    """True where these sets hang together."""
    reached, rest = set(groups[0]), groups[1:]
    while touching := [group for group in rest if group & reached]:
        reached = reached.union(*touching)
        rest = [group for group in rest if group not in touching]
    return not rest


def ties_of(computes: int, each: int, clients: int, seed: int) -> np.ndarray:
    """How many clients two Computes have in common, after a simulated draw."""
    serving, ties = drawn_computes(clients, computes, each, Randomness.simulation(seed)), np.zeros((computes,) * 2, int)
    np.add.at(ties, (serving[:, None], serving), 1)
    return ties


def one_by_one(ties: np.ndarray, each: int, colluding: int) -> bool:
    """`hold_together` as its first two paragraphs say it, one pair of Computes after the other."""
    for i, j in combinations(range(len(ties)), 2):
        through = np.minimum(ties[i], ties[j])
        through[[i, j]] = 0
        if ties[i, j] + np.sort(through)[: 1 - each].sum() <= (each - 1) * colluding:
            return False
    return True


def test_all_ways_are_counted_as_they_are_one_by_one():
    """1500 random draws of few Computes and 40 of more than are looked at together, about as many loose as tied."""
    rng, found = np.random.default_rng(5), {True: 0, False: 0}
    for trial in range(1540):
        computes = int(rng.integers(2, 10) if trial < 1500 else rng.integers(65, 140))
        each = int(rng.integers(2, computes + 1) if trial < 1500 else rng.integers(2, 5))
        ties = ties_of(computes, each, int(rng.integers(1, 4 * computes**2 // each**2 + 10)), trial)
        colluding = int(rng.integers(0, 6))
        expected = one_by_one(ties, each, colluding)
        assert hold_together(ties, each, colluding) is expected
        found[expected] += 1
    assert min(found.values()) > 300


def test_four_hundred_computes_are_checked_as_one_by_one():
    """A node checks before it sums, `explain` hundreds of times: so all Computes are checked at once."""
    ties = ties_of(400, 2, 20_000, 1)
    assert hold_together(ties, 2, 1)
    assert one_by_one(ties, 2, 1)


def test_a_few_hundred_clients_tie_fifty_computes_together():
    assert list(MANY.vetted(NAMES[:400], 1)) == NAMES[:400]
    with pytest.raises(RoundRefused, match="clients must tie the 50 Computes together.*use fewer Computes, or more"):
        list(MANY.vetted(NAMES[:30]))


# ------------------------------------------------------------------------------------------------------ simulation


@pytest.mark.parametrize(("clients", "dimension"), [(3, 3), (400, 5), (400, 300), (40, 5), (2, 70_000)])
def test_a_simulation_adds_every_client_once(clients: int, dimension: int):
    words = np.random.default_rng(1).integers(0, 2**64, size=(clients, dimension), dtype=np.uint64)
    tally = MANY.tally(dimension, Randomness.system())
    for rows, columns in tally.blocks(clients):
        assert columns == slice(0, dimension), "a client's Computes are drawn once, for all its words"
        tally.add(words[rows, columns].copy(), columns)
    assert (MANY.unshard(dict(enumerate(tally.sums))) == words.sum(axis=0, dtype=np.uint64)).all()


@pytest.mark.parametrize("dimension", [3, 300])
@pytest.mark.parametrize("rows", [1, 5, 500])
def test_rows_go_to_their_places(rows: int, dimension: int):
    rng = np.random.default_rng(2)
    words, places = rng.integers(0, 2**64, size=(rows, dimension), dtype=np.uint64), rng.integers(0, 7, rows)
    totals, expected = np.ones((7, dimension), dtype=np.uint64), np.ones((7, dimension), dtype=np.uint64)
    add_rows_to(totals, places, words)
    for place, row in zip(places, words, strict=True):
        expected[place] += row
    assert (totals == expected).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, 4, "s"), "each must be a whole number in 2..3, got each=4"),
        ((3, 1, "s"), "each must be a whole number in 2..3, got each=1"),
        ((1, 2, "s"), "computes must be a whole number in 2..1000"),
        ((3, 2, ""), "seed must be a text of 1 to 200 bytes, got seed=''"),
        ((3, 2, "x" * 201), "seed must be a text of 1 to 200 bytes"),
        ((3, 2, 7), "seed must be a text of 1 to 200 bytes, got seed=7"),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[int, int, str], message: str):
    with pytest.raises(InvalidInput, match=message) as caught:
        Subset(*arguments)
    assert "\n" not in str(caught.value)


# ------------------------------------------------------------------------------------------------ before it is drawn


def test_without_a_seed_nobody_is_served_and_all_else_is_known():
    undrawn = Subset(50, 3)
    assert (undrawn.undrawn, MANY.undrawn) == (True, False)
    assert undrawn.describe() == {"scheme": "subset", "computes": 50, "each": 3}
    assert SECURE_SUMS.read(undrawn.describe()) == undrawn
    assert (undrawn.trust(), undrawn.quorum, undrawn.exposure(10, 100)) == (MANY.trust(), 50, MANY.exposure(10, 100))
    with pytest.raises(InvalidInput, match="seed must be drawn before clients have their Computes"):
        undrawn.recipients("a")
    with pytest.raises(InvalidInput, match="seed must be drawn"):
        list(undrawn.vetted(["a"]))
    assert undrawn.drawn("a seed") == MANY
    assert MANY.drawn("another") == MANY, "what is drawn stays"
    assert Additive(3).drawn("a seed") == Additive(3)


@pytest.mark.parametrize(
    ("computes", "each", "colluding", "draws"),
    [(3, 2, 6, 3000), (5, 2, 1, 3000), (8, 3, 6, 3000), (50, 3, 2, 1000)],
)
def test_as_many_clients_as_are_said_to_be_needed_almost_always_pass(
    computes: int, each: int, colluding: int, draws: int
):
    """At most one draw in 1000 fails with so many clients (FALSE_ALARM at that rate), and most do with a quarter."""
    needed = least_clients(computes, each, colluding)
    failed = draws - passing(computes, each, colluding, needed, draws)
    assert stats.binom.sf(failed - 1, draws, 1e-3) > FALSE_ALARM
    assert passing(computes, each, colluding, needed // 4, 40) <= 10


def test_one_client_is_enough_where_each_uses_all_computes():
    assert least_clients(4, 4) == 1


def passing(computes: int, each: int, colluding: int, clients: int, draws: int) -> int:
    """How many of so many draws hold together; made as the simulation makes them, with other numbers."""
    drawn = (drawn_computes(clients, computes, each, Randomness.simulation(10**6 + n)) for n in range(draws))
    return sum(_tied(serving, computes, each, colluding) for serving in drawn)


def test_who_is_exposed_covers_nobody_else():
    """3 of 5 Computes pool what they hold: of the total they can take away what a third of the clients sent."""
    scheme, group, words = (
        Subset(5, 2, "a seed"),
        {0, 1, 2},
        np.random.default_rng(1).integers(0, 2**64, (60, 3), np.uint64),
    )
    sums, seen = {k: scheme.empty(3) for k in range(5)}, scheme.empty(3)
    exposed = [set(scheme.recipients(f"c{client}")) <= group for client in range(60)]
    for client, row in enumerate(words):
        serving = scheme.recipients(f"c{client}")
        for k, share in zip(serving, scheme.shard(row, f"c{client}", Randomness.system()), strict=True):
            scheme.accumulate(sums[k], share)
            if set(serving) <= group:
                scheme.accumulate(seen, share)
    assert 0 < sum(exposed) < 60
    assert (scheme.unshard(sums) - seen == words[~np.array(exposed)].sum(axis=0, dtype=np.uint64)).all()
    assert "sees the total of the others without these clients' noise" in scheme.trust().proviso


def test_exposure_is_told_for_groups_of_several_sizes():
    assert conspiring_sizes(50, 3) == (3, 5, 10, 25, 49)
    assert conspiring_sizes(3, 2) == (2,)
    assert conspiring_sizes(3, 3) == ()
    assert Subset(3, 3).trust().proviso == ""
    assert "0.61 % with 10" in MANY.trust().proviso
    assert "if every client was told its name before the draw" in MANY.trust().proviso
    assert "these others may even fall into parts, each with a total of its own" in MANY.trust().proviso
    assert (
        "conspires with the last Compute to reveal has some draws to choose from, 3 by default" in MANY.trust().proviso
    )
    assert "these are about 0.051 with 3, 0.51 with 5, 6.1 with 10, 117 with 25" in MANY.trust().beyond(1000)
    assert (Subset(3, 3).trust().beyond(1000), Subset(3, 3).trust().exposed) == ("", ())
