"""Records: the same bytes everywhere, only canonical content, and a signature by the right key."""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace

import numpy as np
import pytest

from hubbub.errors import InvalidInput
from hubbub.privacy import (
    Budget,
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    GaussianEvent,
    GaussianMechanism,
    Population,
    SkellamMechanism,
)
from hubbub.protocols import Trust
from hubbub.securesum import Additive, PublicKey
from hubbub.service.client.consent import promise, what_leaves
from hubbub.service.wire.canonical import canonical, digest, read_signed, sign_record
from hubbub.service.wire.endings import RosterRecord
from hubbub.service.wire.messages import token_digest, token_for
from hubbub.service.wire.records import (
    ComputeRecord,
    EarlyRoundRecord,
    RoundRecord,
    StudyRecord,
    read_round,
    read_study,
)
from hubbub.service.wire.signing import SigningKey, verified
from hubbub.statistics import Means

ANALYST = SigningKey(bytes(range(32)))
COMPUTES = tuple(
    ComputeRecord(
        f"compute-{k}", f"https://compute-{k}.example", PublicKey("X25519", bytes([k + 1]) * 32), bytes([k]) * 32
    )
    for k in range(3)
)
STUDY = StudyRecord(
    "blood pressure",
    Population(100, 2, 1),
    COMPUTES,
    Budget(1.0, 1e-5),
    "2026-12-01T00:00:00Z",
    ANALYST.public(),
    {"kind": "x"},
    "1",
)
ROUND = RoundRecord(
    digest(STUDY),
    0,
    {"statistic": "means", "bounds": [1.0]},
    GaussianMechanism(2.0).describe(),
    20,
    0.5,
    "2026-11-30T00:00:00Z",
    "means",
)


MEANS = Means((1.0,))


def test_a_study_is_the_same_bytes_everywhere():
    assert STUDY.id == "675667bbcea1c4bb7d1e177a33b07fa3df0519dbf411e3ba30b3d3eccfb2d4b1"
    again = read_study(sign_record(STUDY, ANALYST))
    assert again == STUDY
    assert canonical(again.content()) == canonical(STUDY.content())
    shuffled = dict(reversed(list(STUDY.content().items())))
    assert canonical(shuffled) == canonical(STUDY.content())


@pytest.mark.parametrize(
    "changes",
    [
        {"title": "other"}, {"population": Population(101, 2, 1)}, {"population": Population(100, 1, 1)},
        {"population": Population(100, 2, 2)}, {"population": Population(100, 2, 1, samples=200)},
        {"population": Population(100, 2, 1, largest=2)}, {"population": Population(100, 2, 1, unit="client")},
        {"computes": COMPUTES[:2], "scheme": {}}, {"computes": COMPUTES[::-1]},
        {"budget": Budget(1.1, 1e-5)}, {"budget": None}, {"deadline": "2026-12-01T00:00:01Z"}, {"analysis": {}}, {"nonce": "2"},
        {"analyst": SigningKey.generate().public()},
    ],
)  # fmt: skip
def test_any_change_changes_the_name(changes):
    assert replace(STUDY, **changes).id != STUDY.id


PEOPLE = STUDY.content()["population"]


