"""Whom a Compute serves: analysts and other Computes that its operator has named, within quotas, at plain addresses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hubbub.cli import main
from hubbub.errors import InvalidInput
from hubbub.privacy import Population
from hubbub.service.node import compute as node
from hubbub.service.node.compute import Node
from hubbub.service.node.config import init_compute, read_config, read_keys
from hubbub.service.node.serve import serve
from hubbub.service.node.trust import Named, TrustList, read_trust, write_trust
from hubbub.service.wire.canonical import sign_record, stamp
from hubbub.service.wire.problems import Problem
from hubbub.service.wire.records import ComputeRecord, check_origin
from hubbub.service.wire.signing import SigningKey
from service.stage import M, Stage, make_stage


@pytest.fixture
def wary(tmp_path: Path) -> Stage:
    """A stage whose first Compute trusts whom its file names: nobody so far."""
    stage = make_stage([f"sqlite:///{tmp_path}/compute-{k}.db" for k in range(M)], studies=4, studies_per_analyst=2)
    stage.nodes[0] = replace(stage.nodes[0], trust=TrustList(tmp_path / "trust.json"))
    return stage


def names(stage: Stage) -> Named:
    found = Named().with_analyst(stage.analyst.public())
    for compute in stage.study.computes[1:]:
        found = found.with_peer(compute.verify_key, compute.url)
    return found


def refused(compute: Node, study, key: SigningKey) -> Problem:
    with pytest.raises(Problem) as problem:
        node.register_study(compute, sign_record(study, key))
    return problem.value


def test_nobody_is_taken_until_named_and_naming_needs_no_restart(wary: Stage, tmp_path: Path):
    first, trust = wary.nodes[0], tmp_path / "trust.json"
    problem = refused(first, wary.study, wary.analyst)
    assert problem.code == "not-allowed"
    assert wary.analyst.public().hex() in str(problem)
    write_trust(trust, Named().with_analyst(wary.analyst.public()))
    assert "compute-1 must be one that this Compute's operator has named" in str(
        refused(first, wary.study, wary.analyst)
    )
    write_trust(trust, names(wary))
    assert node.register_study(first, sign_record(wary.study, wary.analyst)).new
    write_trust(trust, names(wary).without(wary.analyst.public()))
    with pytest.raises(Problem, match="analyst must be one"):
        node.open_round(first, wary.id, sign_record(wary.round(), wary.analyst))


def test_a_named_compute_counts_only_at_the_address_it_was_named_with(wary: Stage, tmp_path: Path):
    """A study cannot send this Compute to another address under a trusted key."""
    write_trust(tmp_path / "trust.json", names(wary))
    own, second, third = wary.study.computes
    inside = replace(wary.study, computes=(own, replace(second, url="http://169.254.169.254"), third))
    problem = refused(wary.nodes[0], inside, wary.analyst)
    assert problem.code == "not-allowed"
    assert "named with http://compute-1.example:8000" in str(problem)


def test_a_trust_file_that_cannot_be_read_trusts_nobody(wary: Stage, tmp_path: Path):
    (tmp_path / "trust.json").write_text('{"analysts": 7, "peers": {}}')
    assert refused(wary.nodes[0], wary.study, wary.analyst).code == "not-ready"


def test_one_analyst_cannot_lock_out_another_and_ended_studies_do_not_count(tmp_path: Path):
    urls = [f"sqlite:///{tmp_path}/compute-{k}.db" for k in range(M)]
    stage = make_stage(urls, studies=3, studies_per_analyst=2)
    first, other = stage.nodes[0], SigningKey.generate()
    soon = stamp(stage.clock.now + 100)
    for nonce in "ab":
        node.register_study(first, sign_record(replace(stage.study, nonce=nonce, deadline=soon), stage.analyst))
    problem = refused(first, replace(stage.study, nonce="c"), stage.analyst)
    assert (problem.code, "for one analyst" in str(problem)) == ("too-many", True)
    theirs = replace(stage.study, analyst=other.public())
    assert node.register_study(first, sign_record(theirs, other)).new
    third = SigningKey.generate()
    assert refused(first, replace(stage.study, analyst=third.public()), third).code == "too-many"
    stage.clock.now += 101
    assert node.register_study(first, sign_record(replace(stage.study, nonce="c"), stage.analyst)).new


def test_clients_of_one_analyst_are_counted_over_its_studies(tmp_path: Path):
    stage = make_stage([f"sqlite:///{tmp_path}/compute-{k}.db" for k in range(M)], clients_per_analyst=11)
    node.register_study(stage.nodes[0], sign_record(stage.study, stage.analyst))
    problem = refused(stage.nodes[0], replace(stage.study, nonce="b"), stage.analyst)
    assert "must number at most 11, got 12" in str(problem)


def test_a_study_whose_roster_might_not_fit_is_refused_at_registration(tmp_path: Path):
    stage = make_stage([f"sqlite:///{tmp_path}/compute-{k}.db" for k in range(M)])
    problem = refused(stage.nodes[0], replace(stage.study, population=Population(10**6)), stage.analyst)
    assert problem.code == "too-many"
    assert "a roster of their names fits 32000000 bytes" in str(problem)


BAD = [
    "http://a.example/v1", "http://a.example/", "http://a.example?x", "http://a.example#x", "http://a.example:80/#x",
    "http://user@a.example", "http://user:word@a.example", "http://A.example", "ftp://a.example", "http://", "a.example",
    "http://a.example:", "http://a.example:0", "http://a.example:99999", "http://a example", "http://a.example\\x",
    "http://[::1", "http://ä.example", "http://.a", "http://a.example:8000#",
]  # fmt: skip


def test_an_address_is_scheme_host_and_port_and_nothing_else(tmp_path: Path):
    """Also where a study says it: its Computes call one another there."""
    stage = make_stage([f"sqlite:///{tmp_path}/compute-{k}.db" for k in range(M)])
    for url in BAD:
        study = replace(
            stage.study, computes=(stage.study.computes[0], replace(stage.study.computes[1], url=url)), scheme={}
        )
        with pytest.raises(InvalidInput, match="url must be such as"):
            node.register_study(stage.nodes[0], sign_record(study, stage.analyst))


@pytest.mark.parametrize("url", ["http://a", "https://a-b.example.org:8443", "http://127.0.0.1:1", "http://[::1]:8000"])
def test_plain_addresses_are_taken(url: str):
    assert check_origin(url) == url


def test_the_command_names_shows_and_forgets(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    config = init_compute(tmp_path / "one", "one")
    analyst, other = (SigningKey.generate().public().hex() for _ in range(2))

    def trust(*arguments: str) -> dict:
        assert main(["compute", "trust", *arguments, "--config", str(config), "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    assert trust("--list") == {"analysts": {}, "peers": {}}
    trust(analyst, "--name", "the registry")
    found = trust(other, "--peer", "https://b.example:8443")
    assert found == {
        "analysts": {analyst: "the registry"}, "peers": {other: {"url": "https://b.example:8443", "name": ""}},
    }  # fmt: skip
    assert read_trust(tmp_path / "one" / "trust.json").content() == found
    assert (tmp_path / "one" / "trust.json").stat().st_mode & 0o77 == 0
    assert trust(analyst, "--remove")["analysts"] == {}
    for bad in ([other, "--peer", "https://b.example/path"], ["12"], [], [analyst, "--remove"]):
        assert main(["compute", "trust", *bad, "--config", str(config)]) == 2


def test_an_analysts_key_is_made_once_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "analyst.key"
    shown = []
    for _ in range(2):
        assert main(["study", "key", str(file), "--json"]) == 0
        shown.append(json.loads(capsys.readouterr().out)["key"])
    assert shown[0] == shown[1] == SigningKey(bytes.fromhex(json.loads(file.read_text())["sign"])).public().hex()
    assert file.stat().st_mode & 0o77 == 0
    assert main(["study", "key", str(file)]) == 0
    assert shown[0] in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("name", ["compute.toml", "keys.json", "trust.json", "compute.db", "compute.db-wal"])
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o602])
def test_files_that_others_can_reach_keep_a_compute_from_starting(tmp_path: Path, name: str, mode: int):
    config = init_compute(tmp_path / "one", "one")
    write_trust(tmp_path / "one" / "trust.json", Named())
    file = tmp_path / "one" / name
    file.touch(0o600)
    file.chmod(mode)
    with pytest.raises(InvalidInput, match=rf"{name} must be readable .* got mode 0{mode:o}; run: chmod 600 {file}$"):
        serve(config)


def test_a_folder_of_round_keys_that_others_can_reach_keeps_a_compute_from_starting(tmp_path: Path):
    config, keys = init_compute(tmp_path / "one", "one"), tmp_path / "one" / "round-keys"
    keys.mkdir(0o755)
    with pytest.raises(InvalidInput, match=rf"round-keys must be .* got mode 0755; run: chmod 700 {keys}$"):
        serve(config)


def test_what_a_compute_makes_is_its_owners_alone(tmp_path: Path):
    config = read_config(init_compute(tmp_path / "one", "one"))
    compute = config.node()
    with compute.store.write() as connection:
        connection.exec_driver_sql("CREATE TABLE x (y)")
        modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "one").iterdir()}
    assert modes.pop("round-keys") == 0o700
    assert modes.pop("draws") == 0o700
    assert set(modes) == {"compute.toml", "keys.json", "compute.db", "compute.db-wal", "compute.db-shm"}
    assert set(modes.values()) == {0o600}
    config.check_private(tmp_path / "one" / "compute.toml")
    compute.store.close()


def test_a_fresh_compute_trusts_nobody(tmp_path: Path):
    """The defaults of `hubbub compute init`, end to end but for HTTP."""
    config = read_config(init_compute(tmp_path / "one", "one"))
    keys = read_keys(config.keys)
    stage = make_stage([f"sqlite:///{tmp_path}/compute-{k}.db" for k in range(M)])
    own = ComputeRecord("one", "http://one.example", keys.seal.public(), keys.sign.public())
    study = replace(stage.study, computes=(own, *stage.study.computes[1:]))
    assert refused(config.node(), study, stage.analyst).code == "not-allowed"
