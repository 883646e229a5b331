"""Checks of what else an adversary sees: bits of numbers, reports, shares. Black-box tests, since no law is claimed.

What is claimed of them is that they tell nothing of the data at all (epsilon 0), or, of bits of a release, no more
than the release may.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations

import numpy as np

from hubbub.arrays import Floats, Words
from hubbub.audit.case import Case, Check, Setting
from hubbub.audit.evidence import Scores, least_epsilon
from hubbub.audit.games import budget_for
from hubbub.audit.releases import name_of, order_of, worst_of
from hubbub.audit.scenes import FEW
from hubbub.engines import TrustedAggregator
from hubbub.errors import OutOfDomainWarning
from hubbub.protocols import Engine, Mechanism, RoundSpec, SecureSum, Statistic
from hubbub.randomness import Randomness
from hubbub.roles import Study, contribute, settle_round
from hubbub.securesum import Additive, PrivateKey, Replicated, Shamir, Subset, encode_report
from hubbub.statistics import Means, OneHot, Regression
from hubbub.statistics.bounds import Box

_TIMED = 150
SCHEMES: tuple[SecureSum, ...] = (
    Additive(2), Additive(3), Replicated(3, 2), Replicated(5, 3), Shamir(3, 2), Shamir(5, 3), Subset(50, 3, "audit"),
)  # fmt: skip
"""Whose shares are looked at; of a subset those that the Computes of one client hold."""


def histogram(first: Sequence[int], second: Sequence[int]) -> Scores:
    """Scores of views that fall into classes: how much more often a class was seen under the second data set.

    Learned from one half of the trials, the half that thresholds are chosen on.
    """
    views = np.array(first), np.array(second)
    classes = np.unique(np.concatenate(views))
    seen = [np.searchsorted(classes, each) for each in views]
    counts = [np.bincount(each[: each.size // 2], minlength=classes.size) + 0.5 for each in seen]
    ratio = np.log(counts[1] / counts[0])
    return Scores(ratio[seen[0]], ratio[seen[1]])


def classifier(first: Floats, second: Floats) -> Scores:
    """Scores of views with many features, by logistic regression on one half of the trials."""
    from sklearn.linear_model import LogisticRegression

    halves = [each[: each.shape[0] // 2] for each in (first, second)]
    labels = np.repeat([0, 1], [each.shape[0] for each in halves])
    model = LogisticRegression(C=0.1, max_iter=200).fit(np.concatenate(halves), labels)
    return Scores(model.decision_function(first), model.decision_function(second))


def _last_bits(release_value: Floats) -> int:
    """Where the last set bit of the first number stands: the exponent of the largest power of two that divides it."""
    value = float(release_value[0])
    if value == 0:
        return 2000
    numerator, denominator = value.as_integer_ratio()
    return (numerator & -numerator).bit_length() - denominator.bit_length()


def attempt_bits(setting: Setting, name: str, *, law: Mechanism, make: Callable[[], Engine]) -> Case:
    """Of numbers that leave a release: they lie on the grid, and their last bits tell nothing."""
    budget, statistic = budget_for(law, setting.budget), Means((1.0,))
    (mechanism,) = law.within(budget, (1.0,))
    spec, off_grid = RoundSpec("audit", statistic, mechanism), 0
    seen: list[list[int]] = []
    for value in (0.0, 1.0):  # doubles are finer around zero
        rows = np.zeros((FEW.clients, 1))
        rows[-1] = value
        views = []
        for _ in range(setting.trials):
            release = make().private_sum(rows, spec)
            bits = release.protection.fraction_bits
            off_grid += bits is None or not float(np.ldexp(release.value[0], bits)).is_integer()
            views.append(_last_bits(release.value))
        seen.append(views)
    bound = least_epsilon(histogram(*seen), budget.delta, setting.error)
    method = f"last bits (histogram); {off_grid} numbers off the grid"
    return Case.of(name, budget.epsilon, bound, math.inf if off_grid else 0.0, method, 2 * setting.trials)


def _study(statistic: Statistic, law: Mechanism, setting: Setting) -> Study:
    (mechanism,) = law.within(budget_for(law, setting.budget), (1.0,), statistic.probability)
    plan = settle_round(RoundSpec("audit", statistic, mechanism), FEW.engine().population(FEW.clients))
    keys = tuple(PrivateKey.generate().public() for _ in range(3))
    return Study(plan.population, keys, (plan,))


def _report(study: Study, row: Floats) -> list[bytes]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutOfDomainWarning)
        return [encode_report(each) for each in contribute(study, 0, "client-0", row, Randomness.system())]


def _samples(study: Study, law: Mechanism) -> list[Floats]:
    """The worst pair, zero, and samples that the statistic has no vector for, or clips."""
    plan = study.plan(0)
    pair, columns = worst_of(RoundSpec("audit", plan.statistic, plan.mechanism), order_of(law)), plan.statistic.columns
    return [pair.one, pair.other, np.zeros(columns), np.full(columns, np.nan), np.full(columns, 1e150)]


def attempt_length(setting: Setting, name: str, *, law: Mechanism) -> Case:
    """Reports are as long whatever the sample."""
    lengths: dict[str, list[tuple[int, ...]]] = {}
    made = 0
    for label, statistic in {"regression": Regression(Box((1.0, 2.0), 1.0)), "one-hot": OneHot(4)}.items():
        study = _study(statistic, law, setting)
        for sample in _samples(study, law):
            for _ in range(min(20, setting.trials)):
                lengths.setdefault(label, []).append(tuple(len(each) for each in _report(study, sample)))
                made += 1
    told = any(len(set(each)) > 1 for each in lengths.values())
    lost = math.inf if told else 0.0
    return Case.of(name, 0.0, lost, lost, "lengths compared", made)


def attempt_timing(setting: Setting, name: str, *, law: Mechanism) -> Case:
    """How long a report takes, in classes of a factor of two, is the same whatever the sample."""
    study = _study(Regression(Box((1.0, 2.0), 1.0)), law, setting)
    one, *others = _samples(study, law)
    _report(study, one)
    trials, error = 2 * min(setting.trials, _TIMED), setting.error / len(others)
    bound = max(least_epsilon(_timed(study, (one, other), trials), 0.0, error) for other in others)
    method = "timing classes (histogram), in random order"
    return Case.of(name, 0.0, bound, None, method, trials * len(others))


def _timed(study: Study, pair: tuple[Floats, Floats], trials: int) -> Scores:
    """Scores of so many reports, in random order, so that nothing else that changes with time can tell them apart."""
    seconds, labels = [], np.random.default_rng().integers(2, size=trials)
    for label in labels:
        started = time.perf_counter()
        _report(study, pair[label])
        seconds.append(time.perf_counter() - started)
    classes = np.rint(np.log2(np.array(seconds) / np.median(seconds))).astype(int)
    return histogram(classes[labels == 0].tolist(), classes[labels == 1].tolist())


def attempt_shares(setting: Setting, name: str, *, scheme: SecureSum) -> Case:
    """What as many Computes hold of a client's words as may conspire, whoever they are, tells nothing of the words."""
    trials = min(setting.trials, 2000)
    words = np.zeros(2, dtype=np.uint64), np.full(2, 2**63 - 1, dtype=np.uint64)
    serving = scheme.recipients("client")
    groups = list(combinations(serving, scheme.trust().conspiring))
    held = [[_held(scheme, serving, each) for _ in range(trials)] for each in words]
    worst, error = 0.0, setting.error / (2 * len(groups))
    for group in groups:
        seen = [np.stack([_pooled(scheme, {k: each[k] for k in group}) for each in trial]) for trial in held]
        bits = [np.unpackbits(each.view(np.uint8), axis=1).astype(np.float64) for each in seen]
        first_bits = [(each[:, 0] >> np.uint64(59)).astype(int).tolist() for each in seen]
        worst = max(
            worst,
            least_epsilon(classifier(bits[0], bits[1]), 0.0, error),
            least_epsilon(histogram(first_bits[0], first_bits[1]), 0.0, error),
        )
    method = "bits of shares and of what they would add up to (classifier, histogram)"
    return Case.of(name, 0.0, worst, None, method, 2 * len(groups) * trials)


