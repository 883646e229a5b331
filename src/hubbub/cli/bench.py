"""`hubbub bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from hubbub.cli.extras import needs_service
from hubbub.cli.output import PICTURES, check_writable, console, errors, print_json, progress
from hubbub.experiments import table1
from hubbub.experiments.runner import Row
from hubbub.securesum import Sharing


def run_table1(
    cells: str,
    computes: int,
    engine: Literal["local", "spark"],
    shares: Sharing,
    seal: bool,
    workers: int | None,
    repeats: int,
    plot: Path | None,
    json: bool,
) -> None:
    """Measure the cells and print them (or one JSON object)."""
    check_writable("plot", plot, endings=PICTURES)
    bench = table1.Bench(computes, shares, seal, workers, repeats, engine)
    wanted = table1.parse_cells(cells)
    with progress() as bar:
        task = bar.add_task("cells", total=len(wanted))
        rows = table1.run(wanted, bench, lambda n: bar.advance(task, n))
    if plot is not None:
        from hubbub.plots.experiments import table1 as draw

        draw(rows, None).savefig(plot)
    if json:
        print_json({"engine": engine, "workers": bench.processes, "slope": table1.slope(rows), "cells": rows})
        return
    Console(highlight=False, width=max(console.width, WIDTH)).print(_table(rows))
    if (slope := table1.slope(rows)) is not None:
        console.print(f"seconds grow like (N d)^{slope:.3f} where N d >= 10^6")
    console.print(
        f"M = {computes} Computes, shares {rows[0]['shares']}, {bench.processes} processes, kept warm. {NOTES}"
    )
    if seal:
        console.print("Sealing and opening: on one core, some clients scaled up to N; sessions start once per study.")


NOTES = (
    "paper: its Spark prototype on a cluster, shares made beforehand. program: that prototype on two such cores. "
    + table1.NOTE
)
WIDTH = 130


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


def run_service(clients: int, singles: int, json: bool) -> None:
    """Measure one Compute and a round through three, and print it (or one JSON object)."""
    with needs_service():
        from hubbub.service.bench import Setting, run, verdict
    setting = Setting(clients=clients, singles=singles)
    with progress() as bar:
        task = bar.add_task("clients", total=clients)
        found = run(setting, lambda text: errors.print(text, markup=False), lambda count: bar.advance(task, count))
    promises = verdict(found)
    if json:
        print_json({**found, "promises": promises})
        return
    for line in _service_lines(found):
        console.print(line, markup=False)
    for promise, kept in promises.items():
        console.print(f"  {'kept' if kept else 'NOT KEPT'}: {promise}", markup=False)


def _service_lines(found: dict[str, Any]) -> list[str]:
    single, share = found["single_per_second"], found["single_over_empty"]
    batched, times = found["batched_per_second"], found["batched_over_single"]
    party, more = found["party_samples_per_second"], found["party_samples_over_single"]
    return [
        f"one Compute, {found['dimension']} numbers a report:",
        f"  empty handler    {found['empty_per_second']:8.0f} bodies/s of the same size",
        f"  single uploads   {single:8.0f} reports/s, {share:.2f} of that",
        f"  batches of {found['batch']}   {batched:8.0f} reports/s, {times:.1f} times as many",
        f"  parties of {found['batch']}   {party:8.0f} samples/s, {more:.1f} times as many, in a report for each party",
        f"{found['clients']} clients through {found['computes']} Computes: {found['upload_seconds']:.1f} s to upload,",
        f"  {found['close_seconds']:.1f} s to agree, sum and combine, {max(found['peak_mb']):.0f} MB a Compute at most",
    ]