def tampered(**changes) -> bytes:
    content = json.loads(sign_record(STUDY, ANALYST))
    content["record"].update(changes)
    return canonical(content)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (tampered(population={**PEOPLE, "samples": 200}), "signature must be the analyst's"),
        (tampered(budget={"epsilon": 9.0, "delta": 1e-5}), "signature must be the analyst's"),
        (tampered(budget={"epsilon": 1, "delta": 1e-5}), "fields of this version"),
        (tampered(extra=1), "fields of this version"),
        (tampered(hubbub=3), "hubbub must be version 2"),
        (tampered(hubbub=True), "hubbub must be version 1"),
        (tampered(hubbub=1), "every field in its own type"),
        (tampered(deadline="tomorrow"), "deadline must be a time such as"),
        (tampered(population={**PEOPLE, "clients": "100"}), "clients must be a whole number"),
        (tampered(population={**PEOPLE, "clients": 1, "samples": 1}), "clients must be a whole number >= 2"),
        (tampered(population={**PEOPLE, "samples": 99}), "samples must be a whole number >= 100"),
        (tampered(population={**PEOPLE, "samples": 10**9}), "samples must be a whole number in 2"),
        (tampered(population={**PEOPLE, "dropouts": 98}), r"dropouts \+ colluders must be at most K - 2 = 98"),
        (tampered(population={**PEOPLE, "theorem1": True}), "fields of this version"),
        (tampered(population={**PEOPLE, "unit": "row"}), "unit must be 'sample' or 'client'"),
        (tampered(population=[100, 2, 1]), "every field in its own type"),
        (tampered(computes=[c.content() for c in COMPUTES[:1]]), "computes must be a whole number in 2"),
        (tampered(computes=[COMPUTES[0].content()] * 2), "computes must be distinct"),
        (tampered(computes=[{**COMPUTES[0].content(), "url": "file:///etc"}, COMPUTES[1].content()]), "url must be such as"),
        (tampered(computes=7), "every field in its own type"),
        (tampered(analyst="AB" * 32), "lower-case hexadecimal"),
        (b'{"record": {}, "signature": ""}', "every field in its own type"),
        (b'{"a": 1, "a": 2}', "without NaN or repeated fields"),
        (b'{"record": NaN, "signature": ""}', "without NaN or repeated fields"),
        (b"[" * 100_000, "without NaN or repeated fields"),
        (b"\xff", "without NaN or repeated fields"),
        (b"[]", "fields record and signature"),
    ],
)  # fmt: skip
def test_what_is_not_the_signed_study_is_refused_in_one_line(data: bytes, message: str):
    with pytest.raises(InvalidInput, match=message):
        read_study(data)


@pytest.mark.parametrize(
    ("population", "line"),
    [
        (Population(5), "for each sample, .*together with one more client and all but one of the 3 Computes above that pool what they hold$"),
        (Population(5, 1, 2), "together with up to 2 clients that collude, one more .*, whichever 1 of the 5 clients stay away"),
        (Population(5, samples=9, largest=4, unit="client"), "for all samples of a client together, "),
    ],
)  # fmt: skip
def test_the_promise_to_a_data_holder_says_against_whom(population: Population, line: str):
    assert re.search(line, promise(replace(STUDY, population=population))[0])


class Most(Additive):
    """A stranger's scheme, of which more than one Compute must be honest."""

    def trust(self) -> Trust:
        return Trust(self.computes, 1, "two of them are honest")


def test_the_promise_and_what_leaves_go_by_the_scheme(monkeypatch: pytest.MonkeyPatch):
    round_ = replace(
        ROUND, fraction_bits=20, sigma_client=GaussianMechanism(2.0).settled(MEANS, STUDY.population, 20).sigma_client
    )
    usual = what_leaves(round_, round_.checked(STUDY), np.zeros((1, 1)))[2]
    assert "3 shares, any 2 of which together tell nothing: 8 bytes to one Compute, 32 to each other one" in usual
    monkeypatch.setattr("hubbub.securesum.additive.Additive.trust", Most.trust)
    assert "one more client and any 1 of the 3 Computes above" in promise(STUDY)[0]
    assert promise(STUDY)[2].startswith("this rests on trust that two of them are honest; if more than 1 of these ")
    assert "any 1 of which together tell" in what_leaves(round_, round_.checked(STUDY), np.zeros((1, 1)))[2]


ELSEWHERE = {"package": "hubbub-elsewhere"}
NOT_INSTALLED = "of the package 'hubbub-elsewhere', which is not; install that from a source that you trust"


