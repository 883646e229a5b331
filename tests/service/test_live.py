"""Real Compute processes over HTTP: what they answer, what they refuse, and what they count."""

from __future__ import annotations

import contextlib
import json
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import httpx
import numpy as np
import pytest

from hubbub.errors import InvalidInput, ReportRejected, RoundRefused
from hubbub.privacy import Budget, shared_multipliers
from hubbub.randomness import Randomness
from hubbub.roles import contribute
from hubbub.securesum import Report, Session, encode_report, join_reports, start_session
from hubbub.service.client.client import send_together
from hubbub.service.client.consent import what_leaves
from hubbub.service.client.outbox import Outbox
from hubbub.service.client.rounds import current_round
from hubbub.service.devnet import LocalComputes
from hubbub.service.node.compute import Limits
from hubbub.service.node.store import Store
from hubbub.service.wire.canonical import digest, sign_record
from hubbub.service.wire.endings import RosterRecord
from hubbub.service.wire.messages import REPORT_TYPE
from hubbub.service.wire.problems import Problem
from hubbub.service.wire.signing import SigningKey
from hubbub.service.wire.web import Patience, Unreachable, Web
from service.live import LiveStudy, N
from service.postgres import PrivatePostgres

pytestmark = pytest.mark.slow


@pytest.fixture
def study(live: LocalComputes, tmp_path: Path) -> LiveStudy:
    made = LiveStudy(live, tmp_path)
    made.prepare()
    return made


@pytest.fixture
def opened(study: LiveStudy):
    record = study.plan()
    study.analyst.open_round(record)
    return study, record


def post(study: LiveStudy, record, k: int, body: bytes, *, kind=REPORT_TYPE) -> httpx.Response:
    headers = {"content-type": kind}
    return httpx.post(study.url(k, f"/rounds/{record.number}/reports"), content=body, headers=headers, timeout=20)


def refused(reply: httpx.Response, status: int, code: str) -> None:
    assert reply.headers["content-type"] == "application/problem+json"
    content = reply.json()
    assert (reply.status_code, content["status"], content["code"]) == (status, status, code), content
    assert content["detail"]
    assert "\n" not in content["detail"]


def report_for(study: LiveStudy, record, name: str, k: int) -> bytes:
    """What the client made and stored, without sending it."""
    client = study.clients[name]
    parcels = study.outbox.parcels(study.study.id, name, record.number, digest(record))
    if not parcels:
        parcels = client._make(record, record.checked(study.study), study.rows(name))
        study.outbox.put(study.study.id, name, record.number, digest(record), record.event(study.study), parcels)
    return next(parcel.body for parcel in parcels if parcel.compute == k)


def test_a_study_from_first_to_last(opened):
    study, record = opened
    assert current_round(study.study, study.web) == record
    study.send(record)
    reply = httpx.get(study.url(0, "/rounds/0/sum"))
    refused(reply, 409, "round-open")
    study.analyst.close(record)
    release = study.analyst.release(record)
    np.testing.assert_array_equal(release.value, study.exact())
    assert release.n == N
    assert release.protection.setting.name == "network"
    first, second = (httpx.get(study.url(1, "/rounds/0/sum")).content for _ in range(2))
    assert first == second


def test_not_enough_reports_yet_is_unlike_any_other_answer(opened):
    study, record = opened
    study.send(record, ["c0", "c1"])
    reply = httpx.get(study.url(2, "/rounds/0/sum"))
    refused(reply, 409, "not-enough-reports")
    assert int(reply.headers["retry-after"]) > 0
    assert "at least 5, got 2" in reply.json()["detail"]


def test_too_few_clients_end_in_a_refusal_that_everybody_understands(opened):
    study, record = opened
    study.send(record, ["c0", "c1"])
    study.analyst.close(record)
    with pytest.raises(RoundRefused, match="at least 5 .*got 2"):
        study.analyst.release(record)
    with pytest.raises(ReportRejected, match="by its word your report is deleted there"):
        study.send(record, ["c3"])
    following = study.plan(1)
    study.analyst.open_round(following)
    study.send(following)
    study.analyst.close(following)
    np.testing.assert_array_equal(study.analyst.release(following).value, study.exact())


