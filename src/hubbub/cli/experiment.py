"""`hubbub experiment`."""

from __future__ import annotations

from rich.table import Table

from hubbub.cli.output import console, errors, print_json, progress
from hubbub.experiments import catalogue
from hubbub.experiments.catalogue import Settings
from hubbub.experiments.report import write_report
from hubbub.experiments.result import Result


def run(name: str, settings: Settings, json: bool) -> None:
    """Run one experiment, or all, and print claims (or one JSON object)."""
    names = list(catalogue.OF_THE_PAPER) if name == "all" else [name]
    totals = {each: len(catalogue.plan(each, settings)[0]) for each in names}  # bad input is refused before any work
    results: list[Result] = []
    try:
        with progress() as bar:
            for each in names:
                task = bar.add_task(each, total=totals[each])
                results.append(catalogue.run(each, settings, lambda n, task=task: bar.advance(task, n)))  # type: ignore[misc]
    except KeyboardInterrupt:
        errors.print(f"interrupted; finished cells are kept in {settings.out}: run the same command again to go on")
        raise
    report = write_report(settings.out)
    if json:
        print_json(_object(name, results))
        return
    table = Table("experiment", "claim", "measured", "")
    for result in results:
        for claim in result.claims:
            table.add_row(result.name, claim.claim, claim.measured, "holds" if claim.holds else "does not hold")
    console.print(table)
    console.print(f"rows, pictures and the page are in {settings.out}: open {report}")


def _object(name: str, results: list[Result]) -> dict[str, object]:
    if name != "all":
        return results[0].as_dict()
    return {
        "experiment": "all",
        "as": results[0].mode,
        "rows": [{"experiment": r.experiment, **row} for r in results for row in r.rows],
        "claims": [{"experiment": r.experiment, **claim.as_dict()} for r in results for claim in r.claims],
    }
