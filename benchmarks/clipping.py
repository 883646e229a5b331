"""What clipping the target takes from the coefficients in the first sums, beside what it takes from normal data.

    python benchmarks/clipping.py

Without any noise and with exact centres and scales: rows in the ball that the default method would choose at this
epsilon, then y clipped. `left` is the part of the prediction that remains, `normal` what a normal target of the same
clipped mean square would keep, `share` the ratio of the two losses (where clipping matters at all). Of a normal
target's loss the first look puts back `TUNING.clipping_counts` (docs/decisions/0008). Residuals, which the last round
clips, tell by their counts what is left.
"""

from __future__ import annotations

import numpy as np

from hubbub.analyses.linear.auto import choose_ball, together, weights
from hubbub.analyses.linear.released import clipped_target
from hubbub.arrays import Floats
from hubbub.experiments import coverage, fig2, others
from hubbub.privacy import Budget, GaussianMechanism, shared_multipliers

EPSILONS = (1.0, 3.0, 10.0)
MATTERS = 0.01  # a smaller loss of a normal target is not shown


def loss(data: Floats, epsilon: float, delta: float) -> tuple[float, float, float]:
    """The bound of y, and what is left of the prediction, in fact and for a normal target."""
    z = (data - data.mean(axis=0)) / data.std(axis=0)
    n, columns = z.shape
    _, *rounds = map(GaussianMechanism, shared_multipliers(Budget(epsilon, delta), weights()))
    ball = choose_ball(n, columns, together(rounds, columns))
    assert ball.y is not None
    u = np.hstack([np.ones((n, 1)), z])
    u *= np.minimum(1.0, ball.radius / np.linalg.norm(u[:, :-1], axis=1, keepdims=True))
    x, y = u[:, :-1], u[:, -1]
    clipped = np.clip(y, -ball.y, ball.y)
    whole, cut = (x[:, 1:] @ np.linalg.lstsq(x, target)[0][1:] for target in (y, clipped))
    return ball.y, float(whole @ cut / (whole @ whole)), float(clipped_target(np.mean(clipped**2), ball.y)[0])


def datasets() -> dict[str, tuple[Floats, float]]:
    """Rows and delta."""
    found = {}
    for name, (read, n, _) in fig2.DATASETS.items():
        found[name] = read()[np.random.default_rng(0).permutation(len(read()))[:n]], fig2.DELTA
    for name, other in others.DATASETS.items():
        rows = other.read()
        found[name] = rows[np.random.default_rng(0).permutation(len(rows))[: others.MOST_TRAIN]], 1e-5
    for kind in coverage.FEATURES:
        for n in (300, 1000):
            rng = np.random.default_rng(1)
            X = coverage.features(kind, n, 10, rng)
            y = X @ rng.standard_normal(10) / np.sqrt(10) + rng.standard_normal(n)
            found[f"{kind}, n = {n}"] = np.column_stack([X, y]), coverage.DELTA
    return found


def main() -> None:
    """Print the table."""
    print("| data | epsilon | y clipped at | left | normal | share |\n|---|---|---|---|---|---|")
    for name, (rows, delta) in datasets().items():
        for epsilon in EPSILONS:
            bound, left, normal = loss(rows, epsilon, delta)
            share = f"{(1 - left) / (1 - normal):.1f}" if 1 - normal > MATTERS else "-"
            print(f"| {name} | {epsilon:g} | {bound:.2f} | {left:.3f} | {normal:.3f} | {share} |")


if __name__ == "__main__":
    main()
