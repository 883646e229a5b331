"""A user's mistake on the command line: one line on standard error, nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubbub.cli import main


def refused(capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("hubbub: error: ")
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    assert expected in captured.err


def nothing_happened(folder: Path) -> None:
    ledger = folder / "ledger.json"
    assert not ledger.exists() or '"entries": []' in ledger.read_text()
    assert not (folder / "model.json").exists()
