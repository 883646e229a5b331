"""What people are shown: reports as text of 100 columns, and HTML of reports and tables for notebooks.

The HTML is escaped, has no scripts, and names no colour, so that it is as legible in a dark theme as in a light one.
"""

from __future__ import annotations

import textwrap
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np

WIDTH = 100
_INDENT = 17
_CELL = ' style="text-align:left;vertical-align:top"'


class Part(NamedTuple):
    """A part of a report: a title with a text, or with a list of items."""

    title: str
    text: str = ""
    items: tuple[str, ...] = ()
    mark: str = "-"
    """Before each item; "1." stands for its number."""

    def lines(self) -> list[str]:
        """As text."""
        if not self.items:
            filled = f"{self.title + ':':<{_INDENT}}{self.text}"
            return textwrap.wrap(filled, width=WIDTH, subsequent_indent=" " * _INDENT)
        found = [self.title]
        for number, item in enumerate(self.items, 1):
            mark = f"  {f'{number}.' if self.mark == '1.' else self.mark} "
            found += textwrap.wrap(mark + item, width=WIDTH, subsequent_indent=" " * len(mark))
        return found

    def html(self) -> str:
        """As HTML: the text, or a list."""
        kind = "ol" if self.mark == "1." else "ul"
        items = "".join(f"<li>{escape(item)}</li>" for item in self.items)
        return f'<{kind} style="margin:0">{items}</{kind}>' if self.items else escape(self.text)


class Shown(ABC):
    """A report: `print` shows text, a notebook HTML."""

    @abstractmethod
    def parts(self) -> list[Part]:
        """What it says, in order."""

    def __str__(self) -> str:
        title = "Privacy report"
        return "\n".join([title, "-" * len(title), *(line for part in self.parts() for line in part.lines())])

    def _repr_html_(self) -> str:
        return _table("Privacy report", "".join(_row(part.title, part.html()) for part in self.parts()))


class Tabled(ABC):
    """A posterior of some numbers: a notebook shows a row for each."""

    mean: Any
    std: Any

    @abstractmethod
    def interval(self, level: float = 0.9) -> Any:
        """Central credible intervals."""

    def _repr_html_(self) -> str:
        mean, std, ends = np.atleast_1d(self.mean), np.atleast_1d(self.std), np.atleast_2d(self.interval(0.9))
        rows = [
            {"name": f"{j}" if len(mean) > 1 else "", "mean": mean[j], "std": std[j], "low": low, "high": high}
            for j, (low, high) in enumerate(ends)
        ]
        return quantities_html(rows, 0.9)


def facts_html(title: str, facts: Mapping[str, object]) -> str:
    """A table of names and values."""
    return _table(title, "".join(_row(name, escape(str(value))) for name, value in facts.items()))


def table_html(head: Sequence[str], rows: Iterable[Sequence[str]], note: str = "", title: str = "") -> str:
    """A table of text, the first column of which names the rows; below it a note of one or more lines."""
    top = "".join(f'<th scope="col"{_CELL}>{escape(name)}</th>' for name in head)
    body = "".join(_row(name, *map(escape, cells)) for name, *cells in rows)
    below = "".join(f"<div>{escape(line)}</div>" for line in note.splitlines())
    return _table(title, f"<tr>{top}</tr>{body}") + below


def quantities_html(rows: Sequence[Mapping[str, Any]], level: float, note: str = "", title: str = "") -> str:
    """A table of quantities with name, mean, std, low and high; of P(> 0), ess and r_hat where these are known."""
    extra = {"positive": ("P(> 0)", ".2f"), "ess": ("ess", ".0f"), "r_hat": ("r_hat", ".2f")}
    known = {key: how for key, how in extra.items() if any(row.get(key) is not None for row in rows)}
    head = ["", "mean", "std", f"{100 * level:.10g}% interval", *(name for name, _ in known.values())]
    cells = (
        [
            str(row["name"]), f"{row['mean']:.4g}", f"{row['std']:.3g}", f"{row['low']:.4g} .. {row['high']:.4g}",
            *("" if row.get(key) is None else format(row[key], how) for key, (_, how) in known.items()),
        ]
        for row in rows
    )  # fmt: skip
    return table_html(head, cells, note, title)


def _row(name: str, *cells: str) -> str:
    """The name is text, the other cells are HTML."""
    values = "".join(f"<td{_CELL}>{cell}</td>" for cell in cells)
    return f'<tr><th scope="row"{_CELL}>{escape(name)}</th>{values}</tr>'


def _table(title: str, rows: str) -> str:
    caption = f'<caption style="text-align:left;font-weight:bold;color:inherit">{escape(title)}</caption>'
    return f"<table>{caption if title else ''}<tbody>{rows}</tbody></table>"
