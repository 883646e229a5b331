"""A signed study, the key of its analyst, and the connection to its Computes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from hubbub.cli.extras import needs_service
from hubbub.errors import InvalidInput, NotInstalled

if TYPE_CHECKING:
    from hubbub.service.analyst.analyst import Analyst
    from hubbub.service.wire.records import StudyRecord
    from hubbub.service.wire.signing import SigningKey
    from hubbub.service.wire.web import Web


def signed_study(file: Path) -> StudyRecord:
    """Read the study in the file, which its own analyst must have signed."""
    with needs_service():
        from hubbub.service.wire.records import read_study
    try:
        return read_study(file.read_bytes())
    except OSError as error:
        raise InvalidInput(f"study must be readable, got study={file}: {error.strerror}; check the path") from None
    except NotInstalled:
        raise
    except InvalidInput as error:
        raise InvalidInput(
            f"study must be the file that `hubbub study create` wrote, got study={file}: {error}"
        ) from None


def web_to(authority: Path | None, seconds: float = 60.0) -> Web:
    """Make the web client that asks the Computes; `authority` is a PEM file that checks their certificates."""
    with needs_service():
        from hubbub.service.node.config import verify_with
        from hubbub.service.wire.web import Patience, Web
    verify_with(authority)  # refuses a file that is no certificate in one line
    return Web.open(None if authority is None else str(authority), Patience(total=seconds))


def read_key(path: Path) -> SigningKey:
    """Read the analyst's key from its file."""
    from hubbub.service.wire.signing import SigningKey

    try:
        return SigningKey(bytes.fromhex(json.loads(path.read_text())["sign"]))
    except (OSError, ValueError, KeyError, TypeError):
        raise InvalidInput(
            f"key must be the file that `hubbub study key` or `study create` wrote, got key={path}; name it with --key"
        ) from None


def as_analyst(file: Path, key: Path | None, authority: Path | None) -> Analyst:
    """Act as the analyst of the study in the file, with the key that signed it."""
    with needs_service():
        from hubbub.service.analyst.analyst import Analyst
    path = key or file.with_suffix(".key")
    study, secret = signed_study(file), read_key(path)
    if secret.public() != study.analyst:
        raise InvalidInput(f"key must be the one that signed the study, got another in {path}; name it with --key")
    return Analyst(study, secret, web_to(authority))


def as_reader(file: Path, key: Path | None, authority: Path | None) -> Analyst:
    """Act as somebody who may read the sums.

    Of a public study that is anybody, of another one it is the holder of the analyst's key.
    """
    with needs_service():
        from hubbub.service.analyst.analyst import Analyst
        from hubbub.service.wire.signing import SigningKey
    study = signed_study(file)
    if study.results == "public":
        return Analyst(study, SigningKey(bytes(32)), web_to(authority))  # reads only, so any key will do
    path = key or file.with_suffix(".key")
    if not path.exists():
        raise InvalidInput(
            "key must be the analyst's, who alone is served the results of this study, got no file "
            f"{path}; name it with --key"
        )
    return as_analyst(file, path, authority)
