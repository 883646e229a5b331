"""Install a package of plug-ins for a while, without pip: a folder on the path with the modules and their entry points.

`importlib.metadata` finds a distribution by its folder `<name>-<version>.dist-info`, whose file entry_points.txt is all
that hubbub reads. Processes that are started meanwhile find it by PYTHONPATH.
"""

from __future__ import annotations

import importlib
import os
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

TOYS = Path(__file__).parent / "hubbub_toys"
Points = Mapping[str, Mapping[str, str]]
"""Of each group, which object has which name."""


def sources_of(package: Path) -> dict[str, str]:
    """The modules of a package in a folder, by name."""
    return {file.stem: file.read_text() for file in sorted(package.glob("*.py"))}


def points_in(pyproject: str) -> Points:
    """The entry points in the text of a pyproject.toml."""
    found: Points = tomllib.loads(pyproject)["project"]["entry-points"]
    return found


def lay_down(folder: Path, package: str, sources: Mapping[str, str], points: Points) -> Path:
    """Write the package as pip would have it in site-packages."""
    place, info = folder / package, folder / f"{package}-0.1.dist-info"
    place.mkdir(parents=True)
    info.mkdir()
    for name, text in sources.items():
        (place / f"{name}.py").write_text(text)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package.replace('_', '-')}\nVersion: 0.1\n")
    lines = [
        line for group, names in points.items() for line in (f"[{group}]", *(f"{n} = {v}" for n, v in names.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder


@contextmanager
def on_the_path(folder: Path) -> Iterator[None]:
    """This process, and those that it starts, find what lies in the folder."""
    before = _processes_look([folder])
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        _forget(folder)
        os.environ["PYTHONPATH"] = before


@contextmanager
def gone(folder: Path) -> Iterator[None]:
    """Meanwhile neither this process nor those that it starts find what lies there, as if it were not installed."""
    modules, before = _forget(folder), _processes_look([], without=folder)
    try:
        yield
    finally:
        os.environ["PYTHONPATH"] = before
        sys.path.insert(0, str(folder))
        sys.modules.update(modules)


def _processes_look(places: Sequence[Path], without: Path | None = None) -> str:
    """Where processes that are started from now on look first; returns how it was."""
    before = os.environ.get("PYTHONPATH", "")
    kept = [place for place in before.split(os.pathsep) if place and place != str(without)]
    os.environ["PYTHONPATH"] = os.pathsep.join([*map(str, places), *kept])
    return before


def _forget(folder: Path) -> dict[str, ModuleType]:
    sys.path.remove(str(folder))
    inside = str(folder) + os.sep
    found = {name: each for name, each in sys.modules.items() if str(getattr(each, "__file__", "")).startswith(inside)}
    for name in found:
        del sys.modules[name]
    return found
