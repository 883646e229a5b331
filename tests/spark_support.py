"""One Spark session for all tests of a process. Two cores, and failed tasks are tried again, up to four times."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from hubbub.engines.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@cache
def shared_session() -> SparkSession:
    quick_start = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    return local_session("local[2,4]", quick_start)
