"""`hubbub audit`: attacks on the real pipeline that try to refute what hubbub promises."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from rich.table import Table

from hubbub.cli.extras import needs_service
from hubbub.cli.options import Delta, Epsilon, Json, Whole
from hubbub.cli.output import console, print_json, progress

if TYPE_CHECKING:
    from hubbub.audit import AuditReport, Case


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class AuditCommand:
    """The options of `hubbub audit`."""

    analysis: Annotated[
        str | None,
        Parameter(
            help="Only this analysis: linear, glm, bernoulli, categorical, gaussian, poisson, logistic or mixture."
        ),
    ] = None
    mechanism: Annotated[str | None, Parameter(help="Only this law of noise [default: all that hubbub brings].")] = None
    engine: Annotated[
        Literal["local", "sealed", "trusted", "spark", "network"],
        Parameter(help="Where the pipeline runs. network starts three Computes on this machine."),
    ] = "local"
    trials: Annotated[
        int, Whole, Parameter(help="Runs for each of two neighbouring data sets; more find smaller defects.")
    ] = 2000
    epsilon: Epsilon = 2.0
    delta: Delta = 1e-5
    confidence: Annotated[float, Parameter(help="That no sound claim is called refuted, for all cases together.")] = (
        0.999
    )
    only: Annotated[str | None, Parameter(help="Only checks whose name has this in it.")] = None
    markdown: Annotated[bool, Parameter(negative="", help="Print the page docs/audit.md.")] = False
    json: Json = False


DEFAULTS = AuditCommand()


def audit(options: AuditCommand = DEFAULTS) -> None:
    """Try to refute the privacy claims: attack the real pipeline, and say for sure how much epsilon is at least.

    For neighbouring data sets that lie as far apart as any can, everything is run many times, as each adversary of
    docs/threat-model.md sees it. Ends with exit code 1 where a claim is refuted. All of it takes some six minutes of
    processor time, which the cores share.

    For example:

        hubbub audit
        hubbub audit --mechanism discrete-laplace --trials 10000
        hubbub audit --analysis linear --json
        hubbub audit --engine network
        hubbub audit --markdown > docs/audit.md
    """
    run(options)


def run(options: AuditCommand) -> None:
    """Run the checks, print what was found, and end with exit code 1 where a claim is refuted."""
    if options.engine == "network":
        with needs_service():
            import hubbub.engines.network  # noqa: F401  # so that a missing extra is said before anything is run
    from hubbub.audit import AuditOptions, checks_for
    from hubbub.audit import audit as make
    from hubbub.privacy import Budget

    laws = {} if options.mechanism is None else {"mechanisms": (options.mechanism,)}
    chosen = AuditOptions(
        kind=options.analysis, engine=options.engine, budget=Budget(options.epsilon, options.delta),
        trials=options.trials, confidence=options.confidence, only=options.only, **laws,
    )  # fmt: skip
    with progress() as bar:
        task = bar.add_task("checks", total=len(checks_for(chosen)))
        report = make(chosen, lambda _: bar.advance(task))
    if options.json:
        print_json(report.as_dict())
    elif options.markdown:
        print(page(report))
    else:
        _print(report)
    if not report.passed:
        sys.exit(1)


def _print(report: AuditReport) -> None:
    table = Table("claim", "claimed", "at least", "use", "")
    for case in report.cases:
        table.add_row(case.name, *_numbers(case), "REFUTED" if case.refuted else "")
    console.print(table)
    console.print(_verdict(report), markup=False)


def _numbers(case: Case) -> tuple[str, str, str]:
    use = "" if case.use is None else f"{case.use:.4f}"
    return f"{case.claimed:g}", f"{case.lower_bound:.3f}", use


def _verdict(report: AuditReport) -> str:
    refuted = [case.name for case in report.cases if case.refuted]
    found = f"REFUTED: {'; '.join(refuted)}" if refuted else "no claim was refuted"
    return (
        f"{len(report.cases)} claims, {found}. A sound claim would be called refuted with probability "
        f"{1 - report.options.confidence:.2g} at most, all of them together."
    )


def page(report: AuditReport) -> str:
    """Return the page docs/audit.md."""
    options = report.options
    lines = [
        "# What the auditor could not refute", "",
        "Made by `hubbub audit --markdown`, which attacks the real pipeline: for neighbouring data sets that lie as",
        "far apart as a search finds any, everything is run many times as an adversary of [the threat",
        "model](threat-model.md) sees it.", "",
        f"- *claimed*: the epsilon that is promised (at delta {options.budget.delta:g}; without delta for",
        "  discrete-laplace; 0 where nothing may be told at all).",
        "- *at least*: what epsilon certainly is not below, by Clopper and Pearson's bounds on how often the attack is",
        "  right. A lower bound can only refute: a small one does not prove privacy, the proofs in",
        "  [privacy.md](privacy.md) do. Nor does it find small defects: with 2000 trials the canaries find noise of",
        "  half its variance, and the other checks that of a quarter.",
        "- *use*: which share of the claimed epsilon the largest signal that was found uses, exactly: 1 means that the",
        "  noise is as small as it may be (an upper bound for samples that select themselves under Laplace noise).", "",
        f"{options.trials} trials for each of two data sets, engine {options.engine}. {_verdict(report)}", "",
        "| claim | claimed | at least | use | how |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for case in report.cases:
        claimed, bound, use = _numbers(case)
        name = f"**REFUTED** {case.name}" if case.refuted else case.name
        lines.append(f"| {name} | {claimed} | {bound} | {use} | {case.method} |")
    return "\n".join(lines)
