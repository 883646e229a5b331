"""How far work is: a bar for whoever watches, and lines for a log, both on standard error."""

from __future__ import annotations

import sys

import pytest

from hubbub.cli.output import Watched


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def steps(seconds: float, count: int, total: int | None) -> Clock:
    """So many steps that take so many seconds each."""
    clock = Clock()
    with Watched(clock) as bar:
        task = bar.add_task("checks", total=total)
        for _ in range(count):
            clock.now += seconds
            bar.advance(task)
    return clock


def test_a_log_has_a_line_now_and_then_with_the_time_left(capsys: pytest.CaptureFixture[str]):
    steps(10.0, 40, 40)
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert len(lines) == 13, "one in 30 of 400 seconds, and none of the end"
    assert lines[0] == "checks: 3 of 40, about 6 min left"
    assert lines[-1] == "checks: 39 of 40, about 10 s left"


def test_quick_work_says_nothing(capsys: pytest.CaptureFixture[str]):
    steps(0.1, 200, 200)
    assert capsys.readouterr() == ("", "")


def test_work_of_unknown_size_has_no_time_left(capsys: pytest.CaptureFixture[str]):
    steps(29.0, 2, None)
    assert capsys.readouterr().err == "checks: 2\n"


def test_updates_count_as_well(capsys: pytest.CaptureFixture[str]):
    clock = Clock()
    with Watched(clock) as bar:
        task = bar.add_task("Spark tasks", total=None)
        for done in range(1, 5):
            clock.now += 20
            bar.update(task, completed=done, total=8)
    assert capsys.readouterr().err.splitlines() == [
        "Spark tasks: 2 of 8, about 2 min left",
        "Spark tasks: 4 of 8, about 80 s left",
    ]


def test_slow_pieces_and_quick_ones_average_out(capsys: pytest.CaptureFixture[str]):
    """Ten pieces of a second after three of 100 seconds do not make the rest look quick."""
    clock = Clock()
    with Watched(clock) as bar:
        task = bar.add_task("checks", total=100)
        for seconds in (100, 100, 100, *[1] * 29, 30):
            clock.now += seconds
            bar.advance(task)
    assert capsys.readouterr().err.splitlines()[-1] == "checks: 33 of 100, about 9 min left"


def test_a_terminal_has_a_bar_and_no_lines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    steps(40.0, 3, 10)
    assert "left" not in capsys.readouterr().err
