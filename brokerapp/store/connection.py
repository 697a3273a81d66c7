"""What a connection to the store does that the driver's does not by itself: pack in C, and notice a dead server."""

from __future__ import annotations

import socket
from typing import Any

import hiredis


def alive(url: str) -> dict[str, Any]:
    """What makes the kernel notice within half a minute that a server on another machine vanished without a word."""
    if url.startswith("unix:"):
        return {}
    options = {socket.TCP_KEEPIDLE: 10, socket.TCP_KEEPINTVL: 5, socket.TCP_KEEPCNT: 3, socket.TCP_USER_TIMEOUT: 25_000}
    return {"socket_keepalive": True, "socket_keepalive_options": options}


def packing(connection_class: type) -> type:
    """The driver's connection, packing commands in C as its blocking one does: a commit has thousands of arguments."""

    class Packing(connection_class):
        def pack_command(self, *args: Any) -> list[bytes]:
            return [hiredis.pack_command(args)]

    return Packing
