"""Every course that the agreement of three or four Computes can take, in a small model of it.

What is left out only makes the model allow more: whichever Compute still may, signs whichever of two rosters, at any
time, for whatever reason. A signed agreement may reach another Compute at any time or never, from its signer or from
anybody who holds it. A Compute may be gone for good at any time (or refuse the round, after which it signs, releases and
tells nothing: the same to all others), and may be down for a while and come back with what it had stored. Who lies has
signed both rosters and tells everybody what they like to hear.

So what holds in all courses of the model holds in those of the nodes, as long as these sign once and release only what a
quorum has signed (`agreement.sign`, `agreement._agreed`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from hubbub.securesum.threshold import quorum_of

ROSTERS = ("A", "B")


class Node(NamedTuple):
    """What an honest Compute has stored, and whether it runs."""

    signed: str = ""
    """The roster of its one agreement."""
    holds: frozenset[int] = frozenset()
    """Whose agreements on the same roster it holds, its own among them."""
    released: bool = False
    runs: bool = True


class State(NamedTuple):
    nodes: tuple[Node | None, ...]
    """Of the honest Computes; None is gone for good."""
    released: frozenset[str] = frozenset()
    """Over which rosters an honest Compute has released its sum, be it gone since or not."""
    refused: int = 0
    """How many honest Computes have refused before they signed an agreement, and signed that they refused."""


class Model(NamedTuple):
    computes: int
    quorum: int
    liars: int = 0
    restarts: bool = False
    refusals: bool = False

    @property
    def honest(self) -> int:
        """The first ones; the others lie."""
        return self.computes - self.liars

    def steps(self, state: State) -> Iterator[State]:
        """Whatever can happen next."""
        for place, node in enumerate(state.nodes):
            if node is None:
                continue
            yield changed(state, place, None)
            if self.restarts:
                yield changed(state, place, node._replace(runs=not node.runs))
            if not node.runs:
                continue
            if not node.signed:
                if self.refusals:
                    yield changed(state, place, None)._replace(refused=state.refused + 1)
                for roster in ROSTERS:
                    yield changed(state, place, Node(roster, frozenset({place})))
                continue
            for other in self.heard(state, node) - node.holds:
                yield changed(state, place, node._replace(holds=node.holds | {other}))
            if len(node.holds) >= self.quorum and not node.released:
                after = changed(state, place, node._replace(released=True))
                yield after._replace(released=state.released | {node.signed})

    def heard(self, state: State, node: Node) -> frozenset[int]:
        """Whose agreements on the same roster this Compute may get now."""
        told = [other.holds for other in state.nodes if other and other.runs and other.signed == node.signed]
        return frozenset(range(self.honest, self.computes)).union(*told)

    def reached(self, gone: int = 0) -> Iterator[State]:
        """All states from the start on, each once, where so many honest ones are gone from the start."""
        start = State(tuple(None if place < gone else Node() for place in range(self.honest)))
        found, last = {start}, [start]
        while last:
            state = last.pop()
            yield state
            new = set(self.steps(state)) - found
            found |= new
            last += new

    def both(self) -> bool:
        """True where both rosters are released in some course."""
        return any(state.released == BOTH for state in self.reached())

    def released(self, gone: int = 0) -> set[frozenset[str]]:
        """Over which rosters honest Computes have released, in all courses."""
        return {state.released for state in self.reached(gone)}


def changed(state: State, place: int, node: Node | None) -> State:
    return state._replace(nodes=(*state.nodes[:place], node, *state.nodes[place + 1 :]))


NOTHING, BOTH = frozenset[str](), frozenset(ROSTERS)
CASES = [(3, 0), (3, 1), (4, 0), (4, 1)]


@pytest.mark.parametrize(("computes", "cheating"), CASES)
def test_two_rosters_are_never_released(computes: int, cheating: int):
    model = Model(computes, quorum_of(2, computes, cheating), cheating, restarts=computes - cheating < 4)
    assert model.released() == {NOTHING, frozenset("A"), frozenset("B")}


@pytest.mark.parametrize(("computes", "cheating"), CASES)
def test_with_one_signature_less_they_are(computes: int, cheating: int):
    """So the model can tell the difference."""
    assert Model(computes, quorum_of(2, computes, cheating) - 1, cheating).both()


def test_with_one_more_liar_than_was_reckoned_with_they_are():
    """2 of 3 with f = 0 is safe against crashes alone. (4 Computes need three signatures for f = 0, and for f = 1.)"""
    assert Model(3, quorum_of(2, 3, 0), 1).both()
    assert not Model(4, quorum_of(2, 4, 0), 1).both()
    assert Model(4, quorum_of(2, 4, 1), 2).both()


@pytest.mark.parametrize(("computes", "cheating"), CASES)
def test_a_release_is_possible_while_a_quorum_is_left(computes: int, cheating: int):
    """The model's liars sign whatever is asked for; without them the honest ones are as many as must sign or fewer."""
    quorum = quorum_of(2, computes, cheating)
    for gone in range(computes + 1):
        possible = any(state.released for state in Model(computes, quorum).reached(gone))
        assert possible == (gone <= computes - quorum)


@pytest.mark.parametrize(("computes", "cheating"), CASES)
def test_where_a_quorum_has_signed_its_refusal_nobody_releases(computes: int, cheating: int):
    """Who lies has signed a refusal, too."""
    quorum = quorum_of(2, computes, cheating)
    reached = set(Model(computes, quorum, cheating, refusals=True).reached())
    most = max(state.refused + cheating for state in reached if state.released)
    assert most < quorum
    assert any(state.refused + cheating >= quorum for state in reached)
