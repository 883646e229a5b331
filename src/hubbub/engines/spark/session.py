"""Finding or starting Spark, watching a job, and telling in one line what went wrong."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import threading
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from hubbub.errors import HubbubError, RoundRefused

if TYPE_CHECKING:
    from pyspark import StatusTracker
    from pyspark.sql import SparkSession

Progress = Callable[[int, int], object]
"""Called now and then with the number of tasks done and the number of tasks known so far."""

_LOCAL = {
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "4096",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.files.maxPartitionBytes": "32m",  # more and shorter tasks: progress is seen, and less is done twice
}
_MISSING = "the Spark engine must find {what}, got none; install hubbub[spark] and Java 17"
_POLL_SECONDS = 0.2
_LINE = 300
_RAISED = re.compile(r"[A-Za-z_][\w.]*: ")  # as the last line of a traceback, `ValueError: ...`
_JAVA_NAME = re.compile(r"^(?:[a-z]\w*\.)+\w+: ")


def spark_session(session: SparkSession | None = None) -> SparkSession:
    """The session given, else the active one, else a new one: of `spark-submit`, or on all cores of this machine."""
    if session is not None:
        return session
    _check_packages()
    from pyspark.sql import SparkSession as Session

    active = Session.getActiveSession()
    if active is not None:
        return active
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # started by spark-submit, which has said where to run
        return Session.builder.appName("hubbub").getOrCreate()
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise HubbubError(_MISSING.format(what="java"))
    return local_session()


def _check_packages() -> None:
    for package in ("pyspark", "pyarrow", "pandas"):  # pyspark asks for pandas wherever Arrow is used
        try:
            with _pandas_accepted():
                __import__(package)
        except ImportError:
            raise HubbubError(_MISSING.format(what=f"the package {package}")) from None


def local_session(master: str = "local[*]", settings: Mapping[str, str] | None = None) -> SparkSession:
    """A new session on all cores of this machine: little memory, no web page, no chatter; `settings` are Spark's."""
    from pyspark.sql import SparkSession as Session

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the workers' Python, with the same packages
    builder = Session.builder.appName("hubbub").master(master)
    for name, value in {**_LOCAL, **(settings or {})}.items():
        builder = builder.config(name, value)
    with _stderr_kept() as kept, _pandas_accepted():
        try:
            session = builder.getOrCreate()
        except spark_errors() as error:
            reason = _first_line(kept) if "JAVA_GATEWAY_EXITED" in str(error) else one_line(error)
            raise HubbubError(f"Spark must start, got: {reason}; check that `java -version` says 17") from None
    session.sparkContext.setLogLevel("ERROR")
    return session


def _first_line(kept: IO[bytes]) -> str:
    """What Java complained about before it gave up."""
    kept.seek(0)
    said = [line.strip() for line in kept.read().decode(errors="replace").splitlines()]
    complaints = [line for line in said if line and not line.startswith("WARNING: ")]
    return complaints[0][:_LINE] if complaints else "nothing from Java"


@contextmanager
def _pandas_accepted() -> Iterator[None]:
    """Without Spark's doubts about new versions of pandas, of which nothing is used here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        yield


@contextmanager
def _stderr_kept() -> Iterator[IO[bytes]]:
    """What this process and the Java machine it starts write to standard error goes to a file without a name.

    Java keeps writing there for the rest of its life. Whoever wants Spark's log brings a session of their own.
    """
    with tempfile.TemporaryFile() as kept:
        sys.stderr.flush()
        before = os.dup(2)
        os.dup2(kept.fileno(), 2)
        try:
            yield kept
        finally:
            sys.stderr.flush()
            os.dup2(before, 2)
            os.close(before)


@contextmanager
def watched(session: SparkSession, progress: Progress | None) -> Iterator[None]:
    """Jobs started inside are counted for `progress`, cancelled if this is left early, and fail in one line."""
    context, group, over = session.sparkContext, f"hubbub-{uuid.uuid4().hex}", threading.Event()
    context.setJobGroup(group, "hubbub", interruptOnCancel=True)
    watcher = threading.Thread(target=_watch, args=(context.statusTracker(), group, progress, over), daemon=True)
    if progress is not None:
        watcher.start()
    try:
        with _pandas_accepted():
            yield
    except spark_errors() as error:
        raise RoundRefused("spark-failed", f"a Spark job failed: {one_line(error)}; nothing was released") from None
    except BaseException:
        context.cancelJobGroup(group)
        raise
    finally:
        over.set()
        if progress is not None:
            watcher.join()
        for name in ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel"):
            context.setLocalProperty(name, None)  # type: ignore[arg-type]  # None takes it away


def _watch(tracker: StatusTracker, group: str, progress: Progress | None, over: threading.Event) -> None:
    """Tell of the group's tasks until it is over."""
    assert progress is not None
    told = None
    while True:
        last = over.wait(_POLL_SECONDS)
        now = task_counts(tracker, group)
        if now != told and now[1]:
            progress(*now)
            told = now
        if last:
            return


def task_counts(tracker: StatusTracker, group: str) -> tuple[int, int]:
    """(done, all) tasks of a job group's stages that have begun."""
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = {stage for job in jobs if job is not None for stage in job.stageIds}
    known = [info for info in map(tracker.getStageInfo, sorted(stages)) if info is not None]
    begun = [info for info in known if info.numActiveTasks or info.numCompletedTasks]  # others may be skipped
    return sum(info.numCompletedTasks for info in begun), sum(info.numTasks for info in begun)


def place_of(path: str | Path) -> str:
    """An address for Spark: absolute where the file is on this machine, as Java keeps the folder it was started in."""
    return str(Path(path).resolve()) if Path(path).exists() else str(path)


def spark_errors() -> tuple[type[Exception], ...]:
    """What Spark raises: errors of its own, those of Java that it has no name for, a lost connection to Java."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # ships no types
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError, OSError


def one_line(error: BaseException) -> str:
    """What a Spark error says, without the stacks: a worker's own exception, Java's root cause, or the first line."""
    lines = [line.strip() for line in str(error).splitlines()]
    traced = [position for position, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")]
    raised = [line for line in lines[traced[0] :] if _RAISED.match(line)] if traced else []
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    plain = [
        line.removeprefix(": ") for line in lines if line and not line.startswith("An error occurred while calling")
    ]
    said = (raised[:1] or causes[-1:] or plain[:1] or [type(error).__name__])[0]
    return _JAVA_NAME.sub("", said).split(" SQLSTATE:")[0][:_LINE].rstrip(". ")
