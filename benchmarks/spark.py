"""The Spark engine beside the local one, a Compute's sum on Spark, and a fit of ten million rows: figures of one run.

    python benchmarks/spark.py              # all parts, as JSON
    python benchmarks/spark.py cell         # local against Spark on one cell of N clients x d numbers, M Computes
    python benchmarks/spark.py reports      # how fast stored reports are opened and added
    python benchmarks/spark.py fit          # `hubbub fit --engine spark` on a Parquet file, with its peak memory
    python benchmarks/spark.py --sizing     # the table in docs/spark.md, from the rates of this run

Starting Spark is timed apart. Seconds depend on what else the machine does; ratios within a run depend less.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.optimize import nnls

from hubbub.engines import LocalEngine
from hubbub.engines.spark.engine import SparkEngine
from hubbub.engines.spark.reports import sum_reports
from hubbub.engines.spark.session import spark_session
from hubbub.engines.spark.table import repeated_rows
from hubbub.privacy import Population, gaussian_round
from hubbub.randomness import Randomness
from hubbub.roles import Study, contribute, settle_round
from hubbub.securesum import PrivateKey, encode_report
from hubbub.statistics import Means

REPORT_COMPUTES = 3
REPORT_CELLS = ((2000, 100), (20_000, 100), (4000, 10_000), (800, 100_000))


def timed(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


# one cell, both engines


def cell(n: int, d: int, computes: int, repeats: int) -> dict[str, object]:
    starting = timed(spark_session)
    table = repeated_rows(np.linspace(-1, 1, d), n)
    statistic, small = Means((1.0,) * d), np.zeros((1000, 10))
    local, spark = LocalEngine(computes=computes), SparkEngine(computes=computes)
    local.warm_up()
    first_job = timed(lambda: spark.private_sum(small, gaussian_round(Means((1.0,) * 10), 1.0)))
    rows = np.broadcast_to(np.linspace(-1, 1, d), (n, d))
    seconds: dict[str, list[float]] = {"local": [], "spark": []}
    for _ in range(repeats):  # in turn, so that what else the machine does meets both
        seconds["local"].append(timed(lambda: local.private_sum(rows, gaussian_round(statistic, 1.0))))
        seconds["spark"].append(timed(lambda: spark.private_sum(table, gaussian_round(statistic, 1.0))))
    best = {engine: min(values) for engine, values in seconds.items()}
    return {
        "N": n, "d": d, "M": computes, "spark_start_seconds": starting,
        "spark_first_job_seconds": first_job, "seconds": seconds, "local_seconds": best["local"],
        "spark_seconds": best["spark"], "ratio": best["spark"] / best["local"],
    }  # fmt: skip


# a Compute's own sum


def stored_reports(path: Path, n: int, d: int) -> tuple[Study, PrivateKey, tuple[str, ...], list[int]]:
    """A file of n sealed reports for Compute 0, with the lengths of the reports."""
    keys = [PrivateKey.generate() for _ in range(REPORT_COMPUTES)]
    plan = settle_round(gaussian_round(Means((1.0,) * d), 0.0), Population(n))
    study = Study(Population(n), tuple(key.public() for key in keys), (plan,))
    names, sample, stream = tuple(f"client-{i:012d}" for i in range(n)), np.zeros(d), Randomness.system()
    reports = [encode_report(contribute(study, 0, name, sample, stream)[0]) for name in names]
    pq.write_table(pa.table({"client": names, "report": pa.array(reports, pa.binary())}), path)
    return study, keys[0], names, [len(report) for report in reports]


def job_cost(path: Path, n: int, d: int) -> tuple[float, float, list[int]]:
    """Seconds and core-seconds (of Java and all workers) of the better of two jobs, and the reports' lengths."""
    study, key, roster, lengths = stored_reports(path, n, d)
    found = []
    for _ in range(2):
        before = cpu_seconds(os.getpid())
        seconds = timed(lambda: sum_reports(None, path, study, 0, 0, key, roster))
        found.append((seconds, cpu_seconds(os.getpid()) - before))
    return min(seconds for seconds, _ in found), min(cpu for _, cpu in found), lengths


def reports(cells: tuple[tuple[int, int], ...]) -> dict[str, object]:
    """Core-seconds per report and per word: least squares through a constant, the reports and their words."""
    spark_session()
    runs, beside = [], 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reports.parquet"
        job_cost(path, 1000, 100)  # Java is slow until it has seen the code a few times
        for n, d in cells:
            seconds, cpu, lengths = job_cost(path, n, d)
            runs.append({"N": n, "d": d, "seconds": seconds, "core_seconds": cpu})
            beside = (min(lengths) * (REPORT_COMPUTES - 1) + max(lengths) - 8 * d) / REPORT_COMPUTES
    design = np.array([[1.0, run["N"], run["N"] * run["d"]] for run in runs])
    cpu = np.array([run["core_seconds"] for run in runs])
    constant, report, word = nnls(design / cpu[:, None], np.ones(len(runs)))[0]
    return {
        "M": REPORT_COMPUTES, "runs": runs, "core_seconds_per_job": float(constant),
        "core_seconds_per_report": float(report), "core_seconds_per_word": float(word), "bytes_beside_words": beside,
    }  # fmt: skip


