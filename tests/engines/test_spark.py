"""The Spark engine: every client once, whatever Spark does twice; rows from anywhere; one line for what is wrong."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

from conftest import FALSE_ALARM
from contracts.structure import satisfies
from fits import fit_auto
from hubbub.engines import LocalEngine, TrustedAggregator
from hubbub.engines.spark import engine as spark
from hubbub.engines.spark.engine import SparkEngine, only_record, summed, tree_widths
from hubbub.engines.spark.table import SparkTable
from hubbub.engines.spark.task import ShareOut, TaskSum, added
from hubbub.errors import InvalidInput, OutOfDomainWarning, RoundRefused
from hubbub.estimators.linear_regression import PrivateLinearRegression
from hubbub.privacy import gaussian_round
from hubbub.protocols import Table
from hubbub.securesum import Additive
from hubbub.statistics import Box, Means
from hubbub.statistics.preparation import clip, shift
from spark_support import shared_session

MARKS = Means((2.0**20,))
ROWS = 2.0 ** np.arange(20)[:, None]  # a unique mark per client: a double count would show


@pytest.fixture(scope="module")
def session():
    return shared_session()


def decoded(plan, sums: np.ndarray) -> np.ndarray:
    """The total of the Computes' sums as numbers."""
    return plan.noise.grid.decode(Additive(len(sums)).unshard(dict(enumerate(sums))))


def blocks_of(session, rows: np.ndarray, partitions: int, size: int = 3):
    return session.sparkContext.parallelize([rows[i : i + size] for i in range(0, len(rows), size)], partitions)


def test_a_table_has_all_that_an_estimator_asks_for(session):
    satisfies(SparkTable(blocks_of(session, ROWS, 2), ("mark",), clients=20), Table)


# every client once


@pytest.mark.parametrize("partitions", [1, 2, 7, 30])
def test_every_client_is_counted_once_however_the_rows_are_cut(session, partitions: int):
    release = SparkEngine(session=session, partitions=partitions).private_sum(ROWS, gaussian_round(MARKS, 0.0))
    assert release.value.tolist() == [2.0**20 - 1]
    assert (release.n, release.dropouts) == (20, 0)
    assert release.protection.setting.name == "one Spark cluster"


