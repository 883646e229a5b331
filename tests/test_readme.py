"""What the README shows really runs."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from hubbub.cli import main

README = (Path(__file__).parent.parent / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.S)


def test_python_examples_run_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    assert len(blocks("python")) >= 2
    for block in blocks("python"):
        exec(block, namespace)
    out = capsys.readouterr().out
    assert "Privacy report" in out
    assert "Ledger of" in out


def test_commands_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, regression_rows: np.ndarray):
    monkeypatch.chdir(tmp_path)
    np.savetxt("data.csv", regression_rows, delimiter=",", header="a,b,c,y", comments="")
    commands = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("hubbub ")]
    assert len(commands) >= 4
    for command in commands:
        assert main(shlex.split(command)[1:]) == 0, command


def test_make_targets_exist():
    makefile = (Path(__file__).parent.parent / "Makefile").read_text()
    for target in set(re.findall(r"\bmake (\w+)", README)):
        assert re.search(rf"^{target}:", makefile, flags=re.M), target


def test_linked_files_exist():
    for link in re.findall(r"\]\(([^)]+)\)", README):
        assert (Path(__file__).parent.parent / link).exists(), link
