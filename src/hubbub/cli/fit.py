"""`hubbub fit`: a Bayesian regression in which every row of a file plays one client."""

from __future__ import annotations

import time
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from hubbub.cli.options import (
    NOBODY,
    CoefficientsPlot,
    Computes,
    Cover,
    Delta,
    Epsilon,
    Json,
    Method,
    ModelOut,
    Noise,
    PriorScale,
    ReleaseOut,
    Seed,
    XBound,
)
from hubbub.cli.output import PICTURES, check_distinct, check_writable, console, print_json
from hubbub.errors import InvalidInput, invalid

if TYPE_CHECKING:
    from hubbub.privacy import Budget, Ledger


@Parameter(name="*")
@dataclass(frozen=True)
class FitOptions:
    """The arguments and options of `hubbub fit`."""

    file: Annotated[Path, Parameter(help="CSV file with a header, or Parquet file or folder; one row is one client.")]
    _: KW_ONLY
    target: Annotated[str, Parameter(help="Name of the column to predict.")]
    epsilon: Epsilon
    delta: Delta
    x_bound: XBound = None
    x_norm: Annotated[
        float | None, Parameter(help="Instead of --x-bound: public bound of a row's Euclidean length.")
    ] = None
    y_bound: Annotated[
        str | None,
        Parameter(
            allow_leading_hyphen=True,
            help="Public bound of the target, 10 or 0:10: y is clipped to it. Of counts about how large they get, "
            "and larger ones are no error. Left out for a yes or no.",
        ),
    ] = None
    family: Annotated[
        str | None,
        Parameter(
            help="A generalised linear model of this family: bernoulli (logistic regression), probit, poisson or "
            "negative-binomial (counts), or gamma (positive numbers) [default: a linear regression]."
        ),
    ] = None
    classes: Annotated[
        str | None, Parameter(help="The two labels of a yes or no, that of no first: no,yes [default: 0,1].")
    ] = None
    exposure: Annotated[
        str | None,
        Parameter(
            help="With --family, a column that the mean is proportional to, say years: rates for 1 of it are fitted."
        ),
    ] = None
    exposure_bound: Annotated[str | None, Parameter(help="Public bounds of the exposure, such as 0.1:10.")] = None
    features: Annotated[str | None, Parameter(help="Columns to use, comma-separated [default: all others].")] = None
    intercept: Annotated[
        bool | None, Parameter(help="Fit an intercept, or take all to be centred [default: for the method auto].")
    ] = None
    computes: Computes = 3
    cover: Cover = NOBODY
    method: Method = "auto"
    mechanism: Noise = None
    posterior: Annotated[
        Literal["auto", "noise-aware", "shrinkage", "regularised", "plugin"],
        Parameter(help="auto: noise-aware (or the quick shrinkage) for the method auto, regularised for the others."),
    ] = "auto"
    prior_scale: PriorScale = None
    engine: Annotated[
        str,
        Parameter(
            help="local: in this process. spark: the file stays in Spark, on this machine or a cluster. "
            "Or the name of an engine that another package brings."
        ),
    ] = "local"
    seal: Annotated[bool, Parameter(negative="", help="Encrypt and open every share (slower).")] = False
    ledger: Annotated[Path | None, Parameter(help="Charge this ledger file; refuse what overspends it.")] = None
    total_epsilon: Annotated[float | None, Parameter(help="Total epsilon of a new ledger.")] = None
    plot: CoefficientsPlot = None
    out: ModelOut = None
    release: ReleaseOut = None
    seed: Seed = None
    json: Json = False


