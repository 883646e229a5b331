"""The commands. Heavy imports wait until a command runs, so that `--help` is quick."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from hubbub import __version__
from hubbub.cli.cover import FIVE, NOBODY, Cover, Whole

app = App(
    name="hubbub",
    version=__version__,
    help_format="plaintext",
    help="""Bayesian learning from data that never leaves its owners.

    Many clients each hold one sample. Each sends noisy, secret-shared vectors to several Computes; only
    the sum over everybody, with the noise that differential privacy needs, can ever be read.

    Try it: `hubbub demo`
    """,
)


Json = Annotated[bool, Parameter(name="--json", negative="", help="Print one JSON object to standard output.")]
Epsilon = Annotated[float, Parameter(help="Privacy budget epsilon > 0; 1 is common, above 5 protects little.")]
Delta = Annotated[float, Parameter(help="Privacy budget delta in (0, 1); choose it below 1/N.")]
Computes = Annotated[int, Whole, Parameter(help="M, the number of Computes (at least 2).")]
Method = Annotated[
    Literal["auto", "projected", "plain"],
    Parameter(help="auto: scaled columns in a ball. projected: the paper's. plain: one round."),
]
XBound = Annotated[
    str | None,
    Parameter(
        allow_leading_hyphen=True,
        help="Public bounds of the features: 7.5 is -7.5:7.5; 0:120 for all, 0:1,5,-3:3 for each, or age=0:120,dose=3.",
    ),
]
PriorScale = Annotated[
    str | None,
    Parameter(
        help="Prior deviation of the coefficients, in units of the data: 2, or one per feature [default: learned]."
    ),
]
Seed = Annotated[int | None, Whole, Parameter(help="Reproducible simulation; protects nobody, and the report says so.")]


@app.command
def demo(
    *,
    clients: Annotated[int, Whole, Parameter(help="How many simulated clients.")] = 1000,
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-4,
    computes: Computes = 3,
    cover: Cover = FIVE,
    repeats: Annotated[int, Whole, Parameter(help="Random splits; the table shows medians.")] = 20,
    seed: Seed = None,
    plot: Annotated[Path | None, Parameter(help="Also write the picture here (png, svg or pdf).")] = None,
    json: Json = False,
) -> None:
    """Predict the quality of red wines from 1000 clients who show their data to nobody.

    Compares the mean absolute error of the distributed method with the non-private one, a trusted
    aggregator and input perturbation, shows what one Compute sees, and prints the privacy report.

    For example:

        hubbub demo
        hubbub demo --epsilon 3 --plot demo.png
        hubbub demo --json
    """
    from hubbub.cli.demo import run

    run(clients, epsilon, delta, computes, cover, repeats, seed, plot, json)


@app.command
def fit(
    file: Annotated[Path, Parameter(help="CSV file with a header, or Parquet file or folder; one row is one client.")],
    *,
    target: Annotated[str, Parameter(help="Name of the column to predict.")],
    epsilon: Epsilon,
    delta: Delta,
    x_bound: XBound = None,
    x_norm: Annotated[
        float | None, Parameter(help="Instead of --x-bound: public bound of a row's Euclidean length.")
    ] = None,
    y_bound: Annotated[
        str, Parameter(allow_leading_hyphen=True, help="Public bound of the target, 10 or 0:10: y is clipped to it.")
    ],
    features: Annotated[str | None, Parameter(help="Columns to use, comma-separated [default: all others].")] = None,
    intercept: Annotated[
        bool | None, Parameter(help="Fit an intercept, or take all to be centred [default: for the method auto].")
    ] = None,
    computes: Computes = 3,
    cover: Cover = NOBODY,
    method: Method = "auto",
    posterior: Annotated[
        Literal["auto", "noise-aware", "shrinkage", "regularised", "plugin"],
        Parameter(help="auto: noise-aware (or the quick shrinkage) for the method auto, regularised for the others."),
    ] = "auto",
    prior_scale: PriorScale = None,
    engine: Annotated[
        Literal["local", "spark"],
        Parameter(help="local: in this process. spark: the file stays in Spark, on this machine or a cluster."),
    ] = "local",
    seal: Annotated[bool, Parameter(negative="", help="Encrypt and open every share (slower).")] = False,
    ledger: Annotated[Path | None, Parameter(help="Charge this ledger file; refuse what overspends it.")] = None,
    total_epsilon: Annotated[float | None, Parameter(help="Total epsilon of a new ledger.")] = None,
    plot: Annotated[Path | None, Parameter(help="Write a plot of the coefficients here.")] = None,
    out: Annotated[Path | None, Parameter(help="Write the model here, for `hubbub predict`.")] = None,
    release: Annotated[Path | None, Parameter(help="Write the released sums here, for `hubbub refit`.")] = None,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Fit a Bayesian linear regression, every row of the file playing one client.

    The method auto finds privately where columns lie and fits an intercept; the others take columns and
    target to be centred. Everything runs in this process, or on Spark with --engine spark; the privacy
    report says what the result may reveal to others.

    For example:

        hubbub fit data.csv --target y --epsilon 1 --delta 1e-5 --x-bound 7.5 --y-bound 7.5
        hubbub fit data.csv --target y --epsilon 1 --delta 1e-5 --x-bound age=0:99,dose=3 --y-bound 0:9 --out model.json
        hubbub fit data.csv --target y --epsilon 1 --delta 1e-5 --x-norm 1 --y-bound 1 --release release.json
        hubbub fit d.csv --target y --epsilon 1 --delta 1e-6 --x-bound 1 --y-bound 1 --ledger l.json --total-epsilon 3
        hubbub fit rows.parquet --engine spark --target y --epsilon 1 --delta 1e-8 --x-bound 7.5 --y-bound 7.5
    """
    from hubbub.cli.fit import run

    run(
        file, target, epsilon, delta, x_bound, x_norm, y_bound, features, intercept, computes, cover, method,
        posterior, prior_scale, seal, ledger, total_epsilon, plot, out, release, seed, json, engine,
    )  # fmt: skip


