"""Figure 1b: the extra noise that distribution costs, N/(N-T-1), computed and measured."""

from __future__ import annotations

import numpy as np

from hubbub.engines import LocalEngine
from hubbub.experiments.modes import Mode
from hubbub.experiments.outcome import Claim, Outcome
from hubbub.experiments.runner import Cell, Row, seed_of
from hubbub.privacy import gaussian_round
from hubbub.statistics import Means

TOLERATED = (0, 5, 10, 50)
CLIENTS = (60, 80, 100, 150, 200, 300, 500, 700, 1000)
COORDINATES = 500
DEFAULT_REPEATS = 20


def cells(mode: Mode, seed: int, repeats: int) -> list[Cell]:
    """One cell per T."""
    return [Cell(f"fig1b seed={seed} T={t} repeats={repeats}", measure, (t, seed, repeats)) for t in TOLERATED]


def measure(tolerated: int, seed: int, repeats: int) -> list[Row]:
    """The variance of real releases of zeros, over that of a trusted aggregator."""
    from scipy.stats import chi2

    statistic = Means((0.5,) * COORDINATES)
    rows: list[Row] = []
    for clients in CLIENTS:
        engine = LocalEngine(
            computes=3, tolerate=tolerated, theorem1=True, seed=seed_of("fig1b", seed, tolerated, clients)
        )
        releases = [
            engine.private_sum(np.zeros((clients, COORDINATES)), gaussian_round(statistic, 1.0)) for _ in range(repeats)
        ]
        values = np.concatenate([release.value for release in releases])
        square = float(np.sum(values**2)) / releases[0].protection.sigma_std ** 2
        low, high = (square / q for q in chi2(values.size).interval(0.999)[::-1])
        rows.append(
            {
                "N": clients,
                "T": tolerated,
                "factor": clients / (clients - tolerated - 1),
                "measured": square / values.size,
                "low": float(low),
                "high": float(high),
                "repeats": repeats,
            }
        )
    return rows


def summarise(results: list[list[Row]], mode: Mode, repeats: int) -> Outcome:
    """All rows, and the claims."""
    rows = [row for part in results for row in part]
    inside = sum(row["low"] <= row["factor"] <= row["high"] for row in rows)
    last = [row["factor"] for row in rows if row["N"] == CLIENTS[-1]]
    claims = [
        Claim(
            "a release of N clients has N/(N-T-1) times the variance of a trusted aggregator's (Theorem 1)",
            f"the factor lies in the measured 99.9 % interval at {inside} of {len(rows)} points",
            inside >= len(rows) - 1,
        ),
        Claim(
            "the factor quickly approaches 1 as the number of clients grows",
            f"at N = {CLIENTS[-1]}: " + ", ".join(f"{f:.3f} (T={t})" for f, t in zip(last, TOLERATED, strict=True)),
            max(last) < 1.1,
        ),
    ]
    about = (
        "The factor by which the variance of a distributed release exceeds a trusted aggregator's, for T "
        "colluders or dropouts (the paper's Theorem 1; a study covers both at once, "
        "N/(N-D-C-1)). Lines: N/(N-T-1). Points: measured from releases of the local engine "
        f"({COORDINATES} coordinates, {repeats} releases each), with 99.9 % intervals."
    )
    return Outcome("fig1b", mode, rows, claims, about)