def fit(options: FitOptions) -> None:
    """Fit a Bayesian linear regression (or, with --family, a generalised linear model): every row plays one client.

    The method auto finds privately where columns lie and fits an intercept; the others take columns and
    target to be centred. Everything runs in this process, or on Spark with --engine spark; the privacy
    report says what the result may reveal to others.

    For example:

        hubbub fit data.csv --target y --epsilon 1 --delta 1e-5 --x-bound 7.5 --y-bound 7.5
        hubbub fit data.csv --target y --epsilon 1 --delta 1e-5 --x-bound age=0:99,dose=3 --y-bound 0:9 --out model.json
        hubbub fit data.csv --target y --epsilon 1 --delta 1e-5 --x-norm 1 --y-bound 1 --release release.json
        hubbub fit d.csv --target y --epsilon 1 --delta 1e-6 --x-bound 1 --y-bound 1 --ledger l.json --total-epsilon 3
        hubbub fit data.csv --target y --epsilon 1 --delta 0 --mechanism discrete-laplace --x-bound 7.5 --y-bound 7.5
        hubbub fit d.csv --target claim --family bernoulli --classes no,yes --epsilon 1 --delta 1e-5 --x-bound age=0:99
        hubbub fit data.csv --target visits --family poisson --epsilon 1 --delta 1e-5 --x-bound 0:99 --y-bound 20
        hubbub fit data.csv --target visits --family poisson --exposure years --exposure-bound 0.1:9 ...
        hubbub fit rows.parquet --engine spark --target y --epsilon 1 --delta 1e-8 --x-bound 7.5 --y-bound 7.5
    """
    run(options)


def run(options: FitOptions) -> None:
    """Check the options, read the file, fit the model, print it and write what was asked for."""
    from hubbub.cli.fit_data import read_data, running_engine
    from hubbub.cli.fit_model import check_options, found, unfitted
    from hubbub.cli.model import noise_budget, plot_model, print_model
    from hubbub.privacy import Budget, mechanism_named

    started = time.perf_counter()
    target, out, plot, release = options.target, options.out, options.plot, options.release
    budget = Budget(options.epsilon, options.delta)
    check_distinct(file=options.file, ledger=options.ledger, plot=plot, out=out, release=release)
    check_writable("--plot", plot, endings=PICTURES)
    check_writable("--out", out, endings=(".json",))
    check_writable("--release", release, endings=(".json",))
    check_options(options)
    mechanism = mechanism_named(options.mechanism)
    ledger = _ledger(options.ledger, options.total_epsilon, budget)
    data = read_data(options)
    options.cover.population(data.clients)  # refuses too few clients in words of the command line
    with running_engine(options) as engine:
        model = unfitted(options, data.names, budget=budget, engine=engine, ledger=ledger, mechanism=mechanism)
        model.fit(data.X, data.y, **data.more)
    scales: Any = model.prior_scale
    stored, released = found(model, data, options)
    seconds = time.perf_counter() - started
    if release is not None and released is not None:  # first of all: it was paid for
        released.save(release)
    if out is not None:
        stored.save(out)
    if options.json:
        print_json({**stored.summary(), "n": data.clients, "epsilon": options.epsilon, "delta": options.delta,
                    "method": options.method, "privacy": stored.privacy,
                    "ledger": None if ledger is None else ledger.as_dict(), "seconds": seconds})  # fmt: skip
    else:
        print_model(stored, assumed=options.method != "auto")
        console.print(str(model.privacy_), markup=False)
        if ledger is not None:
            console.print(f"\n{ledger}", markup=False)
    if plot is not None:
        title = f"{target}, {budget}-DP" + ("" if model.privacy_.is_guarantee else " (simulation, not a guarantee)")
        plot_model(plot, stored, title, scales, noise_budget(released))


def _ledger(path: Path | None, total_epsilon: float | None, budget: Budget) -> Ledger | None:
    """Open the ledger that is to be charged, or make a new one with this total epsilon."""
    from hubbub.privacy import Budget, Ledger

    if path is None:
        if total_epsilon is not None:
            raise invalid("total-epsilon", "given together with --ledger", total_epsilon, "add --ledger FILE")
        return None
    if path.exists() and total_epsilon is None:
        return Ledger.open(path)
    if total_epsilon is None:
        raise InvalidInput(f"total-epsilon must be given for a new ledger, got ledger={path}; add --total-epsilon E")
    return Ledger(Budget(total_epsilon, budget.delta), path)
