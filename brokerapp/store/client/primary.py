"""Find the primary of a store with replicas: ask its servers for their role, or Sentinels for its address.

`connection_class` gives a class of the driver's connections that does so whenever it connects.

Any answer may be out of date. What makes a wrong one harmless are the checks of each new connection (handshake.py), and
receipts that wait for replicas.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import redis
import redis.asyncio.connection
from redis.backoff import NoBackoff
from redis.retry import Retry

from brokerapp.system.store_address import HostPort, StoreAddress

NOT_PRIMARY = "the store's address leads to a read-only replica; looking for the primary again"
#: Seconds that a server or Sentinel has to answer: a frozen one must not keep those waiting that need another.
ANSWER_SECONDS = 1.0
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

    `weight` tells which of several claims is the newest: how many replicas follow it, or how often Sentinel changed the
    primary until then.
    """

    server: HostPort
    weight: int


def choose_primary(claims: Iterable[PrimaryClaim], unreachable: int = 0) -> HostPort:
    """Return the server with the strongest claim. Raises NoPrimary where there is none, or two are equal."""
    best: dict[HostPort, int] = {}
    for claim in claims:
        best[claim.server] = max(claim.weight, best.get(claim.server, 0))
    if not best:
        raise NoPrimary(f"none of the store's servers is a primary ({unreachable} did not answer)")
    weight = max(best.values())
    found = [server for server, its in best.items() if its == weight]
    if len(found) > 1:
        names = ", ".join(f"{host}:{port}" for host, port in sorted(found))
        raise NoPrimary(f"several servers say that they are the store's primary: {names}; make all but one replicas")
    return found[0]


class PrimaryFinder:
    """Finds the primary of one store. Calls block for up to ANSWER_SECONDS, and may come from several threads."""

    def __init__(self, address: StoreAddress) -> None:
        self._address = address

    def find(self) -> HostPort:
        """Return host and port of the primary. Raises NoPrimary."""
        address = self._address
        ask, asked = (self._ask_sentinel, address.sentinels) if address.sentinels else (self._ask_role, address.servers)
        with ThreadPoolExecutor(len(asked), thread_name_prefix="primary") as pool:
            answers = list(pool.map(ask, asked))
        return choose_primary((each for each in answers if isinstance(each, PrimaryClaim)), answers.count(None))

    def _ask_role(self, server: HostPort) -> PrimaryClaim | bool | None:
        """Return the claim of a server; False if it is a replica, None without an answer."""
        try:
            with redis.Redis.from_url(self._address.url_of(server), **_LIMITS) as client:
                role = client.execute_command("ROLE")
        except (redis.RedisError, OSError):
            return None
        return PrimaryClaim(server, len(role[2])) if role[0] in (b"master", "master") else False

    def _ask_sentinel(self, sentinel: HostPort) -> PrimaryClaim | bool | None:
        """Return the server that a Sentinel names; False if it knows none by that name, None without an answer."""
        host, port = sentinel
        address = self._address
        options: dict[str, Any] = {"username": address.sentinel_username, "password": address.sentinel_password}
        try:
            with redis.Redis(host, port, ssl=address.is_encrypted, **options, **_LIMITS) as client:
                found = client.sentinel_master(address.service, return_responses=True)
        except redis.ResponseError:
            return False
        except (redis.RedisError, OSError):
            return None
        return PrimaryClaim((found["ip"], int(found["port"])), int(found["config-epoch"]))

    def connection_class(self, base: type) -> type:
        """Return a class of the driver's connections, asyncio's or not, that connects to the primary of the moment."""
        return (
            _awaited(self, base)
            if issubclass(base, redis.asyncio.connection.AbstractConnection)
            else _blocking(self, base)
        )


def _blocking(finder: PrimaryFinder, base: type) -> type:
    class PrimaryConnection(base):  # type: ignore[misc]  # the driver chooses it by URL
        def connect_check_health(self, *args: Any, **options: Any) -> None:
            if not self.is_connected:
                self.host, self.port = finder.find()
            super().connect_check_health(*args, **options)

        def read_response(self, *args: Any, **options: Any) -> Any:
            try:
                return super().read_response(*args, **options)
            except redis.ReadOnlyError as error:
                self.disconnect()
                raise NoPrimary(NOT_PRIMARY) from error

    return PrimaryConnection


def _awaited(finder: PrimaryFinder, base: type) -> type:
    class PrimaryConnection(base):  # type: ignore[misc]  # the same
        async def connect_check_health(self, *args: Any, **options: Any) -> None:
            if not self.is_connected:
                self.host, self.port = await asyncio.to_thread(finder.find)
            await super().connect_check_health(*args, **options)

        async def read_response(self, *args: Any, **options: Any) -> Any:
            try:
                return await super().read_response(*args, **options)
            except redis.ReadOnlyError as error:
                await self.disconnect(nowait=True)
                raise NoPrimary(NOT_PRIMARY) from error

    return PrimaryConnection
