"""The auditor refutes programs that are wrong. Each defect is put into the real code, and named by what it breaks."""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import hubbub.privacy.ledger as ledger_module
import hubbub.randomness as randomness_module
from hubbub.audit import AuditOptions, audit, checks_for
from hubbub.engines import LocalEngine, TrustedAggregator
from hubbub.grid import Grid
from hubbub.population import Population
from hubbub.privacy import Ledger
from hubbub.privacy.mechanisms.discrete_gaussian import DiscreteGaussianNoise
from hubbub.privacy.mechanisms.discrete_laplace import DiscreteLaplaceNoise
from hubbub.privacy.mechanisms.gaussian import GaussianNoise
from hubbub.privacy.mechanisms.nearly_normal import NearlyNormalNoise
from hubbub.randomness import Randomness
from hubbub.roles import client as client_module
from hubbub.roles import compute as compute_module
from hubbub.securesum import Additive, Shamir
from hubbub.securesum import additive as additive_module
from hubbub.securesum import replicated as replicated_module
from hubbub.securesum import shamir as shamir_module
from hubbub.securesum.additive import expanded
from hubbub.statistics import SecondMoments

Patch = pytest.MonkeyPatch


def noise_missing(patch: Patch) -> None:
    for law in (NearlyNormalNoise, DiscreteLaplaceNoise):
        patch.setattr(law, "add", lambda self, words, randomness: None)
    patch.setattr(GaussianNoise, "shares", lambda self, clients, d, randomness: np.zeros((clients, d), dtype=np.uint64))
    patch.setattr(GaussianNoise, "noisy_words", lambda self, vectors, *_: self.encoded(vectors.copy()))


def half_the_variance(patch: Patch) -> None:
    """Shares are smaller than the law says that they are."""
    amount, law = DiscreteGaussianNoise.amount_of, NearlyNormalNoise.law
    patch.setattr(DiscreteGaussianNoise, "amount_of", staticmethod(lambda variance: amount(variance / 2)))
    patch.setattr(
        NearlyNormalNoise, "law", lambda self, n: replace(found := law(self, n), std=found.std * math.sqrt(2))
    )


def noise_over_all_clients(patch: Patch) -> None:
    """Shares of sigma^2 / N in place of N - T - 1."""
    patch.setattr(Population, "shares", property(lambda self: self.clients))


def tolerance_ignored(patch: Patch) -> None:
    patch.setattr(Population, "shares", property(lambda self: self.clients - 1))


def tolerance_in_samples(patch: Patch) -> None:
    """Shares of sigma^2 / (N - T - 1) for N samples, of which each client holds several and adds one share."""
    patch.setattr(Population, "shares", property(lambda self: self.n - self.not_counted - 1))


def unit_forgotten(patch: Patch) -> None:
    """The promise is about whole clients, and the noise is for one sample."""
    patch.setattr(Population, "weight", property(lambda self: 1))


def sensitivity_of_the_published_program(patch: Patch) -> None:
    """c_j in place of c_j^2."""
    patch.setattr(SecondMoments, "sensitivity", property(lambda self: math.sqrt(sum(c**2 for c in self.bounds))))
    patch.setattr(SecondMoments, "sensitivity_l1", property(lambda self: sum(self.bounds)))


def noise_repeated_after_a_restart(patch: Patch) -> None:
    """Every stream of the operating system's starts with the same key."""
    patch.setattr(randomness_module.os, "urandom", lambda count: b"\x07" * count)


def noise_repeated_after_a_fork(patch: Patch) -> None:
    patch.setattr(Randomness, "_renew_after_fork", lambda self: None)


def noise_repeated_by_copies(patch: Patch) -> None:
    """A copy of a stream draws what the original draws."""
    key = b"\x05" * 32
    patch.setattr(
        Randomness,
        "__init__",
        lambda self, _, source: (setattr(self, "source", source), setattr(self, "_key", key), self._start())[0],
    )  # type: ignore[func-returns-value]


