"""What every secure sum must do: exact totals, and nothing to see for those who may conspire.

A new scheme is one line in SCHEMES. A package with a scheme of its own calls `check_secure_sum` in its tests.
Statistical checks have a false alarm rate of FALSE_ALARM each, and fixed seeds.
"""

from __future__ import annotations

import itertools
import json
import pickle
from collections.abc import Callable, Collection, Iterator

import numpy as np
import pytest
from scipy import stats

from conftest import FALSE_ALARM
from contracts.structure import satisfies
from hubbub.engines import LocalEngine
from hubbub.errors import InvalidInput, MalformedMessage
from hubbub.privacy import gaussian_round
from hubbub.protocols import OneByOne, SecureSum, Share, Tally
from hubbub.randomness import Randomness
from hubbub.securesum import SECURE_SUMS as REGISTRY
from hubbub.securesum import Additive, Replicated, Shamir, Subset, decode_share, encode_share
from hubbub.statistics import Means

SCHEMES: dict[str, SecureSum] = {
    "additive, 2 Computes": Additive(2),
    "additive, 3 Computes": Additive(3),
    "additive, 10 Computes": Additive(10),
    "additive, 3 Computes, seeds": Additive(3, "seeds"),
    "replicated, 2 of 3": Replicated(3, 2),
    "replicated, 3 of 4": Replicated(4, 3),
    "replicated, 3 of 5": Replicated(5, 3),
    "replicated, 3 of 3": Replicated(3, 3),
    "shamir, 2 of 3": Shamir(3, 2),
    "shamir, 3 of 5": Shamir(5, 3),
    "shamir, 4 of 4": Shamir(4, 4),
    "shamir, 7 of 10": Shamir(10, 7),
    "subset, 2 of 2": Subset(2, 2, "a seed"),
    "subset, 3 of 6": Subset(6, 3, "a seed"),
    "subset, 2 of 5": Subset(5, 2, "another seed"),
}
DIMENSIONS = (1, 2, 3, 64, 65, 1000)
CLIENTS = 5


def secrets(dimension: int, clients: int = CLIENTS, seed: int = 0) -> np.ndarray:
    """Words of any size whose total, read as signed numbers, is within 2^62: two neighbours cancel but for a little."""
    rng = np.random.default_rng(seed)
    values = rng.integers(-(2**61), 2**61, size=(clients, dimension), dtype=np.int64)
    for first in range(0, clients - 1, 2):
        values[first] = rng.integers(-(2**63) + 2**40, 2**63 - 2**40, size=dimension)
        values[first + 1] = rng.integers(-(2**40), 2**40, size=dimension) - values[first]
    return values.view(np.uint64)


def sums_of(scheme: SecureSum, words: np.ndarray, randomness: Randomness | None = None) -> list[np.ndarray]:
    """Each Compute's sum over all clients."""
    sums = [scheme.empty(words.shape[1]) for _ in range(scheme.computes)]
    for client, row in enumerate(words):
        shares = scheme.shard(row.copy(), f"client-{client}", randomness or Randomness.system())
        for compute, share in zip(scheme.recipients(f"client-{client}"), shares, strict=True):
            scheme.accumulate(sums[compute], share)
    return sums


def subsets(computes: int) -> Iterator[tuple[int, ...]]:
    """All of them where there are few Computes; the whole, all but one and the small ones otherwise."""
    sizes = range(computes + 1) if computes <= 6 else (0, 1, 2, computes - 1, computes)
    for size in sizes:
        yield from itertools.combinations(range(computes), size)


def it_has_all_members(scheme: SecureSum) -> None:
    satisfies(scheme, SecureSum)
    satisfies(scheme.tally(3, Randomness.system()), Tally)
    assert scheme.computes >= 2


