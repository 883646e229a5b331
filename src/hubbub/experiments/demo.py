"""The demo: red-wine quality from 1000 simulated clients and 3 Computes, beside its baselines."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hubbub.analyses.linear.projected import normal_posterior
from hubbub.arrays import Floats, Words
from hubbub.engines import LocalEngine, TrustedAggregator
from hubbub.errors import invalid
from hubbub.estimators.linear_regression import PrivateLinearRegression
from hubbub.experiments.baselines import exact_gram, input_perturbation_gram
from hubbub.experiments.datasets import BOUND, red_wine
from hubbub.experiments.runner import seed_of
from hubbub.privacy import Budget, PrivacyReport, gaussian_round, noise_multiplier
from hubbub.protocols import Engine
from hubbub.randomness import Randomness
from hubbub.roles import Compute, Study, accept, contribute
from hubbub.securesum import PrivateKey
from hubbub.securesum.additive import expanded
from hubbub.statistics import Box

CAVEATS = ("this is a demonstration: columns were centred and scaled with the data itself, and fitted many times",)
METHODS = ("nonprivate", "trusted", "distributed", "input_perturbation")


@dataclass(frozen=True)
class DemoConfig:
    """Everything the demo depends on."""

    clients: int = 1000
    epsilon: float = 1.0
    delta: float = 1e-4
    computes: int = 3
    dropouts: int = 5
    colluding: int = 5
    repeats: int = 20
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise invalid("repeats", "at least 1", self.repeats, "20 gives a stable median")
        Randomness.of(self.seed)  # refuses a bad seed


@dataclass(frozen=True)
class ComputeView:
    """What one Compute holds after opening its shares, byte by byte, and what they hide."""

    compute: int
    seen: Floats
    """256 counts of the bytes that this Compute sees."""
    hidden: Floats
    """256 counts of the bytes of the vectors behind them."""
    p_value: float
    """Of a chi-squared test that the bytes seen are uniform."""


@dataclass(frozen=True)
class DemoResult:
    """Errors of every method over the repeats, the privacy report and one Compute's view."""

    config: DemoConfig
    errors: dict[str, Floats]
    privacy: PrivacyReport
    view: ComputeView
    seconds: float

    def as_dict(self) -> dict[str, object]:
        """The one object that `hubbub demo --json` prints."""
        c = self.config
        return {
            "dataset": "red_wine", "n": c.clients, "epsilon": c.epsilon, "delta": c.delta,
            "mae": {method: float(np.median(self.errors[method])) for method in METHODS},
            "repeats": c.repeats, "computes": c.computes, "dropouts": c.dropouts,
            "colluders": c.colluding, "seed": c.seed,
            "compute_view": {"compute": self.view.compute, "uniform_p_value": self.view.p_value},
            "privacy": self.privacy.as_dict(), "seconds": self.seconds,
        }  # fmt: skip


def run_demo(config: DemoConfig, tick: Callable[[], object] = lambda: None) -> DemoResult:
    """Fit every method on `repeats` random splits; calls `tick` after each."""
    started = time.perf_counter()
    budget = Budget(config.epsilon, config.delta)
    data = red_wine()
    test_size = min(500, data.shape[0] - config.clients)
    if test_size < 1 or config.clients < 3:
        raise invalid("clients", f"in 3..{data.shape[0] - 1}", config.clients, "leave some rows to test on")
    bound = Box((BOUND,) * (data.shape[1] - 1), BOUND)
    errors: dict[str, list[float]] = {method: [] for method in METHODS}
    for repeat in range(config.repeats):
        order = np.random.default_rng(repeat).permutation(data.shape[0])
        train, test = data[order[: config.clients]], data[order[config.clients :][:test_size]]
        for method in METHODS:
            coefficients, report = _fit(method, train, bound, budget, config, repeat)
            errors[method].append(float(np.abs(test[:, :-1] @ coefficients - test[:, -1]).mean()))
            if method == "distributed" and repeat == 0:
                privacy = report
        tick()
    assert privacy is not None
    view = compute_view(train, bound, config)
    seconds = time.perf_counter() - started
    return DemoResult(config, {m: np.array(e) for m, e in errors.items()}, privacy, view, seconds)


def _fit(
    method: str, train: Floats, bound: Box, budget: Budget, config: DemoConfig, repeat: int
) -> tuple[Floats, PrivacyReport | None]:
    """Coefficients by one method; the private ones by the library's default, whoever adds up."""
    seed = None if config.seed is None else seed_of("demo", config.seed, repeat)
    if method == "nonprivate":
        return normal_posterior(exact_gram(train)).mean, None
    if method == "input_perturbation":
        gram = input_perturbation_gram(train, bound, noise_multiplier(budget), Randomness.of(seed))
        return normal_posterior(gram).mean, None
    engine: Engine = TrustedAggregator(seed)
    if method == "distributed":
        engine = LocalEngine(
            config.computes, dropouts=config.dropouts, colluding=config.colluding, seal=repeat == 0, seed=seed
        )
    model = PrivateLinearRegression(  # the quick posterior: many fits, of centred data, and only predictions are shown
        budget, x_bound=bound.x, y_bound=bound.y, posterior="shrinkage", engine=engine, fit_intercept=False
    )
    model.fit(train[:, :-1], train[:, -1])
    return model.coef_, PrivacyReport(budget, model.privacy_.rounds, CAVEATS)


def compute_view(rows: Floats, bound: Box, config: DemoConfig, clients: int = 200) -> ComputeView:
    """Let 200 clients report to real Computes, then look at every byte that the last one holds."""
    from scipy.stats import chisquare

    from hubbub.statistics import Regression

    randomness = Randomness.of(config.seed)
    rows = rows[:clients]
    engine = LocalEngine(config.computes)
    plan = engine.settle(
        gaussian_round(Regression(bound), noise_multiplier(Budget(config.epsilon, config.delta))), len(rows)
    )
    keys = [PrivateKey.generate() for _ in range(config.computes)]
    study = Study(engine.population(len(rows)), tuple(key.public() for key in keys), (plan,))
    last = config.computes - 1
    reports = [contribute(study, 0, f"client-{i}", row, randomness)[last] for i, row in enumerate(rows)]
    holding, _ = accept(Compute(study, 0, last, keys[last]), reports)
    seen = _byte_counts(np.stack([expanded(share) for share in holding.held.values()]))
    hidden = _byte_counts(plan.noise.encoded(plan.statistic.vectors(rows)))
    return ComputeView(last + 1, seen, hidden, float(chisquare(seen).pvalue))


def _byte_counts(words: Words) -> Floats:
    return np.bincount(np.frombuffer(words.tobytes(), dtype=np.uint8), minlength=256).astype(np.float64)