@app.command
def refit(
    release: Annotated[Path, Parameter(help="A release written by `hubbub fit --release`.")],
    *,
    prior_scale: PriorScale = None,
    features: Annotated[str | None, Parameter(help="Keep these features, comma-separated [default: all].")] = None,
    compare: Annotated[
        str | None, Parameter(help="Models to compare, such as 'a,b;a;0': lists of features, 0 for none.")
    ] = None,
    out: Annotated[Path | None, Parameter(help="Write the model here, for `hubbub predict`.")] = None,
    plot: Annotated[Path | None, Parameter(help="Write a plot of the coefficients here.")] = None,
    json: Json = False,
) -> None:
    """Fit again from released sums: another prior, fewer features, or a comparison of models.

    Costs no privacy: nothing but the release is looked at, as often as you like.

    For example:

        hubbub refit release.json --prior-scale 0.5
        hubbub refit release.json --features age,dose --out small.json --plot small.png
        hubbub refit release.json --compare "age,dose;age;dose;0"
    """
    from hubbub.cli.refit import run

    run(release, prior_scale, features, compare, out, plot, json)


@app.command
def predict(
    model: Annotated[Path, Parameter(help="A model written by `hubbub fit --out`.")],
    file: Annotated[Path, Parameter(help="CSV file with the model's columns.")],
    *,
    out: Annotated[Path | None, Parameter(help="Write the predictions here [default: standard output].")] = None,
    json: Json = False,
) -> None:
    """Predict with a fitted model: one line `prediction,std` per row.

    Costs no privacy: the model is already released.

    For example:

        hubbub predict model.json new.csv > predictions.csv
        hubbub predict model.json new.csv --json
    """
    from hubbub.cli.predict import run

    run(model, file, out, json)