def sums_of_enough_computes_give_the_exact_total(scheme: SecureSum) -> None:
    for dimension in DIMENSIONS:
        words = secrets(dimension)
        sums, total = sums_of(scheme, words), words.sum(axis=0, dtype=np.uint64)
        found = [subset for subset in subsets(scheme.computes) if scheme.enough(subset)]
        assert found
        for subset in found:
            np.testing.assert_array_equal(scheme.unshard({k: sums[k].copy() for k in subset}), total)


def a_client_knows_whom_it_sends_to(scheme: SecureSum) -> None:
    """Different Computes in ascending order, more than may conspire, the same for whoever asks."""
    again = pickle.loads(pickle.dumps(scheme))
    for client in [*(f"client-{i}" for i in range(50)), "", "\N{SNOWMAN}"]:
        found = list(scheme.recipients(client))
        assert found == sorted(set(found)) == list(again.recipients(client))
        assert set(found) <= set(range(scheme.computes))
        assert len(found) > scheme.trust().conspiring
        assert len(scheme.shard(secrets(3)[0], client, Randomness.system())) == len(found)


def a_roster_of_many_clients_passes_as_it_is(scheme: SecureSum) -> None:
    roster = [f"client-{i}" for i in range(2000)]
    assert list(scheme.vetted(iter(roster))) == roster


def the_words_of_a_client_are_left_alone(scheme: SecureSum) -> None:
    words = secrets(20)[0]
    before = words.copy()
    scheme.shard(words, "client", Randomness.system())
    np.testing.assert_array_equal(words, before)


def who_is_enough_is_said_of_every_subset(scheme: SecureSum) -> None:
    """All are, nobody is, more never hurt, and those who may conspire are not."""
    trust = scheme.trust()
    assert trust.computes == scheme.computes
    assert 1 <= trust.conspiring < scheme.computes
    assert trust.sentence
    most = 2 * scheme.quorum - scheme.computes - 1
    assert trust.contradicting == (most if scheme.quorum < scheme.computes else None)
    assert scheme.enough(range(scheme.computes))
    for subset in subsets(scheme.computes):
        kinds: list[Collection[int]] = [subset, list(subset), set(subset), dict.fromkeys(subset).keys()]
        answers = {scheme.enough(kind) for kind in kinds}
        assert len(answers) == 1
        if len(subset) <= trust.conspiring:
            assert answers == {False}
        if answers == {True}:
            others = set(range(scheme.computes)) - set(subset)
            assert all(scheme.enough({*subset, other}) for other in others)


def what_conspirators_see_does_not_depend_on_the_secret(scheme: SecureSum) -> None:
    """Of clients who all send zeros, and of clients who all send the same pattern: bytes by two-sample chi-squared.

    The bodies of their shares, what each of them adds up, and the sum and the difference of that over the coalition.
    What two of them hold alike counts once for each client, as it is drawn once.
    """
    plain, marked = np.zeros(20, dtype=np.uint64), np.full(20, 0x0123456789ABCDEF, dtype=np.uint64)
    views = [_views(scheme, secret, seed) for seed, secret in enumerate((plain, marked), 11)]
    shapes = [[{k: (s.form, len(s.body)) for k, s in shares.items()} for shares, _ in view] for view in views]
    assert shapes[0] == shapes[1], "the form of a share tells nothing"
    for coalition in itertools.combinations(range(scheme.computes), scheme.trust().conspiring):
        seen = [_seen(view, coalition) for view in views]
        for one, other in zip(*seen, strict=True):
            assert _same_bytes(one, other) > FALSE_ALARM


View = tuple[dict[int, Share], np.ndarray]


def _views(scheme: SecureSum, secret: np.ndarray, seed: int) -> list[View]:
    """For each of 500 clients the shares by Compute, and the words that each Compute makes of its own."""
    randomness, found = Randomness.simulation(seed), []
    for client in range(500):
        shares = scheme.shard(secret.copy(), f"client-{client}", randomness)
        sent = dict(zip(scheme.recipients(f"client-{client}"), shares, strict=True))
        words = np.stack([scheme.empty(secret.size) for _ in range(scheme.computes)])
        for compute, share in sent.items():
            scheme.accumulate(words[compute], share)
        found.append((sent, words))
    return found


