"""`hubbub up`: a whole study on this machine, with every Compute a process of its own."""

from __future__ import annotations

import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from rich.progress import Progress

from hubbub.cli.extras import needs_service
from hubbub.cli.options import FIVE, Computes, Cover, Delta, Epsilon, Json, Noise, Whole
from hubbub.cli.output import console, errors, print_json, progress
from hubbub.cli.up_scheme import chosen_scheme

if TYPE_CHECKING:
    from hubbub.experiments.trials import Trial
    from hubbub.protocols import Result, SecureSum

_MISSING_SECONDS = 5.0  # how long the others wait for one that is killed


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class UpOptions:
    """The options of `hubbub up`."""

    computes: Computes = 3
    analysis: Annotated[
        Literal["linear", "glm", "bernoulli", "categorical", "gaussian", "poisson", "logistic", "mixture"],
        Parameter(help="What is computed, from simulated data whose truth is known."),
    ] = "linear"
    clients: Annotated[int, Whole, Parameter(help="N, simulated clients that really enrol and upload.")] = 200
    epsilon: Epsilon = 3.0
    delta: Delta = 1e-4
    cover: Cover = FIVE
    mechanism: Noise = None
    threshold: Annotated[
        int | None, Whole, Parameter(help="t: any t of the Computes are enough, so that some may fail. Default: all.")
    ] = None
    subset: Annotated[
        int | None,
        Whole,
        Parameter(help="k: each client uses k of the Computes, drawn by lot. Default: all."),
    ] = None
    lose: Annotated[
        int | None,
        Whole,
        Parameter(help="Kill this Compute (counted from 1) for good after the first uploads, and delete its folder."),
    ] = None
    tls: Annotated[bool, Parameter(help="Encrypt all connections, with a development authority.")] = True
    once: Annotated[bool, Parameter(negative="", help="End after the result.")] = False
    json: Json = False


DEFAULTS = UpOptions()


def up(options: UpOptions = DEFAULTS) -> None:
    """Run everything on this machine: Computes as processes of their own, and a whole study with real uploads.

    The status pages stay open until stopped; --once ends after the result, --json implies it.

    For example:

        hubbub up
        hubbub up --computes 5 --clients 1000 --once
        hubbub up --analysis bernoulli --once
        hubbub up --analysis bernoulli --mechanism discrete-laplace --delta 0 --once
        hubbub up --computes 3 --threshold 2 --lose 1 --once
        hubbub up --computes 8 --subset 3 --once
        hubbub up --json
    """
    run(options)


def run(options: UpOptions) -> None:
    """Start the Computes, run the study, print its result, and serve the status pages until stopped."""
    with needs_service():
        from hubbub.service.devnet import LocalComputes
    from hubbub.cli.model import print_result
    from hubbub.experiments.trials import TRIALS
    from hubbub.service.node.compute import Limits

    computes, trial, scheme = options.computes, TRIALS[options.analysis], chosen_scheme(options)
    options.cover.population(options.clients)
    with ExitStack() as stack:
        stack.enter_context(_orderly_end())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hubbub-up-")))
        errors.print(f"starting {computes} Computes ...", markup=False)
        limits = Limits(missing_seconds=_MISSING_SECONDS)
        nodes = stack.enter_context(LocalComputes(folder, computes, tls=options.tls, limits=limits))
        for compute in nodes.computes:
            errors.print(f"  {compute.folder.name}: {compute.url}  (process {compute.process.pid})", markup=False)  # type: ignore[union-attr]
        started = time.perf_counter()
        found = _found(nodes, options, trial, scheme)
        seconds = time.perf_counter() - started
        accepted = _accepted(nodes, _kept(nodes, options))
        if options.json:
            print_json({
                "analysis": options.analysis, **found.as_dict(), "computes": list(nodes.urls),
                "scheme": scheme.describe(),
                "reports_accepted": accepted, "seconds": seconds, "privacy": found.privacy.as_dict(),
                **({} if options.lose is None else {"lost": nodes.computes[options.lose - 1].folder.name}),
            })  # fmt: skip
            return
        print_result(found)
        console.print(str(found.privacy), markup=False)
        reports = f"{sum(accepted)} reports accepted by {len(accepted)} Computes in {seconds:.1f} s"
        console.print(f"\n{reports}", markup=False)
        if options.subset is not None:
            sent = ", ".join(map(str, accepted))
            console.print(f"each client sent to {options.subset} of them, drawn by lot: {sent}", markup=False)
        if options.lose is not None:
            console.print(_lost(options), markup=False, soft_wrap=True)
        console.print(f"the truth behind the data: {trial.truth}", markup=False)
        if not options.once:
            _stay(nodes, _kept(nodes, options))


