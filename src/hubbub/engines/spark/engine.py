"""The same road on Spark: clients as partitions, shares made in the workers, M vectors at the driver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hubbub.arrays import Floats, Words, number_rows
from hubbub.engines.series import Series
from hubbub.engines.spark.session import Progress, spark_session, watched
from hubbub.engines.spark.table import SparkTable
from hubbub.engines.spark.task import SCHEMA, Record, ShareOut, added, as_batch, records_of
from hubbub.errors import HubbubError, InvalidInput, RoundRefused, invalid, whole
from hubbub.privacy import Population, Release, covered
from hubbub.randomness import Randomness
from hubbub.roles import RoundPlan, Turnout, check_turnout, decode_release, plan_round
from hubbub.securesum import Sharing, check_computes, check_sharing, combine
from hubbub.statistics import Statistic, warn_outside

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession

FAN_IN = 16
"""Records that one task of the tree adds up, about."""
_MOST_ARRAY_BYTES = 1 << 28  # of an array given by the driver, which has to pass through it
_MOST_RECORD_BYTES = 1 << 30  # of the M sums that travel together
_BLOCK_WORDS = 1 << 18


@dataclass(frozen=True)
class SparkEngine:
    """K clients with a row each, M Computes and the combiner on one Spark cluster, or on this machine's cores.

    Rows are a SparkTable (`SparkTable.read("rows.parquet")`), a DataFrame, an RDD of NumPy blocks, or an array, which
    is cut into `partitions` blocks. Noise and masks are drawn in the workers, each task from a stream of its own keyed
    by its operating system; the driver gets one record, the M sums. A `seed` makes a simulation reproducible (with
    the same partitions), and the privacy report says so. `session` is the active one by default, or a new one on all
    cores of this machine. The noise covers `dropouts` clients that are missing and `colluding` ones that tell their
    noise, both at once; `tolerated=T` is short for T of each. `tick` is called now and then with the number of
    tasks done and of those known so far.
    """

    computes: int = 3
    tolerated: int = 0
    seed: int | None = None
    fraction_bits: int | None = None
    shares: Sharing = "auto"
    session: SparkSession | None = field(default=None, repr=False, compare=False)
    partitions: int | None = None
    tick: Progress | None = field(default=None, repr=False, compare=False)
    dropouts: int | None = None
    colluding: int | None = None
    _randomness: Randomness = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_computes(self.computes)
        check_sharing(self.shares)
        covered(self.tolerated, self.dropouts, self.colluding)
        if self.partitions is not None:
            whole("partitions", self.partitions, 1, "leave it out for one per core")
        object.__setattr__(self, "_randomness", Randomness.of(self.seed))

    def population(self, samples: int) -> Population:
        """Who takes part where there are so many rows."""
        return Population(samples, *covered(self.tolerated, self.dropouts, self.colluding))

    def private_sum(
        self, rows: Floats | SparkTable | DataFrame | RDD[Any], statistic: Statistic, noise_multiplier: float
    ) -> Release:
        """The noisy sum over all clients, or a refusal."""
        table = self._table(rows, statistic)
        return self._round(table, self.plan(statistic, noise_multiplier, table.shape[0]))

    def series(self, rows: Any, statistic: Statistic, noise_multiplier: float, clients: int | None = None) -> Series:
        """Many rounds over the same rows, handed to the cluster and planned once."""
        table = self._table(rows, statistic)
        if clients not in (None, table.shape[0]):
            raise InvalidInput(
                "selection must be 'self' on Spark, whose rows stay where they are, got 'trainer'; "
                "let the clients select themselves"
            )
        plan = self.plan(statistic, noise_multiplier, table.shape[0])
        return Series(plan, lambda plan, _: self._round(table, plan))

    def _round(self, table: SparkTable, plan: RoundPlan) -> Release:
        clients = plan.mechanism.population.clients
        words, present = self.compute_sums(plan, table)
        check_turnout(plan.mechanism.population, present)
        if present != clients:
            raise RoundRefused(
                "clients-changed",
                f"clients must number N = {clients} as counted before the round, got {present}; "
                "nothing was released: keep the data as it is while a round runs",
            )
        return decode_release(
            plan,
            combine(words),
            Turnout(present, present),
            computes=self.computes,
            setting="one Spark cluster",
            sealed=None,
            randomness=self._randomness,
        )

    def plan(self, statistic: Statistic, noise_multiplier: float, samples: int) -> RoundPlan:
        """The grid and the noise of a round over so many rows, before any data is touched."""
        return plan_round(statistic, noise_multiplier, self.population(samples), self.fraction_bits)

    def compute_sums(self, plan: RoundPlan, table: SparkTable) -> tuple[Words, int]:
        """(M, d): what each Compute adds up, and over how many clients."""
        size = 8 * self.computes * plan.dimension
        if size > _MOST_RECORD_BYTES:
            raise invalid(
                "8 M d", f"at most {_MOST_RECORD_BYTES} bytes", size, "use fewer Computes or a shorter vector"
            )
        task = ShareOut(plan, self.computes, self.shares, self._randomness.child_key(), table.steps)
        with watched(table.session, self.tick):
            record = only_record(summed(table.records(task)))
        if record.problem is not None:
            raise InvalidInput(record.problem)
        warn_outside("rows", plan.statistic, record.outside, record.clients)
        return record.words.reshape(self.computes, plan.dimension), record.clients

    def warm_up(self) -> None:
        """Start Spark now, rather than at the first round."""
        spark_session(self.session)

    def _table(self, rows: Any, statistic: Statistic) -> SparkTable:
        """Whatever was given as a table with the statistic's columns."""
        if hasattr(rows, "mapPartitionsWithIndex"):
            return SparkTable(rows, tuple(f"column {j}" for j in range(statistic.columns)))
        if hasattr(rows, "mapInArrow"):
            rows = SparkTable(rows, tuple(rows.columns))
        if not isinstance(rows, SparkTable):
            return self._parallelised(number_rows("rows", rows, statistic.columns))
        columns = len(rows.columns) if rows.width is None else rows.width
        if columns != statistic.columns:
            bound = f"an array with {statistic.columns} columns"
            raise invalid("rows", bound, f"{columns} columns", "check the columns")
        return rows

    def _parallelised(self, rows: Floats) -> SparkTable:
        """An array as blocks in the cluster's memory."""
        if rows.nbytes > _MOST_ARRAY_BYTES:
            raise invalid(
                "rows", f"at most {_MOST_ARRAY_BYTES >> 20} MB as an array", f"{rows.nbytes >> 20} MB",
                "write them to Parquet and use SparkTable.read",
            )  # fmt: skip
        context = spark_session(self.session).sparkContext
        partitions = max(1, min(self.partitions or context.defaultParallelism, rows.shape[0]))
        size = max(1, min(-(-rows.shape[0] // partitions), _BLOCK_WORDS // max(1, rows.shape[1])))
        blocks = [rows[start : start + size] for start in range(0, rows.shape[0], size)]
        names = tuple(f"column {j}" for j in range(rows.shape[1]))
        return SparkTable(context.parallelize(blocks, partitions), names, clients=rows.shape[0])

    def __deepcopy__(self, _: dict[int, object]) -> SparkEngine:
        return self  # frozen, and a session cannot be copied

    def __getstate__(self) -> dict[str, object]:
        """In another process the session is found anew."""
        return {**self.__dict__, "session": None, "tick": None}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)


def only_record(records: DataFrame) -> Record:
    """The one record that is left, which is all that the driver ever gets."""
    rows = records.collect()
    if len(rows) != 1:
        raise HubbubError(f"Spark must hand over one record, got {len(rows)}; nothing was released")
    return Record.of(bytes(rows[0].words), rows[0].clients, rows[0].problem, rows[0].outside)


def summed(records: DataFrame) -> DataFrame:
    """One row, the sum of all records: a tree of tasks. A record's partition says to which task it goes."""
    for width in tree_widths(4 * records.sparkSession.sparkContext.defaultParallelism):
        gathered = records.repartition(width, "part") if width > 1 else records.repartition(1)
        records = gathered.mapInArrow(_add, SCHEMA)
    return records


def tree_widths(partitions: int) -> list[int]:
    """How many tasks each level of the tree has, the last one 1."""
    widths = [-(-partitions // FAN_IN)]
    while widths[-1] > 1:
        widths.append(-(-widths[-1] // FAN_IN))
    return widths


def _add(batches: Iterator[Any]) -> Iterator[Any]:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    total = added(records_of(batches))
    if total is not None:
        yield as_batch(context.partitionId(), total)
