"""`hubbub explain`: the guarantee and its price, without data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.table import Table

from hubbub.cli.options import NOBODY, Computes, Cover, Delta, Epsilon, Json, Method, Noise, Whole
from hubbub.cli.output import console, print_json
from hubbub.cli.schemes import ADDITIVE, SchemeOptions, about, exposure_table, too_few
from hubbub.errors import invalid

if TYPE_CHECKING:
    from hubbub.privacy import Budget, Population
    from hubbub.protocols import Mechanism, Plan, RoundSpec, SecureSum
    from hubbub.roles import RoundPlan

_MOST_FEATURES = 5000  # their products are summed, too


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ExplainOptions:
    """The options of `hubbub explain`."""

    clients: Annotated[int, Whole, Parameter(help="N, the number of clients.")]
    features: Annotated[int, Whole, Parameter(help="d, the number of features.")]
    epsilon: Epsilon
    delta: Delta
    x_bound: Annotated[str, Parameter(help="Public bound of the features: 7.5 or 0:120, or one per feature.")] = "1"
    y_bound: Annotated[
        str | None, Parameter(help="Public bound of the target (7.5, 0:10) [default: 1; none for a yes or no].")
    ] = None
    family: Annotated[
        str | None, Parameter(help="Of a generalised linear model, as `hubbub fit --family` [default: linear].")
    ] = None
    mean: Annotated[
        float | None,
        Parameter(
            help="With --family, a guess of the mean of y [default: 0.5 of a yes or no, a tenth of the y-bound]."
        ),
    ] = None
    computes: Computes = 3
    sum: SchemeOptions = ADDITIVE
    cover: Cover = NOBODY
    method: Method = "auto"
    mechanism: Noise = None
    json: Json = False


def explain(options: ExplainOptions) -> None:
    """Say what would be guaranteed, how much noise it costs and what to expect, without touching any data.

    For example:

        hubbub explain --clients 1000 --features 11 --epsilon 1 --delta 1e-5 --x-bound 7.5 --y-bound 7.5
        hubbub explain --clients 1000 --features 11 --epsilon 1 --delta 1e-5 --tolerate 50 --json
        hubbub explain --clients 100000 --features 3 --epsilon 1 --delta 0 --mechanism discrete-laplace
        hubbub explain --clients 5000 --features 8 --epsilon 1 --delta 1e-5 --family bernoulli --mean 0.1
        hubbub explain --clients 5000 --features 8 --epsilon 1 --delta 1e-5 --family poisson --y-bound 20
        hubbub explain --clients 1000 --features 3 --epsilon 1 --delta 1e-5 --scheme shamir --computes 5 --threshold 3
        hubbub explain --clients 1000 --features 3 --epsilon 1 --delta 1e-5 --scheme subset --computes 50 --each 3
    """
    run(options)


def run(options: ExplainOptions) -> None:
    """Plan the rounds and print what they would cost."""
    from hubbub.privacy import Budget, mechanism_named

    clients, features, method = options.clients, options.features, options.method
    if not 1 <= features <= _MOST_FEATURES:
        raise invalid("features", f"in 1..{_MOST_FEATURES}", features, "count the columns of X; choose among many")
    budget, population = Budget(options.epsilon, options.delta), options.cover.population(clients)
    law, analysis = mechanism_named(options.mechanism), _analysis(options)
    plan = analysis.plan(budget, population, law)
    scheme = options.sum.build(computes := options.computes)
    secure_sum = about(scheme, population)
    rounds = [_round(spec, population, scheme) for spec in plan.specs]
    result: dict[str, object] = {
        "epsilon": options.epsilon, "delta": options.delta, "clients": clients, "dropouts": population.dropouts,
        "colluders": population.colluders, "computes": computes,
        "features": features, "method": method, "family": options.family, "mechanism": law.describe()["mechanism"],
        "guarantee": f"{budget}-differential privacy, replace-one",
        "covers": f"up to {population.colluders} colluding clients, whichever {population.dropouts} clients "
        f"go missing, and {secure_sum['may_conspire']} of {computes} Computes that pool what they hold",
        "secure_sum": secure_sum,
        "extra_variance_factor": clients / population.shares,
        **_of_method(options, plan), "rounds": rounds,
        "expected": _expected(options, analysis, population, budget, law),
        "cautions": [] if options.family is None else list(analysis.cautions(plan)),
    }  # fmt: skip
    if options.json:
        print_json(result)
        return
    _print(result, rounds, population)


def _analysis(options: ExplainOptions) -> Any:
    """The regression that `hubbub fit` would run, on columns without names."""
    from hubbub.analyses.glm.analysis import GLM
    from hubbub.analyses.linear.auto import LinearRegression
    from hubbub.analyses.linear.projected import PlainRegression, ProjectedRegression
    from hubbub.analyses.linear.ranges import parse_ranges
    from hubbub.cli.fit_model import family_named, family_y_bound

    names = tuple(f"x{j + 1}" for j in range(options.features))
    x, text = tuple(parse_ranges(options.x_bound, names)), options.y_bound
    if options.family is None:
        if options.mean is not None:
            raise invalid("mean", "given together with --family", options.mean, "add --family poisson")
        kinds = {"auto": LinearRegression, "plain": PlainRegression, "projected": ProjectedRegression}
        (y,) = parse_ranges(text or "1", ["y"], "y_bound")
        return kinds[options.method](names, "y", y, x)
    if options.method != "auto":
        raise invalid("method", "left out with --family", options.method, "it is for the linear regression alone")
    family = family_named(options.family)
    bound = family_y_bound(family, text)
    return GLM(names, "y", (0.0, bound) if isinstance(bound, float) else bound or (0.0, 1.0), x, family.name)


def _of_method(options: ExplainOptions, plan: Plan) -> dict[str, object]:
    """What only the linear regression has: thresholds of its projections, and how tight its sensitivity is."""
    from hubbub.analyses.linear.projected import ProjectedPlan
    from hubbub.analyses.linear.ranges import parse_ranges
    from hubbub.statistics import Box

    if options.family is not None:
        return {}
    names = tuple(f"x{j + 1}" for j in range(options.features))
    x, (y,) = parse_ranges(options.x_bound, names), parse_ranges(options.y_bound or "1", ["y"], "y_bound")
    auto = options.method == "auto"
    *half, last = ((high - low) / 2 if auto else max(abs(low), abs(high)) for low, high in [*x, y])
    bound, thresholds = Box(tuple(half), last), plan.thresholds if isinstance(plan, ProjectedPlan) else None
    return {
        "thresholds": None if thresholds is None else {"x": thresholds[0], "y": thresholds[1]},
        "tight_over_paper_sensitivity": bound.sensitivity(False) / bound.sensitivity(False, "paper"),
    }


def _expected(
    options: ExplainOptions, analysis: Any, population: Population, budget: Budget, law: Mechanism
) -> dict[str, object] | None:
    """Forecast what the fit will find; None for the methods of the paper."""
    from hubbub.cli.expected import expected_glm, expected_linear

    if options.family is not None:
        return expected_glm(analysis, options.mean, population, budget, law)
    return expected_linear(population, options.features, budget, law) if options.method == "auto" else None


def _round(spec: RoundSpec, population: Population, scheme: SecureSum) -> dict[str, object]:
    """Settle one round of the plan, and say what it sums, how much noise that takes and what one client sends."""
    from hubbub.roles import settle_round

    plan, clients = settle_round(spec, population), population.clients
    noise, std = plan.noise, plan.noise.law(clients).std
    return {
        "label": spec.label, "dimension": plan.dimension, "sensitivity": noise.sensitivity,
        "noise_multiplier": noise.sigma_std / noise.sensitivity, "sigma_std": noise.sigma_std,
        "sigma_client": noise.sigma_client, "noise_std": std, "noise_std_of_the_mean": std / clients,
        "largest_term": plan.statistic.magnitude, "fraction_bits": noise.grid.fraction_bits,
        "upload_bytes": _upload_bytes(plan, scheme), "sealed_upload_bytes": _sealed_bytes(plan, scheme),
    }  # fmt: skip


def _upload_bytes(plan: RoundPlan, scheme: SecureSum) -> int:
    """Count the bytes of all shares of one client, before they are sealed."""
    import numpy as np

    from hubbub.randomness import Randomness

    shares = scheme.shard(np.zeros(plan.dimension, dtype=np.uint64), "client-00000000", Randomness.system())
    return sum(len(share.body) for share in shares)


def _sealed_bytes(plan: RoundPlan, scheme: SecureSum) -> int:
    """Count the bytes that one client really sends, by making, sealing and encoding a sample of zeros."""
    from dataclasses import replace

    import numpy as np

    from hubbub.randomness import Randomness
    from hubbub.roles import Study, contribute
    from hubbub.securesum import PrivateKey, encode_report

    keys, plan = tuple(PrivateKey.generate().public() for _ in range(scheme.computes)), replace(plan, steps=())
    study = Study(plan.population, keys, (plan,), scheme=scheme.drawn("explain"))
    reports = contribute(study, 0, "client-00000000", np.zeros(plan.statistic.columns), Randomness.system())
    return sum(len(encode_report(report)) for report in reports)


def _print_sum(found: dict[str, Any], people: Population) -> None:
    """Print whom one must trust, how many Computes may be lost, and who is exposed to larger groups."""
    console.print(
        f"Secure sum: {found['scheme']} among {found['computes']} Computes. It rests on trust that {found['trust']}. "
        f"{found['sums_needed']} sums give the total, {found['quorum']} Computes must sign the same roster: "
        f"{found['may_be_lost']} may be lost.",
        markup=False,
    )
    if found["not_promised"]:
        console.print(f"Not promised: {found['not_promised']}.", markup=False)
    if "exposure" not in found:
        return
    if caution := too_few(found, people):
        console.print(f"{caution}.", markup=False)
    console.print(exposure_table(found, people.clients))


def _print(result: dict[str, object], rounds: list[dict[str, object]], people: Population) -> None:
    from hubbub.cli.expected import print_expected

    console.print(f"Guarantee: {result['guarantee']}; covers {result['covers']}.")
    console.print(
        f"Sharing the noise among clients costs a factor {result['extra_variance_factor']:.4f} in variance "
        "over a trusted aggregator."
    )
    _print_sum(result["secure_sum"], people)  # type: ignore[arg-type]  # as made above
    if float(str(result["delta"])) >= 1 / int(str(result["clients"])):
        console.print("Take care: delta is not below 1/N; choose it smaller.")
    if float(str(result["epsilon"])) > 5:
        console.print("Take care: an epsilon above 5 protects little.")
    for caution in result["cautions"]:  # type: ignore[attr-defined]  # a list, as made above
        console.print(f"Take care: {caution}.", markup=False)
    if result.get("thresholds"):
        console.print(
            "The regression round clips at a multiple of each column's deviation, found in round 1; "
            "shown here as if a deviation were a third of its bound."
        )
    if result["method"] == "auto":
        what = "The regression round sums" if result["family"] is None else "Every step sums parts of the score of"
        console.print(f"{what} rows in units of the columns' scales, found in round 1.")
        print_expected(result["expected"])  # type: ignore[arg-type]  # as made above
    names = {
        "dimension": "numbers summed", "sensitivity": "sensitivity", "noise_multiplier": "noise over sensitivity",
        "sigma_client": "noise of one client", "noise_std": "noise in the sum",
        "noise_std_of_the_mean": "noise in the mean",
        "largest_term": "largest possible term", "fraction_bits": "fraction bits",
        "upload_bytes": "shares of one client (bytes)", "sealed_upload_bytes": "sealed upload (bytes)",
    }  # fmt: skip
    table = Table("", *(str(r["label"]) for r in rounds))
    for key, name in names.items():
        table.add_row(name, *(f"{float(r[key]):.4g}" for r in rounds))  # type: ignore[arg-type]  # numbers all
    console.print(table)
