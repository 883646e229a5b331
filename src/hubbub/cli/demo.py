"""`hubbub demo`: compare the distributed method with three others on the red wines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.table import Table

from hubbub.cli.options import FIVE, Computes, Cover, Delta, Epsilon, Json, Picture, Seed, Whole
from hubbub.cli.output import PICTURES, check_writable, console, print_json, progress

if TYPE_CHECKING:
    from hubbub.arrays import Floats
    from hubbub.experiments.demo import ComputeView, DemoResult

_BARS = " ▁▂▃▄▅▆▇█"
_NAMES = {
    "nonprivate": "non-private (NP)",
    "trusted": "trusted aggregator (TA)",
    "distributed": "distributed, hubbub",
    "input_perturbation": "input perturbation",
}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """The options of `hubbub demo`."""

    clients: Annotated[int, Whole, Parameter(help="How many simulated clients.")] = 1000
    epsilon: Epsilon = 1.0
    delta: Delta = 1e-4
    computes: Computes = 3
    cover: Cover = FIVE
    repeats: Annotated[int, Whole, Parameter(help="Random splits; the table shows medians.")] = 20
    seed: Seed = None
    plot: Picture = None
    json: Json = False


DEFAULTS = DemoOptions()


def demo(options: DemoOptions = DEFAULTS) -> None:
    """Predict the quality of red wines from 1000 clients who show their data to nobody.

    Compares the mean absolute error of the distributed method with the non-private one, a trusted
    aggregator and input perturbation, shows what one Compute sees, and prints the privacy report.

    For example:

        hubbub demo
        hubbub demo --epsilon 3 --plot demo.png
        hubbub demo --json
    """
    run(options)


def run(options: DemoOptions) -> None:
    """Run the demo, print its result, and write the picture if one is wanted."""
    from hubbub.experiments.demo import DemoConfig, run_demo

    check_writable("--plot", options.plot, endings=PICTURES)
    config = DemoConfig(
        clients=options.clients,
        epsilon=options.epsilon,
        delta=options.delta,
        computes=options.computes,
        dropouts=options.cover.missing,
        colluding=options.cover.false,
        repeats=options.repeats,
        seed=options.seed,
    )
    with progress() as bar:
        task = bar.add_task("red wine", total=options.repeats)
        result = run_demo(config, tick=lambda: bar.advance(task))
    if options.plot is not None:
        from hubbub.plots.demo import demo_plot

        title = f"red wine, epsilon={options.epsilon:g}"
        demo_plot(options.plot, result.errors, result.view.seen, result.view.hidden, title)
    if options.json:
        print_json(result.as_dict())
        return
    _print(result)


def _print(result: DemoResult) -> None:
    import numpy as np

    from hubbub.experiments.demo import METHODS

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


def _bars(counts: Floats) -> str:
    bins = counts.reshape(32, 8).sum(axis=1)
    return "".join(_BARS[max(1, round(8 * value / bins.max()))] for value in bins)
