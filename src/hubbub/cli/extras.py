"""Say in one line, in place of a traceback, that an extra is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hubbub.errors import InvalidInput

_SERVICE = {"starlette", "uvicorn", "httptools", "httpx", "sqlalchemy", "psycopg", "prometheus_client"}


@contextmanager
def needs_service() -> Iterator[None]:
    """Turn the import error of a package of the extra `service` into advice."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in _SERVICE:
            raise
        raise InvalidInput(
            f"the extra `service` must be installed, got no {error.name}; pip install 'hubbub[service]'"
        ) from None
