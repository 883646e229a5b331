"""The numbers chosen by judgement: each explained, all in one place, and stored with what was made with them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from hubbub.analyses.linear.tuning import VERSION, explain, record

ROOT = Path(__file__).parents[3]


def test_every_number_has_a_meaning_a_reason_and_a_command_that_exists():
    for name, told in explain().items():
        assert told["meaning"], name
        assert told["reason"], name
        for command in told["command"].removeprefix("none was kept; judge a change by: ").split("; "):
            program, *rest = command.split()
            if program == "hubbub":
                assert rest[0] == "experiment"
                assert (ROOT / "src/hubbub/experiments" / f"{rest[1]}.py").is_file(), command
            else:
                assert program in ("python", "pytest")
                assert (ROOT / rest[0]).is_file(), command


def test_a_changed_number_needs_a_new_version():
    """Whoever changes a number raises VERSION and then adds a line here."""
    content = json.dumps(record(), sort_keys=True)
    known = {1: "83967611d743e431", 2: "8c853f973d489539", 3: "f7a98c14cb213864", 4: "2fd5fc70bfe09d7b",
             5: "18cd9de1a6574307"}  # fmt: skip
    assert hashlib.sha256(content.encode()).hexdigest()[:16] == known[VERSION]


def test_the_record_is_plain_json():
    assert json.loads(json.dumps(record())) == record()
    assert record()["version"] == VERSION
    assert record()["target_part"] == 0.85