def test_a_refused_round_costs_nothing_and_is_run_again(live: LocalComputes, tmp_path: Path):
    budget = Budget(1.0, 1e-5)
    study = LiveStudy(live, tmp_path, budget)
    study.prepare()
    (multiplier,) = shared_multipliers(budget, [1.0])
    refused_round, again = study.plan(0, multiplier), study.plan(1, multiplier)
    study.analyst.open_round(refused_round)
    study.send(refused_round, ["c0", "c1"])
    with pytest.raises(InvalidInput, match="budget must cover all rounds"):
        study.clients["c0"].contribute(again, study.rows("c0"))
    study.analyst.close(refused_round)
    with pytest.raises(RoundRefused):
        study.analyst.release(refused_round)
    study.analyst.open_round(again)
    study.send(again)
    study.analyst.close(again)
    assert study.analyst.release(again).n == N


def test_two_rounds_within_the_budget_and_a_third_beyond_it(live: LocalComputes, tmp_path: Path):
    budget = Budget(1.0, 1e-5)
    study = LiveStudy(live, tmp_path, budget)
    study.prepare()
    for number, multiplier in enumerate(shared_multipliers(budget, [1.0, 1.0])):
        record = study.plan(number, multiplier)
        study.analyst.open_round(record)
        study.send(record)
        study.analyst.close(record)
        release = study.analyst.release(record)
        assert abs(release.value - study.exact()).max() < 8 * release.noise_std
    with pytest.raises(Problem, match="budget must cover the round") as problem:
        study.analyst.open_round(study.plan(2, 100.0))
    assert problem.value.code == "over-budget"
    with pytest.raises(InvalidInput, match="budget must cover all rounds.*do not take part"):
        study.clients["c0"].contribute(study.plan(2, 100.0), study.rows("c0"))


def test_parties_with_many_samples_send_one_report(live: LocalComputes, tmp_path: Path):
    study = LiveStudy(live, tmp_path, samples={"hospital": 450, "clinic": 30, "me": 1})
    study.prepare()
    record = study.plan()
    study.analyst.open_round(record)
    study.send(record)
    study.analyst.close(record)
    release = study.analyst.release(record)
    assert release.n == 481
    np.testing.assert_array_equal(release.value, study.exact())


def test_a_study_on_postgresql(postgres: PrivatePostgres, tmp_path: Path):
    databases = [postgres.database() for _ in range(2)]
    with LocalComputes(tmp_path / "nodes", 2, limits=Limits(simulation=True), databases=databases) as computes:
        study = LiveStudy(computes, tmp_path)
        study.prepare()
        record = study.plan()
        study.analyst.open_round(record)
        study.send(record)
        computes.computes[1].kill()
        computes.computes[1].start()
        study.analyst.close(record)
        np.testing.assert_array_equal(study.analyst.release(record).value, study.exact())


