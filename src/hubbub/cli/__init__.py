"""The command line: it parses arguments, calls the library and prints. Nothing else imports it."""

from __future__ import annotations

import io
import sys


def main(argv: list[str] | None = None) -> int:
    """Run `hubbub` and return its exit code; a mistake of the user is one line on standard error and exit code 2."""
    from cyclopts import CycloptsError

    from hubbub.cli.app import app
    from hubbub.errors import HubbubError

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Unicode gets question marks, not a crash
    try:
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


def _fail(message: str) -> int:
    print(f"hubbub: error: {' '.join(message.split())}", file=sys.stderr)
    return 2


def entry() -> None:
    """Run `hubbub` as a console script."""
    sys.exit(main())