def test_a_tree_of_many_levels_adds_every_record_once(session, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(spark, "FAN_IN", 2)
    assert tree_widths(8) == [4, 2, 1]
    release = SparkEngine(session=session).private_sum(blocks_of(session, ROWS, 6), gaussian_round(MARKS, 0.0))
    assert release.value.tolist() == [2.0**20 - 1]


def test_tree_ends_in_one_task():
    for partitions in (1, 2, 16, 17, 1000, 10**6):
        widths = tree_widths(partitions)
        assert widths[-1] == 1
        assert all(wide <= spark.FAN_IN * narrow for wide, narrow in zip([partitions, *widths], widths, strict=False))


def test_the_driver_gets_one_record_and_it_comes_from_one_task(session):
    engine = SparkEngine(session=session, computes=4)
    table = SparkTable(blocks_of(session, ROWS, 5), ("mark",), clients=20)
    task = ShareOut(engine.settle(gaussian_round(MARKS, 0.0), 20), engine.scheme, None)
    frame = summed(table.records(task), engine.scheme)
    rows = frame.collect()
    assert len(rows) == frame.rdd.getNumPartitions() == 1
    assert (len(rows[0].words), rows[0].clients) == (8 * 4 * 1, 20)  # M vectors of d words, nothing else
    with pytest.raises(Exception, match="one record, got 5; nothing was released"):
        only_record(table.records(task))


# what Spark does twice


def test_a_task_that_fails_at_its_end_is_run_again_and_counts_once(session, tmp_path: Path):
    """The first attempt has drawn noise and masks for all its clients when it dies."""
    folder = str(tmp_path)

    def fails_once(part: int, blocks: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        yield from blocks
        Path(folder, f"{part}-{context.attemptNumber()}").touch()
        if context.attemptNumber() == 0 and part != 1:
            raise OSError("the disk is gone")

    rows = blocks_of(session, ROWS, 3).mapPartitionsWithIndex(fails_once)
    release = SparkEngine(session=session).private_sum(
        SparkTable(rows, ("mark",), clients=20), gaussian_round(MARKS, 0.0)
    )
    assert release.value.tolist() == [2.0**20 - 1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0-0", "0-1", "1-0", "2-0", "2-1"]


def test_a_lost_record_is_made_anew_as_a_whole(session):
    """Two attempts at the same partition: no word is alike, each is whole, and halves of the two do not fit."""
    plan = SparkEngine().settle(gaussian_round(Means((1.0,) * 50), 0.0), 6)
    rows, task = np.ones((6, 50)), ShareOut(plan, Additive(3), None)
    first, second = (task.record(0, [rows]).words.reshape(3, 50) for _ in range(2))
    assert (first != second).all()
    for attempt in (first, second):
        assert (decoded(plan, attempt) == 6.0).all()
    mixed = np.stack([first[0], second[1], second[2]])
    assert (np.abs(decoded(plan, mixed) - 6.0) > 1.0).mean() > 0.9


def test_no_attempt_repeats_the_noise_of_another():
    """600 attempts at one partition: their noise is independent, with the stated deviation (FALSE_ALARM)."""
    plan = SparkEngine().settle(gaussian_round(Means((1.0,)), 2.0), 6)
    task = ShareOut(plan, Additive(2), None)
    noise = [decoded(plan, task.record(0, [np.zeros((6, 1))]).words.reshape(2, 1))[0] for _ in range(600)]
    assert len(set(noise)) == 600
    low, high = stats.chi2(600).interval(1 - FALSE_ALARM)
    assert low < np.sum(np.square(noise)) / (6 * plan.noise.sigma_client**2) < high


def test_workers_draw_from_their_own_system(session):
    """Two partitions with the same rows, in forked processes of one parent: their records have no word in common."""
    plan = SparkEngine().settle(gaussian_round(Means((1.0,) * 20), 1.0), 8)
    table = SparkTable(blocks_of(session, np.ones((8, 20)), 4, size=2), tuple("abcdefghijklmnopqrst"), clients=8)
    rows = table.records(ShareOut(plan, Additive(2), None)).collect()
    words = np.concatenate([np.frombuffer(row.words, dtype=np.uint64) for row in rows])
    assert words.size == np.unique(words).size == 4 * 2 * 20


@pytest.mark.long
def test_a_killed_executor_takes_nothing_and_adds_nothing(tmp_path: Path):
    """A real cluster: with the executor goes the result of a task that had already ended, which is run again."""
    script = Path(__file__).with_name("spark_cluster.py")
    out = subprocess.run([sys.executable, script, tmp_path], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr[-2000:]
    found = json.loads(out.stdout.splitlines()[-1])
    assert (found["value"], found["n"]) == ([2.0**20 - 1], 20)
    assert found["attempts"]["3"] == 2
    assert max(found["attempts"][part] for part in "012") == 2  # the finished one whose result was lost


def test_seed_repeats_a_simulation_and_a_retried_task(session):
    def values(seed: int, partitions: int) -> list[float]:
        engine = SparkEngine(session=session, seed=seed, partitions=partitions)
        return [engine.private_sum(ROWS, gaussian_round(MARKS, 1.0)).value[0] for _ in range(2)]

    assert values(1, 2) == values(1, 2)
    assert len({*values(1, 2), *values(2, 2), *values(1, 3)}) == 6
    task = ShareOut(SparkEngine().settle(gaussian_round(MARKS, 1.0), 20), Additive(3), b"key")
    again, other = task.record(4, [ROWS]).words, task.record(5, [ROWS]).words
    assert (task.record(4, [ROWS]).words == again).all()
    assert (other != again).all()


# clients that come or go


@pytest.mark.parametrize(
    ("claimed", "tolerated", "reason"),
    [(21, 0, "too-few-clients"), (21, 3, "clients-changed"), (19, 3, "too-many-clients")],
)
def test_a_number_of_clients_that_changed_is_refused(session, claimed: int, tolerated: int, reason: str):
    table = SparkTable(blocks_of(session, ROWS, 2), ("mark",), clients=claimed)
    with pytest.raises(RoundRefused, match="got 20;") as caught:
        SparkEngine(session=session, tolerate=tolerated).private_sum(table, gaussian_round(MARKS, 1.0))
    assert caught.value.reason == reason


# rows from anywhere


def columns(rng: np.random.Generator, n: int = 50) -> np.ndarray:
    return np.round(rng.uniform(-1, 1, size=(n, 3)), 3)


def test_parquet_csv_frame_and_blocks_give_the_same_sum(session, tmp_path: Path, rng: np.random.Generator):
    rows = columns(rng)
    names = ["length.cm", "a `b`", "n"]
    frame = pa.table([pa.array(rows[:, 0]), pa.array(rows[:, 1].astype(np.float32)), pa.array(rows[:, 2])], names)
    (tmp_path / "rows").mkdir()
    pq.write_table(frame.slice(0, 20), tmp_path / "rows" / "0.parquet")
    pq.write_table(frame.slice(20), tmp_path / "rows" / "1.parquet")
    np.savetxt(tmp_path / "rows.csv", rows, delimiter=";", header="length.cm; a  `b` ;n", comments="\ufeff")
    engine, statistic = SparkEngine(session=session), Means((1.0,) * 3)
    expected = rows.sum(axis=0)
    sources = [
        SparkTable.read(tmp_path / "rows", session=session),
        SparkTable.read(tmp_path / "rows.csv", names, session=session),
        session.createDataFrame(frame),
        blocks_of(session, rows, 4),
    ]
    for source in sources:
        np.testing.assert_allclose(
            engine.private_sum(source, gaussian_round(statistic, 0.0)).value, expected, atol=1e-5
        )
    table = SparkTable.read(tmp_path / "rows", ["n", "length.cm"], session=session)
    assert table.shape == (50, 2)
    value = engine.private_sum(table, gaussian_round(Means((1.0,) * 2), 0.0)).value
    np.testing.assert_allclose(value, expected[[2, 0]], atol=1e-5)


def test_whole_numbers_decimals_and_truth_values_are_numbers(session):
    frame = session.sql(
        "select id as i, id > 2 as b, cast(id as decimal(10,2)) as d, cast(id as string) as s from range(6)"
    )
    value = SparkEngine(session=session).private_sum(frame, gaussian_round(Means((10.0,) * 4), 0.0)).value
    np.testing.assert_allclose(value, [15, 3, 15, 15], atol=1e-6)


BAD_CELLS = {
    "text": "a,b\n1,2\n1,old\n", "empty": "a,b\n1,2\n,3\n", "nan": "a,b\n1,nan\n1,2\n", "infinite": "a,b\n1,-inf\n1,2\n",
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_CELLS)
def test_a_row_with_a_bad_cell_counts_as_zero_also_after_steps(session, tmp_path: Path, name: str):
    (tmp_path / "rows.csv").write_text(BAD_CELLS[name])
    table = SparkTable.read(tmp_path / "rows.csv", session=session)
    spec = gaussian_round(Means((9.0, 9.0)), 0.0, steps=(clip([9.0, 9.0]), shift([-1.0, -1.0])))
    with pytest.warns(OutOfDomainWarning, match="got 1 of 2 that are not; each of them counts as zero"):
        release = SparkEngine(session=session).private_sum(table, spec)
    assert release.value.tolist() == [2.0, 3.0]


@pytest.mark.parametrize("content", ["a,b\n1,2\n1\n", "a,b\n1,2\n1,2,3\n"])
def test_a_ragged_row_is_refused_in_one_line(session, tmp_path: Path, content: str):
    (tmp_path / "rows.csv").write_text(content)
    table = SparkTable.read(tmp_path / "rows.csv", session=session)
    with pytest.raises(RoundRefused, match=r"Malformed CSV record: 1.*; nothing was released") as caught:
        SparkEngine(session=session).private_sum(table, gaussian_round(Means((1.0, 1.0)), 1.0))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_bad_number_in_parquet_or_in_a_block_counts_as_zero(session, tmp_path: Path, value: float):
    rows = np.ones((50, 2))
    rows[33, 1] = value
    pq.write_table(pa.table({"dose": rows[:, 0], "age": rows[:, 1]}), tmp_path / "rows.parquet")
    engine, statistic = SparkEngine(session=session), Means((1.0, 1.0))
    for table in (SparkTable.read(tmp_path / "rows.parquet", session=session), blocks_of(session, rows, 2, size=10)):
        with pytest.warns(OutOfDomainWarning, match="got 1 of 50 that are not"):
            assert engine.private_sum(table, gaussian_round(statistic, 0.0)).value.tolist() == [49.0, 49.0]


def test_tables_that_do_not_fit_are_one_line(session, tmp_path: Path):
    pq.write_table(pa.table({"a": [1.0, 2.0], "when": pa.array([0, 1], pa.date32())}), tmp_path / "rows.parquet")
    table = SparkTable.read(tmp_path / "rows.parquet", session=session)
    engine = SparkEngine(session=session)
    with pytest.raises(InvalidInput, match="column when must hold numbers, got date; convert it or leave it out"):
        engine.private_sum(table, gaussian_round(Means((1.0, 1.0)), 1.0))
    with pytest.raises(InvalidInput, match="rows must be an array with 3 columns, got rows=2 columns"):
        engine.private_sum(table, gaussian_round(Means((1.0,) * 3), 1.0))
    with pytest.raises(InvalidInput, match="rows must be an array with 1 columns, got rows=2 columns"):
        engine.private_sum(blocks_of(session, np.ones((9, 2)), 2), gaussian_round(MARKS, 1.0))
    with pytest.raises(InvalidInput, match="column must be one of a, when, got column=b"):
        table.select(["b"])
    with pytest.raises(InvalidInput, match="clients must be a whole number >= 2, got clients=1"):
        engine.private_sum(session.range(1).selectExpr("id as mark"), gaussian_round(MARKS, 1.0))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.parquet", None, "file must be Parquet or CSV .* Path does not exist"),
        ("none.csv", None, "file must be Parquet or CSV .* Path does not exist"),
        ("rows.parquet", "a,b\n1,2\n", "file must be Parquet or CSV .* is not a Parquet file"),
        ("rows.csv", "a,a\n1,2\n", "header must have distinct names, got 'a,a'"),
        ("rows.csv", "", "header must have distinct names"),
    ],
)
def test_files_that_cannot_be_read_are_one_line(session, tmp_path: Path, name: str, content: str | None, message: str):
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(InvalidInput, match=message) as caught:
        SparkTable.read(tmp_path / name, session=session)
    assert "\n" not in str(caught.value)


def test_an_error_in_a_worker_is_one_line(session):
    def wrong(rows: np.ndarray) -> np.ndarray:
        raise ValueError("three of these are too many")

    table = SparkTable(blocks_of(session, ROWS, 1).map(wrong), ("mark",), clients=20)
    with pytest.raises(RoundRefused, match="^a Spark job failed: ValueError: three of these are too many; nothing was"):
        SparkEngine(session=session).private_sum(table, gaussian_round(MARKS, 1.0))


def test_an_array_too_large_for_the_driver_is_refused():
    rows = np.broadcast_to(np.ones(1), (2**26, 1))
    with pytest.raises(
        InvalidInput, match="rows must be at most 256 MB as an array, got rows=512 MB; write them to Parquet"
    ):
        SparkEngine().private_sum(rows, gaussian_round(MARKS, 1.0))


# the engine as an object


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"computes": 1}, "computes must be a whole number in 2..1000, got computes=1"),
        ({"tolerate": -1}, "tolerate must be a whole number >= 0, got tolerate=-1"),
        ({"partitions": 0}, "partitions must be a whole number >= 1, got partitions=0"),
        ({"shares": "none"}, "shares must be one of auto, raw, seeds"),
        ({"seed": -3}, "seed must be a whole number"),
    ],
)
def test_bad_engine_is_one_line(arguments: dict[str, object], message: str):
    with pytest.raises(InvalidInput, match=message):
        SparkEngine(**arguments)  # type: ignore[arg-type]


