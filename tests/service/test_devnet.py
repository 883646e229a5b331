"""Computes on this machine: the port that one was given stays its own."""

from __future__ import annotations

import socket
import sys

import pytest

from hubbub.service.devnet import port_of, reserve_port


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a held port be bound again")
def test_a_held_port_is_free_to_its_compute_and_to_nobody_else():
    with reserve_port() as reserved, reserve_port() as other:
        assert port_of(reserved) != port_of(other)
        with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
            stranger.bind(("127.0.0.1", port_of(reserved)))
        for _ in range(2):  # it ends and starts again
            with socket.socket() as compute:
                compute.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                compute.bind(("127.0.0.1", port_of(reserved)))
                compute.listen()
                socket.create_connection(("127.0.0.1", port_of(reserved)), 5).close()
        with pytest.raises(ConnectionRefusedError):  # nobody listens: a client hears so at once
            socket.create_connection(("127.0.0.1", port_of(reserved)), 5)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a held port be bound again")
def test_ports_given_out_later_are_others():
    with reserve_port() as reserved:
        given = [reserve_port() for _ in range(300)]
        try:
            assert port_of(reserved) not in {port_of(one) for one in given}
            assert len({port_of(one) for one in given}) == len(given)
        finally:
            for one in given:
                one.close()
