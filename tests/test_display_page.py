"""What docs/display.md shows really runs, and warns where the page says that it does."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

from hubbub import PrivacyLeakWarning

PAGE = (Path(__file__).parent.parent / "docs" / "display.md").read_text()


def test_examples_run_in_order_and_warn_of_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    matplotlib = pytest.importorskip("matplotlib")
    pytest.importorskip("arviz")
    pytest.importorskip("pandas")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, flags=re.S)
    assert len(blocks) >= 5
    for block in blocks:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            exec(block, namespace)
        leaks = [w for w in caught if w.category is PrivacyLeakWarning]
        assert len(leaks) == len(re.findall(r"# warns", block))
    assert namespace["ledger"].epsilon <= 3.0  # type: ignore[attr-defined]


def test_linked_files_exist():
    for link in re.findall(r"\]\(([^)#]+)", PAGE):
        assert (Path(__file__).parent.parent / "docs" / link).exists(), link
