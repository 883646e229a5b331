"""The status page in a real browser (Debian's chromium), after a round on live Computes."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

from hubbub.privacy import Budget, split
from hubbub.service.devnet import LocalComputes
from service.live import LiveStudy

pytestmark = pytest.mark.slow
CHROMIUM = shutil.which("chromium")


def browser(folder: Path, *arguments: object) -> str:
    """What chromium makes of a page once its JavaScript has run."""
    command = [
        CHROMIUM,
        "--headless",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        f"--user-data-dir={folder / 'profile'}",
    ]
    command += ["--no-sandbox"] if os.geteuid() == 0 else []
    command += ["--virtual-time-budget=4000", "--window-size=1000,1300", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=90, check=True).stdout


@pytest.fixture
def played(live: LocalComputes, tmp_path: Path) -> LiveStudy:
    budget = Budget(2.0, 1e-5)
    study = LiveStudy(live, tmp_path, budget)
    study.prepare()
    for number, multiplier in enumerate(split(budget, [1.0, 2.0])):
        record = study.plan(number, multiplier)
        study.analyst.open_round(record)
        study.send(record, None if number == 0 else ["c0", "c1", "c2"])
        if number == 0:
            study.analyst.close(record)
            study.analyst.release(record)
    return study


def test_page_loads_nothing_from_outside(live: LocalComputes):
    reply = httpx.get(f"{live.urls[0]}/")
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    assert "http://" not in reply.text
    assert "https://" not in reply.text


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_a_browser_shows_studies_rounds_rosters_and_ledger(played: LiveStudy, live: LocalComputes, tmp_path: Path):
    dom = browser(tmp_path, "--dump-dom", f"{live.urls[0]}/")
    assert "<title>compute-1 - hubbub</title>" in dom
    assert played.study.id in dom
    assert "6 of 6 reports; 5 are needed" in dom
    assert "3 of 6 reports; 5 are needed" in dom
    assert "3 of 3 signed rosters; 6 samples agreed" in dom
    assert "of 2 spent (delta 0.00001)" in dom
    assert "sum-released" in dom
    picture = tmp_path / "page.png"
    browser(tmp_path, f"--screenshot={picture}", f"{live.urls[0]}/")
    assert picture.stat().st_size > 10_000
