"""`hubbub study fingerprints`: what the parties of a study compare by another way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

from cyclopts import Parameter

from hubbub.cli.extras import needs_service
from hubbub.cli.options import Json, StudyFile
from hubbub.cli.output import console, print_json
from hubbub.cli.study.access import signed_study


@Parameter(name="*")
@dataclass(frozen=True)
class FingerprintsOptions:
    """The arguments and options of `hubbub study fingerprints`."""

    file: StudyFile
    _: KW_ONLY
    json: Json = False


def fingerprints(options: FingerprintsOptions) -> None:
    """Print the fingerprints of study, analyst and Computes, to be compared by another way than the study file.

    For example:

        hubbub study fingerprints study.json
    """
    run(options)


def run(options: FingerprintsOptions) -> None:
    """Print the fingerprints of the study in the file, without asking any Compute."""
    with needs_service():
        from hubbub.service.wire.fingerprints import fingerprints as fingerprints_of
    study = signed_study(options.file)
    found = fingerprints_of(study)
    if options.json:
        print_json(found)
        return
    console.print(f"study {study.id}: {study.title}", markup=False)
    print_fingerprints(found)


def print_fingerprints(found: Mapping[str, Any]) -> None:
    """Print the fingerprints of a study, its analyst and its Computes, one on each line."""
    console.print("Fingerprints, to be told to the data holders by another way than the study file:", markup=False)
    console.print(f"  study    {found['study']}  (covers all that follows)", markup=False)
    console.print(f"  analyst  {found['analyst']}", markup=False)
    for name, fingerprint in found["computes"].items():
        console.print(f"  Compute  {fingerprint}  {name}", markup=False)
