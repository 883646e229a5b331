"""The road of one sample, and the page that is made from it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "road.md"


def test_the_page_is_what_the_command_prints():
    """In a process of its own: coverage tools and other profilers would be in the way."""
    done = subprocess.run(
        [sys.executable, "-m", "hubbub", "road", "--markdown"], capture_output=True, text=True, check=True
    )
    assert done.stdout == PAGE.read_text(), "run: hubbub road --markdown > docs/road.md"


def test_the_road_reads_from_file_to_release():
    """Folders come in the order of the road; the ground floor serves them all."""
    lines = [line[3:] for line in PAGE.read_text().splitlines() if line.startswith("## ")]
    order = ["cli", "estimators", "analyses", "engines", "roles", "statistics", "privacy", "securesum"]
    first = [name for name in dict.fromkeys(lines) if name != "ground floor"]
    assert first == order
