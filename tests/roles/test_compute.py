"""A Compute takes good reports once, and releases once."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from hubbub.errors import CannotCombine, InvalidInput, OutOfDomainWarning, ReportRejected, RoundRefused
from hubbub.privacy import Budget
from hubbub.protocols import SecureSum
from hubbub.randomness import Randomness
from hubbub.roles import (
    accept,
    agree,
    combine_sums,
    contribute,
    open_report,
    read_report,
    read_roster,
    refuse,
    release,
    roster_digest,
    roster_of,
    run_round,
    sum_over,
)
from hubbub.securesum import Additive, Context, Replicated, Report, Subset, encode_report, encode_share, seal
from hubbub.securesum.additive import expanded
from roles.conftest import Stage, make_stage
from seams import masked

EVERYBODY = tuple(f"c{i}" for i in range(6))


def reasons(stage: Stage, reports: list[Report]) -> list[str]:
    _, rejected = accept(stage.compute(0), reports)
    return [error.reason for error in rejected]


def test_good_reports_are_held_and_no_state_is_changed_in_place(stage: Stage):
    before = stage.compute(0)
    after, rejected = accept(before, stage.inbox(0))
    assert rejected == []
    assert roster_of(after) == EVERYBODY
    assert roster_of(before) == ()


def test_duplicate_is_rejected_and_the_first_report_kept(stage: Stage):
    first, second = stage.reports("c1")[0], stage.reports("c1")[0]
    state, rejected = accept(stage.compute(0), [first, second])
    assert [error.reason for error in rejected] == ["duplicate"]
    again, rejected = accept(state, [second])
    assert [error.reason for error in rejected] == ["duplicate"]
    only, _ = accept(stage.compute(0), [first])
    assert (expanded(again.held["c1"]) == expanded(only.held["c1"])).all()


def test_wrong_study_round_or_recipient_is_rejected(stage: Stage):
    mine = stage.reports("c1")
    assert reasons(stage, [make_stage().reports("c1")[0]]) == ["wrong-study"]
    assert reasons(stage, [stage.reports("c1", number=1)[0]]) == ["wrong-round"]
    assert reasons(stage, [mine[1]]) == ["wrong-recipient"]


def test_relabelled_report_does_not_open(stage: Stage):
    """A share cannot be replayed in another study, round, or under another name: the seal is bound to them."""
    mine = stage.reports("c1")
    other_round = dataclasses.replace(stage.reports("c1", number=1)[0], round=0)
    other_compute = dataclasses.replace(mine[1], compute=0)
    other_client = dataclasses.replace(mine[0], client="c2")
    other_study = dataclasses.replace(make_stage().reports("c1")[0], study=stage.study.digest)
    for report in (other_round, other_compute, other_client, other_study):
        assert reasons(stage, [report]) == ["cannot-open"]


@pytest.mark.parametrize("position", [0, 20, 40, -1])
def test_tampered_bytes_are_rejected(stage: Stage, position: int):
    report = stage.reports("c1")[0]
    sealed = bytearray(report.sealed)
    sealed[position] ^= 0x80
    assert reasons(stage, [dataclasses.replace(report, sealed=bytes(sealed))]) == ["cannot-open"]
    assert reasons(stage, [dataclasses.replace(report, sealed=report.sealed[:-1])]) == ["cannot-open"]


@pytest.mark.parametrize("dimension", [1, 3])
def test_wrong_length_is_rejected(stage: Stage, dimension: int):
    """Properly sealed, but with more or fewer numbers than the study has."""
    share = masked(np.zeros(dimension, dtype=np.uint64))
    context = Context(stage.study.digest, 0, "c1", 0)
    sealed = seal(encode_share(share), stage.study.keys[0], context)
    assert reasons(stage, [Report(stage.study.digest, 0, "c1", 0, sealed)]) == ["malformed"]


def test_a_bad_report_does_not_stop_the_good_ones(stage: Stage):
    inbox = stage.inbox(0)
    inbox[2] = dataclasses.replace(inbox[2], sealed=b"rubbish")
    state, rejected = accept(stage.compute(0), inbox)
    assert len(rejected) == 1
    assert roster_of(state) == tuple(c for c in EVERYBODY if c != "c2")


def test_roster_is_the_intersection(stage: Stage):
    rosters = [EVERYBODY, tuple(c for c in EVERYBODY if c != "c3"), EVERYBODY]
    assert agree(stage.study, rosters) == tuple(c for c in EVERYBODY if c != "c3")


def test_fewer_than_n_minus_t_clients_are_refused(stage: Stage):
    lost = [EVERYBODY[1:], EVERYBODY[:-1], EVERYBODY]
    with pytest.raises(RoundRefused, match=r"clients must number at least 5 .*got 4") as caught:
        agree(stage.study, lost)
    assert caught.value.reason == "too-few-clients"
    state, _ = accept(stage.compute(0), stage.inbox(0))
    with pytest.raises(RoundRefused, match="at least 5"):
        release(state, EVERYBODY[:4])


def test_more_clients_than_enrolled_are_refused(stage: Stage):
    with pytest.raises(RoundRefused) as caught:
        agree(stage.study, [(*EVERYBODY, "c9")] * 3)
    assert caught.value.reason == "too-many-clients"


def test_releases_the_same_again_but_never_for_another_roster(stage: Stage):
    state, _ = accept(stage.compute(0), stage.inbox(0))
    state, first = release(state, EVERYBODY)
    state, second = release(state, EVERYBODY)
    assert second is first
    with pytest.raises(RoundRefused) as caught:
        release(state, EVERYBODY[:5])
    assert caught.value.reason == "second-roster"
    assert release(state, EVERYBODY)[1] is first


def test_after_release_the_shares_are_gone_and_no_report_is_taken(stage: Stage):
    state, _ = accept(stage.compute(0), stage.inbox(0, leave_out=("c5",)))
    state, _ = release(state, EVERYBODY[:5])
    assert state.held == {}
    _, rejected = accept(state, [stage.reports("c5")[0]])
    assert [error.reason for error in rejected] == ["closed"]


def test_refused_round_deletes_the_shares_and_never_releases(stage: Stage):
    state, _ = accept(stage.compute(0), stage.inbox(0))
    refused = refuse(state)
    assert refused.held == {}
    with pytest.raises(RoundRefused) as caught:
        release(refused, EVERYBODY)
    assert caught.value.reason == "refused"
    _, rejected = accept(refused, stage.inbox(0))
    assert {error.reason for error in rejected} == {"closed"}
    released, _ = release(state, EVERYBODY)
    assert refuse(released) is released  # too late: what is out is out


@pytest.mark.parametrize("roster", [(*EVERYBODY[:5], "stranger"), (*EVERYBODY[:5], "c0")])
def test_roster_with_a_stranger_or_a_double_is_refused(stage: Stage, roster: tuple[str, ...]):
    state, _ = accept(stage.compute(0), stage.inbox(0))
    with pytest.raises(RoundRefused) as caught:
        release(state, roster)
    assert caught.value.reason == "unknown-client"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (EVERYBODY[:5], "roster must hold distinct clients of this Compute, 1 are not"),
        ((), "roster must hold distinct clients of this Compute, 6 are not"),
        ((*EVERYBODY, "c0"), "shares must be of clients of the roster, each once"),
        ((*EVERYBODY[:5], "c0"), "shares must be of clients of the roster, each once"),
        ((*EVERYBODY[:5], "stranger"), "shares must be of clients of the roster, each once"),
    ],
    ids=["missing", "all missing", "double", "one missing, one double", "foreign"],
)
def test_a_sum_is_over_the_roster_or_there_is_none(stage: Stage, names: tuple[str, ...], message: str):
    state, _ = accept(stage.compute(0), stage.inbox(0))
    shares = ((name, state.held.get(name, state.held["c0"])) for name in names)
    with pytest.raises(RoundRefused, match=message) as caught:
        sum_over(stage.compute(0), EVERYBODY, None, shares)
    assert caught.value.reason == "unknown-client"


@pytest.mark.parametrize("roster", [(*EVERYBODY[:5], "c0"), EVERYBODY[:4], (*EVERYBODY, "c6")])
def test_no_share_is_asked_for_where_the_roster_is_wrong(stage: Stage, roster: tuple[str, ...]):
    with pytest.raises(RoundRefused):
        sum_over(stage.compute(0), roster, None, iter(lambda: pytest.fail("a share was asked for"), None))


def test_shares_may_come_in_any_order_and_one_by_one(stage: Stage):
    state, _ = accept(stage.compute(0), stage.inbox(0))
    streamed = sum_over(stage.compute(0), EVERYBODY, None, reversed(state.held.items()))
    _, released = release(state, EVERYBODY)
    assert (streamed.words == released.words).all()
    assert (streamed.roster, streamed.turnout) == (released.roster, released.turnout)


def test_a_roster_read_name_by_name_has_the_same_digest_and_the_same_refusals(stage: Stage):
    assert read_roster(stage.study, 0, iter(EVERYBODY)) == (6, roster_digest(stage.study, 0, EVERYBODY))
    with pytest.raises(RoundRefused, match="roster must hold distinct clients"):
        read_roster(stage.study, 0, iter(["c0", "c1", "c1", "c2", "c3"]))
    with pytest.raises(RoundRefused, match="at least 5"):
        read_roster(stage.study, 0, iter(EVERYBODY[:4]))


def test_a_report_is_read_from_its_bytes_and_opened_with_the_key_alone(stage: Stage):
    compute, report = stage.compute(0), stage.reports("c1")[0]
    assert read_report(compute, encode_report(report)) == report
    assert expanded(open_report(compute, report)).size == 2
    for data, reason in ((b"rubbish", "malformed"), (encode_report(stage.reports("c1")[1]), "wrong-recipient")):
        with pytest.raises(ReportRejected) as caught:
            read_report(compute, data)
        assert caught.value.reason == reason


def test_sums_that_do_not_belong_together_are_refused(stage: Stage):
    states = [accept(stage.compute(k), stage.inbox(k))[0] for k in range(3)]
    sums = [release(state, EVERYBODY)[1] for state in states]
    other = release(states[0], EVERYBODY[:5])[1]
    for wrong, reason in [
        (sums[:2], "missing-compute"),
        ([sums[0], sums[1], sums[1]], "missing-compute"),
        ([*sums, sums[0]], "missing-compute"),
        ([other, *sums[1:]], "rosters-differ"),
        ([dataclasses.replace(sums[0], round=1), *sums[1:]], "wrong-study"),
        ([dataclasses.replace(sums[0], study=bytes(32)), *sums[1:]], "wrong-study"),
        ([dataclasses.replace(sums[0], words=sums[0].words[:1]), *sums[1:]], "wrong-length"),
        ([dataclasses.replace(each, words=each.words[:1]) for each in sums], "wrong-length"),
    ]:
        with pytest.raises(CannotCombine) as caught:
            combine_sums(stage.study, 0, wrong)
        assert caught.value.reason == reason


@pytest.mark.parametrize("scheme", [Additive(3), Subset(3, 3, "a seed"), Replicated(3, 2)], ids=str)
def test_who_states_other_clients_than_most_is_named(stage: Stage, scheme: SecureSum):
    """Also where the others' sums are not enough without it; Computes count from 1."""
    study = dataclasses.replace(stage.study, scheme=scheme)
    sums = [release(accept(stage.compute(k), stage.inbox(k))[0], EVERYBODY)[1] for k in range(3)]
    sums = [dataclasses.replace(each, study=study.digest) for each in sums]
    remedy = "combine the sums of the others" if scheme == Replicated(3, 2) else "start a new round"
    more = sums[1].turnout._replace(samples=sums[1].turnout.samples + 1)
    for lie in ({"roster": bytes(32)}, {"turnout": more}):
        wrong = [sums[0], dataclasses.replace(sums[1], **lie), sums[2]]
        match = f"another roster in 1 of 3, of Compute 2; ask the operator, and {remedy}"
        with pytest.raises(CannotCombine, match=match) as caught:
            combine_sums(study, 0, wrong)
        assert (caught.value.reason, caught.value.computes) == ("rosters-differ", (1,))
    wrong = [dataclasses.replace(each, roster=bytes([k]) * 32) for k, each in enumerate(sums)]
    with pytest.raises(CannotCombine, match="got 3 rosters of Compute 1, 2, 3 and none that most state; ask") as caught:
        combine_sums(study, 0, wrong)
    assert caught.value.computes == ()


