"""Extends the driver's connection to the store: packs commands in C, notices a dead server, and sends one kind of call
directly.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import hiredis
from redis.asyncio import ConnectionPool
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ReadOnlyError, ResponseError

#: Bytes of an argument from which not to copy it pays: a piece more to write costs some microseconds.
LARGE_BYTES = 16 * 1024
#: Bytes of a commit that wait in a local socket until the server reads them (the system may allow less). Its default, a
#: fifth of that, makes node and server wait for each other several times in each commit of large messages.
SEND_BUFFER_BYTES = 1024 * 1024


def keepalive_options(url: str) -> dict[str, Any]:
    """Return socket options by which the kernel notices within half a minute that a remote server is gone."""
    if url.startswith("unix:"):
        return {}
    options = {socket.TCP_KEEPIDLE: 10, socket.TCP_KEEPINTVL: 5, socket.TCP_KEEPCNT: 3, socket.TCP_USER_TIMEOUT: 25_000}
    return {"socket_keepalive": True, "socket_keepalive_options": options}


def connection_class_with_handshake(
    connection_class: type, greet: Callable[[AbstractConnection], Awaitable[None]]
) -> type:
    """Return the driver's connection class that packs commands in C, as a commit has thousands of arguments.

    Each begins with `greet`.
    """

    class Packing(connection_class):  # type: ignore[misc]  # the driver chooses it by URL
        def pack_command(self, *args: Any) -> list[bytes]:
            return pack(args)

        async def on_connect(self) -> None:
            """Do nothing: the driver also calls the other method for a unix socket."""

        async def on_connect_check_health(self, check_health: bool = True) -> None:
            _enlarge_send_buffer(self._writer.get_extra_info("socket"))
            await super().on_connect_check_health(check_health=check_health)
            await greet(self)

    return Packing


def _enlarge_send_buffer(connected: socket.socket) -> None:
    """Enlarge the buffer of a local socket; the system itself adapts those of others."""
    if connected.family == socket.AF_UNIX:
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)


def pack(args: Sequence[Any]) -> list[bytes]:
    """Return a command as pieces to be written one after the other; a large argument is a piece that is not copied."""
    large = [at for at, each in enumerate(args) if type(each) is bytes and len(each) >= LARGE_BYTES]
    if not large:
        return [hiredis.pack_command(tuple(args))]
    pieces, begin = [b"*%d\r\n" % len(args)], 0
    for at in large:
        pieces += (_elements(args[begin:at]) + b"$%d\r\n" % len(args[at]), args[at], b"\r\n")
        begin = at + 1
    return [*pieces, _elements(args[begin:])]


def _elements(args: Sequence[Any]) -> bytes:
    """Return arguments as they stand in a command."""
    packed: bytes = hiredis.pack_command(tuple(args))
    return packed[packed.index(b"\n") + 1 :]


class DirectConnection:
    """A connection that serves one kind of call, without the driver's client and pool around it.

    They cost three times as much as the call itself, and commits are most of what a node asks. A call that comes while
    another is not answered yet has a connection to itself: one that is never answered keeps none waiting. Errors are
    the driver's.
    """

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self._free: AbstractConnection | None = None  # the one that is kept

    async def call(self, *command: Any) -> Any:
        """Return the server's answer to a command; connect first where necessary."""
        connection, self._free = self._free or self._pool.make_connection(), None  # type: ignore[no-untyped-call]
        try:
            await connection.send_packed_command(connection.pack_command(*command), check_health=False)
            answer = await connection.read_response(disable_decoding=True)
        except ReadOnlyError:  # it leads to a replica: the address may lead to the primary again
            await connection.disconnect(nowait=True)
            raise
        except ResponseError:
            await self._keep(connection)
            raise
        except BaseException:  # a cancelled one included: nobody must take its answer for another call's
            await connection.disconnect(nowait=True)
            raise
        await self._keep(connection)
        return answer

    async def _keep(self, connection: AbstractConnection) -> None:
        if self._free is None:
            self._free = connection
        else:
            await connection.disconnect(nowait=True)

    async def close(self) -> None:
        """Close the connection that is kept for the next call."""
        if self._free is not None:
            await self._free.disconnect(nowait=True)