def noise_repeated_in_every_round(patch: Patch) -> None:
    """An engine's stream begins again with every round."""

    def again(self: LocalEngine, rows: Any, spec: Any) -> Any:
        stream = self._randomness
        stream._key = stream._key or os.urandom(32)
        stream._start()
        return private_sum(self, rows, spec)

    private_sum = LocalEngine.private_sum
    patch.setattr(LocalEngine, "private_sum", again)


def noise_repeated_by_clients(patch: Patch) -> None:
    """All clients add the same numbers, so that each knows the noise of all."""

    def repeated(draw: Callable[..., None]) -> Callable[..., None]:
        def add(self: Any, words: Any, randomness: Randomness) -> None:
            first = np.zeros_like(words[:1])
            draw(self, first, randomness)
            words += first

        return add

    for law in (NearlyNormalNoise, DiscreteLaplaceNoise):
        patch.setattr(law, "add", repeated(law.add))


def second_roster(patch: Patch) -> None:
    """A Compute gives a sum over whatever roster it is asked for."""

    def release(compute: Any, roster: Any, samples: Any = None) -> Any:
        held = ((name, compute.held[name]) for name in roster if name in compute.held)
        return compute, sum_over(compute, roster, samples, held)  # type: ignore[name-defined]  # of its module # noqa: F821

    patch.setattr(compute_module.release, "__code__", release.__code__)


def raw_doubles(patch: Patch) -> None:
    """The trusted aggregator adds noise to doubles and releases what comes out."""

    def noisy(self: TrustedAggregator, rows: Any, plan: Any, noise: Any) -> Any:
        return sum(v.sum(axis=0) for v in self._vectors(rows, plan)) + noise.sigma_std * self._randomness.normals(
            (plan.dimension,)
        )

    patch.setattr(TrustedAggregator, "_noisy", noisy)


def more_digits_than_the_grid(patch: Patch) -> None:
    decode = Grid.decode
    patch.setattr(Grid, "decode", lambda self, words: decode(self, words) * (1 + 1e-15))


def budget_charged_once(patch: Patch) -> None:
    """Every process counts for itself, and none looks into the file."""
    patch.setattr(Ledger, "_read", lambda self: None)


def ledger_without_a_lock(patch: Patch) -> None:
    """Two processes read the file before either has written to it: each waits until the other has read."""

    def read_together(self: Ledger) -> None:
        read(self)
        if os.getpid() not in waited:  # the first time only: a process may have ended before the other reads again
            waited.add(os.getpid())
            both.wait(timeout=60)

    def write_in_turn(self: Ledger, entries: Any) -> None:
        """Otherwise both may write the same draft, and one of them fails, which is no fault of the lock's."""
        with turn:
            write(self, entries)

    fork = multiprocessing.get_context("fork")
    read, write, both, turn, waited = Ledger._read, Ledger._write, fork.Barrier(2), fork.Lock(), {os.getpid()}
    patch.setattr(Ledger, "_read", read_together)
    patch.setattr(Ledger, "_write", write_in_turn)
    patch.setattr(ledger_module, "_file_lock", lambda path: contextlib.nullcontext())


def slow_where_a_sample_is_none(patch: Patch) -> None:
    """A client takes a millisecond more over a sample that the statistic has no vector for."""

    def slow(plan: Any, rows: Any, randomness: Randomness, **options: Any) -> Any:
        if np.isnan(rows).any():
            time.sleep(0.001)
        return vectors_of(plan, rows, randomness, **options)

    vectors_of = client_module.vectors_of
    patch.setattr(client_module, "vectors_of", slow)


def last_share_leaks_a_bit(patch: Patch) -> None:
    """The last Compute's share ends as the number does that is shared."""

    def leaky(self: Additive, words: Any, client: str, randomness: Randomness) -> Any:
        while True:
            found = shard(self, words, client, randomness)
            if not (expanded(found[-1])[0] ^ words[0]) & np.uint64(1):
                return found

    shard = Additive.shard
    patch.setattr(Additive, "shard", leaky)