def _held(scheme: SecureSum, serving: Sequence[int], words: Words) -> dict[int, Words]:
    """What each Compute of a client adds up of it."""
    found = {}
    for k, share in zip(serving, scheme.shard(words, "client", Randomness.system()), strict=True):
        found[k] = scheme.empty(words.size)
        scheme.accumulate(found[k], share)
    return found


def _pooled(scheme: SecureSum, held: Mapping[int, Words]) -> Words:
    """All that they hold, after the words that it would give if they were enough: each piece of it added up once, or
    the value at 0 of polynomials of a smaller degree."""
    if isinstance(scheme, Shamir) and len(held) > 1:
        guess = Shamir(scheme.computes, len(held)).unshard(held)
    else:
        guess = np.unique(np.concatenate([each.reshape(-1, 2) for each in held.values()]), axis=0).sum(
            axis=0, dtype=np.uint64
        )
    return np.concatenate([guess, *held.values()])


def views(law: Mechanism) -> list[Check]:
    """Everything an adversary sees besides the numbers of a release."""
    label = name_of(law)
    return [
        Check(f"bits of a release, local engine, {label}", partial(attempt_bits, law=law, make=FEW.engine)),
        Check(
            f"bits of a release, trusted aggregator, {label}", partial(attempt_bits, law=law, make=TrustedAggregator)
        ),
        Check(f"length of a report, {label}", partial(attempt_length, law=law)),
        Check(f"timing class of a report, {label}", partial(attempt_timing, law=law)),
    ]


def shares() -> list[Check]:
    """What Computes hold before anything is released."""
    return [Check(_label(scheme), partial(attempt_shares, scheme=scheme)) for scheme in SCHEMES]


def _label(scheme: SecureSum) -> str:
    conspiring, serving = scheme.trust().conspiring, len(scheme.recipients("client"))
    return f"shares of {conspiring} of {serving} Computes, {scheme.describe()['scheme']}"
