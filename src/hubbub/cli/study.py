"""`hubbub study`: the analyst's side of a study between parties on their own machines."""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from hubbub.cli.extras import needs_service
from hubbub.cli.model import print_model
from hubbub.cli.output import check_writable, console, print_json
from hubbub.cli.study_file import read_parties, read_plan, read_population, read_seconds, read_toml
from hubbub.errors import InvalidInput, PerhapsReleased, RoundRefused, invalid
from hubbub.estimators.staged import RegressionPlan
from hubbub.estimators.stored import INTERVALS, StoredModel
from hubbub.privacy import Budget, Release

if TYPE_CHECKING:
    from hubbub.service.analyst.analyst import Analyst
    from hubbub.service.wire.records import StudyRecord
    from hubbub.service.wire.signing import SigningKey
    from hubbub.service.wire.web import Web


def show_key(file: Path, json: bool) -> None:
    """Make the analyst's key where there is none; print the public part."""
    with needs_service():
        from hubbub.service.node.config import write_secret
        from hubbub.service.wire.signing import SigningKey
    if not file.exists():
        write_secret(file, {"sign": SigningKey.generate().data.hex()})
    public = _read_key(file).public().hex()
    _say(json, {"key": public, "file": str(file)}, f"{public}\nTell it to the Computes' operators by a way they trust: "
         f"they name it with `hubbub compute trust`. Keep {file} secret.")  # fmt: skip


def create(source: Path, key_file: Path | None, out: Path | None, authority: Path | None, json: bool) -> None:
    """Ask the Computes for their keys, sign the study, write it with the clients' tokens (and a new key, if any)."""
    with needs_service():
        from hubbub.service.analyst.analyst import make_tokens, new_study
        from hubbub.service.node.config import write_secret
        from hubbub.service.wire.canonical import sign_record
        from hubbub.service.wire.fingerprints import fingerprints
        from hubbub.service.wire.signing import SigningKey
    content, path = read_toml(source), out or source.with_suffix(".json")
    key = SigningKey.generate() if key_file is None else _read_key(key_file)
    key_path, token_path = key_file or path.with_suffix(".key"), path.with_suffix(".tokens.csv")
    for file in (path, token_path) if key_file is not None else (path, key_path, token_path):
        if file.exists():
            raise invalid("out", "a new file", file, "name another, or move the old study away")
    samples = read_parties(content)
    population, seconds, plan = read_population(content, samples), read_seconds(content), read_plan(content["model"])
    web = web_to(authority)
    study = new_study(
        content["title"], _computes(content["computes"], web), population,
        Budget(content["epsilon"], content["delta"]), key, seconds=seconds,
        model=plan.content(), results=content.get("results", "public"),
    )  # fmt: skip
    if key_file is None:
        write_secret(key_path, {"sign": key.data.hex()})
    _write_tokens(token_path, make_tokens(samples))
    path.write_bytes(sign_record(study, key))
    found = fingerprints(study)
    if json:
        print_json({"study": study.id, "file": str(path), "key": str(key_path), "tokens": str(token_path),
                    "analyst": key.public().hex(), "fingerprints": found})  # fmt: skip
        return
    console.print(f"study {study.id}", markup=False)
    _print_fingerprints(found)
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


def check(file: Path, authority: Path | None, json: bool) -> None:
    """Preflight: reach every Compute, compare its keys with the study's, its clock with ours, and show the ledger."""
    study, web = signed_study(file), web_to(authority, seconds=5.0)
    from hubbub.service.wire.fingerprints import fingerprints

    rows = [_preflight(study, position, web) for position in range(len(study.computes))]
    good = all(row["ok"] for row in rows)
    if json:
        print_json({"study": study.id, "ok": good, "computes": rows, "fingerprints": fingerprints(study)})
    else:
        table = Table("Compute", "reached", "keys match", "clock off by", "registered", "epsilon left")
        for row in rows:
            yes = {True: "yes", False: "NO", None: ""}
            late = "" if row["clock"] is None else f"{row['clock']:.1f} s"
            left = "" if row["epsilon_left"] is None else f"{row['epsilon_left']:.3g}"
            table.add_row(row["name"], yes[row["reached"]], yes[row["keys"]], late, yes[row["registered"]], left)
        console.print(f"study {study.id}: {study.title}", markup=False)
        console.print(table)
        _print_fingerprints(fingerprints(study))
    if not good:
        raise InvalidInput("study must have Computes that answer under its keys and clock, got one that does not")


def show_fingerprints(file: Path, json: bool) -> None:
    """What the parties compare by another way; nobody is asked."""
    study = signed_study(file)
    from hubbub.service.wire.fingerprints import fingerprints

    found = fingerprints(study)
    if json:
        print_json(found)
        return
    console.print(f"study {study.id}: {study.title}", markup=False)
    _print_fingerprints(found)


