"""A `with Ledger` block holds in the processes that come from the one that opened it."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib import Parallel, delayed

from hubbub import Bernoulli, Budget, Ledger, LocalEngine, PrivateLinearRegression, VariationalLogisticRegression
from hubbub.engines.local.pool import POOL
from hubbub.errors import HubbubError, InvalidInput
from hubbub.privacy import blocks, current_ledger

pytestmark = pytest.mark.filterwarnings("ignore::hubbub.errors.UntrustworthyWarning")  # 60 rows tell little
BUDGET = Budget(1.0, 1e-5)
ENGINE = LocalEngine(computes=2, workers=1)
X = np.linspace(-1, 1, 60)[:, None]
Y = (X[:, 0] > 0).astype(float)


def linear() -> PrivateLinearRegression:
    return PrivateLinearRegression(BUDGET, 1.0, 1.0, method="plain", engine=ENGINE)


def logistic() -> VariationalLogisticRegression:
    return VariationalLogisticRegression(BUDGET, steps=2, engine=ENGINE)


FITS: dict[str, Callable[[], object]] = {
    "Bernoulli": lambda: Bernoulli().fit(Y, budget=BUDGET, engine=ENGINE),
    "logistic regression": lambda: logistic().fit(X, Y),
    "linear regression": lambda: linear().fit(X, Y),
}


def attempt(what: Any) -> str:
    """Fits in whatever process this runs in: "fitted", or the error's name."""
    try:
        FITS[what]() if isinstance(what, str) else what.fit(X, Y)
    except HubbubError as error:
        return f"{type(error).__name__}: {error}"
    return "fitted"


REFITS: dict[str, Callable[[], Any]] = {
    "linear regression, refitted": lambda: linear().fit(X, Y),
    "logistic regression, refitted": lambda: logistic().fit(X, Y),
}
ONCE = ["BudgetExceeded", "BudgetExceeded", "BudgetExceeded", "fitted"]


def outcomes(found: list[str]) -> list[str]:
    return sorted(text.partition(":")[0] for text in found)


@pytest.fixture(scope="module")
def warm() -> Iterator[Parallel]:
    """Two loky processes that were started before any block."""
    with Parallel(n_jobs=2, backend="loky") as pool:
        assert pool(delayed(attempt)("Bernoulli") for _ in range(2)) == ["fitted"] * 2
        yield pool


@pytest.mark.parametrize("what", [*FITS, *REFITS])
def test_four_fits_in_other_processes_are_charged_to_the_file_of_the_block(warm: Parallel, tmp_path: Path, what: str):
    jobs = [REFITS[what]() if what in REFITS else what] * 4
    with Ledger(BUDGET, tmp_path / "ledger.json") as ledger:
        assert outcomes(warm(delayed(attempt)(job) for job in jobs)) == ONCE
    assert len(Ledger.open(ledger.path).entries) == 1
    assert warm(delayed(attempt)("Bernoulli") for _ in range(2)) == ["fitted"] * 2, "the block is over"


@pytest.mark.parametrize("what", [*FITS, *REFITS])
def test_fits_in_other_processes_are_refused_where_the_ledger_lives_in_memory(warm: Parallel, what: str):
    jobs = [REFITS[what]() if what in REFITS else what] * 4
    with Ledger(BUDGET) as ledger:
        found = warm(delayed(attempt)(job) for job in jobs)
    assert all(text.startswith("InvalidInput: ledger must live in a file") for text in found)
    assert ledger.entries == ()


def test_a_pool_that_is_started_inside_the_block(tmp_path: Path):
    with Ledger(BUDGET, tmp_path / "ledger.json"):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            assert outcomes(pool.map(attempt, ["Bernoulli"] * 4)) == ONCE
        with multiprocessing.get_context("forkserver").Pool(1) as pool:
            assert outcomes(pool.map(attempt, ["Bernoulli"])) == ["BudgetExceeded"]


def in_a_fresh_process(body: Callable[[Path], None], folder: Path) -> None:
    """Fork only where nothing else runs: this process may have JAX's threads, which a forked child could wait for."""
    code = (
        f"from pathlib import Path; from privacy import test_blocks; test_blocks.{body.__name__}(Path({str(folder)!r}))"
    )
    settings = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=settings, timeout=120)
    assert done.returncode == 0, done.stderr


def test_forked_workers_follow_the_blocks_that_their_parent_has_open_now(tmp_path: Path):
    in_a_fresh_process(forked_workers, tmp_path)


def test_two_ledgers_open_in_the_parent_are_refused(tmp_path: Path):
    in_a_fresh_process(two_ledgers, tmp_path)


def test_systems_without_proc_ask_ps(tmp_path: Path):
    in_a_fresh_process(without_proc, tmp_path)


