"""Extends the driver's connection to the store: packs commands in C, notices a dead server, and sends one kind of call
directly.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import hiredis
from redis.asyncio import ConnectionPool
from redis.asyncio.connection import AbstractConnection
from redis.driver_info import DriverInfo
from redis.exceptions import ReadOnlyError, ResponseError

#: Bytes of an argument from which not to copy it pays: a piece more to write costs some microseconds.
LARGE_BYTES = 16 * 1024
#: Bytes of a commit that wait in a local socket until the server reads them (the system may allow less). Its default, a
#: fifth of that, makes node and server wait for each other several times in each commit of large messages.
SEND_BUFFER_BYTES = 1024 * 1024

#: What connections tell the server of the driver. By itself each of them would read its version from the package's
#: files, which takes a quarter of a node's start.
DRIVER = DriverInfo()


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


#: Connections that are kept where a call is made while former ones wait for replicas.
KEPT_WITH_REPLICAS = 3
#: Milliseconds that replicas have to receive a change, and as many to sync it, before it is asked for again.
CONFIRM_MS = 1_000


class Unconfirmed(ResponseError):
    """Too few replicas confirmed a change in time. The primary has made it, so it may be asked for again."""

    def __init__(self, confirmed: int, wanted: int) -> None:
        seconds = 2 * CONFIRM_MS / 1000
        super().__init__(
            f"the store has the change, but {confirmed} of {wanted} replicas confirmed it within {seconds:g} s"
        )


class DirectConnection:
    """A connection that serves one kind of call, without the driver's client and pool around it.

    They cost three times as much as the call itself, and commits are most of what a node asks. A call that comes while
    another is not answered yet has a connection to itself: one that is never answered keeps none waiting. Errors are
    the driver's.

    `replicas`: what a call wrote counts when so many of them have it on their disk, too. That is confirmed after its
    answer, while the next call is made over another connection.
    """

    def __init__(self, pool: ConnectionPool, replicas: int = 0) -> None:
        self._pool = pool
        self._free: list[AbstractConnection] = []  # those that are kept
        self._in_use: set[AbstractConnection] = set()
        self.replicas = replicas

    @property
    def _confirmation(self) -> tuple[tuple[Any, ...], ...]:
        """Return the commands to send with a call.

        The first makes the replicas report what they have received, the second what they have synced to disk. Without
        the first they report the sync only within a second. Sent with the call, they cost no round trip.
        """
        if not self.replicas:
            return ()
        return ("WAIT", self.replicas, CONFIRM_MS), ("WAITAOF", 1, self.replicas, CONFIRM_MS)

    async def call(self, *command: Any) -> Any:
        """Return the server's answer to a command, when replicas confirmed what it wrote."""
        answer, confirmation = await self.begin_call(*command)
        if confirmation is not None:
            await confirmation
        return answer

    async def begin_call(self, *command: Any) -> tuple[Any, asyncio.Task[None] | None]:
        """Return the server's answer to a command; connect first where necessary.

        Also return the task that ends when replicas confirmed what it wrote, or fails with Unconfirmed; None where none
        have to.
        """
        connection = self._free.pop() if self._free else self._pool.make_connection()  # type: ignore[no-untyped-call]
        self._in_use.add(connection)
        try:
            confirmation_commands = self._confirmation
            pieces = connection.pack_command(*command)
            for each in confirmation_commands:
                pieces = [*pieces, *connection.pack_command(*each)]
            await connection.send_packed_command(pieces, check_health=False)
            answer = await connection.read_response(disable_decoding=True)
        except ResponseError as error:
            # A replica is left: the address may lead to the primary again. So is what would still be confirmed.
            if confirmation_commands or isinstance(error, ReadOnlyError):
                await self._discard(connection)
            else:
                await self._keep(connection)
            raise
        except BaseException:  # a cancelled one included: nobody must take its answer for another call's
            await self._discard(connection)
            raise
        if not confirmation_commands:
            await self._keep(connection)
            return answer, None
        confirmation = asyncio.create_task(self._await_replicas(connection))
        confirmation.add_done_callback(retrieve_error)
        return answer, confirmation

    async def _await_replicas(self, connection: AbstractConnection) -> None:
        try:
            received = await connection.read_response(disable_decoding=True)
            _, synced = await connection.read_response(disable_decoding=True)
        except BaseException:
            await self._discard(connection)
            raise
        await self._keep(connection)
        if min(received, synced) < self.replicas:
            raise Unconfirmed(min(received, synced), self.replicas)

    async def _keep(self, connection: AbstractConnection) -> None:
        self._in_use.discard(connection)
        if len(self._free) < (KEPT_WITH_REPLICAS if self.replicas else 1):
            self._free.append(connection)
        else:
            await connection.disconnect(nowait=True)

    async def _discard(self, connection: AbstractConnection) -> None:
        self._in_use.discard(connection)
        await connection.disconnect(nowait=True)

    async def close(self) -> None:
        """Close the connections that are kept for the next call, and those in use, whose calls raise an error."""
        for each in (*self._free, *self._in_use):
            await each.disconnect(nowait=True)


def retrieve_error(task: asyncio.Task[None]) -> None:
    """Retrieve the error of a task whose result is no longer awaited."""
    if not task.cancelled():
        task.exception()
