"""The local engine beside the cost of NumPy's noise alone, in one run: `make bench`.

N = 100000 clients, d = 77 numbers each (a regression on 11 features), M = 3 Computes. What is timed:
the statistic, the noise, the fixed point, drawing the shares, summing and combining. Peak memory is that
of a fresh process with the data in it.
"""

from __future__ import annotations

import json
import platform
import resource
import subprocess
import sys
import time

import numpy as np

from hubbub.privacy import gaussian_round

N, FEATURES, COMPUTES, REPEATS = 100_000, 11, 3, 7


def best(action) -> float:
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return min(times)


def measure() -> dict[str, object]:
    from hubbub.engines import LocalEngine
    from hubbub.statistics import Box, Regression

    statistic = Regression(Box((1.0,) * FEATURES, 1.0))
    rows = np.random.default_rng(0).uniform(-1, 1, size=(N, FEATURES + 1))
    engine = LocalEngine(computes=COMPUTES, tolerate=5)
    engine_seconds = best(lambda: engine.private_sum(rows, gaussian_round(statistic, 1.0)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    generator, chunk = np.random.default_rng(0), np.empty((512, statistic.dimension))

    def noise_in_chunks() -> None:  # the faster of NumPy's two ways: no page of fresh memory is touched
        for _ in range(0, N, 512):
            generator.standard_normal(out=chunk)

    noise = best(noise_in_chunks)
    whole = best(lambda: generator.standard_normal((N, statistic.dimension)))
    return {
        "N": N, "d": statistic.dimension, "M": COMPUTES, "engine_seconds": engine_seconds,
        "numpy_noise_seconds": noise, "numpy_noise_one_array_seconds": whole, "ratio": engine_seconds / noise,
        "ratio_one_array": engine_seconds / whole, "peak_mb": peak, "python": platform.python_version(),
        "numpy": np.__version__, "machine": platform.machine(),
    }  # fmt: skip


if __name__ == "__main__":
    if "--child" in sys.argv:
        print(json.dumps(measure()))
    else:  # a fresh process, so that the peak memory is this run's alone
        out = subprocess.run([sys.executable, __file__, "--child"], check=True, capture_output=True, text=True)
        print(json.dumps(json.loads(out.stdout), indent=2))