def forked_workers(tmp_path: Path) -> None:
    fork = multiprocessing.get_context("fork")
    first, second = Ledger(BUDGET, tmp_path / "first.json"), Ledger(BUDGET, tmp_path / "second.json")
    with first:
        pool = fork.Pool(1)
        assert outcomes(pool.map(attempt, ["Bernoulli"] * 2)) == ["BudgetExceeded", "fitted"]
    with second:
        assert pool.map(attempt, ["Bernoulli"]) == ["fitted"]
    with Ledger(BUDGET):
        assert outcomes(pool.map(attempt, ["Bernoulli"])) == ["InvalidInput"]
    assert pool.map(attempt, ["Bernoulli"]) == ["fitted"]
    pool.terminate()
    assert [len(Ledger.open(ledger.path).entries) for ledger in (first, second)] == [1, 1]


def two_ledgers(tmp_path: Path) -> None:
    one, other = (Ledger(BUDGET, tmp_path / f"{name}.json") for name in "ab")
    with one, other, multiprocessing.get_context("fork").Pool(1) as pool:
        (text,) = pool.map(attempt, ["Bernoulli"])
    assert "got several open in the parent process" in text


def test_a_detached_process_finds_the_block_through_its_environment(tmp_path: Path):
    """A shell starts it in the background and ends: its parent is another process then."""
    ledger, out = Ledger(BUDGET, tmp_path / "ledger.json"), tmp_path / "out"
    script = textwrap.dedent(f"""
        import os, pathlib, time
        while os.getppid() == {{shell}}: time.sleep(0.01)
        from hubbub.privacy import current_ledger
        draft = pathlib.Path({str(out)!r} + ".draft")
        draft.write_text(str(current_ledger().path)); draft.rename({str(out)!r})
    """)
    (tmp_path / "script.py").write_text("import sys\n" + script.replace("{shell}", "int(sys.argv[1])"))
    with ledger:
        subprocess.run(f'"{sys.executable}" script.py $$ &', shell=True, cwd=tmp_path, check=True)
        for _ in range(600):
            if out.exists():
                break
            time.sleep(0.05)
    assert out.read_text() == str(ledger.path)


def test_a_process_on_another_machine_is_refused_where_its_environment_names_a_block(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(blocks.VARIABLE, "another-machine/17-4711")
    with pytest.raises(InvalidInput, match="started inside a `with Ledger` block on another-machine; pass ledger="):
        current_ledger()
    with Ledger(BUDGET) as ledger:
        assert current_ledger() is ledger
        assert os.environ[blocks.VARIABLE].endswith(blocks._name(os.getpid()) or "?")
    assert os.environ[blocks.VARIABLE] == "another-machine/17-4711"


def test_nothing_is_left_behind():
    folder = blocks._own_folder()
    with Ledger(BUDGET) as ledger, ledger:
        mine = folder / (blocks._name(os.getpid()) or "?")
        assert mine.exists()
    assert not mine.exists()
    assert blocks.VARIABLE not in os.environ


def test_the_note_of_a_process_that_died_inside_a_block_speaks_of_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The parent's number with another time of birth: a number that was used again."""
    tmp_path.chmod(0o700)
    monkeypatch.setattr(blocks, "_folders", lambda: [tmp_path])
    note = tmp_path / f"{os.getppid()}-4711"
    note.write_text('[{"epsilon": 1.0, "delta": 1e-5, "path": null}]')
    assert current_ledger() is None
    note.rename(note.with_name(blocks._name(os.getppid()) or "?"))
    with pytest.raises(InvalidInput, match="ledger must live in a file"):
        current_ledger()


def test_a_folder_that_somebody_else_can_write_to_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "open").mkdir(mode=0o777)
    (tmp_path / "open").chmod(0o777)
    monkeypatch.setattr(blocks, "_folders", lambda: [tmp_path / "open"])
    with pytest.raises(InvalidInput, match="block must be noted where other processes see it"), Ledger(BUDGET):
        raise AssertionError("the block was opened")
    assert current_ledger() is None


def without_proc(tmp_path: Path) -> None:
    blocks._born = blocks._born_by_ps  # inherited by the forked child
    assert blocks._born_by_ps(2**22 + 1) is None
    with Ledger(BUDGET, tmp_path / "ledger.json"), multiprocessing.get_context("fork").Pool(1) as pool:
        assert outcomes(pool.map(attempt, ["Bernoulli"] * 2)) == ["BudgetExceeded", "fitted"]


def test_worker_processes_of_the_local_engine_are_not_affected():
    rows, engine = np.ones((800_000, 1)), LocalEngine(computes=3, workers=2)
    with Ledger(BUDGET) as ledger:
        engine.warm_up()
        assert POOL.warm(2)
        Bernoulli().fit(rows, budget=BUDGET, engine=engine)
    assert len(ledger.entries) == 1


def test_a_relative_path_stays_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    ledger = Ledger(BUDGET, "ledger.json")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert pickle.loads(pickle.dumps(ledger)).path == tmp_path / "ledger.json"
