"""One self-contained page with every figure, the numbers behind it, and the table of claims."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from hubbub import __version__
from hubbub.experiments import fig2
from hubbub.experiments.datasets import BOUND
from hubbub.experiments.modes import EXPLANATIONS, MODES, noise_of
from hubbub.experiments.outcome import Outcome
from hubbub.privacy import Budget
from hubbub.statistics import Box

TITLES = {
    "fig1b": "Figure 1b: the price of distribution",
    "fig2": "Figure 2: UCI data sets",
    "fig3": "Figure 3: drug sensitivity",
    "table1": "Table 1: seconds",
    "efficiency": "The efficiency theorems",
    "coverage": "Do 90 % intervals cover 90 %?",
    "glm": "Generalised linear models",
    "others": "Other data sets",
    "mechanisms": "Laws of noise side by side",
    "adassp": "The table of Wang 2018",
    "real": "Data sets that ship with packages",
    "dpvi": "Variational inference: accuracy against epsilon",
    "outcomes": "Logistic regression on real data",
}

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
h1, h2 { line-height: 1.2 }
h2 { margin-top: 3rem; border-top: 1px solid #ddd; padding-top: 1rem }
table { border-collapse: collapse; font-size: 0.85rem }
td, th { border: 1px solid #ddd; padding: 0.2rem 0.5rem; text-align: left }
td.number { text-align: right; font-variant-numeric: tabular-nums }
.holds { color: #060 }
.fails { color: #a00; font-weight: 600 }
.warning { background: #fee; border-left: 4px solid #a00; padding: 0.5rem 1rem }
svg { max-width: 100%; height: auto; background: #fff }
details { margin: 1rem 0 }
"""


def write_report(folder: Path) -> Path:
    """Assemble report.html from all results that stand in the folder."""
    results = stored_results(folder)
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' content='width=device-width'>",
        "<title>The paper again, by hubbub</title>",
        f"<style>{_STYLE}</style>",
        "<h1>Differentially Private Bayesian Learning on Distributed Data, again</h1>",
        f"<p>Made by hubbub {__version__} on {date.today().isoformat()}. All noise here is simulated from seeds.</p>",
        _claims(results),
        "<h2>Three ways to compute</h2>",
        *(f"<p><b>{mode}.</b> {html.escape(EXPLANATIONS[mode])}</p>" for mode in MODES),
        _spent_table(),
        "<p>Crosses in a figure mark points that are <b>not a guarantee</b>: the noise does not meet the budget.</p>",
        *(_section(folder, result) for result in results),
        "</html>",
    ]
    path = folder / "report.html"
    path.write_text("\n".join(parts), encoding="utf-8")
    return path


def stored_results(folder: Path) -> list[Outcome]:
    """The results that earlier runs left in the folder, in the order of the paper."""
    found = []
    for experiment in TITLES:
        for ending in ("", *(f"_{mode}" for mode in MODES if mode != "sound"), "_reported"):
            path = folder / f"{experiment}{ending}.json"
            if path.is_file():
                found.append(Outcome.from_dict(json.loads(path.read_text())))
    return found


def _claims(results: Sequence[Outcome]) -> str:
    rows = [
        f"<tr><td>{_name(result)}</td><td>{html.escape(claim.claim)}</td><td>{html.escape(claim.measured)}</td>"
        f"<td class='{'holds' if claim.holds else 'fails'}'>{'holds' if claim.holds else 'does not hold'}</td></tr>"
        for result in results
        for claim in result.claims
    ]
    head = "<tr><th>experiment</th><th>claim</th><th>measured</th><th></th></tr>"
    return f"<h2>Claims</h2><table>{head}{''.join(rows)}</table>"


def _spent_table() -> str:
    """Claimed and really spent epsilon on the UCI set-up with eleven features, by the exact accountant."""
    rows: list[dict[str, Any]] = []
    for epsilon in fig2.EPSILONS:
        row: dict[str, Any] = {"claimed epsilon": epsilon}
        for mode in MODES:
            noise = noise_of(mode, Budget(epsilon, fig2.DELTA), Box((BOUND,) * 11, BOUND))
            row |= {
                f"TA, DDP as {mode}": noise.spent_plain,
                f"projected as {mode}": noise.spent_projected,
                f"input perturbation as {mode}": noise.spent_input,
            }
        rows.append(row)
    return (
        "<p>What the noise really costs, by the exact accountant (eleven features, bounds "
        f"{BOUND}, delta = {fig2.DELTA:g}); TA and DDP held against the tight sensitivity, projected methods, whose "
        f"bounds depend on the data, against the one they state:</p>{_table(rows)}"
    )


def _name(result: Outcome) -> str:
    return result.experiment + _which(result)


def _which(result: Outcome) -> str:
    """How it was computed and on which half of the data sets, where there is a choice."""
    return ("" if result.mode == "sound" else f", as {result.mode}") + (f", {result.sets}" if result.sets else "")


def _section(folder: Path, result: Outcome) -> str:
    picture = folder / f"{result.name}.svg"
    svg = picture.read_text(encoding="utf-8") if picture.is_file() else ""
    svg = svg[svg.find("<svg") :]  # without the XML prologue, which has no place inside a page
    warning = ""
    if any(row.get("guarantee") is False for row in result.rows):
        warning = "<p class='warning'>Not every point is a valid guarantee; those marked with a cross are not.</p>"
    title = TITLES[result.experiment] + _which(result)
    return (
        f"<h2>{html.escape(title)}</h2><p>{html.escape(result.about)}</p>{warning}{svg}"
        f"<details><summary>The numbers ({len(result.rows)} rows)</summary>{_table(result.rows)}</details>"
    )


def _table(rows: Sequence[dict[str, Any]]) -> str:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(_cell(row.get(column)) for column in columns) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _cell(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"<td>{html.escape('' if value is None else str(value))}</td>"
    return f"<td class='number'>{value:.4g}</td>" if isinstance(value, float) else f"<td class='number'>{value}</td>"