ATTACKS = {
    "truncated": (lambda good: good[:-1], 400, "malformed"),
    "bit-flipped": (lambda good: good[:-60] + bytes([good[-60] ^ 1]) + good[-59:], 422, "cannot-open"),
    "with bytes too many": (lambda good: good + b"\0", 400, "malformed"),
    "empty": (lambda good: b"", 400, "malformed"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_damaged_reports_are_refused_and_counted(opened, name: str):
    study, record = opened
    damage, status, code = ATTACKS[name]
    before = study.counter(0, code)
    refused(post(study, record, 0, damage(report_for(study, record, "c0", 0))), status, code)
    assert study.counter(0, code) == before + 1
    assert post(study, record, 0, report_for(study, record, "c0", 0)).json() == {"samples": 1, "new": True}


def test_misdirected_replayed_and_repeated_reports(opened):
    study, record = opened
    counters = (
        "wrong-recipient",
        "wrong-study",
        "duplicate",
        "unknown-client",
        "wrong-session",
        "cannot-open",
    )
    before = {code: study.counter(0, code) for code in counters}
    refused(post(study, record, 0, report_for(study, record, "c0", 1)), 422, "wrong-recipient")
    other = study.plan(1)
    for_other_round = study.clients["c2"]._make(other, other.checked(study.study), study.rows("c2"))[0].body
    refused(post(study, record, 0, for_other_round), 422, "wrong-study")
    assert post(study, record, 0, report_for(study, record, "c3", 0)).status_code == 200
    assert post(study, record, 0, report_for(study, record, "c3", 0)).json()["new"] is False
    second = study.clients["c3"]._make(record, record.checked(study.study), study.rows("c3"))[0].body
    refused(post(study, record, 0, second), 409, "duplicate")
    stranger = Report(record.checked(study.study).digest, 0, "nobody", 0, b"sealed", bytes(32))
    refused(post(study, record, 0, encode_report(stranger)), 403, "unknown-client")
    role, own = record.checked(study.study), start_session(study.study.computes[0].key, digest(study.study), "c0", 0)
    known = study.clients["c0"].identity.sessions[0].short()
    forged = [own, own.short(), Session(known.opening, own.secret)]
    for session, code, status in zip(
        forged, ("wrong-session", "wrong-session", "cannot-open"), (401, 401, 422), strict=True
    ):
        report = contribute(role, 0, "c0", study.rows("c0"), Randomness.system(), sessions=[session] * 3)[0]
        refused(post(study, record, 0, encode_report(report)), status, code)
    rises = {"wrong-session": 2}
    assert {code: study.counter(0, code) - before[code] for code in counters} == {c: rises.get(c, 1) for c in counters}


def test_a_batch_of_several_clients_reports(opened):
    """What is wrong with one of them is said and counted; the others are taken. More than the most are refused."""
    study, record = opened
    reports = [report_for(study, record, name, 0) for name in study.clients]
    before = study.counter(0, "malformed"), study.counter(0, "wrong-recipient")
    bodies = [*reports[:2], b"nonsense", report_for(study, record, "c0", 1), *reports[2:]]
    reply = post(study, record, 0, join_reports(bodies))
    content = reply.json()
    refusals = [(each["report"], each["code"]) for each in content.pop("refused")]
    assert refusals == [(2, "malformed"), (3, "wrong-recipient")]
    assert content == {"taken": len(reports), "new": len(reports), "samples": len(reports)}
    again = post(study, record, 0, join_reports(reports)).json()
    assert again == {"taken": len(reports), "new": 0, "samples": len(reports), "refused": []}
    refused(post(study, record, 0, join_reports([b"x"] * 1001)), 400, "malformed")
    assert (study.counter(0, "malformed"), study.counter(0, "wrong-recipient")) == (before[0] + 2, before[1] + 1)
    send_together(list(study.clients.values()), record)
    study.analyst.close(record)
    assert study.analyst.release(record).n == len(reports)


def test_a_roster_longer_than_the_studys_names_is_not_read(opened):
    study, _ = opened
    headers = {"content-type": "application/json"}
    reply = httpx.post(study.url(0, "/rounds/0/rosters"), content=b" " * 3000, headers=headers)
    refused(reply, 413, "too-large")
    assert "at most 2818 bytes" in reply.json()["detail"]


def test_a_forged_roster_is_refused_and_counted(opened):
    study, record = opened
    study.send(record)
    study.analyst.close(record)
    study.analyst.release(record)
    roster = RosterRecord(digest(study.study), digest(record), 0, 1, ("c0",), "e")
    before = study.counter(0, "bad-signature")
    forged = sign_record(roster, SigningKey.generate())
    refused(
        httpx.post(study.url(0, "/rounds/0/rosters"), content=forged, headers={"content-type": "application/json"}),
        401,
        "bad-signature",
    )
    assert study.counter(0, "bad-signature") == before + 1


def test_addresses_types_and_headers_that_are_wrong(opened):
    study, record = opened
    url = study.url(0)
    refused(httpx.get(f"{study.study.computes[0].url}/v1/nothing"), 404, "not-found")
    refused(httpx.get(study.url(0, "/rounds/9/sum")), 404, "not-found")
    refused(httpx.get(study.url(0, f"/rounds/{10**30}/sum")), 404, "not-found")
    refused(httpx.get(url.replace(study.study.id, "ab" * 32)), 404, "not-found")
    refused(httpx.delete(url), 405, "method-not-allowed")
    refused(httpx.post(f"{study.study.computes[0].url}/v1/studies", content=b"{}"), 415, "unsupported-type")
    refused(
        httpx.post(study.url(0, "/rounds/0/reports"), content=b"x", headers={"content-type": REPORT_TYPE}),
        400,
        "malformed",
    )
    post_json = {"content-type": "application/json"}
    refused(
        httpx.post(f"{study.study.computes[0].url}/v1/studies", content=b"{", headers=post_json), 422, "invalid-record"
    )
    refused(httpx.post(study.url(0, "/enrolments"), content=b"[1]", headers=post_json), 400, "malformed")
    refused(
        httpx.post(study.url(0, "/rounds/0/rosters"), content=sign_record(record, study.key), headers=post_json),
        422,
        "invalid-record",
    )


def test_oversized_bodies_are_refused_before_they_are_read(opened):
    study, _ = opened
    before = study.counter(0, "too-large")
    host = httpx.URL(study.study.computes[0].url)
    with socket.create_connection((host.host, host.port), timeout=10) as connection:
        path = f"/v1/studies/{study.study.id}/rounds/0/reports"
        head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: {REPORT_TYPE}\r\ncontent-length: 999999999999\r\n\r\n"
        connection.sendall(head.encode())
        assert connection.recv(4096).startswith(b"HTTP/1.1 413")
    assert study.counter(0, "too-large") == before + 1
    body = (b"x" * 1_000_000 for _ in range(20))
    with contextlib.suppress(httpx.TransportError):  # it may hang up while the body is still coming
        reply = httpx.post(
            study.url(0, "/rounds/0/reports"), content=body, headers={"content-type": REPORT_TYPE}, timeout=20
        )
        refused(reply, 413, "too-large")
    assert httpx.get(f"{study.study.computes[0].url}/v1/health").json() == {"status": "alive"}


def test_a_client_that_died_before_sending_resends_the_same_bytes(opened, tmp_path: Path):
    """The client process is killed after it has stored its reports, and after the first of them was sent."""
    study, record = opened
    made = report_for(study, record, "c0", 0), report_for(study, record, "c0", 2)
    assert post(study, record, 0, made[0]).json() == {"samples": 1, "new": True}
    again = Outbox(study.outbox.path)
    parcels = again.parcels(study.study.id, "c0", 0, digest(record))
    assert [p.body for p in parcels if p.compute in (0, 2)] == list(made)
    study.clients["c0"].contribute(record, study.rows("c0") * 0)
    study.send(record, ["c1", "c2", "c3", "c4", "c5"])
    study.analyst.close(record)
    np.testing.assert_array_equal(study.analyst.release(record).value, study.exact())


def test_a_client_refuses_a_round_that_changed_under_its_number(opened):
    study, record = opened
    study.send(record, ["c0"])
    other = study.plan(0, 1.0)
    with pytest.raises(InvalidInput, match="round 0 must be the one that c0 has answered.*do not take part"):
        study.clients["c0"].contribute(other, study.rows("c0"))


def test_a_compute_that_does_not_answer_is_named(study: LiveStudy):
    web = Web.open(None, Patience(total=0.5))
    with pytest.raises(Unreachable, match=r"Compute must answer within 0.5 s.*run the same command again"):
        web.get("http://127.0.0.1:9/v1/keys")


def test_what_leaves_the_machine_is_told_beforehand(opened):
    study, record = opened
    lines = what_leaves(record, record.checked(study.study), study.rows("c0"))
    assert "2 number(s) from each of 1 sample(s)" in lines[0]
    assert "16 bytes to one Compute, 32 to each other one" in lines[2]


def test_logs_are_json_and_hold_no_secret(live: LocalComputes, opened):
    study, record = opened
    study.send(record, ["c0"])
    httpx.post(study.url(0, "/enrolments"), content=b"[1]", headers={"content-type": "application/json"})
    time.sleep(0.2)
    text = (live.computes[0].folder / "log.jsonl").read_text()
    for line in text.splitlines():
        assert json.loads(line)["event"]
    keys = json.loads((live.computes[0].folder / "keys.json").read_text())
    for secret in (
        keys["seal"],
        keys["sign"],
        study.tokens["c0"][0].hex(),
        study.clients["c0"].identity.key.data.hex(),
    ):
        assert secret not in text
    assert (live.computes[0].folder / "keys.json").stat().st_mode & 0o77 == 0


CLIENT_ALONE = """
import sys, json
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"scipy", "sklearn", "starlette", "uvicorn", "sqlalchemy", "rich", "cyclopts", "matplotlib", "dp_accounting"}:
            raise ImportError(f"{name} must not be needed")
sys.meta_path.insert(0, Blocker())
from pathlib import Path
import numpy as np
from hubbub.service.client.client import Client
from hubbub.service.client.outbox import Outbox
from hubbub.service.wire.records import read_study
from hubbub.service.wire.web import Web
study = read_study(Path(sys.argv[1]).read_bytes())
client = Client(study, "c0", Outbox(sys.argv[2]), Web.open())
client.enrol(bytes.fromhex(sys.argv[3]))
print(client.contribute(client.current_round(), np.array([[1.0, 0.0]])))
"""


def test_the_client_library_needs_numpy_cryptography_and_httpx_only(live: LocalComputes, tmp_path: Path):
    budget = Budget(1.0, 1e-5)
    study = LiveStudy(live, tmp_path, budget)
    study.analyst.register()
    study.analyst.invite(study.tokens)
    study.analyst.open_round(study.plan(0, shared_multipliers(budget, [1.0])[0]))
    (tmp_path / "study.json").write_bytes(sign_record(study.study, study.key))
    command = [
        sys.executable,
        "-c",
        CLIENT_ALONE,
        tmp_path / "study.json",
        tmp_path / "o.db",
        study.tokens["c0"][0].hex(),
    ]
    out = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    assert out.stdout.strip() == "1", out.stderr


PARENT = """
import sys, time
from pathlib import Path
from hubbub.service.devnet import LocalComputes
with LocalComputes(Path(sys.argv[1]), 2) as computes:
    print(*[compute.process.pid for compute in computes.computes], flush=True)
    time.sleep(60)
"""


def test_computes_on_this_machine_end_with_whoever_started_them(tmp_path: Path):
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    children = [Path(f"/proc/{pid}") for pid in parent.stdout.readline().split()]
    assert len(children) == 2
    assert all(child.exists() for child in children)
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 20
    while any(child.exists() for child in children) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(child.exists() for child in children)


def test_a_database_of_another_version_is_refused_in_one_line(tmp_path: Path):
    path = tmp_path / "old.db"
    with sqlite3.connect(path) as old:
        old.execute("CREATE TABLE reports (study TEXT, number INTEGER, client TEXT, digest BLOB, body BLOB)")
    with pytest.raises(InvalidInput, match="database must be made by this version of hubbub.*no locked in reports"):
        Store(f"sqlite:///{path}")
