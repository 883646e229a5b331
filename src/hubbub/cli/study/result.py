"""`hubbub study result`: the posterior of a study, and its privacy report."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hubbub.cli.options import Authority, Json, ModelOut, ReleaseOut, StudyFile
from hubbub.cli.output import check_writable, console, print_json
from hubbub.cli.study.access import as_reader
from hubbub.cli.study.rounds import regression_of, releases
from hubbub.errors import InvalidInput


@Parameter(name="*")
@dataclass(frozen=True)
class ResultOptions:
    """The arguments and options of `hubbub study result`."""

    file: StudyFile
    _: KW_ONLY
    key: Annotated[Path | None, Parameter(help="The analyst's key, where results are for the analyst alone.")] = None
    out: ModelOut = None
    release: ReleaseOut = None
    authority: Authority = None
    json: Json = False


def result(options: ResultOptions) -> None:
    """Print the posterior and the privacy report, once all rounds are released.

    For example:

        hubbub study result study.json --out model.json --release release.json
    """
    run(options)


def run(options: ResultOptions) -> None:
    """Print the posterior and the privacy report, from what the Computes released."""
    from hubbub.analyses.linear.stored import INTERVALS, StoredModel
    from hubbub.cli.model import print_model

    out, release = options.out, options.release
    check_writable("--out", out, endings=(".json",))
    check_writable("--release", release, endings=(".json",))
    analyst = as_reader(options.file, options.key, options.authority)
    study, done = analyst.study, releases(analyst)
    plan, budget = regression_of(study)
    if (following := plan.next_round(budget, study.population.n, done)) is not None:
        raise InvalidInput(f"study must have released all its rounds, got {len(done)}; {following.label} is next")
    found, report = plan.result(budget, study.population.n, done)
    stored = StoredModel(list(plan.features), plan.target, found.posterior(), report.as_dict(), INTERVALS["auto"])
    if out is not None:
        stored.save(out)
    if release is not None:
        found.save(release)
    if options.json:
        print_json({"study": study.id, **stored.summary(), "n": done[-1].n, "privacy": report.as_dict()})
        return
    print_model(stored)
    console.print(str(report), markup=False)
