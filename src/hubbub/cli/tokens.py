"""The one-time tokens with which clients enrol: written for the analyst, read again, and given by a client."""

from __future__ import annotations

import csv
import getpass
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hubbub.cli.output import errors
from hubbub.errors import InvalidInput

if TYPE_CHECKING:
    from hubbub.service.wire.records import StudyRecord

VARIABLE = "HUBBUB_TOKEN"
"""The environment variable that may hold a client's token."""


def write_tokens(path: Path, tokens: Mapping[str, tuple[bytes, int]]) -> None:
    """Write the token and the number of samples of each client, to a file that its owner alone can read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["client", "token", "samples"])
        writer.writerows([name, token.hex(), samples] for name, (token, samples) in tokens.items())


def invited_clients(study: StudyRecord, path: Path) -> dict[str, tuple[bytes, int]]:
    """Read the clients' tokens, which must be for as many clients and samples as the study was made for."""
    found = read_tokens(path)
    counts = (len(found), sum(samples for _, samples in found.values()))
    if counts != (wanted := (study.population.clients, study.population.n)):
        raise InvalidInput(
            f"tokens must be of the study's {wanted[0]} clients with {wanted[1]} samples, got {counts[0]} with "
            f"{counts[1]} in {path}; give the file that was written with the study"
        )
    return found


def read_tokens(path: Path) -> dict[str, tuple[bytes, int]]:
    """Read each client's token and number of samples from the file that `hubbub study create` wrote."""
    try:
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
        return {row["client"]: (bytes.fromhex(row["token"]), int(row["samples"])) for row in rows}
    except (OSError, KeyError, ValueError, TypeError):
        raise InvalidInput(f"tokens must be the file that `hubbub study create` wrote, got tokens={path}") from None


def given_token(text: str | None, file: Path | None) -> bytes | None:
    """Read the token from the arguments, a file or the environment, or return None if it is in none of them."""
    if text is not None and file is not None:
        raise InvalidInput("token must be given once, got --token and --token-file; leave one of them out")
    if text is not None:
        errors.print(
            "--token can be read by other users of this machine in the list of processes: rather use --token-file or "
            f"the variable {VARIABLE}",
            markup=False,
            soft_wrap=True,
        )
    elif file is not None:
        try:
            text = file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "no text"
            raise InvalidInput(f"token_file must be readable, got token_file={file}: {why}; check the path") from None
    else:
        text = os.environ.get(VARIABLE) or None
    return None if text is None else _parse_token(text)


def ask_token() -> bytes:
    """Ask for the token at the terminal, without showing it."""
    try:
        return _parse_token(getpass.getpass("Your one-time token (it is not shown): "))
    except EOFError:
        raise InvalidInput("token must be typed or given with --token-file, got the end of the input") from None


def _parse_token(text: str) -> bytes:
    try:
        token = bytes.fromhex(text.strip())
    except ValueError:
        token = b""
    if len(token) != 32:
        raise InvalidInput("token must be 64 hexadecimal digits, got something else; copy it whole")
    return token