def test_copies_and_pickles_work_and_share_no_noise(session):
    engine = SparkEngine(session=session, seed=4, partitions=2, tick=print)
    assert copy.deepcopy(engine) == engine
    elsewhere = pickle.loads(pickle.dumps(engine))
    assert elsewhere == engine
    assert (
        elsewhere.private_sum(ROWS, gaussian_round(MARKS, 1.0)).value
        != engine.private_sum(ROWS, gaussian_round(MARKS, 1.0)).value
    )


def test_progress_counts_tasks_up_to_all(session):
    told: list[tuple[int, int]] = []
    engine = SparkEngine(session=session, partitions=5, tick=lambda done, known: told.append((done, known)))
    engine.private_sum(ROWS, gaussian_round(MARKS, 1.0))
    assert told == sorted(told)
    assert told[-1] == (6, 6)  # five partitions and the one task that adds them up


def test_seeds_expanded_by_client_and_compute_give_the_same_sum(session):
    release = SparkEngine(session=session, shares="seeds", partitions=2).private_sum(ROWS, gaussian_round(MARKS, 0.0))
    assert release.value.tolist() == [2.0**20 - 1]


def test_one_problem_spoils_the_sum_of_records():
    good, bad = TaskSum(np.ones(3, dtype=np.uint64), 2), TaskSum(np.zeros(0, dtype=np.uint64), 0, "no number")
    scheme = Additive(3)
    for records in ([good, bad, good], [bad, good], [good, good, bad]):
        total = added(records, scheme)
        assert total is not None
        assert (total.words.size, total.clients, total.problem) == (0, 0, "no number")
    assert added([], scheme) is None


