"""The `hubbub` program, put together from its commands.

Each command has a module of its own, with its options, its help text and what it does. Those modules import numpy,
the estimators and the service only when a command runs, so that `--help` is quick.
"""

from __future__ import annotations

from cyclopts import App

from hubbub import __version__
from hubbub.cli.audit import audit
from hubbub.cli.bench.service import service
from hubbub.cli.bench.table1 import table1
from hubbub.cli.compute.init import init
from hubbub.cli.compute.serve import serve
from hubbub.cli.compute.status import status
from hubbub.cli.compute.trust import trust
from hubbub.cli.contribute import contribute
from hubbub.cli.demo import demo
from hubbub.cli.experiment import experiment
from hubbub.cli.explain import explain
from hubbub.cli.fit import fit
from hubbub.cli.predict import predict
from hubbub.cli.refit import refit
from hubbub.cli.road import road
from hubbub.cli.study.check import check
from hubbub.cli.study.close import close
from hubbub.cli.study.create import create
from hubbub.cli.study.fingerprints import fingerprints
from hubbub.cli.study.key import key
from hubbub.cli.study.open import open_study
from hubbub.cli.study.result import result
from hubbub.cli.up import up

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
bench = App(name="bench", help="Measure how fast this machine is, beside its limit.", help_format="plaintext")
compute = App(name="compute", help="Run one Compute node (needs the extra `service`).", help_format="plaintext")
study = App(name="study", help="Plan, run and read a study on real Computes.", help_format="plaintext")

app.command(demo)
app.command(fit)
app.command(refit)
app.command(predict)
app.command(explain)
app.command(experiment)

app.command(bench)
bench.command(table1)
bench.command(service)

app.command(compute)
compute.command(init)
compute.command(serve)
compute.command(trust)
compute.command(status)

app.command(study)
study.command(key)
study.command(create)
study.command(check)
study.command(fingerprints)
study.command(open_study, name="open")
study.command(close)
study.command(result)

app.command(contribute)
app.command(up)
app.command(audit)
app.command(road)
