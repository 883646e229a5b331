"""One Compute's sum on Spark is the sum that the role itself would release."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hubbub.engines.spark.reports import OpenAndAdd, _called, mark, sum_reports
from hubbub.engines.spark.task import TaskSum, added
from hubbub.errors import InvalidInput, RoundRefused
from hubbub.privacy import Population
from hubbub.protocols import Share
from hubbub.randomness import Randomness
from hubbub.roles import ComputeSum, accept, combine_sums, contribute, release, roster_digest, start_sessions
from hubbub.securesum import Additive, Report, encode_report
from hubbub.securesum.additive import expanded
from roles.conftest import Stage, make_stage
from spark_support import shared_session

EVERYBODY = tuple(f"c{i}" for i in range(6))
Stored = Sequence[tuple[str, bytes]]


@pytest.fixture(scope="module")
def session():
    return shared_session()


@pytest.fixture
def stage() -> Stage:
    return make_stage(noise_multiplier=2.0)


def store(folder: Path, stored: Stored, files: int = 2) -> Path:
    for part in range(files):
        clients, reports = zip(*stored[part::files], strict=True)
        pq.write_table(
            pa.table({"client": clients, "report": pa.array(reports, pa.binary())}), folder / f"{part}.parquet"
        )
    return folder


def inbox(stage: Stage, index: int) -> list[tuple[str, bytes]]:
    return [(report.client, encode_report(report)) for report in stage.inbox(index)]


def same(ours: ComputeSum, theirs: ComputeSum) -> bool:
    plain = [dataclasses.replace(s, words=np.zeros(0)) for s in (ours, theirs)]
    return repr(plain[0]) == repr(plain[1]) and (ours.words == theirs.words).all() and ours.words.dtype == np.uint64


def test_the_sums_are_those_of_the_role_word_for_word(session, stage: Stage, tmp_path: Path):
    ours, theirs = [], []
    for k in range(3):
        reports = stage.inbox(k)
        (tmp_path / str(k)).mkdir()
        path = store(tmp_path / str(k), [(report.client, encode_report(report)) for report in reports])
        ours.append(sum_reports(session, path, stage.study, 0, k, stage.keys[k], EVERYBODY))
        theirs.append(release(accept(stage.compute(k), reports)[0], EVERYBODY)[1])
        assert same(ours[k], theirs[k])
        assert ours[k].roster == theirs[k].roster
    assert combine_sums(stage.study, 0, ours)[1] == (6, 6)


def test_only_the_roster_is_added_in_whatever_order(session, stage: Stage, tmp_path: Path):
    """A client that not all Computes hold is left out, and so are strangers and what nobody can read."""
    reports = inbox(stage, 0)
    roster = ("c4", "c0", "c1", "c2", "c5")
    stored = [*reports[::-1], ("stranger", b"rubbish"), ("c9", reports[0][1])]
    ours = sum_reports(session, store(tmp_path, stored, 3), stage.study, 0, 0, stage.keys[0], roster)
    held = accept(stage.compute(0), map(decode, reports))[0]
    assert same(ours, release(held, roster)[1])


def test_a_long_roster_can_stay_in_spark(session, stage: Stage, tmp_path: Path):
    """The same digest, with names whose bytes and code points order them."""
    reports = inbox(stage, 0)
    roster = ("c4", "c0", "c1", "c2", "c5")
    frame = session.createDataFrame([(client,) for client in roster], "client string")
    path = store(tmp_path, [*reports, ("c9", b"rubbish")])
    ours = sum_reports(session, path, stage.study, 0, 0, stage.keys[0], frame)
    assert same(ours, release(accept(stage.compute(0), map(decode, reports))[0], roster)[1])
    for wrong, reason in (
        (roster[:4], "too-few-clients"),
        ((*roster, "c0"), "unknown-client"),
        ((*roster[1:], "c7"), "unknown-client"),
    ):
        with pytest.raises(RoundRefused) as caught:
            frame = session.createDataFrame([(client,) for client in wrong], "client string")
            sum_reports(session, path, stage.study, 0, 0, stage.keys[0], frame)
        assert caught.value.reason == reason


def test_spark_orders_names_as_the_digest_does(session, stage: Stage):
    names = ("z", "a", "B", "é", "e\u0301", "\U0001f600", "\uffee", "a b", "aa", "中")
    frame = session.createDataFrame([(name,) for name in names], "client string")
    study = dataclasses.replace(stage.study, population=Population(10), rounds=())
    compute = dataclasses.replace(stage.compute(0), study=study)
    assert _called(compute, frame, b"key", None).digest == roster_digest(study, 0, names)


def decode(stored: tuple[str, bytes]) -> Report:
    from hubbub.securesum import decode_report

    return decode_report(stored[1])


def test_reports_in_a_session_are_opened_too(session, stage: Stage, tmp_path: Path):
    reports = [
        contribute(stage.study, 1, client, sample, Randomness.system(), sessions=start_sessions(stage.study, client))[2]
        for client, sample in stage.samples.items()
    ]
    path = store(tmp_path, [(report.client, encode_report(report)) for report in reports])
    ours = sum_reports(session, path, stage.study, 1, 2, stage.keys[2], EVERYBODY)
    assert same(ours, release(accept(stage.compute(2, 1), reports)[0], EVERYBODY)[1])


def refused(session, stage: Stage, path: Path, roster: tuple[str, ...] = EVERYBODY) -> RoundRefused:
    with pytest.raises(RoundRefused) as caught:
        sum_reports(session, path, stage.study, 0, 0, stage.keys[0], roster)
    return caught.value


def test_a_missing_client_is_refused(session, stage: Stage, tmp_path: Path):
    error = refused(session, stage, store(tmp_path, inbox(stage, 0)[1:]))
    assert error.reason == "unknown-client"
    assert "got 5 good ones (rejected: none); nothing was released" in str(error)


def test_a_client_stored_twice_is_refused(session, stage: Stage, tmp_path: Path):
    reports = inbox(stage, 0)
    error = refused(session, stage, store(tmp_path, [*reports, reports[2]]))
    assert (error.reason, "got 7 good ones" in str(error)) == ("unknown-client", True)


@pytest.mark.parametrize("named", ["c3", "c5"])
def test_one_twice_and_one_missing_is_refused_though_the_number_is_right(
    session, stage: Stage, tmp_path: Path, named: str
):
    """The second report of c3 stands where that of c5 should: under its own name, or under that of c5."""
    reports = inbox(stage, 0)
    error = refused(session, stage, store(tmp_path, [*reports[:5], (named, reports[3][1])]))
    assert (error.reason, "got 6 good ones" in str(error)) == ("unknown-client", True)


def test_what_the_role_rejects_is_not_added_and_counted_by_reason(session, stage: Stage, tmp_path: Path):
    wrong = [
        encode_report(make_stage().reports("c0")[0]),
        encode_report(stage.reports("c1", number=1)[0]),
        encode_report(stage.reports("c2")[1]),
        encode_report(dataclasses.replace(stage.reports("c3")[0], sealed=b"rubbish")),
        b"rubbish",
    ]
    stored = [*((f"c{i}", data) for i, data in enumerate(wrong)), ("c5", encode_report(stage.reports("c5")[0]))]
    error = refused(session, stage, store(tmp_path, stored))
    for reason in ("wrong-study", "wrong-round", "wrong-recipient", "cannot-open", "malformed"):
        assert f"1 {reason}" in str(error)
    assert "got 1 good ones" in str(error)


def test_a_bad_report_beside_a_good_one_changes_nothing(session, stage: Stage, tmp_path: Path):
    """As with the role: rubbish sent in somebody's name does not keep that client out."""
    reports = inbox(stage, 0)
    ours = sum_reports(
        session, store(tmp_path, [*reports, ("c1", b"rubbish")]), stage.study, 0, 0, stage.keys[0], EVERYBODY
    )
    assert same(ours, release(accept(stage.compute(0), map(decode, reports))[0], EVERYBODY)[1])


