"""Where a study's results are for its analyst, a Compute serves its sum to the analyst's signature and to nobody else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest

from hubbub.errors import InvalidInput
from hubbub.service.analyst.analyst import Analyst
from hubbub.service.devnet import LocalComputes
from hubbub.service.node import agreement
from hubbub.service.node.answers import REQUEST_SECONDS, check_reader
from hubbub.service.wire.canonical import digest, sign_record, stamp
from hubbub.service.wire.endings import SumRequestRecord
from hubbub.service.wire.records import RoundRecord
from hubbub.service.wire.signing import SigningKey
from service.live import LiveStudy
from service.stage import M, Stage, make_stage
from service.test_node import code_of


@pytest.fixture
def closed(urls: list[str]) -> tuple[Stage, RoundRecord]:
    stage = make_stage(urls)
    stage.study = replace(stage.study, results="analyst")
    stage.register()
    record = stage.round()
    stage.run_to_rosters(record)
    stage.settle()
    return stage, record


def test_a_sum_is_for_the_analysts_fresh_request_to_this_compute(closed: tuple[Stage, RoundRecord]):
    stage, record = closed
    good = SumRequestRecord(digest(stage.study), digest(record), 1, stamp(stage.clock.now))

    def code(request: SumRequestRecord | None, key: SigningKey = stage.analyst) -> str:
        data = None if request is None else sign_record(request, key)
        return code_of(check_reader, stage.nodes[1], stage.id, 0, data)

    check_reader(stage.nodes[1], stage.id, 0, sign_record(good, stage.analyst))
    assert code(None) == "analyst-only"
    assert code(good, SigningKey.generate()) == "bad-signature"
    assert code(good, stage.nodes[1].keys.sign) == "bad-signature"
    assert code(replace(good, compute=0)) == "invalid-record"
    assert code(replace(good, round=bytes(32))) == "invalid-record"
    assert code(replace(good, study=bytes(32))) == "invalid-record"
    for off in (-REQUEST_SECONDS - 2, REQUEST_SECONDS + 2):
        assert code(replace(good, time=stamp(stage.clock.now + off))) == "stale-request"


def test_a_public_study_serves_everybody(stage: Stage):
    stage.open(stage.round())
    check_reader(stage.nodes[0], stage.id, 0, None)
    assert code_of(agreement.released_sum, stage.nodes[0], stage.id, 0) == "not-enough-reports"


def test_results_are_public_or_for_the_analyst(closed: tuple[Stage, RoundRecord]):
    stage, _ = closed
    assert stage.study.id != replace(stage.study, results="public").id
    with pytest.raises(InvalidInput, match="results must be public or analyst, got results='nobody'"):
        replace(stage.study, results="nobody")


@pytest.mark.slow
def test_over_http_the_analyst_alone_gets_the_total(live: LocalComputes, tmp_path: Path):
    study = LiveStudy(live, tmp_path)
    study.close_results()
    study.prepare()
    record = study.plan()
    study.analyst.open_round(record)
    study.send(record)
    study.analyst.close(record)
    np.testing.assert_array_equal(study.analyst.release(record).value, study.exact())
    for k in range(M):
        reply = httpx.get(study.url(k, "/rounds/0/sum"))
        assert (reply.status_code, reply.json()["code"]) == (403, "analyst-only")
    with pytest.raises(Exception, match="signature must be the analyst's"):
        Analyst(study.study, SigningKey.generate(), study.web).release(record)