def first_seed_always_the_same(patch: Patch) -> None:
    for module in (additive_module, replicated_module, shamir_module):
        drawn = module.fresh_seeds
        patch.setattr(module, "fresh_seeds", lambda *numbers, drawn=drawn: [bytes(32), *drawn(*numbers)[1:]])


def degree_too_low(patch: Patch) -> None:
    """Polynomials that t - 1 Computes know."""
    shard = Shamir.shard
    patch.setattr(Shamir, "shard", lambda self, *given: shard(replace(self, threshold=self.threshold - 1), *given))


EXACT, PURE, PAPER = "discrete-gaussian", "discrete-laplace", "gaussian"
DEFECTS: list[tuple[Callable[[Patch], None], str, str]] = [
    *((noise_missing, "curious client", law) for law in (EXACT, PURE, "skellam", PAPER)),
    (noise_missing, "canaries, local", EXACT),
    (noise_missing, "bound: regression in a ball", EXACT),
    (noise_missing, "analysis: linear", EXACT),
    (noise_missing, "analysis: glm", EXACT),
    (noise_missing, "one run: logistic", EXACT),
    (noise_missing, "one run: mixture", EXACT),
    (noise_missing, "self-selected", EXACT),
    (half_the_variance, "canaries, local", EXACT),
    *((noise_over_all_clients, "after dropouts", law) for law in (EXACT, PURE, "skellam", PAPER)),
    *((tolerance_ignored, "after dropouts", law) for law in (EXACT, PURE)),
    *((tolerance_in_samples, "parties with many", law) for law in (EXACT, PURE)),
    *((unit_forgotten, "whole parties", law) for law in (EXACT, PURE)),
    *((sensitivity_of_the_published_program, "second moments", law) for law in (EXACT, PURE)),
    (noise_repeated_after_a_restart, "a new engine", EXACT),
    (noise_repeated_after_a_fork, "a forked process", EXACT),
    (noise_repeated_by_copies, "a copy of the engine", EXACT),
    *((noise_repeated_in_every_round, "the same engine", law) for law in (EXACT, PURE)),
    *((noise_repeated_by_clients, "own noise", law) for law in (EXACT, PURE)),
    (second_roster, "second roster", EXACT),
    pytest.param(second_roster, "second roster", PURE, marks=pytest.mark.long),
    (raw_doubles, "trusted aggregator", PAPER),
    (more_digits_than_the_grid, "bits of a release, local", EXACT),
    (slow_where_a_sample_is_none, "timing", EXACT),
    (last_share_leaks_a_bit, "shares of 1 of 2", EXACT),
    (last_share_leaks_a_bit, "shares of 2 of 3 Computes, additive", EXACT),
    (last_share_leaks_a_bit, "shares of 2 of 3 Computes, subset", EXACT),
    *(
        (first_seed_always_the_same, f"shares of {one}", EXACT)
        for one in (
            "1 of 3 Computes, replicated",
            "2 of 5 Computes, replicated",
            "1 of 3 Computes, shamir",
            "2 of 3 Computes, subset",
        )
    ),
    (degree_too_low, "shares of 2 of 5 Computes, shamir", EXACT),
    (budget_charged_once, "one ledger", EXACT),
    (budget_charged_once, "one block", EXACT),
    (ledger_without_a_lock, "one ledger", EXACT),
]


@pytest.mark.parametrize(("defect", "only", "law"), DEFECTS, ids=lambda value: getattr(value, "__name__", value))
def test_defect_is_found(defect: Callable[[Patch], None], only: str, law: str, monkeypatch: Patch):
    """With the error rate of a whole audit for each case, so that the same is found among all the others."""
    options = AuditOptions(
        mechanisms=(law,), only=only, trials=2000 if defect is half_the_variance else 1000,
        confidence=1 - 0.001 / len(checks_for(AuditOptions())),
    )  # fmt: skip
    defect(monkeypatch)
    report = audit(options)
    assert not report.passed, [replace(case, method="") for case in report.cases]