def _print_fingerprints(found: Mapping[str, Any]) -> None:
    console.print("Fingerprints, to be told to the data holders by another way than the study file:", markup=False)
    console.print(f"  study    {found['study']}  (covers all that follows)", markup=False)
    console.print(f"  analyst  {found['analyst']}", markup=False)
    for name, fingerprint in found["computes"].items():
        console.print(f"  Compute  {fingerprint}  {name}", markup=False)


def _preflight(study: StudyRecord, position: int, web: Web) -> dict[str, Any]:
    from hubbub.errors import HubbubError
    from hubbub.service.analyst.analyst import find_compute
    from hubbub.service.wire.canonical import read_json
    from hubbub.service.wire.web import MOST_LIST

    compute = study.computes[position]
    row: dict[str, Any] = {"name": compute.name, "url": compute.url, "reached": False, "keys": None, "clock": None,
                           "registered": None, "epsilon_left": None, "ok": False}  # fmt: skip
    try:
        found = find_compute(compute.url, web)
        there = read_json(web.get(f"{compute.url}/v1/status", most=MOST_LIST).content)
    except HubbubError:
        return row
    row |= {"reached": True, "keys": (found.key, found.verify_key) == (compute.key, compute.verify_key)}
    try:
        mine = next((entry for entry in there["studies"] if entry["study"] == study.id), None)
        row |= {"clock": abs(there["time"] - time.time()), "registered": mine is not None}
        if mine is not None and mine["budget"] is not None:
            row["epsilon_left"] = mine["budget"]["epsilon"] - mine["budget"]["spent"]
    except (KeyError, TypeError):
        return row  # it answers, but not as a Compute does
    return {**row, "ok": bool(row["keys"]) and row["clock"] < 60.0}


def open_study(file: Path, key: Path | None, tokens: Path | None, authority: Path | None, json: bool) -> None:
    """Register the study everywhere, invite the clients, and open the first round."""
    analyst = _analyst(file, key, authority)
    invited = _invited(analyst.study, tokens or file.with_suffix(".tokens.csv"))
    analyst.register()
    analyst.invite(invited)
    label = _open_next(analyst, [])
    _say(json, {"study": analyst.study.id, "round": 0, "label": label},
         f"round 0 ({label}) is open: clients can contribute now")  # fmt: skip


def close(file: Path, key: Path | None, authority: Path | None, json: bool) -> None:
    """End the current round, add up what the Computes release, and open the next round where there is one."""
    analyst = _analyst(file, key, authority)
    found = analyst.catch_up()
    if not found:
        raise InvalidInput("study must have an open round, got none; open it with `hubbub study open`")
    record = found[-1].record
    if found[-1].state == "open" and not found[-1].reports:
        raise InvalidInput(
            f"round {record.number} ({record.label}) must have reports before it is closed, got none; it has only "
            "just been opened: let the clients contribute first"
        )
    analyst.close(record)  # also to a Compute that was away when it was closed before
    try:
        release = analyst.release(record)
    except RoundRefused as refusal:
        label = _open_next(analyst, _releases(analyst))
        raise RoundRefused(refusal.reason, f"{refusal}; a new round ({label}) is open in its place") from None
    except PerhapsReleased as doubt:
        raise PerhapsReleased(
            f"{doubt}; no new round is opened: ask the operators of those Computes, then run `hubbub study close` again"
        ) from None
    label = _open_next(analyst, _releases(analyst))
    following = f"round {record.number + 1} ({label}) is open" if label else "see `hubbub study result`"
    content = {"study": analyst.study.id, "round": record.number, "n": release.n, "next": label}
    _say(json, content, f"round {record.number} ({record.label}) is released, {release.n} samples; {following}")


def result(
    file: Path, key: Path | None, out: Path | None, release: Path | None, authority: Path | None, json: bool
) -> None:
    """The posterior and the privacy report, from what the Computes released."""
    check_writable("--out", out, endings=(".json",))
    check_writable("--release", release, endings=(".json",))
    analyst = _reader(file, key, authority)
    study, done = analyst.study, _releases(analyst)
    plan, budget = _model(study)
    if (following := plan.next_round(budget, study.population.n, done)) is not None:
        raise InvalidInput(f"study must have released all its rounds, got {len(done)}; {following.label} is next")
    found, report = plan.result(budget, study.population.n, done)
    stored = StoredModel(list(plan.features), plan.target, found.posterior(), report.as_dict(), INTERVALS["auto"])
    if out is not None:
        stored.save(out)
    if release is not None:
        found.save(release)
    if json:
        print_json({"study": study.id, **stored.summary(), "n": done[-1].n, "privacy": report.as_dict()})
        return
    print_model(stored)
    console.print(str(report), markup=False)


