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
    if settings.mode != "sound" and not set(names) & set(catalogue.DEPENDS_ON_MODE):
        errors.print(f"--as {settings.mode} makes no difference to {name}, which has no budget to calibrate to")
    results: list[Result] = []
    try:
        with progress() as bar:
            for each in names:
                task = bar.add_task(each, total=totals[each])
                results.append(catalogue.run(each, settings, lambda n, task=task: bar.advance(task, n)))  # type: ignore[misc]
    except KeyboardInterrupt:
        text = f"interrupted; finished cells are kept in {settings.out}: run the same command again to go on"
        errors.print(text, markup=False)
        raise
    report = write_report(settings.out)
    if json:
        print_json(_object(name, settings.mode, results))
        return
    table = Table("experiment", "claim", "measured", "")
    for result in results:
        for claim in result.claims:
            table.add_row(result.name, claim.claim, claim.measured, "holds" if claim.holds else "does not hold")
    console.print(table)
    console.print(f"rows, pictures and the page are in {settings.out}: open {report}", markup=False)


def _object(name: str, mode: str, results: list[Result]) -> dict[str, object]:
    if name != "all":
        return results[0].as_dict()
    return {
        "experiment": "all",
        "as": mode,
        "rows": [{"experiment": r.experiment, "as": r.mode, **row} for r in results for row in r.rows],
        "claims": [{"experiment": r.experiment, "as": r.mode, **c.as_dict()} for r in results for c in r.claims],
    }
