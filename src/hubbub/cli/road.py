"""`hubbub road`: the functions that one sample passes on its way from a file to a release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from hubbub.cli.options import Json
from hubbub.cli.output import console, print_json

if TYPE_CHECKING:
    from hubbub.cli.road_trace import Road


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RoadOptions:
    """The options of `hubbub road`."""

    markdown: Annotated[bool, Parameter(negative="", help="Print the page docs/road.md.")] = False
    json: Json = False


DEFAULTS = RoadOptions()


def road(options: RoadOptions = DEFAULTS) -> None:
    """Print the functions that one sample passes in `hubbub fit`, in the order in which they are first called.

    For contributors: the code is meant to be read in this order. A small table is really fitted, under a profiler.

    For example:

        hubbub road
        hubbub road --markdown > docs/road.md
    """
    import tempfile
    from pathlib import Path

    from hubbub.cli.road_trace import find_road

    with tempfile.TemporaryDirectory(prefix="hubbub-road-") as folder:
        found = find_road(Path(folder))
    if options.json:
        print_json({
            "functions": len(found.stops), "changes_of_folder": found.changes,
            "road": [{"folder": s.folder, "file": s.file, "function": s.name, "does": s.does} for s in found.stops],
        })  # fmt: skip
    elif options.markdown:
        print(page(found))
    else:
        for number, stop in enumerate(found.stops, 1):
            console.print(f"{number:3} {stop.file:34} {stop.name:42} {stop.does}", markup=False)
        console.print(f"{len(found.stops)} functions, {found.changes} changes of folder", markup=False)


def page(found: Road) -> str:
    """Return the page docs/road.md."""
    lines = [
        "# The road of one sample", "",
        "These are the functions that a sample passes when `hubbub fit` reads it from a CSV file, in the order in",
        "which they are first called, from the file to the release. After that nothing sees a sample any more. The",
        "page is made by `hubbub road --markdown`, which fits a small table under a profiler; a test compares them.",
        "", f"{len(found.stops)} functions, {found.changes} changes of folder (on calls and on returns).", "",
    ]  # fmt: skip
    folder = ""
    for number, stop in enumerate(found.stops, 1):
        if stop.folder != folder:
            folder = stop.folder
            lines += ["", f"## {folder}", ""]
        lines.append(f"{number}. `{stop.name}` ({stop.file}): {stop.does or 'see the code.'}")
    return "\n".join(lines)