def _open_next(analyst: Analyst, done: list[Release]) -> str | None:
    """Plan and open the round that follows from these releases; its label, or None where all are done."""
    plan, budget = _model(analyst.study)
    following = plan.next_round(budget, analyst.study.population.n, done)
    if following is None:
        return None
    rounds = analyst.catch_up()
    if rounds and rounds[-1].state == "open":
        return rounds[-1].record.label  # opened before, if not everywhere
    record = analyst.plan(
        len(rounds), following.statistic, following.noise_multiplier, following.label, following.steps
    )
    analyst.open_round(record)
    return following.label


def _releases(analyst: Analyst) -> list[Release]:
    """What all released rounds gave, in order; a round is left out where all Computes have signed its refusal."""
    from hubbub.service.client.contributor import rounds_of

    found = max((rounds_of(analyst.study, compute, analyst.web) for compute in analyst.study.computes), key=len)
    if found and found[-1].state == "open":
        found = found[:-1]
    done = []
    for each in found:
        with suppress(RoundRefused):
            done.append(analyst.release(each.record))
    return done


def _model(study: StudyRecord) -> tuple[RegressionPlan, Budget]:
    if study.budget is None:
        raise InvalidInput("study must have a budget, got a simulation; it has no result to report")
    return RegressionPlan.of(study.model), study.budget


def _say(json: bool, content: dict[str, object], line: str) -> None:
    if json:
        print_json(content)
    else:
        console.print(line, markup=False)


def web_to(authority: Path | None, seconds: float = 60.0) -> Web:
    """What asks the Computes; `authority` is a PEM file that their certificates are checked with."""
    with needs_service():
        from hubbub.service.node.config import verify_with
        from hubbub.service.wire.web import Patience, Web
    verify_with(authority)  # refuses a file that is no certificate in one line
    return Web.open(None if authority is None else str(authority), Patience(total=seconds))


def signed_study(file: Path) -> StudyRecord:
    """The study in the file, which its own analyst must have signed."""
    with needs_service():
        from hubbub.service.wire.records import read_study
    try:
        return read_study(file.read_bytes())
    except OSError as error:
        raise InvalidInput(f"study must be readable, got study={file}: {error.strerror}; check the path") from None
    except InvalidInput as error:
        raise InvalidInput(
            f"study must be the file that `hubbub study create` wrote, got study={file}: {error}"
        ) from None


def _analyst(file: Path, key: Path | None, authority: Path | None) -> Analyst:
    from hubbub.service.analyst.analyst import Analyst

    path = key or file.with_suffix(".key")
    study, secret = signed_study(file), _read_key(path)
    if secret.public() != study.analyst:
        raise InvalidInput(f"key must be the one that signed the study, got another in {path}; name it with --key")
    return Analyst(study, secret, web_to(authority))


def _reader(file: Path, key: Path | None, authority: Path | None) -> Analyst:
    """Whoever may read the sums: of a public study anybody, of another one the holder of the analyst's key."""
    study = signed_study(file)
    from hubbub.service.analyst.analyst import Analyst
    from hubbub.service.wire.signing import SigningKey

    if study.results == "public":
        return Analyst(study, SigningKey(bytes(32)), web_to(authority))  # reads only, so any key will do
    path = key or file.with_suffix(".key")
    if not path.exists():
        raise InvalidInput(
            "key must be the analyst's, who alone is served the results of this study, got no file "
            f"{path}; name it with --key"
        )
    return _analyst(file, path, authority)


def _read_key(path: Path) -> SigningKey:
    import json

    from hubbub.service.wire.signing import SigningKey

    try:
        return SigningKey(bytes.fromhex(json.loads(path.read_text())["sign"]))
    except (OSError, ValueError, KeyError, TypeError):
        raise InvalidInput(
            f"key must be the file that `hubbub study key` or `study create` wrote, got key={path}; name it with --key"
        ) from None


def _computes(entries: Any, web: Web) -> list[Any]:
    """Each entry is an address, or one with the fingerprint or verify key that the operator told by another way."""
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


def _write_tokens(path: Path, tokens: Mapping[str, tuple[bytes, int]]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["client", "token", "samples"])
        writer.writerows([name, token.hex(), samples] for name, (token, samples) in tokens.items())


def _invited(study: StudyRecord, path: Path) -> dict[str, tuple[bytes, int]]:
    """The clients' tokens, for as many clients and samples as the study was made for."""
    found = _read_tokens(path)
    counts = (len(found), sum(samples for _, samples in found.values()))
    if counts != (wanted := (study.population.clients, study.population.n)):
        raise InvalidInput(
            f"tokens must be of the study's {wanted[0]} clients with {wanted[1]} samples, got {counts[0]} with "
            f"{counts[1]} in {path}; give the file that was written with the study"
        )
    return found


def _read_tokens(path: Path) -> dict[str, tuple[bytes, int]]:
    try:
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
        return {row["client"]: (bytes.fromhex(row["token"]), int(row["samples"])) for row in rows}
    except (OSError, KeyError, ValueError, TypeError):
        raise InvalidInput(f"tokens must be the file that `hubbub study create` wrote, got tokens={path}") from None
