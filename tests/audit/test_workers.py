"""Checks are shared out over processes, whose linear algebra runs in one thread each."""

from __future__ import annotations

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from hubbub.audit import Case, Check, Setting
from hubbub.audit.workers import in_workers
from hubbub.budget import Budget
from hubbub.errors import HubbubError

SETTING = Setting(Budget(1.0, 1e-5), 20, 0.1)


def threads(setting: Setting, name: str) -> Case:
    most = max(each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas")
    return Case.of(name, 1.0, 0.0, None, f"{most} threads", setting.trials)


@pytest.mark.parametrize("workers", [1, 2])
def test_linear_algebra_has_one_thread_while_checks_run(workers: int):
    """Two workers with two threads each took seven times the processor time of one thread."""
    told: list[str] = []
    with threadpool_limits(2):  # whatever the machine and its environment say
        cases = in_workers([Check(str(i), threads) for i in range(4)], SETTING, lambda c: told.append(c.name), workers)
        assert threads(SETTING, "after").method == "2 threads"
    assert [case.method for case in cases] == ["1 threads"] * 4
    assert [case.name for case in cases] == ["0", "1", "2", "3"]
    assert sorted(told) == ["0", "1", "2", "3"]


def test_a_check_that_fails_ends_the_audit():
    def fail(setting: Setting, name: str) -> Case:
        raise HubbubError("check must end well, got this")

    with pytest.raises(HubbubError, match="check must end well"):
        in_workers([Check("bad", fail), Check("good", threads)], SETTING, None, 2)
