"""`hubbub study result`: the posterior of a study, and its privacy report."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from hubbub.cli.options import Authority, Json, ModelOut, ReleaseOut, StudyFile, Without
from hubbub.cli.output import check_writable, console, print_json
from hubbub.cli.study.access import as_reader
from hubbub.cli.study.rounds import left_out, releases, replay_of
from hubbub.errors import InvalidInput

if TYPE_CHECKING:
    from hubbub.protocols import Result


@Parameter(name="*")
@dataclass(frozen=True)
class ResultOptions:
    """The arguments and options of `hubbub study result`."""

    file: StudyFile
    _: KW_ONLY
    key: Annotated[Path | None, Parameter(help="The analyst's key, where results are for the analyst alone.")] = None
    without: Without = ()
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
    from hubbub.cli.model import print_result

    check_writable("--out", options.out, endings=(".json",))
    check_writable("--release", options.release, endings=(".json",))
    analyst = as_reader(options.file, options.key, options.authority)
    study, done = analyst.study, releases(analyst, left_out(analyst.study, options.without))
    replay = replay_of(study)
    if (following := replay.next_round(done)) is not None:
        raise InvalidInput(f"study must have released all its rounds, got {len(done)}; {following.label} is next")
    found = replay.result(done)
    _write(found, options)
    if options.json:
        print_json({"study": study.id, **found.as_dict(), "privacy": found.privacy.as_dict()})
        return
    print_result(found)
    console.print(str(found.privacy), markup=False)


def _write(found: Result, options: ResultOptions) -> None:
    """Write the files that were asked for, or refuse those that this analysis does not have."""
    files = found.files()
    for name, path in (("out", options.out), ("release", options.release)):
        if path is None:
            continue
        if name not in files:
            raise InvalidInput(f"--{name} must be left out for this analysis, got {path}; use --json for its result")
        files[name](path)
