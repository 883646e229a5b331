"""`hubbub bench table1`: the secure sum's speed beside the limit of this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from hubbub.cli.options import Computes, Json, Picture, Whole
from hubbub.cli.output import PICTURES, check_writable, console, print_json, progress

if TYPE_CHECKING:
    from hubbub.experiments.runner import Row

_WIDTH = 130


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Table1Options:
    """The options of `hubbub bench table1`."""

    cells: Annotated[str, Parameter(help="all: the paper's sixteen; or clients x numbers: 10000x100,100000x10.")] = (
        "all"
    )
    computes: Computes = 10
    engine: Annotated[Literal["local", "spark"], Parameter(help="Where the roles run.")] = "local"
    shares: Annotated[
        Literal["auto", "raw", "seeds"],
        Parameter(help="raw: masks drawn in bulk. seeds: expanded by client and Compute. auto: raw on one machine."),
    ] = "auto"
    seal: Annotated[bool, Parameter(negative="", help="Also measure sealing: HPKE, and session keys.")] = False
    workers: Annotated[int | None, Whole, Parameter(help="Processes [default: one per core].")] = None
    repeats: Annotated[int, Whole, Parameter(help="How often a quick cell is measured; the best counts.")] = 10
    plot: Picture = None
    json: Json = False


DEFAULTS = Table1Options()


def table1(options: Table1Options = DEFAULTS) -> None:
    """Time the secure sum over N clients and d numbers, beside the limit of this machine's primitives.

    Everything is done: noise, drawing (or expanding) the shares, the Computes' sums, combining. The limit is what the
    cipher, the normal draws, the encoding and the additions alone take on the same cores, measured in the same run.

    For example:

        hubbub bench table1
        hubbub bench table1 --cells 10000x1000,100000x10 --shares seeds --seal
        hubbub bench table1 --engine spark --cells 100000x1000 --json
    """
    run(options)


def run(options: Table1Options) -> None:
    """Measure the cells and print them."""
    from hubbub.experiments import table1

    check_writable("plot", options.plot, endings=PICTURES)
    bench = table1.Bench(
        computes=options.computes,
        shares=options.shares,
        seal=options.seal,
        workers=options.workers,
        repeats=options.repeats,
        engine=options.engine,
    )
    wanted = table1.parse_cells(options.cells)
    with progress() as bar:
        task = bar.add_task("cells", total=len(wanted))
        rows = table1.run(wanted, bench, lambda n: bar.advance(task, n))
    slope = table1.slope(rows)
    if options.plot is not None:
        from hubbub.plots.experiments import table1 as draw

        draw(rows, None).savefig(options.plot)
    if options.json:
        print_json({"engine": options.engine, "workers": bench.processes, "slope": slope, "cells": rows})
        return
    Console(highlight=False, width=max(console.width, _WIDTH)).print(_table(rows))
    if slope is not None:
        console.print(f"seconds grow like (N d)^{slope:.3f} where N d >= 10^6")
    console.print(
        f"M = {options.computes} Computes, shares {rows[0]['shares']}, {bench.processes} processes, kept warm. "
        "paper: its Spark prototype on a cluster, shares made beforehand. "
        f"program: that prototype on two such cores. {table1.NOTE}"
    )
    if options.seal:
        console.print("Sealing and opening: on one core, some clients scaled up to N; sessions start once per study.")


def _table(rows: list[Row]) -> Table:
    sealing = "hpke_seconds" in rows[0]
    heads = [
        "N",
        "d",
        "seconds",
        "limit",
        "ratio",
        "bytes/client",
        "peak MB",
        "paper s",
        "faster",
        "program s",
        "faster",
    ]
    table = Table(
        *heads, *(["HPKE s", "session s", "round s"] if sealing else []), box=SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    for column in table.columns:
        column.justify = "right"
    for row in rows:
        numbers = [f"{row['N']}", f"{row['d']}", f"{row['seconds']:.4f}", f"{row['limit']:.4f}", f"{row['ratio']:.2f}"]
        numbers += [f"{row['bytes_per_client']}", f"{row['peak_mb']:.0f}"]
        for seconds, times in (("paper_seconds", "speedup"), ("program_seconds", "program_speedup")):
            numbers += ["", ""] if row[seconds] is None else [f"{row[seconds]:.4g}", f"{row[times]:.0f}x"]
        if sealing:
            numbers += [f"{row[f'{key}_seconds']:.2f}" for key in ("hpke", "session_start", "session_round")]
        table.add_row(*numbers)
    return table