@pytest.mark.parametrize(
    "changes",
    [
        {"mechanism": {"mechanism": "laplace of theirs", "scale": 1.0, **ELSEWHERE}},
        {"statistic": {"statistic": "median of theirs", **ELSEWHERE}},
    ],
)
def test_a_round_whose_parts_are_not_installed_is_refused_in_one_line(changes: dict[str, object]):
    record = read_round(sign_record(replace(ROUND, **changes), ANALYST), STUDY)[0]
    (what,) = changes
    with pytest.raises(
        InvalidInput, match=f"{what} must be installed here, got {what}='.* of theirs' {NOT_INSTALLED}"
    ) as caught:
        record.checked(STUDY)
    assert "\n" not in str(caught.value)


def test_a_study_whose_scheme_is_not_installed_is_refused_in_one_line():
    scheme = {"scheme": "prime field", "computes": 3, **ELSEWHERE}
    with pytest.raises(
        InvalidInput, match=f"scheme must be installed here, got scheme='prime field' {NOT_INSTALLED}"
    ) as caught:
        read_study(tampered(scheme=scheme))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("scheme", "message"),
    [
        ({}, "scheme must be described in full"),
        ({"scheme": "unheard of"}, "scheme must be one of additive.*update hubbub"),
        ({"scheme": "additive"}, "scheme must be described in full"),
        ({"scheme": "additive", "computes": 2}, "scheme must be for the study's 3 Computes, got scheme=2"),
        ({"scheme": "additive", "computes": 3, "more": 1}, "scheme must be described as hubbub describes it"),
        ([1], "every field in its own type|scheme must be described by named values"),
    ],
)  # fmt: skip
def test_a_study_with_another_scheme_is_refused(scheme: object, message: str):
    with pytest.raises(InvalidInput, match=message):
        read_study(tampered(scheme=scheme))


@pytest.mark.parametrize("factor", [0.5, 1 - 1e-6, 1 + 1e-6, 0.0])
def test_a_round_that_misstates_its_noise_is_refused(factor: float):
    sigma = GaussianMechanism(2.0).settled(MEANS, STUDY.population, 20).sigma_client
    replace(ROUND, sigma_client=sigma).checked(STUDY)
    with pytest.raises(InvalidInput, match="sigma_client must be .*do not take part: the round misstates its noise"):
        replace(ROUND, sigma_client=factor * sigma).checked(STUDY)


def test_a_round_without_noise_is_for_simulations():
    silent = replace(ROUND, mechanism=GaussianMechanism(0.0).describe(), sigma_client=0.0)
    with pytest.raises(InvalidInput, match="sigma_client must be positive.*only a simulation has no noise"):
        silent.checked(STUDY)
    free = replace(STUDY, budget=None)
    assert replace(silent, study=digest(free)).checked(free).plan(0).noise.sigma_client == 0.0


def test_a_round_says_what_it_costs():
    sigma = GaussianMechanism(2.0).settled(MEANS, STUDY.population, 20).sigma_client
    assert replace(ROUND, sigma_client=sigma).event(STUDY) == GaussianEvent(2.0)


def test_a_round_of_version_1_belongs_to_a_study_of_version_1():
    early = EarlyRoundRecord(**{each.name: getattr(ROUND, each.name) for each in fields(ROUND)})
    with pytest.raises(InvalidInput, match="hubbub must be version 2, got hubbub=1"):
        early.checked(STUDY)
    with pytest.raises(InvalidInput, match="hubbub must be version 2"):
        read_round(sign_record(early, ANALYST), STUDY)


def test_a_signature_serves_one_purpose_only():
    roster = RosterRecord(digest(STUDY), digest(ROUND), 0, 1, ("a", "b"), "e1")
    data = sign_record(roster, ANALYST)
    record, signature = read_signed(data, RosterRecord)
    assert record == roster
    assert verified(ANALYST.public(), signature, RosterRecord.LABEL, canonical(roster.content()))
    assert not verified(ANALYST.public(), signature, RoundRecord.LABEL, canonical(roster.content()))


