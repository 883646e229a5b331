"""`hubbub study check`: whether all Computes of a study can be reached and are those that it names."""

from __future__ import annotations

import time
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from cyclopts import Parameter
from rich.table import Table

from hubbub.cli.extras import needs_service
from hubbub.cli.options import Authority, Json, StudyFile
from hubbub.cli.output import console, print_json
from hubbub.cli.study.access import signed_study, web_to
from hubbub.cli.study.fingerprints import print_fingerprints
from hubbub.errors import HubbubError, InvalidInput

if TYPE_CHECKING:
    from hubbub.service.wire.records import StudyRecord
    from hubbub.service.wire.web import Web


@Parameter(name="*")
@dataclass(frozen=True)
class CheckOptions:
    """The arguments and options of `hubbub study check`."""

    file: StudyFile
    _: KW_ONLY
    authority: Authority = None
    json: Json = False


def check(options: CheckOptions) -> None:
    """Preflight: reach every Compute, compare keys and clocks, show the budget left and on which trust it rests.

    For example:

        hubbub study check study.json
    """
    run(options)


def run(options: CheckOptions) -> None:
    """Reach every Compute, compare its keys with the study's and its clock with ours, and show the budget left."""
    with needs_service():
        from hubbub.service.wire.fingerprints import fingerprints
    study, web = signed_study(options.file), web_to(options.authority, seconds=5.0)
    rows = [_preflight(study, position, web) for position in range(len(study.computes))]
    good, trust = all(row["ok"] for row in rows), study.secure_sum.trust()
    beyond = trust.beyond(study.population.clients)
    if options.json:
        print_json({"study": study.id, "ok": good, "computes": rows, "fingerprints": fingerprints(study),
                    "trust": trust.sentence, "not_promised": beyond})  # fmt: skip
    else:
        table = Table("Compute", "reached", "keys match", "clock off by", "registered", "epsilon left")
        for row in rows:
            yes = {True: "yes", False: "NO", None: ""}
            late = "" if row["clock"] is None else f"{row['clock']:.1f} s"
            left = "" if row["epsilon_left"] is None else f"{row['epsilon_left']:.3g}"
            table.add_row(row["name"], yes[row["reached"]], yes[row["keys"]], late, yes[row["registered"]], left)
        console.print(f"study {study.id}: {study.title}", markup=False)
        console.print(table)
        print_fingerprints(fingerprints(study))
        console.print(f"it rests on trust that {trust.sentence}", markup=False)
        if beyond:
            console.print(f"not promised: {beyond}", markup=False)
    if not good:
        raise InvalidInput("study must have Computes that answer under its keys and clock, got one that does not")


def _preflight(study: StudyRecord, position: int, web: Web) -> dict[str, Any]:
    """Compare what a Compute says of itself with what the study says of it; `ok` is whether it can be relied on."""
    from hubbub.service.analyst.analyst import find_compute
    from hubbub.service.wire.canonical import read_json
    from hubbub.service.wire.web import MOST_LIST

    compute = study.computes[position]
    row: dict[str, Any] = {"name": compute.name, "url": compute.url, "reached": False, "keys": None, "clock": None,
                           "registered": None, "epsilon_left": None, "ok": False}  # fmt: skip
    try:
        found = find_compute(compute.url, web)
        there = read_json(web.get(f"{compute.url}/v1/status", most=MOST_LIST).content)
    except HubbubError:
        return row
    row |= {"reached": True, "keys": (found.key, found.verify_key) == (compute.key, compute.verify_key)}
    try:
        mine = next((entry for entry in there["studies"] if entry["study"] == study.id), None)
        row |= {"clock": abs(there["time"] - time.time()), "registered": mine is not None}
        if mine is not None and mine["budget"] is not None:
            row["epsilon_left"] = mine["budget"]["epsilon"] - mine["budget"]["spent"]
    except (KeyError, TypeError):
        return row  # it answers, but not as a Compute does
    return {**row, "ok": bool(row["keys"]) and row["clock"] < 60.0}
