"""Ports for servers of tests."""

from __future__ import annotations

import random
import socket

#: Below what the kernel gives to connections that go out: one of those may take such a port before its server does.
_PORTS = range(12_000, 32_000)


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody uses now, and probably not soon."""
    while True:
        port = random.choice(_PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
