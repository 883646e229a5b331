"""A hierarchical model: 20 simulated hospitals, 20000 patients, and how much the hospitals differ.

    python examples/hospitals.py [figure.png]

Every patient is a client and knows its hospital, its risk score and its outcome. The model has an effect for each
hospital around a common mean, and learns how far the hospitals lie apart. Needs the extra `vi`.
"""

from __future__ import annotations

import sys

import numpy as np
import numpyro
import numpyro.distributions as dist
from matplotlib.figure import Figure

from hubbub import Budget, LocalEngine, PrivateSVI, TrustedAggregator

HOSPITALS, PATIENTS, SPREAD, SLOPE = 20, 20_000, 0.7, 0.5


def model(hospital, risk, outcome=None):
    mean = numpyro.sample("mean", dist.Normal(0.0, 2.0))
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    with numpyro.plate("hospitals", HOSPITALS):
        effect = numpyro.sample("effect", dist.Normal(mean, spread))
    with numpyro.plate("patients", PATIENTS, subsample_size=hospital.shape[0]):
        logit = effect[hospital] + slope * risk
        numpyro.sample("outcome", dist.Bernoulli(logits=logit), obs=outcome)


def simulated(seed: int = 0, patients: int = PATIENTS) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    effects = -0.5 + SPREAD * rng.standard_normal(HOSPITALS)
    hospital = rng.integers(0, HOSPITALS, patients)
    risk = rng.standard_normal(patients)
    outcome = rng.random(patients) < 1 / (1 + np.exp(-effects[hospital] - SLOPE * risk))
    return hospital, risk, outcome.astype(int), effects


def main(path: str) -> None:
    *data, truth = simulated()
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    settings = {
        "non-private": {"engine": TrustedAggregator(), "noise_multiplier": 0.0, "clip": 1e6},
        "epsilon 3": {"engine": LocalEngine(tolerate=5), "budget": Budget(3.0, 1e-5)},
        "epsilon 1": {"engine": LocalEngine(tolerate=5), "budget": Budget(1.0, 1e-5)},
    }
    axes.plot(truth, "k_", ms=14, label="truth")
    for offset, (label, arguments) in enumerate(settings.items()):
        fitted = PrivateSVI(model, steps=800, seed=0, **{"clip": 2.0, **arguments}).fit(*data)
        draws = fitted.sample(1000)
        low, middle, high = np.quantile(draws["effect"], [0.05, 0.5, 0.95], axis=0)
        at = np.arange(HOSPITALS) + 0.2 * (offset - 1)
        axes.errorbar(at, middle, yerr=[middle - low, high - middle], fmt="o", ms=3, lw=1, label=label)
        error = np.sqrt(np.mean((middle - truth) ** 2))
        inside = np.mean((low < truth) & (truth < high))
        print(
            f"{label}: spread {draws['spread'].mean():.2f} (truth {SPREAD}), slope {draws['slope'].mean():.2f} (truth "
            f"{SLOPE}), hospitals off by {error:.2f} on average, {100 * inside:.0f} % of 90 % intervals hold the truth"
        )
    axes.set(xlabel="hospital", ylabel="log odds, 90 % interval", title=f"{PATIENTS} patients, each its own client")
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "hospitals.png")
