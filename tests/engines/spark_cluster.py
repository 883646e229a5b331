"""Run by test_spark.py as a process of its own: a real cluster of two executors, one of which is killed half-way.

Every attempt of a task leaves a file `partition-task` in the folder named by the first argument. Prints JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hubbub.engines.spark.engine import SparkEngine
from hubbub.engines.spark.session import local_session
from hubbub.engines.spark.table import SparkTable
from hubbub.privacy import gaussian_round
from hubbub.statistics import Means

FOLDER = Path(sys.argv[1])


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def attempts(part: int) -> int:
    return len(list(FOLDER.glob(f"{part}-*")))


def marks(part: int, _: object) -> Iterator[np.ndarray]:
    """A unique mark per client; the last partition then kills the Java machine that holds an earlier one's result."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    yield 2.0 ** np.arange(5 * part, 5 * part + 5)[:, None]
    (FOLDER / f"{part}-{context.taskAttemptId()}").touch()
    if part == 3 and attempts(part) == 1:
        time.sleep(2)
        os.kill(parent(os.getppid()), signal.SIGKILL)


def run() -> dict[str, object]:
    session = local_session("local-cluster[2,1,1024]")
    rows = session.sparkContext.parallelize(range(4), 4).mapPartitionsWithIndex(marks)
    table = SparkTable(rows, ("mark",), clients=20)
    release = SparkEngine(session=session, computes=3).private_sum(table, gaussian_round(Means((2.0**20,)), 0.0))
    ran = Counter(path.name.split("-")[0] for path in FOLDER.iterdir())
    return {"value": release.value.tolist(), "n": release.n, "attempts": ran}


if __name__ == "__main__":
    print(json.dumps(run()))
