"""Who may be connected to a Compute, and how long a connection may take to say what it wants.

Connections are counted where they are accepted, before TLS costs anything. A connection is *waiting* until it has sent
the whole header of a request, and again once it is answered. Waiting ones give way: to newcomers of the same address
where that has too many, to anybody where there are too many in all. None is ever cut off while it is being served.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import time
from collections.abc import Iterable
from typing import Any

_AT_ONCE = 64  # accepted before everything else gets its turn


class Guest(socket.socket):
    """A connection; by `due` it must have sent the whole header of its next request. None while it is served."""

    guests: Guests
    origin: str
    due: float | None

    def close(self) -> None:
        """As any socket, and give the place back."""
        self.guests.leave(self)
        super().close()

    def shut(self) -> None:
        """End it from this side; whoever works with it finds it at its end and closes it."""
        self.guests.leave(self)
        with contextlib.suppress(OSError):
            self.shutdown(socket.SHUT_RDWR)


class Guests:
    """All connections."""

    def __init__(self, most: int, most_of_one: int, header_seconds: float, proxies: Iterable[str] = ()) -> None:
        self.most, self.most_of_one, self.header_seconds = most, most_of_one, header_seconds
        self._proxies = frozenset(proxies)
        self._origins: dict[str, set[Guest]] = {}
        self._numbers: dict[int, Guest] = {}

    def admit(self, connection: socket.socket, address: str) -> Guest | None:
        """Take the connection over, or None where there is no place for it and nobody to give way."""
        origin = origin_of(address)
        own = self._origins.get(origin, set())
        if len(own) >= self.most_of_one and address not in self._proxies and not _shut_oldest(own):
            return None
        if len(self) >= self.most and not self._make_room():
            return None
        guest = Guest(connection.family, connection.type, connection.proto, connection.detach())
        guest.guests, guest.origin, guest.due = self, origin, time.monotonic() + self.header_seconds
        self._origins.setdefault(origin, set()).add(guest)
        self._numbers[guest.fileno()] = guest
        return guest

    def __len__(self) -> int:
        return sum(map(len, self._origins.values()))

    def _make_room(self) -> bool:
        """One that waits goes, of the address that has most connections, among those of which any waits."""
        return any(_shut_oldest(self._origins[o]) for o in sorted(self._origins, key=self._size, reverse=True))

    def _size(self, origin: str) -> int:
        return len(self._origins[origin])

    def leave(self, guest: Guest) -> None:
        """Forget it; asked again nothing happens."""
        if self._numbers.get(guest.fileno()) is guest:
            del self._numbers[guest.fileno()]
        mine = self._origins.get(guest.origin, set())
        mine.discard(guest)
        if not mine:
            self._origins.pop(guest.origin, None)

    def numbered(self, number: int) -> Guest | None:
        """The connection of this file number."""
        return self._numbers.get(number)

    async def look(self) -> None:
        """Shut those that are late."""
        now = time.monotonic()
        for guest in [each for each in self._numbers.values() if each.due is not None and each.due < now]:
            guest.shut()


def _shut_oldest(guests: set[Guest]) -> bool:
    """Shut the one that has waited longest; False where none waits."""
    waiting = [(each.due, each.fileno(), each) for each in guests if each.due is not None]
    if not waiting:
        return False
    min(waiting)[2].shut()
    return True


def origin_of(address: str) -> str:
    """What counts as one address: of the sixth version a network of 64 bits, since one subscriber has all of it."""
    if ":" not in address:
        return address
    found = ipaddress.IPv6Address(address.partition("%")[0])
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((int(found), 64), strict=False))


class Door(socket.socket):
    """A listening socket through which only those come whom the guest list admits."""

    guests: Guests
    _since_pause: int = 0

    def accept(self) -> tuple[socket.socket, Any]:
        """The next that is admitted; BlockingIOError where nobody waits, or where others should have their turn."""
        while True:
            self._since_pause = (self._since_pause + 1) % _AT_ONCE
            if self._since_pause == 0:
                raise BlockingIOError
            connection, address = super().accept()
            guest = self.guests.admit(connection, str(address[0]))
            if guest is not None:
                return guest, address
            connection.close()


def open_doors(host: str, port: int, guests: Guests) -> list[Door]:
    """One for every address that the host stands for; OSError where one is taken."""
    doors = list[Door]()
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    for family, kind, protocol, _, address in dict.fromkeys(found):
        door = Door(family, kind, protocol)
        door.guests = guests
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            door.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        doors.append(door)
        door.bind(address)
    return doors
