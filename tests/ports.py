"""Find free ports for servers of tests."""

from __future__ import annotations

import contextlib
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


#: Above what the kernel gives to connections that go out, and what `free_port` tries.
_KEPT = range(61_000, 65_500)


class KeptPort:
    """A TCP port of 127.0.0.1 that no other test takes until `close`, also while its server is away.

    Whoever keeps a port has its name in the kernel, which ends with the process.
    """

    def __init__(self) -> None:
        for port in random.sample(_KEPT, len(_KEPT)):
            name = socket.socket(socket.AF_UNIX)
            with contextlib.suppress(OSError), socket.socket() as probe:
                name.bind(f"\0sluice-tests-port-{port}")
                probe.bind(("127.0.0.1", port))
                self.number, self._name = port, name
                return
            name.close()
        raise OSError("all ports that tests may keep are taken")

    def close(self) -> None:
        """Others may have it."""
        self._name.close()


_until_the_end: list[KeptPort] = []


def own_port() -> int:
    """A TCP port of 127.0.0.1 that no other test takes while this process runs, also while nothing listens on it."""
    _until_the_end.append(KeptPort())
    return _until_the_end[-1].number
