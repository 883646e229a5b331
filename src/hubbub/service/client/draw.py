"""How a client and an analyst get the draw of a study from its Computes, and check it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar
from urllib.parse import quote

from hubbub.errors import InvalidInput
from hubbub.service.wire.canonical import read_json
from hubbub.service.wire.draw import Draw, check_listed, drawn_study, most_draw
from hubbub.service.wire.merkle import Proof
from hubbub.service.wire.problems import Problem
from hubbub.service.wire.records import ComputeRecord, StudyRecord
from hubbub.service.wire.web import Unreachable, Web

T = TypeVar("T")


def found_draw(study: StudyRecord, name: str, samples: int, web: Web) -> bytes:
    """The draw, checked, with a proof that this client is on its list; from those who serve the client, if they answer.

    The name is sent to Computes that were given it with the invitation.
    """
    data = fetched_draw(study, web)
    drawn = drawn_study(study, data)
    serving = [study.computes[place] for place in drawn.secure_sum.recipients(name)]
    _check_listed(study, Draw.decode(data), serving, name, samples, web)
    return data


def fetched_draw(study: StudyRecord, web: Web) -> bytes:
    """The draw, with all its signatures checked, from the first Compute that has it; or the problem not-drawn."""

    def ask(compute: ComputeRecord) -> bytes:
        url = f"{compute.url}/v1/studies/{study.id}/draw"
        data = web.get(url, most=most_draw(len(study.computes))).content
        drawn_study(study, data)
        return data

    return _first(study.computes, ask)


def _check_listed(
    study: StudyRecord, draw: Draw, serving: Sequence[ComputeRecord], name: str, samples: int, web: Web
) -> None:
    """Refuse the draw unless one of these Computes proves that the client is on its list."""

    def ask(compute: ComputeRecord) -> None:
        url = f"{compute.url}/v1/studies/{study.id}/listing?client={quote(name, safe='')}"
        content = read_json(web.get(url).content)
        if not isinstance(content, dict):
            raise InvalidInput("proof must be a JSON object, got something else; ask another Compute")
        check_listed(study, draw, name, samples, Proof.of(content))

    _first(serving, ask)


def _first(computes: Sequence[ComputeRecord], ask: Callable[[ComputeRecord], T]) -> T:
    """The first answer, or what the last of them said."""
    last: Exception = InvalidInput("study must have Computes, got none; make it again")
    for compute in computes:
        try:
            return ask(compute)
        except (Problem, Unreachable, InvalidInput) as error:
            last = error
    raise last
