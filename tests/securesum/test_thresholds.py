"""Replicated and Shamir's sharing: any t sums give the total, any t - 1 tell nothing, and wrong sums show."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy import stats

from conftest import FALSE_ALARM
from hubbub.errors import CannotCombine, InvalidInput
from hubbub.randomness import Randomness
from hubbub.securesum import Additive, Replicated, Shamir, shamir
from hubbub.securesum.field import LARGEST, PRIME, weights
from hubbub.securesum.replicated import MOST_PIECES, held_by
from hubbub.securesum.shamir import VALUES, elements

Scheme = Replicated | Shamir
KINDS = [(3, 2), (4, 3), (5, 3), (5, 2), (6, 4), (7, 3)]
POOL, TWO = (
    "Computes pool what they hold",
    ("of them signs contradicting statements about one round, be it two lists of clients or a list and a refusal"),
)
SCHEMES = [kind(*numbers) for kind in (Replicated, Shamir) for numbers in KINDS]


def sums_of(scheme: Scheme, words: np.ndarray, first: int | None = None) -> dict[int, np.ndarray]:
    sums = {k: scheme.empty(words.shape[1]) for k in range(scheme.computes)}
    for client, row in enumerate(words):
        shares = scheme.shard_at(row, (client if first is None else first) % scheme.computes, Randomness.system())
        for k, share in enumerate(shares):
            scheme.accumulate(sums[k], share)
    return sums


def some_words(clients: int = 4, dimension: int = 9) -> np.ndarray:
    return np.random.default_rng(5).integers(-(2**59), 2**59, size=(clients, dimension)).view(np.uint64)


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
def test_every_t_of_the_sums_give_the_same_total_whoever_gets_the_long_shares(scheme: Scheme):
    words = some_words()
    total = words.sum(axis=0, dtype=np.uint64)
    for first in (None, *range(scheme.computes)):
        sums = sums_of(scheme, words, first)
        for size in range(scheme.threshold, scheme.computes + 1):
            for chosen in combinations(range(scheme.computes), size):
                assert (scheme.unshard({k: sums[k] for k in chosen}) == total).all()
    assert not scheme.enough(range(scheme.threshold - 1))
    assert not scheme.enough([0] * scheme.threshold)
    assert not scheme.enough(range(scheme.computes + 1))


@pytest.mark.parametrize("total", [LARGEST, -LARGEST, 2**62, -(2**62), -1, 0])
def test_shamirs_totals_are_exact_up_to_the_edge(total: int):
    words = np.array([[total], [2**63 - 1], [-(2**63)], [1]], dtype=np.int64).view(np.uint64)
    for numbers in KINDS:
        scheme = Shamir(*numbers)
        sums = sums_of(scheme, words)
        assert scheme.unshard(sums).view(np.int64).tolist() == [total]


def test_replicated_totals_are_exact_in_the_whole_ring():
    words = np.random.default_rng(0).integers(0, 2**64, size=(7, 70), dtype=np.uint64)
    scheme = Replicated(5, 3)
    assert (scheme.unshard(sums_of(scheme, words)) == words.sum(axis=0, dtype=np.uint64)).all()


# ------------------------------------------------------------------------------------------------- what t - 1 see


@pytest.mark.parametrize("numbers", KINDS)
def test_t_minus_1_computes_lack_the_piece_of_their_own_set_and_t_lack_none(numbers: tuple[int, int]):
    """So what t - 1 hold of the C pieces are C - 1 at most: uniform whichever of the C is the one that is not drawn."""
    computes, threshold = numbers
    table, pieces = held_by(*numbers), set(range(comb(computes, threshold - 1)))
    sets = list(combinations(range(computes), threshold - 1))
    for coalition in sets:
        held = set().union(*(table[k] for k in coalition))
        assert pieces - held == {sets.index(coalition)}
    for coalition in combinations(range(computes), threshold):
        assert set().union(*(table[k] for k in coalition)) == pieces


@pytest.mark.parametrize("numbers", KINDS)
def test_what_t_minus_1_computes_see_of_shamirs_shares_is_a_bijection_of_the_seeds(numbers: tuple[int, int]):
    """Their shares are A x + B r, with r the t - 1 uniform vectors. B is invertible modulo p for every rotation of the
    seeds and every coalition, so the shares are uniform, whatever x."""
    computes, threshold = numbers
    for first in range(computes):
        short = [(first + place) % computes for place in range(threshold - 1)]
        places = (0, *(k + 1 for k in short))
        for coalition in combinations(range(computes), threshold - 1):
            rows = [list(weights(places, k + 1))[1:] for k in coalition]
            assert determinant(rows) != 0


def determinant(rows: list[list[int]]) -> int:
    rows, found = [row[:] for row in rows], 1
    for column in range(len(rows)):
        pivot = next((r for r in range(column, len(rows)) if rows[r][column] % PRIME), None)
        if pivot is None:
            return 0
        rows[column], rows[pivot] = rows[pivot], rows[column]
        found = found * rows[column][column] % PRIME
        inverse = pow(rows[column][column], -1, PRIME)
        for r in range(column + 1, len(rows)):
            factor = rows[r][column] * inverse % PRIME
            rows[r] = [(a - factor * b) % PRIME for a, b in zip(rows[r], rows[column], strict=True)]
    return found


@pytest.mark.parametrize("coalition", list(combinations(range(5), 2)))
@pytest.mark.parametrize("secret", [0, 0x0123456789ABCDEF, 2**64 - 1])
def test_any_two_of_five_shamir_shares_are_uniform(coalition: tuple[int, int], secret: int):
    """1500 clients share the same tell-tale vector; each share and both together, in 64 x 64 parts of the field.

    Three chi-squared tests with a false alarm rate of FALSE_ALARM each.
    """
    scheme, randomness, words = Shamir(5, 3), Randomness.simulation(21), np.full(20, secret, dtype=np.uint64)
    seen: list[list[np.ndarray]] = [[], []]
    for client in range(1500):
        shares = scheme.shard_at(words, client % 5, randomness)
        for found, k in zip(seen, coalition, strict=True):
            found.append(elements(shares[k]))
    parts = [(np.concatenate(found) >> np.uint64(58)).astype(int) for found in seen]  # p is 2^64 but for a part in 2^32
    for counts in (
        *(np.bincount(part, minlength=64) for part in parts),
        np.bincount(64 * parts[0] + parts[1], minlength=4096),
    ):
        assert stats.chisquare(counts).pvalue > FALSE_ALARM


@pytest.mark.parametrize("scheme", [Replicated(3, 2), Replicated(5, 3), Shamir(5, 3), Shamir(3, 2)], ids=str)
def test_every_computes_sum_in_a_simulation_is_uniform(scheme: Scheme):
    """Over 600 rounds of clients who all send zeros: bits 56 to 63 of every word, chi-squared, FALSE_ALARM a Compute."""
    randomness, sums = Randomness.simulation(12), []
    for _ in range(600):
        tally = scheme.tally(16, randomness)
        vectors = np.zeros((5, 16), dtype=np.uint64)
        for rows, columns in tally.blocks(len(vectors)):
            tally.add(vectors[rows, columns].copy(), columns)
        sums.append(tally.sums)
    for found in np.stack(sums, axis=1):
        counts = np.bincount((found.reshape(-1) >> np.uint64(56)).astype(int), minlength=256)
        assert stats.chisquare(counts).pvalue > FALSE_ALARM


# ------------------------------------------------------------------------------------------------ who sends what


@pytest.mark.parametrize(("numbers", "dimension"), [((3, 2), 100), ((5, 3), 1000), ((4, 3), 10)])
def test_bytes_of_a_client_are_as_stated(numbers: tuple[int, int], dimension: int):
    (computes, threshold), words = numbers, np.zeros(dimension, dtype=np.uint64)
    for client in ("a", "b", "c"):
        sent = [
            sum(len(s.body) for s in kind(*numbers).shard(words, client, Randomness.system()))
            for kind in (Replicated, Shamir)
        ]
        others = comb(computes, threshold - 1) - 1
        assert sent[0] == (computes - threshold + 1) * (8 * dimension + 32 * others)
        assert sent[1] == 8 * dimension * (computes - threshold + 1) + 32 * (threshold - 1)


def test_the_long_shares_are_spread_evenly_over_the_computes():
    """3000 names: how often each Compute gets a long share, chi-squared, false alarm FALSE_ALARM."""
    words = np.zeros(100, dtype=np.uint64)
    for scheme in (Replicated(3, 2), Shamir(5, 3)):
        short = min(scheme.forms(100).values())
        long = Counter(
            k
            for client in range(3000)
            for k, share in enumerate(scheme.shard(words, f"client-{client}", Randomness.simulation(1)))
            if len(share.body) > short
        )
        assert stats.chisquare([long[k] for k in range(scheme.computes)]).pvalue > FALSE_ALARM


def test_forms_are_all_different_and_fit_a_byte():
    for computes in range(2, 17):
        for threshold in range(2, computes + 1):
            if comb(computes, threshold - 1) <= MOST_PIECES:
                scheme = Replicated(computes, threshold)
                held = comb(computes - 1, threshold - 1)
                forms = scheme.forms(7)
                assert len(forms) == 2 * (held + 1)
                assert 8 <= min(forms) <= max(forms) <= 255
    assert set(Shamir(5, 3).forms(7)) == {VALUES, 5, 6}


def test_words_that_are_no_elements_count_modulo_p():
    """A client may send them; every Compute makes the same of them."""
    scheme = Shamir(3, 2)
    share = scheme.shard_at(np.zeros(2, dtype=np.uint64), 0, Randomness.system())[1]
    body = np.array([PRIME, 2**64 - 1], dtype="<u8").tobytes()
    total = scheme.empty(2)
    scheme.accumulate(total, type(share)(VALUES, 2, body))
    assert total.tolist() == [0, 2**64 - 1 - PRIME]


# ------------------------------------------------------------------------------------------------------ wrong sums


def lie(sums: dict[int, np.ndarray], liars: tuple[int, ...]) -> dict[int, np.ndarray]:
    """The sums with those of the liars changed in some words, each in another way."""
    found = {k: words.copy() for k, words in sums.items()}
    for number, k in enumerate(liars):
        found[k][number :: 2 + number] += np.uint64(12345 + number)
    return found


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
def test_liars_are_noticed_up_to_n_minus_t_and_named_up_to_half_of_that(scheme: Scheme):
    sums = sums_of(scheme, some_words())
    for n in range(scheme.threshold, scheme.computes + 1):
        given = {k: sums[k] for k in range(scheme.computes - n, scheme.computes)}
        spare = n - scheme.threshold
        for number in range(1, spare + 1):
            for liars in combinations(given, number):
                with pytest.raises(CannotCombine) as caught:
                    scheme.unshard(lie(given, liars))
                assert caught.value.reason == "sums-differ"
                if 2 * number <= spare:
                    assert caught.value.computes == liars
                    assert f"of Compute {', '.join(str(place + 1) for place in liars)} " in str(caught.value)
                    rest = {k: words for k, words in given.items() if k not in liars}
                    assert (scheme.unshard(rest) == some_words().sum(axis=0, dtype=np.uint64)).all()
                else:
                    assert set(caught.value.computes) <= set(liars)


@pytest.mark.parametrize("numbers", [(3, 2), (4, 3)])
def test_one_liar_among_t_plus_1_is_noticed_and_never_named(numbers: tuple[int, int]):
    for scheme in (Replicated(*numbers), Shamir(*numbers)):
        sums = sums_of(scheme, some_words())
        for liar in range(scheme.computes):
            with pytest.raises(CannotCombine, match="too few to tell whose is wrong") as caught:
                scheme.unshard(lie(sums, (liar,)))
            assert caught.value.computes == ()


def test_one_word_is_enough_to_be_noticed():
    for scheme in (Replicated(5, 3), Shamir(5, 3)):
        sums = sums_of(scheme, some_words(dimension=200))
        sums[3] = sums[3].copy()
        sums[3][117] ^= np.uint64(1)
        with pytest.raises(CannotCombine) as caught:
            scheme.unshard(sums)
        assert caught.value.computes == (3,)


def test_a_client_whose_shares_do_not_fit_makes_a_computes_sum_wrong():
    """Nothing in the sums tells this from a Compute that lies, which is why the message names both."""
    for scheme in (Replicated(5, 3), Shamir(5, 3)):
        sums = sums_of(scheme, some_words())
        odd = scheme.shard_at(some_words()[0], 0, Randomness.system())
        for k, share in enumerate(scheme.shard_at(some_words()[0], 0, Randomness.system())):
            scheme.accumulate(sums[k], odd[k] if k == 2 else share)
        with pytest.raises(CannotCombine, match="they, or clients that sent them something else") as caught:
            scheme.unshard(sums)
        assert caught.value.computes == (2,)


def test_with_so_many_computes_that_a_search_takes_too_long_wrong_sums_are_still_noticed(monkeypatch):
    monkeypatch.setattr(shamir, "_MOST_SEARCHED", 10)
    scheme = Shamir(11, 3)
    sums = sums_of(scheme, some_words())
    with pytest.raises(CannotCombine) as caught:
        scheme.unshard(lie(sums, (4,)))
    assert caught.value.computes == ()


def test_with_t_sums_a_lie_may_pass():
    """What is not promised: t sums and no more fit together whatever they are (Shamir), or but for shared pieces."""
    for scheme, word in ((Shamir(5, 3), 0), (Replicated(3, 2), 0)):
        sums = sums_of(scheme, some_words())
        given = {k: sums[k].copy() for k in range(scheme.threshold)}
        given[1][word] += np.uint64(1)
        assert (scheme.unshard(given) != some_words().sum(axis=0, dtype=np.uint64)).any()


def test_a_sum_above_p_is_its_remainder():
    scheme = Shamir(3, 2)
    words = np.zeros((1, 3), dtype=np.uint64)
    sums = {k: np.full(3, 2, dtype=np.uint64) for k in range(3)}
    sums[1] = sums[1] + np.uint64(PRIME)
    assert (scheme.unshard(sums) == 2).all()
    assert scheme.unshard(sums_of(scheme, words)).tolist() == [0, 0, 0]


# ------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("kind", [Replicated, Shamir])
@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ((3, 4), "threshold must be a whole number in 2..3, got threshold=4"),
        ((3, 1), "threshold must be a whole number in 2..3, got threshold=1"),
        ((3, 2.5), "threshold must be a whole number in 2..3, got threshold=2.5"),
        ((1, 2), "computes must be a whole number in 2.., got computes=1;"),
        ((1001, 2), "computes must be a whole number in 2.., got computes=1001;"),
    ],
)
def test_bad_numbers_are_one_line(kind: type[Scheme], numbers: tuple[int, int], message: str):
    most = 255 if kind is Shamir else 1000
    with pytest.raises(InvalidInput, match=message.replace("2.., got", f"2..{most}, got")) as caught:
        kind(*numbers)
    assert "\n" not in str(caught.value)


def test_too_many_pieces_are_one_line_that_names_the_other_scheme():
    with pytest.raises(
        InvalidInput, match="at most 120 pieces.*5 of 10 Computes, which makes 210; use the scheme 'shamir'"
    ):
        Replicated(10, 5)
    assert Replicated(10, 4).computes == 10


def test_the_trust_is_said_exactly():
    assert Replicated(3, 2).trust().sentence == f"no two of the three {POOL}, and none {TWO}"
    assert Shamir(5, 3).trust().sentence == f"no three of the five {POOL}, and none {TWO}"
    assert Shamir(100, 40).trust().sentence == f"no 40 of the 100 {POOL}, and at most one {TWO}"
    assert (
        Shamir(5, 3, 1).trust().sentence
        == f"no three of the five {POOL}, and at most two {TWO.replace('signs', 'sign')}"
    )
    assert Shamir(100, 40).trust().conspiring == 39
    # 3 of 7 with a quorum of 4: each of the other 4 can be made to release over a roster of its own
    proviso = Shamir(7, 4).trust().proviso
    assert "several totals may be released, of which two may differ by one client" in proviso
    assert "a round that was released may count as refused, so that its cost is given back and spent again" in proviso
    assert Replicated(3, 2).trust().proviso.startswith("if on live nodes any of the 3 Computes sign contradicting")
    assert (
        Shamir(5, 3, 1).trust().proviso.startswith("if on live nodes more than two of the 5 Computes sign contradict")
    )
    assert Replicated(4, 2).trust().proviso.startswith("if on live nodes more than one of the 4 Computes sign contrad")
    assert Shamir(3, 3).trust() == Replicated(3, 3).trust() == Additive(3).trust()


@pytest.mark.parametrize("kind", [Replicated, Shamir])
def test_two_quorums_share_an_honest_compute_and_can_form_the_total(kind: type[Scheme]):
    for computes, threshold in KINDS:
        for cheating in range(threshold):
            scheme = kind(computes, threshold, cheating)
            assert threshold <= scheme.quorum <= computes
            assert 2 * scheme.quorum - computes > cheating
            stated = 2 * scheme.quorum - computes - 1 if scheme.quorum < computes else None
            assert scheme.trust().contradicting == stated
            assert kind.of(scheme.describe()) == scheme
            assert ("cheating" in scheme.describe()) == (cheating > 0)
        with pytest.raises(InvalidInput, match=f"cheating must be a whole number in 0..{threshold - 1}"):
            kind(computes, threshold, threshold)
    assert [kind(3, 2, cheating).quorum for cheating in (0, 1)] == [2, 3]
    assert [kind(5, 3, cheating).quorum for cheating in (0, 1, 2)] == [3, 4, 4]


@pytest.mark.parametrize("kind", [Replicated, Shamir])
def test_too_few_sums_are_one_line(kind: type[Scheme]):
    scheme = kind(5, 3)
    sums = sums_of(scheme, some_words())
    for count in range(3):
        with pytest.raises(CannotCombine, match=f"sums must be of at least 3 Computes, got {count}; fetch") as caught:
            scheme.unshard({k: sums[k] for k in range(count)})
        assert caught.value.reason == "missing-compute"
