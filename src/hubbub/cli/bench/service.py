"""`hubbub bench service`: the speed of a Compute node, and of a round through three of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from hubbub.cli.extras import needs_service
from hubbub.cli.options import Json, Whole
from hubbub.cli.output import console, errors, print_json, progress


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ServiceOptions:
    """The options of `hubbub bench service`."""

    clients: Annotated[int, Whole, Parameter(help="N of the round through three Computes.")] = 20_000
    singles: Annotated[int, Whole, Parameter(help="How many single uploads are timed.")] = 2000
    json: Json = False


DEFAULTS = ServiceOptions()


def service(options: ServiceOptions = DEFAULTS) -> None:
    """Time a Compute: single uploads beside an empty handler, parties of 100 samples, and N clients through three.

    For example:

        hubbub bench service
        hubbub bench service --clients 2000 --json
    """
    run(options)


def run(options: ServiceOptions) -> None:
    """Measure one Compute and a round through three, and print what was found."""
    with needs_service():
        from hubbub.service import bench
    sizes = bench.Sizes(clients=options.clients, singles=options.singles)
    with progress() as bar:
        task = bar.add_task("clients", total=options.clients)
        found = bench.run(sizes, lambda text: errors.print(text, markup=False), lambda count: bar.advance(task, count))
    promises = bench.verdict(found)
    if options.json:
        print_json({**found, "promises": promises})
        return
    for line in _lines(found):
        console.print(line, markup=False)
    for promise, kept in promises.items():
        console.print(f"  {'kept' if kept else 'NOT KEPT'}: {promise}", markup=False)


def _lines(found: dict[str, Any]) -> list[str]:
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
