"""Interrupt a real run and go on: finished cells are kept, nothing is computed twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest


def cells(out: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in (out / "cells").glob("*.json")} if out.exists() else {}


@pytest.mark.long
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_interrupted_run_goes_on_where_it_stopped(tmp_path: Path, jobs: str):
    out = tmp_path / "out"
    command = [
        sys.executable,
        "-m",
        "hubbub",
        "experiment",
        "fig2",
        "--out",
        str(out),
        "--repeats",
        "4",
        "--jobs",
        jobs,
        "--json",
    ]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(1200):
        if len(cells(out)) >= 2:
            break
        time.sleep(0.05)
    os.kill(run.pid, signal.SIGINT)
    stdout, stderr = run.communicate(timeout=120)
    assert run.returncode == 130
    assert stdout == ""
    assert "run the same command again to go on" in " ".join(stderr.split())
    assert "Traceback" not in stderr
    kept = cells(out)
    assert 2 <= len(kept) < 12

    again = subprocess.run(command, capture_output=True, text=True, check=True)
    content = json.loads(again.stdout)
    assert len(content["rows"]) == 3 * 6 * 7
    after = cells(out)
    assert len(after) == 12
    assert {name: after[name] for name in kept} == kept