@app.command
def explain(
    *,
    clients: Annotated[int, Whole, Parameter(help="N, the number of clients.")],
    features: Annotated[int, Whole, Parameter(help="d, the number of features.")],
    epsilon: Epsilon,
    delta: Delta,
    x_bound: Annotated[str, Parameter(help="Public bound of the features: 7.5 or 0:120, or one per feature.")] = "1",
    y_bound: Annotated[str, Parameter(help="Public bound of the target (7.5, 0:10).")] = "1",
    computes: Computes = 3,
    cover: Cover = NOBODY,
    method: Method = "auto",
    json: Json = False,
) -> None:
    """Say what would be guaranteed, how much noise it costs and what to expect, without touching any data.

    For example:

        hubbub explain --clients 1000 --features 11 --epsilon 1 --delta 1e-5 --x-bound 7.5 --y-bound 7.5
        hubbub explain --clients 1000 --features 11 --epsilon 1 --delta 1e-5 --tolerate 50 --json
    """
    from hubbub.cli.explain import run

    run(clients, features, epsilon, delta, x_bound, y_bound, computes, cover, method, json)


@app.command
def experiment(
    name: Annotated[
        Literal["fig1b", "fig2", "fig3", "table1", "efficiency", "coverage", "others", "dpvi", "all"],
        Parameter(help="Which one; all are those of the paper, without coverage, others and dpvi."),
    ],
    *,
    out: Annotated[Path, Parameter(help="Folder for rows, pictures and report.html.")] = Path("out"),
    as_: Annotated[
        Literal["sound", "paper", "published"],
        Parameter(name="--as", help="sound: a guarantee. paper: its text. published: its program."),
    ] = "sound",
    repeats: Annotated[int | None, Whole, Parameter(help="Random splits [default: the paper's number].")] = None,
    seed: Annotated[int, Whole, Parameter(help="The same seed gives the same rows, whatever --jobs is.")] = 0,
    jobs: Annotated[int | None, Whole, Parameter(help="Processes [default: one per core].")] = None,
    data: Annotated[
        Path | None, Parameter(help="Folder of the drug-sensitivity files (fig3) [default: HUBBUB_DATA].")
    ] = None,
    json: Json = False,
) -> None:
    """Compute a table or figure of the paper again, with its claims held against the result.

    Can be interrupted: the same command goes on where it stopped. Writes CSV, PNG, SVG and a page report.html
    that opens offline.

    For example:

        hubbub experiment fig2 --out out
        hubbub experiment fig3 --data gdsc --as published
        hubbub experiment all --out out --data gdsc --jobs 2
        hubbub experiment efficiency --json
        hubbub experiment dpvi --repeats 5
    """
    from hubbub.cli.experiment import run
    from hubbub.experiments.catalogue import Settings

    run(name, Settings(out, repeats, seed, jobs, as_, data), json)


bench = App(name="bench", help="Measure how fast this machine is, beside its limit.", help_format="plaintext")
app.command(bench)


@bench.command(name="table1")
def bench_table1(
    *,
    cells: Annotated[
        str, Parameter(help="all: the paper's sixteen; or clients x numbers: 10000x100,100000x10.")
    ] = "all",
    computes: Computes = 10,
    engine: Annotated[Literal["local", "spark"], Parameter(help="Where the roles run.")] = "local",
    shares: Annotated[
        Literal["auto", "raw", "seeds"],
        Parameter(help="raw: masks drawn in bulk. seeds: expanded by client and Compute. auto: raw on one machine."),
    ] = "auto",
    seal: Annotated[bool, Parameter(negative="", help="Also measure sealing: HPKE, and session keys.")] = False,
    workers: Annotated[int | None, Whole, Parameter(help="Processes [default: one per core].")] = None,
    repeats: Annotated[int, Whole, Parameter(help="How often a quick cell is measured; the best counts.")] = 10,
    plot: Annotated[Path | None, Parameter(help="Also write the picture here (png, svg or pdf).")] = None,
    json: Json = False,
) -> None:
    """Time the secure sum over N clients and d numbers, beside the limit of this machine's primitives.

    Everything is done: noise, drawing (or expanding) the shares, the Computes' sums, combining. The limit is what the
    cipher, the normal draws, the encoding and the additions alone take on the same cores, measured in the same run.

    For example:

        hubbub bench table1
        hubbub bench table1 --cells 10000x1000,100000x10 --shares seeds --seal
        hubbub bench table1 --engine spark --cells 100000x1000 --json
    """
    from hubbub.cli.bench import run_table1

    run_table1(cells, computes, engine, shares, seal, workers, repeats, plot, json)


