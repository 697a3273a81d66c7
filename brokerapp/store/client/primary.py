"""Find the primary of a store with replicas: ask its servers for their role, Sentinels for its address, or those of a
cluster for the one that has the slot of the store's keys.

`connection_class` gives a class of the driver's connections that does so whenever it connects.

Any answer may be out of date. What makes a wrong one harmless are the checks of each new connection (handshake.py), and
receipts that wait for replicas.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import redis
from redis.asyncio.connection import AbstractConnection
from redis.backoff import NoBackoff
from redis.crc import key_slot
from redis.exceptions import AskError, ClusterDownError, TryAgainError
from redis.retry import Retry

from brokerapp.store.client.failures import failure_reason
from brokerapp.system.store_address import HostPort, StoreAddress

logger = logging.getLogger(__name__)

#: What CLUSTER INFO says of how often the cluster had changed.
_EPOCH = re.compile(rb"cluster_current_epoch:(\d+)")
NOT_PRIMARY = "the store's address leads to a read-only replica; looking for the primary again"
NOT_SERVED = "the store's keys are not at this server of the cluster; looking for the one that has them"
#: What a server answers that is to be left: a replica, and one of a cluster that does not have all of the keys.
_ELSEWHERE = (redis.ReadOnlyError, AskError, ClusterDownError, TryAgainError)
#: Seconds that a server or Sentinel has to answer: a frozen one must not keep those waiting that need another.
ANSWER_SECONDS = 1.0
#: Seconds between checks which server is the primary.
FOLLOW_SECONDS = 1.0
_LIMITS: dict[str, Any] = {
    "socket_connect_timeout": ANSWER_SECONDS,
    "socket_timeout": ANSWER_SECONDS,
    "retry": Retry(NoBackoff(), 0),
}


class NoPrimary(redis.ConnectionError):
    """No server can be taken for the primary now. A connection error of the driver, as this happens as it connects."""


@dataclass(frozen=True, slots=True)
class PrimaryClaim:
    """A server that is said to be the primary.

    `weight` tells which of several claims is the newest: how many replicas follow it, or how often Sentinel, or the
    cluster, had changed primaries until then.
    """

    server: HostPort
    weight: int


def choose_primary(claims: Iterable[PrimaryClaim], problems: Sequence[str] = ()) -> HostPort:
    """Return the server with the strongest claim. Raises NoPrimary where there is none, or two are equal.

    `problems`: what prevented others from answering.
    """
    best: dict[HostPort, int] = {}
    for claim in claims:
        best[claim.server] = max(claim.weight, best.get(claim.server, 0))
    if not best:
        raise NoPrimary("; ".join(("none of the store's servers is a primary", *problems)))
    weight = max(best.values())
    found = [server for server, its in best.items() if its == weight]
    if len(found) > 1:
        names = ", ".join(f"{host}:{port}" for host, port in sorted(found))
        raise NoPrimary(f"several servers say that they are the store's primary: {names}; make all but one replicas")
    return found[0]


def primary_finder(address: StoreAddress, key: str) -> PrimaryFinder:
    """Return the finder of a store: all connections of a process to it share one search.

    `key` is one of its keys, all of which have the same hash tag: in a cluster it tells whose they are.
    """
    return _finder(address, key_slot(key.encode()) if address.cluster else 0)


@cache
def _finder(address: StoreAddress, slot: int) -> PrimaryFinder:
    return PrimaryFinder(address, slot)


class PrimaryFinder:
    """Finds the primary of one store. Calls block for up to ANSWER_SECONDS, and may come from several threads."""

    def __init__(self, address: StoreAddress, slot: int = 0) -> None:
        self._address, self._slot = address, slot
        #: By event loop: its connections, each to what was the primary when it was made.
        self._followed: WeakKeyDictionary[asyncio.AbstractEventLoop, ConnectionFollower] = WeakKeyDictionary()

    def find(self) -> HostPort:
        """Return host and port of the primary. Raises NoPrimary."""
        address = self._address
        ask: Callable[[HostPort], PrimaryClaim | str] = self._ask_role
        if address.sentinels or address.cluster:
            ask = self._ask_sentinel if address.sentinels else self._ask_cluster
        asked = address.sentinels or address.cluster or address.servers
        with ThreadPoolExecutor(len(asked), thread_name_prefix="primary") as pool:
            answers = list(pool.map(ask, asked))
        problems = [each for each in answers if isinstance(each, str)]
        return choose_primary((each for each in answers if isinstance(each, PrimaryClaim)), problems)

    def _ask_role(self, server: HostPort) -> PrimaryClaim | str:
        """Return the claim of a server, or why it makes none."""
        try:
            with redis.Redis.from_url(self._address.url_of(server), **_LIMITS) as client:
                role = client.execute_command("ROLE")
        except (redis.RedisError, OSError) as error:
            return f"{server[0]}:{server[1]}: {failure_reason(error)}"
        if role[0] in (b"master", "master"):
            return PrimaryClaim(server, len(role[2]))
        return f"{server[0]}:{server[1]}: is a replica"

    def _ask_sentinel(self, sentinel: HostPort) -> PrimaryClaim | str:
        """Return the server that a Sentinel names, or why it names none."""
        address = self._address
        try:
            with redis.Redis.from_url(address.sentinel_url(sentinel), **_LIMITS) as client:
                found = client.sentinel_master(address.service, return_responses=True)
        except (redis.RedisError, OSError) as error:
            return f"Sentinel {sentinel[0]}:{sentinel[1]}: {failure_reason(error)}"
        return PrimaryClaim((found["ip"], int(found["port"])), int(found["config-epoch"]))

    def _ask_cluster(self, member: HostPort) -> PrimaryClaim | str:
        """Return the server that has the slot, as one of the cluster knows it, or why it names none."""
        name = f"{member[0]}:{member[1]}"
        try:
            with redis.Redis.from_url(self._address.url_of(member), **_LIMITS) as client:
                ranges = client.execute_command("CLUSTER", "SLOTS")
                about = client.execute_command("CLUSTER", "INFO")
        except (redis.RedisError, OSError) as error:
            return f"{name}: {failure_reason(error)}"
        for first, last, (host, port, *_), *_replicas in ranges:
            if first <= self._slot <= last:
                epoch = _EPOCH.search(about)
                return PrimaryClaim((host.decode() if host else member[0], int(port)), int(epoch[1]) if epoch else 0)
        return f"{name}: does not know which server has slot {self._slot} of the cluster"

    def following(self, connection: AbstractConnection) -> AbstractContextManager[None]:
        """While it connects, and from then on, close a connection of this event loop when the primary changes.

        A server that is frozen, or cut off from its replicas, gives no answer that would tell.
        """
        loop = asyncio.get_running_loop()
        if loop not in self._followed:
            self._followed[loop] = ConnectionFollower(self)
        return self._followed[loop].connecting(connection)

    def connection_class(self, base: type) -> type:
        """Return a class of the driver's connections, asyncio's or not, that connects to the present primary."""
        return _awaited(self, base) if issubclass(base, AbstractConnection) else _blocking(self, base)


class ConnectionFollower:
    """Closes connections of one event loop to servers that are no longer the primary."""

    def __init__(self, finder: PrimaryFinder) -> None:
        self._finder = finder
        self._connections: WeakSet[AbstractConnection] = WeakSet()
        self._connecting = 0
        self._task: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def connecting(self, connection: AbstractConnection) -> Iterator[None]:
        """Watch a connection from now on, until it is closed; a server may freeze as it connects."""
        self._connections.add(connection)
        self._connecting += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="store's primary")
        try:
            yield
        finally:
            self._connecting -= 1

    async def _run(self) -> None:
        while self._connecting or any(each.is_connected for each in self._connections):
            await asyncio.sleep(FOLLOW_SECONDS)
            with contextlib.suppress(NoPrimary):
                primary = await asyncio.to_thread(self._finder.find)
                former = [each for each in self._connections if each.is_connected and _server_of(each) != primary]
                if former:
                    logger.warning(
                        "the store's primary is now %s:%d instead of %s:%d", *primary, *_server_of(former[0])
                    )
                for each in former:
                    await each.disconnect(nowait=True)


def _server_of(connection: Any) -> HostPort:
    return connection.host, connection.port


def _left(error: redis.ResponseError) -> NoPrimary:
    return NoPrimary(NOT_PRIMARY if isinstance(error, redis.ReadOnlyError) else f"{NOT_SERVED} ({error})")


def _blocking(finder: PrimaryFinder, base: type) -> type:
    class PrimaryConnection(base):  # type: ignore[misc]  # the driver chooses it by URL
        def connect_check_health(self, *args: Any, **options: Any) -> None:
            if not self.is_connected:
                self.host, self.port = finder.find()
            super().connect_check_health(*args, **options)

        def read_response(self, *args: Any, **options: Any) -> Any:
            try:
                return super().read_response(*args, **options)
            except _ELSEWHERE as error:
                self.disconnect()
                raise _left(error) from error

    return PrimaryConnection


def _awaited(finder: PrimaryFinder, base: type) -> type:
    class PrimaryConnection(base):  # type: ignore[misc]  # the same
        async def connect_check_health(self, *args: Any, **options: Any) -> None:
            if not self.is_connected:
                self.host, self.port = await asyncio.to_thread(finder.find)
            with finder.following(self):
                await super().connect_check_health(*args, **options)

        async def read_response(self, *args: Any, **options: Any) -> Any:
            try:
                return await super().read_response(*args, **options)
            except _ELSEWHERE as error:
                await self.disconnect(nowait=True)
                raise _left(error) from error

    return PrimaryConnection
