"""Private variational inference: Bayesian logistic regression on abalone (Jalko et al. 2016), accuracy against epsilon.

Is an abalone nine rings old or more? The model and the way of learning are in examples/logistic_abalone.py, too.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.special import expit

from hubbub.arrays import Floats
from hubbub.engines import LocalEngine, TrustedAggregator
from hubbub.errors import InvalidInput
from hubbub.experiments.datasets import abalone_raw
from hubbub.experiments.modes import Mode
from hubbub.experiments.outcome import Claim, Outcome
from hubbub.experiments.runner import Cell, Row, seed_of
from hubbub.privacy import Budget
from hubbub.protocols import Engine

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
DELTA, RINGS, TRAIN, STEPS, CLIP, TOLERATED = 1e-5, 9, 3000, 500, 1.0, 5
NO_CLIP = 1e6
METHODS = ("NP", "TA", "DDP")
DRAWS = 300
DEFAULT_REPEATS = 10
WITHIN = 0.03
"""The accuracy at epsilon = 1 must come so close to the non-private one."""
# Public knowledge about the species, in the file's units: a typical value and how far individuals lie from it.
CENTRES = (0.6, 0.5, 0.4, 0.14, 0.8, 0.35, 0.18, 0.25)
SCALES = (0.5, 0.12, 0.1, 0.04, 0.5, 0.2, 0.1, 0.14)


def cells(mode: Mode, seed: int, repeats: int) -> list[Cell]:
    """One cell per split: every epsilon and method on the same training rows, one compilation for all."""
    if find_spec("jax") is None or find_spec("numpyro") is None or find_spec("optax") is None:
        raise InvalidInput("the extra `vi` must be installed for dpvi, got no jax; pip install 'hubbub[vi]'")
    return [Cell(f"dpvi seed={seed} split={split}", run_split, (split, seed)) for split in range(repeats)]


@lru_cache(maxsize=1)
def data() -> tuple[Floats, Floats]:
    """Eight columns in public units, and whether there are nine rings or more."""
    rows = abalone_raw()
    return (rows[:, :-1] - CENTRES) / SCALES, (rows[:, -1] >= RINGS).astype(float)


@lru_cache(maxsize=1)
def model() -> Any:
    """The NumPyro model: normal priors of scale 2, and a row for each client."""
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist

    def logistic(X: Any, y: Any = None) -> None:
        w = numpyro.sample("w", dist.Normal(jnp.zeros(X.shape[1]), 2.0).to_event(1))
        b = numpyro.sample("b", dist.Normal(0.0, 2.0))
        with numpyro.plate("clients", TRAIN, subsample_size=X.shape[0]):
            numpyro.sample("y", dist.Bernoulli(logits=X @ w + b), obs=y)

    return logistic


def run_split(split: int, seed: int) -> list[Row]:
    """Accuracy on held-out rows of every method at every epsilon, on one random split."""
    X, y = data()
    order = np.random.default_rng(seed_of("dpvi", seed, split)).permutation(y.size)
    train, test = order[:TRAIN], order[TRAIN:]
    non_private = accuracy_of("NP", 1.0, X[train], y[train], X[test], y[test], f"{seed}/{split}")
    return [
        {
            "epsilon": epsilon,
            "method": method,
            "accuracy": non_private
            if method == "NP"
            else accuracy_of(method, epsilon, X[train], y[train], X[test], y[test], f"{seed}/{split}"),
        }
        for epsilon in EPSILONS
        for method in METHODS
    ]


def accuracy_of(method: str, epsilon: float, X: Floats, y: Floats, X_new: Floats, y_new: Floats, label: str) -> float:
    """The share of new rows whose more probable class is the right one."""
    from hubbub.estimators.svi import PrivateSVI

    seed = seed_of("dpvi", label, method, epsilon)
    engine: Engine = (
        LocalEngine(tolerate=TOLERATED, theorem1=True, seed=seed) if method == "DDP" else TrustedAggregator(seed)
    )
    noise, clip = (0.0, NO_CLIP) if method == "NP" else (None, CLIP)
    fitted = PrivateSVI(
        model(), budget=Budget(epsilon, DELTA), clip=clip, steps=STEPS, engine=engine, noise_multiplier=noise, seed=seed
    ).fit(X, y)
    draws = fitted.sample(DRAWS)
    logits = X_new @ draws["w"].T + draws["b"]
    probability = expit(logits).mean(axis=1)
    return float(np.mean((probability > 0.5) == (y_new > 0.5)))


def summarise(results: list[list[Row]], mode: Mode, repeats: int) -> Outcome:
    """Mean and standard deviation over the splits, and what is claimed."""
    found: dict[tuple[float, str], list[float]] = {}
    for row in (row for rows in results for row in rows):
        found.setdefault((row["epsilon"], row["method"]), []).append(row["accuracy"])
    rows = [
        {
            "dataset": "abalone",
            "epsilon": epsilon,
            "method": method,
            "mean": float(np.mean(values)),
            "std": float(np.std(values)),
            "n": TRAIN,
            "repeats": repeats,
            "guarantee": None if method == "NP" else True,
        }
        for (epsilon, method), values in found.items()
    ]
    return Outcome("dpvi", mode, rows, claims(found), ABOUT)


def claims(found: dict[tuple[float, str], list[float]]) -> list[Claim]:
    """What the picture must show."""
    mean = {place: float(np.mean(values)) for place, values in found.items()}
    loss = mean[1.0, "NP"] - mean[1.0, "DDP"]
    gaps = [abs(mean[epsilon, "TA"] - mean[epsilon, "DDP"]) for epsilon in EPSILONS if epsilon >= 1]
    return [
        Claim(
            "at epsilon = 1 the accuracy is within 3 points of the non-private one",
            f"{100 * mean[1.0, 'DDP']:.1f} beside {100 * mean[1.0, 'NP']:.1f} %",
            loss <= WITHIN,
        ),
        Claim(
            "from epsilon = 1 on, trusting nobody costs no more than 1 point beside a trusted aggregator",
            f"at most {100 * max(gaps):.1f} points",
            max(gaps) <= 0.01,
        ),
    ]


ABOUT = (
    f"Bayesian logistic regression on abalone ({RINGS} rings or more; {TRAIN} clients, the other 1177 rows held out) "
    f"by private variational inference: {STEPS} steps in which all clients count, gradients clipped to {CLIP:g}, "
    f"delta = {DELTA:g}, T = {TOLERATED}. Columns are centred and scaled by public values, not by the data. "
    "NP: neither noise nor clip. TA: a trusted aggregator adds the noise. DDP: every client adds its share, through "
    "the secure sum."
)