@bench.command(name="service")
def bench_service(
    *,
    clients: Annotated[int, Whole, Parameter(help="N of the round through three Computes.")] = 20_000,
    singles: Annotated[int, Whole, Parameter(help="How many single uploads are timed.")] = 2000,
    json: Json = False,
) -> None:
    """Time a Compute: single uploads beside an empty handler, parties of 100 samples, and N clients through three.

    For example:

        hubbub bench service
        hubbub bench service --clients 2000 --json
    """
    from hubbub.cli.bench import run_service

    run_service(clients, singles, json)


compute = App(name="compute", help="Run one Compute node (needs the extra `service`).", help_format="plaintext")
app.command(compute)


@compute.command(name="init")
def compute_init(
    folder: Annotated[Path, Parameter(help="A new folder for keys, configuration and database.")],
    *,
    name: Annotated[str | None, Parameter(help="As studies will call it [default: the folder's name].")] = None,
    listen: Annotated[str, Parameter(help="Address and port to listen on.")] = "127.0.0.1:8000",
    database: Annotated[str, Parameter(help="SQLite file or PostgreSQL URL.")] = "sqlite:///compute.db",
    suite: Annotated[
        Literal["X25519", "MLKEM768-X25519"], Parameter(help="What shares are sealed with; the second is post-quantum.")
    ] = "X25519",
    json: Json = False,
) -> None:
    """Make the keys and the configuration file of a new Compute.

    For example:

        hubbub compute init my-compute --listen 0.0.0.0:8443
        hubbub compute init my-compute --database postgresql+psycopg://hubbub@localhost/hubbub
    """
    from hubbub.cli.compute import init

    init(folder, name, listen, database, suite, json)


@compute.command(name="serve")
def compute_serve(*, config: Annotated[Path, Parameter(help="The file that `hubbub compute init` wrote.")]) -> None:
    """Serve until stopped; logs are JSON lines on standard error.

    For example:

        hubbub compute serve --config my-compute/compute.toml
    """
    from hubbub.cli.compute import serve

    serve(config)


@compute.command(name="trust")
def compute_trust(
    key: Annotated[str | None, Parameter(help="An analyst's public key, or another Compute's verify key.")] = None,
    *,
    config: Annotated[Path, Parameter(help="The Compute's configuration.")] = Path("compute.toml"),
    peer: Annotated[str | None, Parameter(help="The key is that of the Compute at this address.")] = None,
    name: Annotated[str, Parameter(help="What you call its owner, for --list.")] = "",
    remove: Annotated[bool, Parameter(negative="", help="Trust this key no more.")] = False,
    show: Annotated[bool, Parameter(name="--list", negative="", help="Show whom this Compute trusts.")] = False,
    json: Json = False,
) -> None:
    """Name an analyst whose studies this Compute takes, or another Compute that may take part in them.

    Nobody is trusted until named. A study is taken if its analyst is named and each of its other Computes is named
    with the address that the study gives; this Compute calls no other addresses. A running Compute needs no restart.

    For example:

        hubbub compute trust 3d40..8b --config my-compute/compute.toml --name "the registry's analyst"
        hubbub compute trust 91c2..07 --config my-compute/compute.toml --peer https://b.example:8443
        hubbub compute trust 3d40..8b --config my-compute/compute.toml --remove
        hubbub compute trust --config my-compute/compute.toml --list
    """
    from hubbub.cli.compute import trust

    trust(key, config, peer, name, remove, show, json)