# models on a table


@pytest.mark.parametrize("norm", [None, 1.5])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_default_regression_sums_a_table_as_it_sums_an_array(
    session, tmp_path: Path, regression_rows: np.ndarray, norm: float | None, intercept: bool
):
    """Without noise, so that all the steps before the statistic must agree."""
    bound = Box((1.0,) * 3, 1.0)
    table = SparkTable(blocks_of(session, regression_rows, 3, size=50), tuple("abcy"), clients=400)
    options = {"intercept": intercept, "norm": norm}
    ours = fit_auto(table, bound, (1e-9, 1e-9), SparkEngine(session=session, computes=2), **options)
    local = fit_auto(regression_rows, bound, (1e-9, 1e-9), LocalEngine(computes=2), **options)
    np.testing.assert_allclose(ours.released.sums.xx, local.released.sums.xx, atol=1e-4)
    np.testing.assert_allclose(ours.released.sums.xy, local.released.sums.xy, atol=1e-4)
    np.testing.assert_allclose(ours.released.columns.centre, local.released.columns.centre, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({"y_bound": 1}, "y", "x_bound must be given for a table, got x_bound=None; its rows are not looked at"),
        ({"x_bound": 1}, "y", "y_bound must be given for a table"),
        ({"x_bound": 1, "y_bound": 1}, "z", "y must be the name of one of several columns, a, b, c, y, got y='z'"),
        ({"x_bound": 1, "y_bound": 1}, [1.0], "y must be the name of one of several columns"),
        ({"x_bound": 1, "y_bound": 1, "method": "plain"}, "y", "method must be 'auto' for a table"),
        (
            {"x_bound": 1, "y_bound": 1, "engine": LocalEngine()},
            "y",
            "engine must run where the rows of a SparkTable are",
        ),
        (
            {"x_bound": 1, "y_bound": 1, "engine": TrustedAggregator()},
            "y",
            "engine must run where the rows of a SparkTable",
        ),
    ],
)
def test_what_an_estimator_cannot_do_with_a_table_is_one_line(session, options: dict, y: object, message: str):
    table = SparkTable(session.range(9).selectExpr("id a", "id b", "id c", "id y"), tuple("abcy"))
    with pytest.raises(InvalidInput, match=message):
        PrivateLinearRegression(**options).fit(table, y)