def _seen(view: list[View], coalition: tuple[int, ...]) -> list[bytes]:
    words = np.stack([each[list(coalition)] for _, each in view])
    first = words[:, 0]
    rest = words[:, 1:].sum(axis=1, dtype=np.uint64)
    bodies = [b"".join(shares[k].body for k in coalition if k in shares) for shares, _ in view]
    sent = [np.frombuffer(body, dtype="<u8") for body in bodies]
    return [b"".join(np.unique(one).tobytes() for one in each) for each in (words, first + rest, first - rest, sent)]


def _same_bytes(one: bytes, other: bytes) -> float:
    """Chi-squared over the eight bytes of a word, each for itself: the chance of such a difference by luck."""
    tables = []
    for data in (one, other):
        places = np.frombuffer(data[: len(data) // 8 * 8], dtype=np.uint8).reshape(-1, 8)
        tables.append(np.concatenate([np.bincount(column, minlength=256) for column in places.T]))
    both = np.array(tables)
    both = both[:, both.sum(axis=0) > 0]
    expected = both.sum(axis=0) / 2
    freedom = both.shape[1] - 8
    return 1.0 if freedom <= 0 else float(stats.chi2(freedom).sf(((both - expected) ** 2 / expected).sum()))


def forms_say_how_long_a_body_is(scheme: SecureSum) -> None:
    for dimension in DIMENSIONS:
        forms = scheme.forms(dimension)
        assert all(1 <= form <= 255 and size > 0 for form, size in forms.items())
        for client in range(10):
            for share in scheme.shard(secrets(dimension)[0], f"client-{client}", Randomness.system()):
                assert share.dimension == dimension
                assert len(share.body) == forms[share.form]
                again = decode_share(encode_share(share), scheme, dimension)
                assert (again.form, again.dimension, again.body) == (share.form, share.dimension, share.body)
                assert repr(share.body) not in f"{share} {share!r}"
                with pytest.raises(MalformedMessage):
                    decode_share(encode_share(share) + b"\0", scheme, dimension)


def parts_of_a_sum_merge_to_the_whole(scheme: SecureSum) -> None:
    """One Compute's, all Computes' at once, and all in one row, as engines carry them."""
    words = secrets(7)
    parts = [np.stack(sums_of(scheme, part)) for part in (words[:2], words[2:])]
    for shape in (parts[0].shape, (-1,)):
        total, part = parts[0].reshape(shape).copy(), parts[1].reshape(shape)
        before = part.copy()
        scheme.merge(total, part)
        np.testing.assert_array_equal(part, before)
        sums = total.reshape(parts[0].shape)
        np.testing.assert_array_equal(scheme.unshard(dict(enumerate(sums))), words.sum(axis=0, dtype=np.uint64))
    for k in range(scheme.computes):
        total = parts[0][k].copy()
        scheme.merge(total, parts[1][k])
        np.testing.assert_array_equal(total, sums[k])


def many_clients_at_once_are_one_after_the_other(scheme: SecureSum) -> None:
    for clients, dimension in ((1, 1), (7, 1), (40, 65), (300, 3), (3, 3000)):
        words = secrets(dimension, clients)
        for tally in (
            scheme.tally(dimension, Randomness.simulation(1)),
            OneByOne(scheme, dimension, Randomness.simulation(1)),
        ):
            seen = np.zeros(words.shape, dtype=int)
            for rows, columns in tally.blocks(clients):
                seen[rows, columns] += 1
                tally.add(words[rows, columns].copy(), columns)
            assert (seen == 1).all(), "every word is added once"
            assert tally.sums.shape == (scheme.computes, scheme.empty(dimension).size)
            np.testing.assert_array_equal(
                scheme.unshard(dict(enumerate(tally.sums))), words.sum(axis=0, dtype=np.uint64)
            )


def a_share_is_never_drawn_twice(scheme: SecureSum) -> None:
    """Not for the same client and words, nor in another process; a simulation repeats itself."""
    words, randomness = secrets(20)[0], Randomness.system()
    first, second = (scheme.shard(words, "client", randomness) for _ in range(2))
    assert all(one.body != other.body for one, other in zip(first, second, strict=True))
    one, other = (scheme.shard(words, "client", Randomness.simulation(2)) for _ in range(2))
    assert [share.body for share in one] == [share.body for share in other]


def description_reads_back(scheme: SecureSum) -> None:
    description = json.loads(json.dumps(scheme.describe(), allow_nan=False))
    again = REGISTRY.read(description)
    assert type(again) is type(scheme)
    assert again.describe() == scheme.describe()
    assert again.trust() == scheme.trust()
    assert pickle.loads(pickle.dumps(scheme)).describe() == scheme.describe()
    words = secrets(9)
    sums = sums_of(scheme, words)
    np.testing.assert_array_equal(again.unshard(dict(enumerate(sums))), words.sum(axis=0, dtype=np.uint64))
    with pytest.raises(InvalidInput):
        REGISTRY.read({**description, "unknown": 1})
    with pytest.raises(InvalidInput):
        REGISTRY.read({"scheme": description["scheme"]})


def engines_run_it(scheme: SecureSum) -> None:
    rows = np.arange(30.0)[:, None] * [1, -2]
    for seal in (False, True):
        engine = LocalEngine(secure_sum=scheme, seal=seal)
        release = engine.private_sum(rows, gaussian_round(Means((100.0, 100.0)), 0.0))
        assert release.value.tolist() == rows.sum(axis=0).tolist()
        assert release.protection.trust == scheme.trust()
        assert release.protection.computes == scheme.computes


CHECKS: list[Callable[[SecureSum], None]] = [
    it_has_all_members,
    sums_of_enough_computes_give_the_exact_total,
    a_client_knows_whom_it_sends_to,
    a_roster_of_many_clients_passes_as_it_is,
    the_words_of_a_client_are_left_alone,
    who_is_enough_is_said_of_every_subset,
    what_conspirators_see_does_not_depend_on_the_secret,
    forms_say_how_long_a_body_is,
    parts_of_a_sum_merge_to_the_whole,
    many_clients_at_once_are_one_after_the_other,
    a_share_is_never_drawn_twice,
    description_reads_back,
    engines_run_it,
]


def check_secure_sum(scheme: SecureSum) -> None:
    """All of the contract, for one scheme; for the tests of a package that brings one."""
    for check in CHECKS:
        check(scheme)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", SCHEMES)
def test_contract(name: str, check: Callable[[SecureSum], None]):
    check(SCHEMES[name])


def test_every_registered_scheme_is_here():
    assert {str(scheme.describe()["scheme"]) for scheme in SCHEMES.values()} >= set(REGISTRY._own)


class Biased(Additive):
    """A little leak: in one of ten words the masks have a zero as their last byte."""

    def shard_at(self, words, long_at, randomness):
        shares = super().shard_at(words, long_at, randomness)
        leak = words.copy()
        leak[: words.size // 10] &= np.uint64(0xFF)
        body = bytearray(shares[long_at % self.computes].body)
        for place in range(0, 8 * (words.size // 10), 8):
            body[place] = int(leak[place // 8])
        masked = Share(shares[long_at % self.computes].form, words.size, bytes(body))
        return tuple(masked if k == long_at % self.computes else share for k, share in enumerate(shares))


def test_a_leak_is_found():
    with pytest.raises(AssertionError):
        what_conspirators_see_does_not_depend_on_the_secret(Biased(2))