@compute.command(name="status")
def compute_status(
    url: Annotated[str, Parameter(help="Address of a Compute, such as http://127.0.0.1:8000.")],
    *,
    authority: Annotated[Path | None, Parameter(help="PEM file that its certificate is checked with.")] = None,
    json: Json = False,
) -> None:
    """Show what a Compute is doing: studies, reports, rosters, ledger.

    For example:

        hubbub compute status http://127.0.0.1:8000
    """
    from hubbub.cli.compute import status

    status(url, authority, json)


Authority = Annotated[Path | None, Parameter(help="PEM file that the Computes' certificates are checked with.")]
StudyFile = Annotated[Path, Parameter(help="The signed study that `hubbub study create` wrote.")]
KeyFile = Annotated[Path | None, Parameter(help="The analyst's key [default: beside the study].")]

study = App(name="study", help="Plan, run and read a study on real Computes.", help_format="plaintext")
app.command(study)


@study.command(name="key")
def study_key(
    file: Annotated[Path, Parameter(help="The analyst's key: made if there is none, and never overwritten.")],
    *,
    json: Json = False,
) -> None:
    """Make an analyst's key, or show the public part of one, which Compute operators need before they take a study.

    For example:

        hubbub study key analyst.key
        hubbub study create study.toml --key analyst.key
    """
    from hubbub.cli.study import show_key

    show_key(file, json)


@study.command(name="create")
def study_create(
    source: Annotated[Path, Parameter(help="TOML file: who takes part, the budget, the model.")],
    *,
    key: Annotated[
        Path | None, Parameter(help="Sign with this key, from `hubbub study key` [default: a new one].")
    ] = None,
    out: Annotated[Path | None, Parameter(help="The study file [default: source with the ending .json].")] = None,
    authority: Authority = None,
    json: Json = False,
) -> None:
    """Sign a study: what everybody agrees on, named by its hash. Also writes the clients' tokens.

    Computes take it once their operators have named the analyst's key with `hubbub compute trust`. Without --key a new
    key is made for this study alone and written beside it.

    For example:

        hubbub study create study.toml --key analyst.key
        hubbub study create study.toml

    where study.toml says:

        title = "blood pressure and salt"
        epsilon = 1.0
        delta = 1e-5
        days = 7
        dropouts = 1
        colluders = 0
        computes = ["https://a.example:8443", "https://b.example:8443", "https://c.example:8443"]
        parties = { hospital-1 = 400, hospital-2 = 250, registry = 1200 }
        model = { features = ["age", "salt"], target = "pressure", x_bound = "age=0:110,salt=0:40", y_bound = "60:220" }
        results = "analyst"   # who is served the sums; "public" if left out
    """
    from hubbub.cli.study import create

    create(source, key, out, authority, json)


@study.command(name="check")
def study_check(file: StudyFile, *, authority: Authority = None, json: Json = False) -> None:
    """Preflight: reach every Compute, compare keys and clocks, show the budget left.

    For example:

        hubbub study check study.json
    """
    from hubbub.cli.study import check

    check(file, authority, json)


@study.command(name="fingerprints")
def study_fingerprints(file: StudyFile, *, json: Json = False) -> None:
    """Print the fingerprints of study, analyst and Computes, to be compared by another way than the study file.

    For example:

        hubbub study fingerprints study.json
    """
    from hubbub.cli.study import show_fingerprints

    show_fingerprints(file, json)


@study.command(name="open")
def study_open(
    file: StudyFile,
    *,
    key: KeyFile = None,
    tokens: Annotated[Path | None, Parameter(help="The clients' tokens [default: beside the study].")] = None,
    authority: Authority = None,
    json: Json = False,
) -> None:
    """Register the study at every Compute, invite its clients, and open the first round.

    For example:

        hubbub study open study.json
    """
    from hubbub.cli.study import open_study

    open_study(file, key, tokens, authority, json)


