"""The report says what is promised, to whom, against whom, and what is not."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import replace

import numpy as np
import pytest

from hubbub.engines import LocalEngine, TrustedAggregator
from hubbub.privacy import Budget, EarlyPopulation, PrivacyReport, gaussian_round, shared_multipliers
from hubbub.privacy.report import Round
from hubbub.protocols import SecureSum
from hubbub.securesum import Additive, Replicated, Subset
from hubbub.statistics import Means

BUDGET = Budget(1.0, 1e-5)
ROWS = np.random.default_rng(0).uniform(-1, 1, size=(200, 2))


def report(engine: object = None, budget: Budget = BUDGET, rounds: int = 2) -> PrivacyReport:
    engine = LocalEngine(computes=3, tolerate=4) if engine is None else engine
    done = [
        Round(f"round {k}", engine.private_sum(ROWS, gaussian_round(Means((1.0, 1.0)), m)))  # type: ignore[attr-defined]
        for k, m in enumerate(shared_multipliers(budget, [1.0] * rounds))
    ]
    return PrivacyReport(budget, tuple(done))


def test_text_answers_a_data_protection_officers_questions():
    text = str(report(LocalEngine(computes=3, tolerate=4, absent=(7,))))
    for part in [
        "Guarantee:", "(epsilon=1, delta=1e-05)-differential privacy",
        "Unit of privacy:", "one sample (one row of data), whoever holds it", "Adjacency:", "replace-one",
        "epsilon 1 at delta 1e-05, 2 round(s)", "M = 3 Computes",
        "K = 200 clients, of whom D = 4 may be missing and C = 4 may collude, both at once",
        "1 missing", "4 colluding clients covered", "up to 4 colluding client(s)", "whoever goes missing", "Holds against", "up to 2 of the 3 Computes", "Not promised",
        "if all 3 Computes pool their shares", "noise of standard deviation", "one process", "operating system",
    ]:  # fmt: skip
        assert part in " ".join(text.split()), part
    assert "NOT A GUARANTEE" not in text
    assert max(len(line) for line in text.splitlines()) <= 100


def test_what_holds_against_computes_rests_on_the_trust_that_the_scheme_states():
    made = report(LocalEngine(secure_sum=Replicated(3, 2)))
    (against,) = (text for text in made.holds_against() if "Computes" in text)
    sentence = "no two of the three Computes pool what they hold, and none of them signs contradicting statements"
    assert "up to 1 of the 3 Computes that pool what they hold" in against
    assert f"as far as the trust is justified that {sentence}" in against
    assert str(made.as_dict()["trust"]).startswith(sentence)
    assert report(TrustedAggregator()).as_dict()["trust"] is None


@pytest.mark.parametrize(
    ("scheme", "allowed"),
    [
        (Additive(3), "3 Computes, of whom at least one must be honest"),
        (Subset(5, 3), "5 Computes, of whom at most 2 may pool what they hold Spent"),
        (Replicated(3, 2, 1), "3 Computes, of whom at most 1 may pool what they hold Spent"),
        (Replicated(3, 2), "3 Computes, of whom at most 1 may pool what they hold, and none may sign contradicting"),
        (Replicated(4, 2), "4 Computes, of whom at most 1 may pool what they hold, and at most 1 may sign contradicting"),
    ],
    ids=str,
)  # fmt: skip
def test_the_line_of_the_parties_says_what_each_compute_may_do(scheme: SecureSum, allowed: str):
    """It said "at least 2 must be honest" of 2 of 3, where a single dishonest one can have two lists summed."""
    said = " ".join(str(report(LocalEngine(secure_sum=scheme))).split())
    assert allowed in said.replace(" Rounds ", " Spent ").replace("statements Spent", "statements")


def test_the_number_of_exposed_clients_is_stated():
    (told,) = (text for text in report(LocalEngine(secure_sum=Subset(10, 2))).not_promised() if "reads the" in text)
    assert told.endswith("; of 200 clients these are about 4.4 with 2, 44 with 5, 160 with 9")


def test_spent_epsilon_is_the_composition_of_the_rounds():
    assert report(rounds=5).epsilon == pytest.approx(1.0, rel=1e-6)
    assert report().is_guarantee


def test_simulation_is_labelled():
    made = report(LocalEngine(seed=1))
    assert not made.is_guarantee
    assert "NOT A GUARANTEE" in str(made)
    assert "SIMULATION (seed 1)" in str(made)
    assert "In plain words" not in str(made)
    assert "Would hold against" in str(made)
    assert made.as_dict()["meaning"] is None
    assert len(made.reservations) == 1  # said once, not once per round


def test_too_many_simulated_colluders_are_labelled():
    made = report(LocalEngine(tolerate=1, colluders=(0, 1)))
    assert not made.is_guarantee
    assert "2 simulated colluders exceed the 1 covered" in str(made)
    assert report(LocalEngine(tolerate=2, colluders=(0, 1))).is_guarantee


def test_parties_and_whole_clients_are_stated():
    text = " ".join(str(report(LocalEngine(dropouts=1, colluding=2, holds=20))).split())
    assert "K = 10 clients holding N = 200 samples, of whom D = 1 may be missing and C = 2 may collude" in text
    assert "summed over 10 clients with 200 samples" in text
    assert "had one sample been any other" in text
    whole = " ".join(str(report(LocalEngine(holds=20, unit="client"))).split())
    assert "Unit of privacy: one client: all samples that it holds, together" in whole
    assert "differ in all samples of one client" in whole
    assert "had all samples of one client been any other" in whole


def test_a_study_of_an_earlier_version_counts_in_samples():
    """5 parties of 10 samples, T = 3: what 0.1 called 3 colluding clients are 3 samples, whoever holds them."""
    early = EarlyPopulation(200, 3, 3, 200, 10, theorem1=True, held=10)
    release = LocalEngine().private_sum(ROWS, gaussian_round(Means((1.0, 1.0)), shared_multipliers(BUDGET, [1.0])[0]))
    made = PrivacyReport(
        BUDGET, (Round("mean", replace(release, protection=replace(release.protection, population=early))),)
    )
    text = " ".join(str(made).split())
    assert "colluding clients who together hold up to 3 samples, together with" in text
    assert "N = 200 samples, of whose shares of noise T = 3 may be missing or told" in text
    assert "one client who holds k samples uses up k of them" in text
    assert "colluding client(s)" not in text


def test_theorem_1_is_said_to_be_that():
    made = report(LocalEngine(tolerate=4, theorem1=True, absent=(7,)))
    text = " ".join(str(made).split())
    assert "N = 200 clients, of whom T = 4 may collude or drop out (Theorem 1)" in text
    assert "up to 3 colluding client(s) together with" in text
    assert "an adversary who chooses who drops out" in text
    assert "whoever goes missing" not in text


@pytest.mark.parametrize("multiplier", [0.0, 0.5])
def test_noise_that_does_not_meet_the_budget_is_labelled(multiplier: float):
    """Classic calibration beyond its range, or no noise at all: the report does the sum itself."""
    release = LocalEngine().private_sum(ROWS, gaussian_round(Means((1.0, 1.0)), multiplier))
    made = PrivacyReport(BUDGET, (Round("mean", release),))
    assert not made.is_guarantee
    assert "more than the budget" in " ".join(str(made).split())


def test_meaning_is_said_in_plain_words():
    text = " ".join(str(report()).split())
    assert "at most 2.72 times as likely or unlikely, up to a probability of 1e-05" in text
    assert "all parties were simulated in one process" in text
    assert "covers one fit" in text


def test_caveats_of_the_caller_are_labelled():
    made = dataclasses.replace(report(), caveats=("x_bound was taken from the data",))
    assert "NOT A GUARANTEE: x_bound was taken from the data" in " ".join(str(made).split())


def test_trusted_aggregator_promises_nothing_against_itself():
    made = report(TrustedAggregator())
    assert "the trusted aggregator sees every sample" in " ".join(str(made).split())
    assert len(made.holds_against()) == 1


def test_large_delta_and_epsilon_get_a_warning():
    text = str(report(budget=Budget(8.0, 0.01)))
    assert "delta 0.01 is not below 1/N" in text
    assert "epsilon 8 is above 5" in text


def test_sealed_shares_name_their_suite():
    small = ROWS[:10]
    release = LocalEngine(seal=True).private_sum(small, gaussian_round(Means((1.0, 1.0)), 1.0))
    assert "sealed with X25519" in " ".join(str(PrivacyReport(BUDGET, (Round("mean", release),))).split())


def test_dictionary_is_json_and_says_the_same():
    made = report()
    content = json.loads(json.dumps(made.as_dict()))
    assert content["guarantee"] is True
    assert content["epsilon"] == pytest.approx(1.0, rel=1e-6)
    assert [content[k] for k in ("clients", "dropouts_covered", "colluders_covered", "computes")] == [200, 4, 4, 3]
    assert len(content["rounds"]) == 2
    assert content["rounds"][0]["noise_std"] > content["rounds"][0]["sigma_std"]
