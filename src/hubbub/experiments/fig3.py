"""Figure 3: drug sensitivity, rank correlation of predictions against epsilon."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from hubbub.arrays import Floats
from hubbub.errors import InvalidInput
from hubbub.experiments.gdsc import GENES, DrugData, load_gdsc
from hubbub.experiments.methods import METHODS, posterior_of
from hubbub.experiments.modes import Mode, Noise, noise_of
from hubbub.experiments.outcome import Claim, Outcome
from hubbub.experiments.runner import Cell, Row, seed_of
from hubbub.privacy import Budget
from hubbub.statistics import Box

EPSILONS = (1.0, 3.0, 5.0, 7.5, 10.0)
DELTA = 1e-3
BOUNDS = Box((1.0,) * len(GENES), 7.5)  # unit rows; the paper's bound of the target
TEST_SIZE = 100
FEWEST_LINES = 150  # for the test set, and some to learn from
DRUGS_PER_CELL = 53
DEFAULT_REPEATS = 30


def cells(mode: Mode, seed: int, repeats: int, folder: Path) -> list[Cell]:
    """One cell per split and group of drugs."""
    data = _data(str(folder.absolute()))
    measured = np.isfinite(data.responses).sum(axis=0)
    if measured.min() < FEWEST_LINES:
        drug = data.drugs[int(measured.argmin())]
        raise InvalidInput(
            f"data must have at least {FEWEST_LINES} cell lines for every drug, got {measured.min()} for {drug}"
        )
    mark = seed_of(data.responses.shape, np.nansum(data.responses), data.features.sum())
    return [
        Cell(
            f"fig3 {mode} seed={seed} data={mark} split={split} drugs={first}",
            run_split,
            (str(folder.absolute()), split, first, mode, seed),
        )
        for split in range(repeats)
        for first in range(0, len(data.drugs), DRUGS_PER_CELL)
    ]


@lru_cache(maxsize=1)
def _data(folder: str) -> DrugData:
    return load_gdsc(Path(folder))


def run_split(folder: str, split: int, first: int, mode: Mode, seed: int) -> list[Row]:
    """For every epsilon and method: the sum of correlations over a group of drugs, and their number."""
    data = _data(folder)
    noises = [noise_of(mode, Budget(epsilon, DELTA), BOUNDS) for epsilon in EPSILONS]
    total, clients = np.zeros((len(EPSILONS), len(METHODS))), 0
    drugs = range(first, min(first + DRUGS_PER_CELL, len(data.drugs)))
    for drug in drugs:
        rows = data.rows(drug)
        order = np.random.default_rng(seed_of("fig3", seed, drug, split)).permutation(rows.shape[0])
        test, train = rows[order[:TEST_SIZE]], rows[order[TEST_SIZE:]]
        clients += train.shape[0]
        betas = np.array(
            [
                [_coefficients(m, train, noise, f"fig3/{mode}/{seed}/{drug}/{split}") for m in METHODS]
                for noise in noises
            ]
        )
        total += spearman(betas @ test[:, :-1].T, test[:, -1])
    return [
        {"epsilon": epsilon, "method": method, "sum": float(total[i, j]), "count": len(drugs), "clients": clients}
        for i, epsilon in enumerate(EPSILONS)
        for j, method in enumerate(METHODS)
    ]


def _coefficients(method: str, train: Floats, noise: Noise, label: str) -> Floats:
    """An intercept does not change ranks; hubbub is told that rows have unit length, which is public."""
    return posterior_of(method, train, BOUNDS, noise, label, norm=1.0, posterior="shrinkage").mean


def spearman(predictions: Floats, target: Floats) -> Floats:
    """Rank correlation along the last axis; 0 where a prediction is constant."""
    from scipy.stats import rankdata

    a, b = rankdata(predictions, axis=-1), rankdata(target)
    a -= a.mean(axis=-1, keepdims=True)
    b -= b.mean()
    scale = np.linalg.norm(a, axis=-1) * np.linalg.norm(b)
    return np.asarray(np.divide(a @ b, scale, out=np.zeros(scale.shape), where=scale > 0))


def summarise(results: list[list[Row]], mode: Mode, repeats: int) -> Outcome:
    """Mean over drugs within a split, then mean and standard deviation over splits."""
    groups = len(results) // repeats
    rows: list[Row] = []
    for k, first in enumerate(results[0]):
        parts = [[results[split * groups + g][k] for g in range(groups)] for split in range(repeats)]
        per_split = [sum(p["sum"] for p in part) / sum(p["count"] for p in part) for part in parts]
        drugs = sum(p["count"] for p in parts[0])
        rows.append(
            {
                "dataset": "gdsc",
                "epsilon": first["epsilon"],
                "method": first["method"],
                "mean": float(np.mean(per_split)),
                "std": float(np.std(per_split)),
                "n": round(sum(p["clients"] for p in parts[0]) / drugs),
                "drugs": drugs,
                "repeats": repeats,
                "guarantee": noise_of(mode, Budget(first["epsilon"], DELTA), BOUNDS).is_guarantee(first["method"]),
            }
        )
    return Outcome("fig3", mode, rows, claims(rows), ABOUT)


def claims(rows: list[Row]) -> list[Claim]:
    """The paper's claims about this figure."""
    mean = {(r["epsilon"], r["method"]): r["mean"] for r in rows}
    std = {(r["epsilon"], r["method"]): r["std"] for r in rows}
    found = []
    for central, distributed in (("TA", "DDP"), ("proj TA", "proj DDP")):
        gap = [abs(mean[e, central] - mean[e, distributed]) for e in EPSILONS]
        wide = [std[e, central] + std[e, distributed] for e in EPSILONS]
        found.append(
            Claim(
                f"{distributed} does not differ markedly from {central}",
                f"largest difference {max(gap):.3f}, within one standard deviation of each at "
                f"{sum(g <= w for g, w in zip(gap, wide, strict=True))} of {len(EPSILONS)} epsilons",
                all(g <= w for g, w in zip(gap, wide, strict=True)),
            )
        )
    for one, other, claim in (
        ("proj DDP", "DDP", "the projection is clearly beneficial"),
        ("proj DDP", "input perturbation", "the distributed method beats input perturbation"),
        ("hubbub", "proj DDP", "(ours) hubbub's default is at least as good as proj DDP"),
    ):
        gains = [mean[e, one] - mean[e, other] for e in EPSILONS]
        text = ", ".join(f"{g:+.3f}" for g in gains)
        found.append(Claim(claim, f"{one} minus {other} over epsilon: {text}", sum(g > 0 for g in gains) >= 4))
    return found


ABOUT = (
    "Mean over 265 drugs of Spearman's rank correlation between predicted and measured ln(IC50) of 100 held-out "
    "cell lines; standard deviation over splits. Ten genes, each cell line's expression centred and scaled to "
    "unit length, target centred and bounded by 7.5, delta = 1e-3."
)