@study.command(name="close")
def study_close(file: StudyFile, *, key: KeyFile = None, authority: Authority = None, json: Json = False) -> None:
    """End the current round; the Computes agree and release, and the next round is opened.

    For example:

        hubbub study close study.json
    """
    from hubbub.cli.study import close

    close(file, key, authority, json)


@study.command(name="result")
def study_result(
    file: StudyFile,
    *,
    key: Annotated[Path | None, Parameter(help="The analyst's key, where results are for the analyst alone.")] = None,
    out: Annotated[Path | None, Parameter(help="Write the model here, for `hubbub predict`.")] = None,
    release: Annotated[Path | None, Parameter(help="Write the released sums here, for `hubbub refit`.")] = None,
    authority: Authority = None,
    json: Json = False,
) -> None:
    """Print the posterior and the privacy report, once all rounds are released.

    For example:

        hubbub study result study.json --out model.json --release release.json
    """
    from hubbub.cli.study import result

    result(file, key, out, release, authority, json)


@app.command
def contribute(
    file: StudyFile,
    data: Annotated[Path, Parameter(help="CSV file with the model's columns; one row is one sample.")],
    *,
    client: Annotated[str, Parameter(help="The name you were invited under.")],
    token: Annotated[
        str | None,
        Parameter(help="Your one-time token, needed the first time; visible to other users of this machine."),
    ] = None,
    token_file: Annotated[
        Path | None,
        Parameter(help="A file that holds the token [default: the variable HUBBUB_TOKEN, or you are asked]."),
    ] = None,
    expect_study: Annotated[
        str | None, Parameter(help="Fingerprint of the study that you were told by another way; --yes needs it.")
    ] = None,
    expect_analyst: Annotated[str | None, Parameter(help="The same of the analyst's key.")] = None,
    expect_compute: Annotated[
        tuple[str, ...], Parameter(negative="", help="The same of a Compute's keys; can be given several times.")
    ] = (),
    outbox: Annotated[Path | None, Parameter(help="Where sent reports are kept [default: beside the study].")] = None,
    yes: Annotated[bool, Parameter(negative="", help="Send without asking.")] = False,
    follow: Annotated[bool, Parameter(negative="", help="Stay for the rounds that follow.")] = False,
    authority: Authority = None,
    json: Json = False,
) -> None:
    """Take part in a study: shows who would get what, asks, and only then enrols you and sends it.

    Interrupted, the same command sends the same bytes again: no sample ever gets two different noises in one round.

    For example:

        hubbub contribute study.json patients.csv --client hospital-1 --token-file token.txt
        hubbub contribute study.json patients.csv --client hospital-1 --yes --follow --expect-study "1f0a 99c2 ..."
    """
    from hubbub.cli.contribute import Expected
    from hubbub.cli.contribute import contribute as run

    expected = Expected(expect_study, expect_analyst, expect_compute)
    run(file, data, client, token, token_file, expected, outbox, yes, follow, authority, json)


@app.command
def up(
    *,
    computes: Computes = 3,
    clients: Annotated[int, Whole, Parameter(help="N, simulated clients that really enrol and upload.")] = 200,
    epsilon: Epsilon = 3.0,
    delta: Delta = 1e-4,
    cover: Cover = FIVE,
    tls: Annotated[bool, Parameter(help="Encrypt all connections, with a development authority.")] = True,
    once: Annotated[bool, Parameter(negative="", help="End after the result.")] = False,
    json: Json = False,
) -> None:
    """Run everything on this machine: Computes as processes of their own, and a whole study with real uploads.

    The status pages stay open until stopped; --once ends after the result, --json implies it.

    For example:

        hubbub up
        hubbub up --computes 5 --clients 1000 --once
        hubbub up --json
    """
    from hubbub.cli.up import run

    run(computes, clients, epsilon, delta, cover, tls, once, json)
