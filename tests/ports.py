"""Ports for servers of tests."""

from __future__ import annotations

import itertools
import os
import random
import socket

#: Below what the kernel gives to connections that go out: one of those may take such a port before its server does.
_FIRST, _LAST = 12_000, 32_000
#: Each process that runs tests has ports of its own, one after the other: two that chose at random the same one, before
#: either's server had it, were seen.
_EACH = 2_000
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % ((_LAST - _FIRST) // _EACH)
_OWN = range(_FIRST + _WORKER * _EACH, _FIRST + (_WORKER + 1) * _EACH)
_begin = random.randrange(_EACH)  # else two runs beside each other try the same ones
_ports = itertools.cycle([*_OWN[_begin:], *_OWN[:_begin]])


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody uses now, and probably not soon."""
    while True:
        port = next(_ports)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