@pytest.mark.parametrize("clients", [["b", "a"], ["a", "a"], [1], "ab", ["\ud800"], ["a\n"], [""], ["a" * 200]])
def test_rosters_are_sorted_and_distinct_names(clients):
    content = {**RosterRecord(digest(STUDY), digest(ROUND), 0, 1, (), "e1").content(), "clients": clients}
    data = canonical({"record": content, "signature": "00" * 64})
    with pytest.raises(InvalidInput):
        read_signed(data, RosterRecord)


def test_keys_do_not_print():
    key = SigningKey.generate()
    assert key.data.hex() not in repr(key)
    assert str(list(key.data)) not in repr(key)


def test_a_compute_sees_a_token_of_its_own():
    token, seen = bytes(32), [token_for(bytes(32), compute.verify_key) for compute in COMPUTES]
    assert len({token, *seen, *map(token_digest, seen)}) == 7


# rounds with whole-number noise

LAWS = {
    "discrete-gaussian": (DiscreteGaussianMechanism(2.0), DiscreteGaussianMechanism(1.9)),
    "discrete-laplace": (DiscreteLaplaceMechanism(0.5), DiscreteLaplaceMechanism(0.52)),
    "skellam": (SkellamMechanism(2.0), SkellamMechanism(1.9)),
}


@pytest.mark.parametrize("name", LAWS)
def test_everybody_settles_the_noise_of_a_round_and_compares(name: str):
    """Less noise than stated, another law than the study's, one that is unknown here: each is one line."""
    law, less = LAWS[name]
    study = replace(STUDY, noise=name)
    noise = law.settled(MEANS, study.population)
    record = replace(
        ROUND, study=digest(study), mechanism=law.describe(), fraction_bits=noise.grid.fraction_bits,
        sigma_client=noise.sigma_client,
    )  # fmt: skip
    again, _ = read_round(sign_record(record, ANALYST), study)
    assert again.checked(study).plan(0).noise.describe() == noise.describe()
    assert again.event(study) == law.event()
    other = next(each for each in LAWS if each != name)
    for changes, message in [
        ({"mechanism": less.describe()}, "sigma_client must be .*the round misstates its noise"),
        ({"sigma_client": 0.999 * noise.sigma_client}, "sigma_client must be .*the round misstates its noise"),
        ({"mechanism": LAWS[other][0].describe()}, f"mechanism must be '{name}', as the study says"),
        ({"mechanism": {"mechanism": "pink", "noise_multiplier": 2.0}}, "mechanism must be one of .*; update hubbub"),
        (
            {"mechanism": {"mechanism": "pink", "package": "hubbub-paint"}},
            "of the package 'hubbub-paint', which is not",
        ),
        ({"mechanism": {"mechanism": name}}, "mechanism must be described in full"),
        ({"mechanism": {**law.describe(), "colour": "pink"}}, "mechanism must be described as hubbub describes it"),
        ({"fraction_bits": 62}, "fraction_bits must be"),
        ({"fraction_bits": -2}, "fraction_bits must be so large that the noise spans at least"),
    ]:
        with pytest.raises(InvalidInput, match=message) as caught:
            replace(record, **changes).checked(study)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("amount", [1e308, 1e290, 1e-290, 5e-324])
@pytest.mark.parametrize("bits", [-900, 0, 900])
def test_amounts_of_all_sizes_are_one_line(amount: float, bits: int):
    for mechanism in (DiscreteGaussianMechanism(amount), DiscreteLaplaceMechanism(amount), SkellamMechanism(amount)):
        name = str(mechanism.describe()["mechanism"])
        study = replace(STUDY, noise=name)
        record = replace(ROUND, study=digest(study), mechanism=mechanism.describe(), fraction_bits=bits)
        with pytest.raises(InvalidInput):
            record.checked(study)
