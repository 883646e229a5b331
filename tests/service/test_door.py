"""Who gives way to whom: connections at the door, and bodies that are being read."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator

import pytest

from hubbub.service.node.bodies import Bodies
from hubbub.service.node.door import Guest, Guests, origin_of
from hubbub.service.wire.problems import Problem

TYPE = "application/octet-stream"
HEADERS = [(b"content-type", TYPE.encode())]


class Lobby:
    """Guests with real sockets."""

    def __init__(self) -> None:
        self.ends = list[socket.socket]()

    def arrive(self, guests: Guests, address: str) -> Guest | None:
        mine, theirs = socket.socketpair()
        self.ends += [mine, theirs]
        guest = guests.admit(mine, address)
        if guest is not None:
            self.ends.append(guest)
            time.sleep(0.001)  # so that one has waited longer than the next
        return guest


@pytest.fixture
def lobby() -> Iterator[Lobby]:
    made = Lobby()
    yield made
    for end in made.ends:
        end.close()


def is_open(guest: Guest | None) -> bool:
    assert guest is not None
    guest.setblocking(False)
    try:
        return guest.recv(1) != b""
    except BlockingIOError:
        return True


def test_one_address_has_so_many_places_and_its_oldest_that_waits_gives_way(lobby: Lobby):
    guests = Guests(100, 3, 10.0)
    first, second, third = (lobby.arrive(guests, "192.0.2.1") for _ in range(3))
    first.due = None  # it is being served
    other, fourth = lobby.arrive(guests, "192.0.2.2"), lobby.arrive(guests, "192.0.2.1")
    assert [is_open(each) for each in (first, second, third, other, fourth)] == [True, False, True, True, True]
    third.due = fourth.due = None
    assert lobby.arrive(guests, "192.0.2.1") is None
    assert lobby.arrive(guests, "192.0.2.2") is not None
    third.close()
    assert lobby.arrive(guests, "192.0.2.1") is not None


def test_when_all_places_are_taken_the_address_with_most_gives_one_up(lobby: Lobby):
    guests = Guests(4, 3, 10.0)
    many = [lobby.arrive(guests, "192.0.2.1") for _ in range(3)]
    one = lobby.arrive(guests, "192.0.2.2")
    newcomer = lobby.arrive(guests, "192.0.2.3")
    assert len(guests) == 4
    assert [is_open(each) for each in (*many, one, newcomer)] == [False, True, True, True, True]
    for each in (*many, one, newcomer):
        each.due = None
    assert lobby.arrive(guests, "192.0.2.4") is None


def test_a_proxy_may_have_more_and_a_network_of_the_sixth_version_counts_as_one(lobby: Lobby):
    guests = Guests(100, 1, 10.0, ["192.0.2.9"])
    assert all(is_open(each) for each in [lobby.arrive(guests, "192.0.2.9") for _ in range(3)])
    first, second = lobby.arrive(guests, "2001:db8::1"), lobby.arrive(guests, "2001:db8::2")
    assert (is_open(first), is_open(second)) == (False, True)
    assert origin_of("::ffff:192.0.2.1") == "192.0.2.1"
    assert origin_of("fe80::1%eth0") == origin_of("fe80::2%eth0")


def test_who_is_late_is_shut_and_who_is_served_is_not(lobby: Lobby):
    guests = Guests(100, 100, 0.0)
    late, served = lobby.arrive(guests, "192.0.2.1"), lobby.arrive(guests, "192.0.2.1")
    served.due = None
    asyncio.run(guests.look())
    assert (is_open(late), is_open(served), len(guests)) == (False, True, 1)


def reading(bodies: Bodies, address: str, pieces: asyncio.Queue) -> asyncio.Task:
    async def read() -> bytes | str:
        try:
            return await bodies.read(HEADERS, pieces.get, address, 1000, TYPE)
        except Problem as problem:
            return problem.code
        finally:
            bodies.done()

    return asyncio.create_task(read())


def piece(size: int, more: bool = True) -> dict:
    return {"type": "http.request", "body": bytes(size), "more_body": more}


def test_when_the_budget_is_used_up_the_slowest_of_the_largest_sender_is_cut_off():
    async def play() -> list:
        bodies, queues = Bodies(1500, 60.0), [asyncio.Queue() for _ in range(4)]
        tasks = [reading(bodies, address, queue) for address, queue in zip("aaab", queues, strict=True)]
        for queue in queues:  # 64 bytes each for keeping a piece
            queue.put_nowait(piece(286))
            await asyncio.sleep(0.01)
        queues[0].put_nowait(piece(1))  # no longer the one that has been silent longest
        await asyncio.sleep(0.01)
        queues[3].put_nowait(piece(200, more=False))
        for queue in queues:
            queue.put_nowait(piece(0, more=False))
        found = await asyncio.gather(*tasks)
        assert bodies._held == 0
        assert not bodies._bodies
        return [each if isinstance(each, str) else len(each) for each in found]

    assert asyncio.run(play()) == [287, "too-fast", 286, 486]


def test_bodies_that_are_worked_on_are_never_cut_off_and_others_wait_for_them():
    async def play() -> None:
        bodies, queue = Bodies(1000, 60.0), asyncio.Queue()

        async def work() -> str:
            queue.put_nowait(piece(800, more=False))
            await bodies.read(HEADERS, queue.get, "a", 1000, TYPE)
            try:
                other = asyncio.Queue()
                other.put_nowait(piece(800, more=False))
                return await reading(bodies, "b", other)
            finally:
                bodies.done()

        assert await asyncio.create_task(work()) == "too-fast"
        assert bodies._held == 0

    asyncio.run(play())