# what is missing


def error_of(code: str, **environment: str) -> str:
    program = f"import numpy as np\n{code}\nfrom hubbub.engines.spark.engine import SparkEngine\nfrom hubbub.privacy import gaussian_round\nfrom hubbub.statistics import Means\n"
    program += "from hubbub.errors import HubbubError\n"
    program += "try: SparkEngine().private_sum(np.ones((5, 1)), gaussian_round(Means((1.0,)), 1.0))\nexcept HubbubError as error: print(error)"
    out = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, **environment}
    )
    assert out.returncode == 0, out.stderr
    return out.stdout


@pytest.mark.parametrize("package", ["pyspark", "pyarrow", "pandas"])
def test_a_missing_package_is_one_line(package: str):
    message = error_of(f"import sys; sys.modules[{package!r}] = None")
    assert message == f"the Spark engine must find the package {package}, got none; install hubbub[spark] and Java 17\n"


def test_missing_java_is_one_line(tmp_path: Path):
    message = error_of("import os; os.environ.pop('JAVA_HOME', None)", PATH=str(tmp_path))
    assert message == "the Spark engine must find java, got none; install hubbub[spark] and Java 17\n"


def test_java_that_does_not_start_is_one_line(tmp_path: Path):
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    java.write_text("#!/bin/sh\necho 'this is no Java' >&2\nexit 1\n")
    java.chmod(0o755)
    message = error_of("", JAVA_HOME=str(tmp_path))
    assert message == "Spark must start, got: this is no Java; check that `java -version` says 17\n"
