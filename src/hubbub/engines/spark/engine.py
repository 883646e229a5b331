"""The same road on Spark: clients as partitions, shares made in the workers, M vectors at the driver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hubbub.arrays import Floats, Words, number_rows
from hubbub.engines.spark.session import Progress, spark_session, watched
from hubbub.engines.spark.table import SparkTable
from hubbub.engines.spark.task import SCHEMA, ShareOut, TaskSum, added, as_batch, records_of
from hubbub.errors import HubbubError, InvalidInput, RoundRefused, invalid, whole
from hubbub.privacy import Population, covered
from hubbub.protocols import Engine, Mechanism, Release, RoundSpec, SecureSum
from hubbub.randomness import Randomness
from hubbub.roles import RoundPlan, Turnout, check_turnout, decode_release, settle_round
from hubbub.securesum import Additive, Masks, check_secure_sum
from hubbub.settings import ONE_CLUSTER
from hubbub.statistics import warn_outside

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FAN_IN = 16
"""Records that one task of the tree adds up, about."""
_MOST_ARRAY_BYTES = 1 << 28  # of an array given by the driver, which has to pass through it
_MOST_RECORD_BYTES = 1 << 30  # of the M sums that travel together
_BLOCK_WORDS = 1 << 18


@dataclass(frozen=True)
class SparkEngine(Engine):
    """K clients with a row each, M Computes and the combiner on one Spark cluster, or on this machine's cores.

    Rows are a SparkTable (`SparkTable.read("rows.parquet")`), a DataFrame, an RDD of NumPy blocks, or an array, which
    is cut into `partitions` blocks. Noise and masks are drawn in the workers, each task from a stream of its own keyed
    by its operating system; the driver gets one record, the M sums. A `seed` makes a simulation reproducible (with
    the same partitions), and the privacy report says so. `session` is the active one by default, or a new one on all
    cores of this machine. The noise covers `dropouts` clients that are missing and `colluding` ones that tell their
    noise, both at once; `tolerate=T` is short for T of each. `mechanism` is the law of the noise, or its name.
    `tick` is called now and then with the number of tasks done and of those known so far.
    """

    computes: int = 3
    tolerate: int = 0
    seed: int | None = None
    fraction_bits: int | None = None
    shares: Masks = "auto"
    session: SparkSession | None = field(default=None, repr=False, compare=False)
    partitions: int | None = None
    tick: Progress | None = field(default=None, repr=False, compare=False)
    dropouts: int | None = None
    colluding: int | None = None
    secure_sum: SecureSum | None = None
    mechanism: Mechanism | str | None = None
    _randomness: Randomness = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_secure_sum(self.secure_sum)
        object.__setattr__(self, "computes", self.scheme.computes)
        covered(self.tolerate, self.dropouts, self.colluding)
        if self.partitions is not None:
            whole("partitions", self.partitions, 1, "leave it out for one per core")
        object.__setattr__(self, "_randomness", Randomness.of(self.seed))

    def population(self, samples: int) -> Population:
        """Who takes part where there are so many rows."""
        return Population(samples, *covered(self.tolerate, self.dropouts, self.colluding))

    @property
    def scheme(self) -> SecureSum:
        """How sums are kept secret."""
        return Additive(self.computes, self.shares) if self.secure_sum is None else self.secure_sum

    def hold(self, rows: Any) -> SparkTable:
        """A SparkTable as it is; a DataFrame or an RDD of blocks as one; an array as blocks in the cluster's memory."""
        if isinstance(rows, SparkTable):
            return rows
        if hasattr(rows, "mapPartitionsWithIndex"):
            return SparkTable.of_blocks(rows)
        if hasattr(rows, "mapInArrow"):
            return SparkTable(rows, tuple(rows.columns))
        return self._parallelised(number_rows("rows", rows))

    def private_sum(self, rows: Any, spec: RoundSpec) -> Release:
        """The noisy sum over all clients, or a refusal."""
        table = self.hold(rows)
        if spec.chosen is not None:
            raise InvalidInput(
                "selection must be 'self' on Spark, whose rows stay where they are, got 'trainer'; "
                "let the clients select themselves"
            )
        if not spec.steps and table.shape[1] != spec.statistic.columns:
            bound = f"an array with {spec.statistic.columns} columns"
            raise invalid("rows", bound, f"{table.shape[1]} columns", "check the columns")
        return self._round(table, self.settle(spec, table.shape[0]))

    def _round(self, table: SparkTable, plan: RoundPlan) -> Release:
        clients = plan.population.clients
        words, present = self.compute_sums(plan, table)
        check_turnout(plan.population, present)
        if present != clients:
            raise RoundRefused(
                "clients-changed",
                f"clients must number N = {clients} as counted before the round, got {present}; "
                "nothing was released: keep the data as it is while a round runs",
            )
        return decode_release(
            plan,
            self.scheme.unshard(dict(enumerate(words))),
            Turnout(present, present),
            secure_sum=self.scheme,
            setting=ONE_CLUSTER,
            sealed=None,
            randomness=self._randomness,
        )

    def settle(self, spec: RoundSpec, samples: int) -> RoundPlan:
        """The grid and the noise of a round over so many rows, before any data is touched."""
        return settle_round(spec, self.population(samples), self.fraction_bits)

    def compute_sums(self, plan: RoundPlan, table: SparkTable) -> tuple[Words, int]:
        """(M, d): what each Compute adds up, and over how many clients."""
        length = self.scheme.empty(plan.dimension).size
        size = 8 * self.computes * length
        if size > _MOST_RECORD_BYTES:
            raise invalid(
                "8 M d", f"at most {_MOST_RECORD_BYTES} bytes", size, "use fewer Computes or a shorter vector"
            )
        task = ShareOut(plan, self.scheme, self._randomness.child_key())
        with watched(table.session, self.tick):
            record = only_record(summed(table.records(task), self.scheme))
        if record.problem is not None:
            raise InvalidInput(record.problem)
        warn_outside("rows", plan.statistic, record.outside, record.clients)
        return record.words.reshape(self.computes, length), record.clients

    def warm_up(self) -> None:
        """Start Spark now, rather than at the first round."""
        spark_session(self.session)

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


def only_record(records: DataFrame) -> TaskSum:
    """The one record that is left, which is all that the driver ever gets."""
    rows = records.collect()
    if len(rows) != 1:
        raise HubbubError(f"Spark must hand over one record, got {len(rows)}; nothing was released")
    row = rows[0]
    return TaskSum.of(bytes(row.words), row.clients, row.problem, row.outside, bytes(row.counts))


def summed(records: DataFrame, scheme: SecureSum) -> DataFrame:
    """One row, the sum of all records: a tree of tasks. A record's partition says to which task it goes."""

    def add(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        total = added(records_of(batches), scheme)
        if total is not None:
            yield as_batch(context.partitionId(), total)

    for width in tree_widths(4 * records.sparkSession.sparkContext.defaultParallelism):
        gathered = records.repartition(width, "part") if width > 1 else records.repartition(1)
        records = gathered.mapInArrow(add, SCHEMA)
    return records


def tree_widths(partitions: int) -> list[int]:
    """How many tasks each level of the tree has, the last one 1."""
    widths = [-(-partitions // FAN_IN)]
    while widths[-1] > 1:
        widths.append(-(-widths[-1] // FAN_IN))
    return widths