@pytest.mark.parametrize(
    ("roster", "reason"),
    [
        (EVERYBODY[:4], "too-few-clients"),
        ((*EVERYBODY, "c9"), "too-many-clients"),
        ((*EVERYBODY[:5], "c0"), "unknown-client"),
    ],
)
def test_rosters_are_checked_before_any_report_is_opened(stage: Stage, roster: tuple[str, ...], reason: str):
    with pytest.raises(RoundRefused) as caught:
        sum_reports(None, "nowhere", stage.study, 0, 0, stage.keys[0], roster)
    assert caught.value.reason == reason


def test_files_of_another_shape_are_one_line(session, stage: Stage, tmp_path: Path):
    pq.write_table(pa.table({"client": ["c0"], "bytes": ["x"]}), tmp_path / "x.parquet")
    with pytest.raises(InvalidInput, match="reports must have columns client string, report binary, got client string"):
        sum_reports(session, tmp_path / "x.parquet", stage.study, 0, 0, stage.keys[0], EVERYBODY)
    with pytest.raises(InvalidInput, match="reports must be Parquet, got path=.*Path does not exist"):
        sum_reports(session, tmp_path / "none", stage.study, 0, 0, stage.keys[0], EVERYBODY)


def test_marks_depend_on_client_and_key():
    words = [tuple(mark(client, key)) for client in ("a", "b") for key in (b"1", b"2")]
    assert len(set(words)) == 4
    assert tuple(mark("a", b"1")) == words[0]


class Modulo(Additive):
    """A scheme whose sums are merged in another group than Z/2^64, and are one word longer than the vectors."""

    PRIME = np.uint64(2**61 - 1)

    def empty(self, dimension: int) -> np.ndarray:
        return np.zeros(dimension + 1, dtype=np.uint64)

    def accumulate(self, total: np.ndarray, share: Share) -> None:
        total[:-1] += expanded(share) % np.uint64(1000)
        total[-1] += np.uint64(1)

    def merge(self, total: np.ndarray, part: np.ndarray) -> None:
        np.remainder(total + part, self.PRIME, out=total)


def test_marks_and_counts_are_added_apart_from_the_shares(stage: Stage):
    """A scheme may add in a prime field, which would spoil sums of marks that go up to 2^64."""
    study = dataclasses.replace(stage.study, scheme=Modulo(3))
    other = dataclasses.replace(stage, study=study)
    task = OpenAndAdd(other.compute(0), b"key")
    reports = [encode_report(report) for report in other.inbox(0)]
    parts = [task.record(reports[:3]), task.record([*reports[3:], b"rubbish"])]
    total = added(parts, study.secure_sum)
    assert (total.clients, total.words.size, int(total.words[-1])) == (6, 3, 6)
    marks = sum((mark(client, b"key") for client in EVERYBODY), np.zeros(2, dtype=np.uint64))
    assert (total.counts[:2] == marks).all()
    assert total.counts[2:].tolist() == [0, 0, 0, 0, 1, 0]
    assert TaskSum.of(*total.row(0)[1:]).counts.tolist() == total.counts.tolist()