def _lost(options: UpOptions) -> str:
    return (
        f"compute-{options.lose} was killed after the uploads of the first round and its folder deleted; the sums of "
        f"any {options.threshold} of the {options.computes} Computes are enough"
    )


def _kept(nodes: Any, options: UpOptions) -> list[str]:
    """The addresses of the Computes that are left."""
    return [url for number, url in enumerate(nodes.urls, 1) if number != options.lose]


@contextmanager
def _orderly_end() -> Iterator[None]:
    """End the Computes, too, if this process is told to end (SIGTERM)."""

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _found(nodes: Any, options: UpOptions, trial: Trial, scheme: SecureSum) -> Result:
    """Let simulated clients enrol and upload in every round, and return what the analysis finds."""
    import numpy as np

    from hubbub.analyses.driver import run as run_analysis
    from hubbub.analyses.replay import written_analysis
    from hubbub.engines.network import NetworkEngine
    from hubbub.privacy import Budget, mechanism_named

    budget, cover = Budget(options.epsilon, options.delta), options.cover
    analysis = written_analysis({"kind": options.analysis, **trial.settings})
    rows = trial.rows(np.random.default_rng(0), options.clients)
    with progress() as bar:
        engine = NetworkEngine(
            nodes.urls, budget=budget, dropouts=cover.missing, colluding=cover.false,
            title=f"hubbub up: {trial.title}",
            authority=None if nodes.authority is None else str(nodes.authority), tick=_Ticks(bar, options.clients),
            secure_sum=scheme, uploaded=_Loss(nodes, options.lose),
        )  # fmt: skip
        found: Result = run_analysis(analysis, rows, engine, budget, mechanism=mechanism_named(options.mechanism))
        return found


class _Loss:
    """Kills a Compute for good when all reports of the first round are sent."""

    def __init__(self, nodes: Any, number: int | None) -> None:
        self._nodes, self._number = nodes, number

    def __call__(self, finished: int) -> None:
        if self._number is None or finished > 0:
            return
        victim = self._nodes.computes[self._number - 1]
        victim.kill()
        shutil.rmtree(victim.folder)
        errors.print(f"{victim.folder.name} is killed, and its folder is deleted", markup=False)


class _Ticks:
    """The progress of passes over the clients: their enrolment, and every round."""

    def __init__(self, bar: Progress, clients: int) -> None:
        self._bar, self._clients, self._done = bar, clients, 0
        self._task = bar.add_task("enrolling", total=clients)

    def __call__(self, count: int) -> None:
        if self._done % self._clients == 0 and self._done:
            self._task = self._bar.add_task(f"round {self._done // self._clients - 1}", total=self._clients)
        self._done += count
        self._bar.advance(self._task, count)


def _accepted(nodes: Any, urls: Sequence[str]) -> list[int]:
    """Ask each Compute how many reports it has accepted."""
    from hubbub.service.wire.web import MOST_LIST, Web

    web = Web.open(None if nodes.authority is None else str(nodes.authority))
    return [int(web.get(f"{url}/v1/status", most=MOST_LIST).json()["counters"].get("accepted", 0)) for url in urls]


def _stay(nodes: Any, urls: Sequence[str]) -> None:
    console.print("\nStatus pages, until you press Ctrl-C:", markup=False)
    for url in urls:
        console.print(f"  {url}/", markup=False)
    if nodes.authority is not None:
        note = "a browser will ask about their certificates, which a development authority signed; --no-tls avoids that"
        console.print(f"  ({note})", markup=False)
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        console.print("stopped", markup=False)