def cpu_seconds(root: int) -> float:
    """Processor time of a process and its descendants, the dead among them included."""
    total = 0
    for pid in descendants(root):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:15]))
    return total / os.sysconf("SC_CLK_TCK")


def descendants(root: int) -> list[int]:
    """A process and all that it has started."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        try:
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            parents.setdefault(parent, []).append(int(entry.name))
        except (OSError, ValueError, IndexError):
            continue
    found = [root]
    for pid in found:  # grows while it is gone through
        found += parents.get(pid, [])
    return found


def sizing(rates: dict[str, object]) -> str:
    """The table of docs/spark.md: what one of M Computes stores and computes, extrapolated from the rates."""
    lines = ["| N | d | stored | core-hours |", "|---|---|---|---|"]
    for n in (10**6, 10**7, 10**8, 10**9):
        for d in (10**2, 10**3, 10**4, 10**5):
            size = n * (8 * d / REPORT_COMPUTES + float(rates["bytes_beside_words"]))
            hours = n * (float(rates["core_seconds_per_report"]) + d * float(rates["core_seconds_per_word"])) / 3600
            lines.append(f"| 10^{round(np.log10(n))} | 10^{round(np.log10(d))} | {_bytes(size)} | {_hours(hours)} |")
    return "\n".join(lines)


def _hours(hours: float) -> str:
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"


def _bytes(size: float) -> str:
    for unit in ("MB", "GB", "TB"):
        size /= 1000
        if size < 1e6:
            return f"{size / 1000:,.3g} {unit}"
    return f"{size / 1e6:,.3g} PB"


# ten million rows from Parquet


def write_rows(path: Path, n: int, features: int) -> None:
    rng, beta = np.random.default_rng(0), np.linspace(-1, 1, features)
    names = [f"x{j}" for j in range(features)]
    schema = pa.schema([(name, pa.float64()) for name in [*names, "y"]])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for start in range(0, n, 500_000):
            X = rng.standard_normal((min(500_000, n - start), features)).astype(np.float32).astype(np.float64)
            y = X @ beta + rng.standard_normal(len(X))
            writer.write_table(pa.table([*X.T, y], schema=schema))


def family(root: int) -> dict[str, int]:
    """Proportional memory (bytes) of a process and its descendants, by kind."""
    found = {"driver": 0, "java": 0, "workers": 0}
    for pid in descendants(root):
        try:
            name = Path(f"/proc/{pid}/comm").read_text().strip()
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        size = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
        found["driver" if pid == root else "java" if name == "java" else "workers"] += size
    return found


def fit(n: int, features: int, keep: Path | None) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        path = keep or Path(folder) / "rows.parquet"
        writing = 0.0 if path.exists() else timed(lambda: write_rows(path, n, features))
        command = [
            sys.executable, "-m", "hubbub", "fit", str(path), "--engine", "spark", "--target", "y", "--epsilon", "1",
            "--delta", "1e-9", "--x-bound", "6", "--y-bound", "20", "--posterior", "shrinkage", "--json",
        ]  # fmt: skip
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        peaks: dict[str, int] = {}
        total = 0
        while process.poll() is None:
            now = family(process.pid)
            peaks = {kind: max(size, peaks.get(kind, 0)) for kind, size in now.items()}
            total = max(total, sum(now.values()))
            time.sleep(0.5)
        seconds = time.perf_counter() - started
        assert process.returncode == 0, "the fit failed"
        assert process.stdout is not None
        found = json.loads(process.stdout.read())
        return {
            "rows": found["n"], "features": features, "file_mb": path.stat().st_size / 1e6, "writing_seconds": writing,
            "seconds": seconds, "peak_mb": {kind: size / 1e6 for kind, size in peaks.items()},
            "peak_mb_together": total / 1e6,
            "largest_error": float(max(
                abs(found["coefficients"][f"x{j}"]["mean"] - b) for j, b in enumerate(np.linspace(-1, 1, features)))),
        }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=["cell", "reports", "fit", []], default=[])
    parser.add_argument("--clients", type=int, default=100_000)
    parser.add_argument("--numbers", type=int, default=1000)
    parser.add_argument("--computes", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the Parquet file of part fit")
    parser.add_argument("--file", type=Path, help="keep that Parquet file here, or use the one that is here")
    parser.add_argument("--sizing", action="store_true", help="print the table of docs/spark.md instead")
    options = parser.parse_args()
    parts = options.parts or ["cell", "reports", "fit"]
    if options.sizing:
        rates = reports(REPORT_CELLS)
        print(json.dumps(rates, indent=2), file=sys.stderr)
        print(sizing(rates))
        return
    result: dict[str, object] = {
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
    }
    if "cell" in parts:
        result["cell"] = cell(options.clients, options.numbers, options.computes, options.repeats)
    if "reports" in parts:
        result["reports"] = reports(REPORT_CELLS)
    if "fit" in parts:
        result["fit"] = fit(options.rows, 11, options.file)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
