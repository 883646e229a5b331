"""A bar with the time left, for work that takes more than two seconds and somebody who watches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

Advance = Callable[[int, int], None]
"""Called with how much is done, and how much there is as far as is known now."""
_PATIENCE = 2.0  # seconds before there is anything to see


@contextmanager
def watched(description: str) -> Iterator[Advance]:
    """A function to call as work goes on; it shows a bar on standard error if that is a terminal or a notebook."""
    started = time.monotonic()
    with ExitStack() as stack:
        shown: list[Callable[[int, int], None]] = []

        def advance(done: int, total: int) -> None:
            if not shown and time.monotonic() - started > _PATIENCE:
                shown.append(_bar(stack, description))
            for show in shown:
                show(done, total)

        yield advance


def _bar(stack: ExitStack, description: str) -> Callable[[int, int], None]:
    """Start the bar; it disappears when the work is done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    bar = stack.enter_context(
        Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
            console=console, transient=True, disable=not (console.is_terminal or console.is_jupyter),
        )
    )  # fmt: skip
    task = bar.add_task(description)
    return lambda done, total: bar.update(task, completed=done, total=total)
