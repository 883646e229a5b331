"""`hubbub demo`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.table import Table

from hubbub.cli.cover import Cover
from hubbub.cli.output import PICTURES, check_writable, console, print_json, progress
from hubbub.experiments.demo import METHODS, ComputeView, DemoConfig, DemoResult, run_demo

_BARS = " ▁▂▃▄▅▆▇█"
_NAMES = {
    "nonprivate": "non-private (NP)",
    "trusted": "trusted aggregator (TA)",
    "distributed": "distributed, hubbub",
    "input_perturbation": "input perturbation",
}


def run(
    clients: int, epsilon: float, delta: float, computes: int, cover: Cover, repeats: int, seed: int | None,
    plot: Path | None, json: bool,
) -> None:  # fmt: skip
    """Run the demo and print it."""
    check_writable("--plot", plot, endings=PICTURES)
    config = DemoConfig(
        clients, epsilon, delta, computes, dropouts=cover.missing, colluding=cover.false, repeats=repeats, seed=seed
    )
    with progress() as bar:
        task = bar.add_task("red wine", total=repeats)
        result = run_demo(config, tick=lambda: bar.advance(task))
    if plot is not None:
        from hubbub.plots.demo import demo_plot

        demo_plot(plot, result.errors, result.view.seen, result.view.hidden, f"red wine, epsilon={epsilon:g}")
    if json:
        print_json(result.as_dict())
        return
    _print(result)


def _print(result: DemoResult) -> None:
    c = result.config
    console.print(
        f"Red wine: {c.clients} clients with one wine each, {c.computes} Computes, "
        f"(epsilon={c.epsilon:g}, delta={c.delta:g}), {c.repeats} random splits\n"
    )
    table = Table("method", "median MAE", "quartiles", "who sees the samples")
    sees = ("everybody", "the aggregator", "nobody", "nobody")
    for method, who in zip(METHODS, sees, strict=True):
        low, middle, high = np.percentile(result.errors[method], [25, 50, 75])
        table.add_row(_NAMES[method], f"{middle:.3f}", f"{low:.3f} - {high:.3f}", who)
    console.print(table)
    _print_view(result.view)
    console.print(str(result.privacy), markup=False)
    console.print(f"\n{result.seconds:.1f} s")


def _print_view(view: ComputeView) -> None:
    console.print(f"\nWhat Compute {view.compute} sees: byte values 0..255 of the shares it opened, in 32 bins")
    console.print(f"  seen    |{_bars(view.seen)}|  uniform? chi-squared p-value {view.p_value:.3f}")
    console.print(f"  hidden  |{_bars(view.hidden)}|  (the vectors behind them, which nobody sees)\n")


def _bars(counts: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> str:
    bins = counts.reshape(32, 8).sum(axis=1)
    return "".join(_BARS[max(1, round(8 * value / bins.max()))] for value in bins)
