"""How much memory a run took, all its processes together."""

from __future__ import annotations

import os
from pathlib import Path


def family_peak_bytes() -> int:
    """The most memory that this process and its descendants (Java, the workers) have held, each at its own time."""
    parents: dict[int, int] = {}
    peaks: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        except OSError:  # it has ended meanwhile
            continue
        parents[int(status.parent.name)] = int(lines["PPid"])
        peaks[int(status.parent.name)] = int(lines.get("VmHWM", "0 kB").split()[0]) * 1024
    family = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(peaks.get(pid, 0) for pid in family)
