"""`hubbub study create`: sign a study and write the tokens of its clients."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from hubbub.cli.extras import needs_service
from hubbub.cli.options import Authority, Json
from hubbub.cli.output import console, print_json
from hubbub.cli.schemes import about, exposure_table, too_few
from hubbub.cli.study.access import read_key, web_to
from hubbub.cli.study.fingerprints import print_fingerprints
from hubbub.cli.tokens import write_tokens
from hubbub.errors import InvalidInput, invalid

if TYPE_CHECKING:
    from hubbub.population import Population
    from hubbub.service.wire.web import Web


@Parameter(name="*")
@dataclass(frozen=True)
class CreateOptions:
    """The arguments and options of `hubbub study create`."""

    source: Annotated[Path, Parameter(help="TOML file: who takes part, the budget, the analysis.")]
    _: KW_ONLY
    key: Annotated[Path | None, Parameter(help="Sign with this key, from `hubbub study key` [default: a new one].")] = (
        None
    )
    out: Annotated[Path | None, Parameter(help="The study file [default: source with the ending .json].")] = None
    authority: Authority = None
    json: Json = False


def create(options: CreateOptions) -> None:
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
        results = "analyst"   # who is served the sums; "public" if left out

        [analysis]
        kind = "linear"       # or bernoulli, categorical, gaussian, poisson, logistic, mixture, ...
        features = ["age", "salt"]
        target = "pressure"
        x_bound = "age=0:110,salt=0:40"
        y_bound = "60:220"

        [privacy]
        mechanism = "discrete-gaussian"   # the law of the noise; the default, or discrete-laplace (delta = 0), skellam

        [sum]
        scheme = "subset"     # each client uses some of the Computes; additive, all of them, if left out
        each = 3              # or conspiring = 10 and risk = 0.5: the fewest that expose at most half a client to 10

    The other entries of [analysis] are the settings of its kind, for example

        [analysis]
        kind = "bernoulli"
        column = "smokes"
    """
    run(options)


def run(options: CreateOptions) -> None:
    """Ask the Computes for their keys, sign the study, and write it with the clients' tokens and a new key, if any."""
    with needs_service():
        from hubbub.service.analyst.analyst import make_tokens, new_study
        from hubbub.service.node.config import write_secret
        from hubbub.service.wire.canonical import sign_record
        from hubbub.service.wire.fingerprints import fingerprints
        from hubbub.service.wire.signing import SigningKey
    from hubbub.analyses.replay import Replay, written_analysis
    from hubbub.cli.study.source import read_noise, read_parties, read_population, read_scheme, read_seconds, read_toml
    from hubbub.privacy import Budget

    source, key_file = options.source, options.key
    content, path = read_toml(source), options.out or source.with_suffix(".json")
    key = SigningKey.generate() if key_file is None else read_key(key_file)
    key_path, token_path = key_file or path.with_suffix(".key"), path.with_suffix(".tokens.csv")
    for file in (path, token_path) if key_file is not None else (path, key_path, token_path):
        if file.exists():
            raise invalid("out", "a new file", file, "name another, or move the old study away")
    samples = read_parties(content)
    population, seconds, noise = read_population(content, samples), read_seconds(content), read_noise(content)
    analysis, budget = written_analysis(content["analysis"]), Budget(content["epsilon"], content["delta"])
    _ = Replay.of(analysis.describe(), budget, population, noise).plan  # refuses what cannot be planned
    computes = _computes(content["computes"], web_to(options.authority))
    scheme = read_scheme(content, len(computes), population.clients)
    study = new_study(
        content["title"], computes, population, budget, key, seconds=seconds, analysis=analysis.describe(),
        secure_sum=scheme, noise=noise, results=content.get("results", "public"),
    )  # fmt: skip
    if key_file is None:
        write_secret(key_path, {"sign": key.data.hex()})
    write_tokens(token_path, make_tokens(samples))
    path.write_bytes(sign_record(study, key))
    found = fingerprints(study)
    secure_sum = about(scheme, population)
    if options.json:
        print_json({"study": study.id, "file": str(path), "key": str(key_path), "tokens": str(token_path),
                    "analyst": key.public().hex(), "fingerprints": found, "secure_sum": secure_sum})  # fmt: skip
        return
    console.print(f"study {study.id}", markup=False)
    print_fingerprints(found)
    console.print(f"it rests on trust that {secure_sum['trust']}", markup=False)
    if secure_sum["not_promised"]:
        console.print(f"not promised: {secure_sum['not_promised']}", markup=False)
    _print_subset(secure_sum, population)
    console.print(
        f"written to {path}; keep {key_path} secret, give each line of {token_path} to its client", markup=False
    )
    console.print(
        f"Computes take it once their operators have run: hubbub compute trust {key.public().hex()}",
        markup=False, soft_wrap=True,
    )  # fmt: skip
    if key_file is not None:
        console.print(
            f"`hubbub study open`, `close` and (for closed results) `result` need it, too: --key {key_file}",
            markup=False,
        )


def _print_subset(found: dict[str, Any], people: Population) -> None:
    """Say of a subset how many Computes each client uses, who is exposed to whom, and whether clients are enough."""
    if "exposure" not in found:
        return
    console.print(
        f"each client uses {found['each']} of {found['computes']} Computes, drawn by them when the study is opened",
        markup=False,
    )
    console.print(exposure_table(found, people.clients))
    console.print(
        "tell each client its name before `study open`: one that is told later cannot know that its name was not "
        "chosen for its Computes",
        markup=False,
    )
    if caution := too_few(found, people):
        console.print(caution, markup=False)


def _computes(entries: Any, web: Web) -> list[Any]:
    """Ask the Computes for their keys.

    Each entry is an address, or one with the fingerprint or verify key that the operator told by another way.
    """
    from hubbub.service.analyst.analyst import find_compute
    from hubbub.service.wire.fingerprints import compute_fingerprint, read_fingerprint

    found = []
    for entry in entries if isinstance(entries, list) else [entries]:
        told = {"url": entry} if isinstance(entry, str) else entry
        if not isinstance(told, dict) or not isinstance(told.get("url"), str):
            raise invalid(
                "computes", "a list of addresses, or of entries with a url", entry, "see `study create --help`"
            )
        compute = find_compute(url := told["url"], web)
        if (pinned := told.get("verify_key")) is not None and compute.verify_key.hex() != pinned:
            raise InvalidInput(f"verify_key must be {pinned}, got another from {url}; do not use that Compute")
        if (pinned := told.get("fingerprint")) is not None and (
            read_fingerprint("fingerprint", pinned) != compute_fingerprint(compute)
        ):
            raise InvalidInput(f"fingerprint must be {pinned}, got another from {url}; do not use that Compute")
        found.append(compute)
    return found
