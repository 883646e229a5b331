"""The command line: it parses arguments, calls the library and prints. Nothing else imports it."""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Callable


def main(argv: list[str] | None = None) -> int:
    """Run `hubbub` and return its exit code; a mistake of the user is one line on standard error and exit code 2."""
    from cyclopts import CycloptsError

    from hubbub.cli.app import app
    from hubbub.errors import HubbubError

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Unicode gets question marks, not a crash
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _saying_once()
            app(argv, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        return _fail(str(error))
    except HubbubError as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        print("hubbub: interrupted; nothing more was released", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except OSError as error:
        return _fail(f"output must be writable, got {error.filename or 'standard output'}: {error.strerror}")
    return 0


def _saying_once() -> Callable[..., None]:
    """How to show a warning of hubbub: as one line on standard error, without the place in the code it came from."""
    said = set[str]()

    def say(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        line = " ".join(str(message).split())
        if category.__module__.split(".")[0] == "hubbub" and line not in said:
            said.add(line)
            print(f"Take care: {line}", file=sys.stderr)

    return say


def _fail(message: str) -> int:
    print(f"hubbub: error: {' '.join(message.split())}", file=sys.stderr)
    return 2


def entry() -> None:
    """Run `hubbub` as a console script."""
    sys.exit(main())
