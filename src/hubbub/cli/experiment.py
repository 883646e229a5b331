"""`hubbub experiment`: compute the tables and figures of the paper again."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from rich.table import Table

from hubbub.cli.options import Json, Whole
from hubbub.cli.output import console, errors, print_json, progress

if TYPE_CHECKING:
    from hubbub.experiments.outcome import Outcome


@Parameter(name="*")
@dataclass(frozen=True)
class ExperimentOptions:
    """The arguments and options of `hubbub experiment`."""

    name: Annotated[
        Literal[
            "fig1b",
            "fig2",
            "fig3",
            "table1",
            "efficiency",
            "all",
            "coverage",
            "glm",
            "others",
            "mechanisms",
            "dpvi",
            "adassp",
            "real",
            "outcomes",
        ],
        Parameter(help="Which one; all are those of the paper, which are listed before it."),
    ]
    _: KW_ONLY
    out: Annotated[Path, Parameter(help="Folder for rows, pictures and report.html.")] = Path("out")
    mode: Annotated[
        Literal["sound", "paper", "published"],
        Parameter(name="--as", help="sound: a guarantee. paper: its text. published: its program."),
    ] = "sound"
    repeats: Annotated[int | None, Whole, Parameter(help="Random splits [default: the paper's number].")] = None
    seed: Annotated[int, Whole, Parameter(help="The same seed gives the same rows, whatever --jobs is.")] = 0
    jobs: Annotated[int | None, Whole, Parameter(help="Processes [default: one per core].")] = None
    data: Annotated[Path | None, Parameter(help="Folder of the data of fig3 or adassp [default: HUBBUB_DATA].")] = None
    sets: Annotated[
        Literal["choosing", "reported"],
        Parameter(help="Half of the data sets of real; reported is kept for the final method."),
    ] = "choosing"
    json: Json = False


def experiment(options: ExperimentOptions) -> None:
    """Compute a table or figure of the paper again, with its claims held against the result.

    Can be interrupted: the same command goes on where it stopped. Writes CSV, PNG, SVG and a page report.html
    that opens offline.

    For example:

        hubbub experiment fig2 --out out
        hubbub experiment fig3 --data gdsc --as published
        hubbub experiment all --out out --data gdsc --jobs 2
        hubbub experiment efficiency --json
        hubbub experiment glm --repeats 5
        hubbub experiment dpvi --repeats 5
        hubbub experiment mechanisms --jobs 2
        hubbub experiment adassp --data adassp --repeats 1
        hubbub experiment real --repeats 2
        hubbub experiment outcomes --repeats 2
    """
    run(options)


def run(options: ExperimentOptions) -> None:
    """Run one experiment, or all of the paper's, and print which claims hold."""
    from hubbub.experiments import catalogue
    from hubbub.experiments.report import write_report

    name = options.name
    settings = catalogue.Settings(
        out=options.out,
        repeats=options.repeats,
        seed=options.seed,
        jobs=options.jobs,
        mode=options.mode,
        data=options.data,
        sets=options.sets,
    )
    names = list(catalogue.OF_THE_PAPER) if name == "all" else [name]
    totals = {each: len(catalogue.plan(each, settings)[0]) for each in names}  # bad input is refused before any work
    if settings.mode != "sound" and not set(names) & set(catalogue.DEPENDS_ON_MODE):
        errors.print(f"--as {settings.mode} makes no difference to {name}, which has no budget to calibrate to")
    if options.sets != "choosing" and "real" not in names:
        errors.print(f"--sets {options.sets} makes no difference to {name}, which has one list of data sets")
    results: list[Outcome] = []
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
    if options.json:
        print_json(_object(name, settings.mode, results))
        return
    table = Table("experiment", "claim", "measured", "")
    for result in results:
        for claim in result.claims:
            table.add_row(result.name, claim.claim, claim.measured, "holds" if claim.holds else "does not hold")
    console.print(table)
    console.print(f"rows, pictures and the page are in {settings.out}: open {report}", markup=False)


def _object(name: str, mode: str, results: list[Outcome]) -> dict[str, object]:
    if name != "all":
        return results[0].as_dict()
    return {
        "experiment": "all",
        "as": mode,
        "rows": [{"experiment": r.experiment, "as": r.mode, **row} for r in results for row in r.rows],
        "claims": [{"experiment": r.experiment, "as": r.mode, **c.as_dict()} for r in results for c in r.claims],
    }