def test_roster_digest_depends_on_study_round_and_clients_not_on_their_order(stage: Stage):
    digest = roster_digest(stage.study, 0, EVERYBODY)
    assert digest == roster_digest(stage.study, 0, EVERYBODY[::-1])
    others = [(stage.study, 1, EVERYBODY), (stage.study, 0, EVERYBODY[1:]), (make_stage().study, 0, EVERYBODY)]
    assert digest not in [roster_digest(*other) for other in others]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_sample_that_is_not_finite_takes_part_as_zero_and_nobody_but_its_client_is_told(value: float):
    stage = make_stage()
    samples = {**stage.samples, "c0": np.array([1.0, value])}
    with pytest.warns(OutOfDomainWarning, match="sample of c0 must be finite numbers to count, got 1 of 1") as caught:
        words, present = run_round(stage.study, 0, stage.keys, samples, Randomness.system())
    assert "inf" not in str(caught[0].message).replace("finite", "")
    assert "nan" not in str(caught[0].message)
    zero = {**stage.samples, "c0": np.zeros(2)}
    assert present == (len(samples), len(samples))
    assert (words == run_round(stage.study, 0, stage.keys, zero, Randomness.system())[0]).all()


def test_client_refuses_a_study_that_spends_more_than_its_own_budget():
    stage = make_stage(noise_multiplier=5.0)
    sample, randomness = stage.samples["c0"], Randomness.system()
    assert len(contribute(stage.study, 0, "c0", sample, randomness, budget=Budget(2.0, 1e-5))) == 3
    with pytest.raises(InvalidInput, match=r"budget must cover the study's 2 round\(s\)"):
        contribute(stage.study, 0, "c0", sample, randomness, budget=Budget(0.5, 1e-5))
    with pytest.raises(InvalidInput, match="budget must cover"):
        contribute(make_stage().study, 0, "c0", sample, randomness, budget=Budget(100.0, 1e-5))  # no noise at all


def test_state_and_sum_show_no_secret(stage: Stage):
    state, _ = accept(stage.compute(0), stage.inbox(0))
    _, published = release(state, EVERYBODY)
    for text in (repr(state), repr(published)):
        assert stage.keys[0].data.hex() not in text
        assert "array" not in text
