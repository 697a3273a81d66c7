"""StoreClient: connections to Redis 7 or Valkey 7.2 and later; translates the driver's errors into ours."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from typing import Any, NoReturn

import redis.asyncio as redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ReadOnlyError, RedisError, ResponseError

from brokerapp.errors import (
    BrokerError,
    ConfigurationRefused,
    Fenced,
    StoreRolledBack,
    StoreUnavailable,
)
from brokerapp.store.client.connection import (
    DRIVER,
    DirectConnection,
    Unconfirmed,
    connection_class_with_handshake,
    keepalive_options,
)
from brokerapp.store.client.continuity import FORMATS, Continuity
from brokerapp.store.client.failures import store_failure
from brokerapp.store.client.handshake import Handshake, RefusedConnection
from brokerapp.store.client.keys import StoreKeys
from brokerapp.store.client.library import LIBRARY, PREFIX, is_missing
from brokerapp.store.client.primary import NOT_PRIMARY, primary_finder
from brokerapp.system.formats import SupportedFormats
from brokerapp.system.store_address import StoreAddress

#: Seconds to wait until connections are closed that are given up: one with a server that stands still may never be.
DISCONNECT_SECONDS = 1.0


class StoreClient:
    """Connections to the server that holds one broker's keys. Belongs to the event loop it is first used on.

    `replicas`: how many of them confirm a commit, and a change that operators make, before it counts. `formats`: those
    of stores that may be opened.
    """

    def __init__(
        self, url: str, broker: str, replicas: int = 0, shard: int = 0, formats: SupportedFormats = FORMATS
    ) -> None:
        self.url, self.keys, self.replicas = url, StoreKeys(broker, shard), replicas
        address = StoreAddress.parse(url)
        self.is_in_cluster = is_cluster(url)
        # The caller decides what to do about a lost connection: the driver must not repeat a commit by itself. Nor may
        # it set a deadline: some calls wait for long, and what it does for one now and then swallows a cancellation.
        pool = redis.ConnectionPool.from_url(
            address.server_url,
            protocol=2,
            retry=Retry(NoBackoff(), 0),
            health_check_interval=0,
            socket_timeout=None,
            driver_info=DRIVER,
            **keepalive_options(url),
        )
        self.continuity = Continuity(waits_for_replicas=bool(replicas))
        self._handshake = Handshake(url, self.keys, self.continuity, formats)
        if not address.has_one_server:
            pool.connection_class = primary_finder(address, self.keys.state).connection_class(pool.connection_class)
        pool.connection_class = connection_class_with_handshake(pool.connection_class, self._handshake)
        try:
            pool.make_connection()  # type: ignore[no-untyped-call]  # which connects nowhere, but knows its options
        except TypeError as error:
            raise ConfigurationRefused(f"the store's URL has an option that is not supported: {error}") from error
        self._redis = redis.Redis.from_pool(pool)
        self._commits, self._beats = DirectConnection(pool, replicas), DirectConnection(pool)
        self._changes = DirectConnection(pool, replicas)
        self._redis.response_callbacks.clear()  # answers as the server gives them, not as the driver reads them

    async def close(self) -> None:
        """Close all connections to the server."""
        for each in (self._commits, self._beats, self._changes):
            await each.close()
        await self._redis.aclose()

    async def begin_session(self, session: str, last_seq: int) -> None:
        """Hold the store to its history from now on, as the node of this session relies on it."""
        self._handshake.session = session
        self.continuity.advance(seq=last_seq)
        await self._handshake.greet(self.execute)  # from here on it knows in which life of the server it is

    async def call(self, function: str, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """Call a function of the library and return its answer."""
        return await self.execute("FCALL", PREFIX + function, len(keys), *keys, *args)

    async def call_commit(
        self, keys: Sequence[str], args: Sequence[Any], may_be_behind: bool = False
    ) -> tuple[Any, Coroutine[Any, Any, None] | None]:
        """Call `commit` over a connection of its own.

        Return its answer, and what waits for the replicas that confirm it, if any have to. `may_be_behind`: the store
        may lack the batch before, which no replica has confirmed; raises StoreUnavailable then.
        """
        command = ("FCALL", f"{PREFIX}commit", len(keys), *keys, *args)
        answer, confirmation = await self._answered(self._commits.begin_call, *command, may_be_behind=may_be_behind)
        return answer, None if confirmation is None else self._until_confirmed(confirmation)

    async def _until_confirmed(self, confirmation: asyncio.Task[None]) -> None:
        try:
            await confirmation
        except (RedisError, OSError) as error:
            await self._fail("WAIT", error)

    async def call_confirmed(self, function: str, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """Call a function that makes a change, and return its answer when replicas have it as they have commits."""
        return await self._directly(self._changes, function, keys, args)

    async def execute_confirmed(self, *command: Any) -> Any:
        """Run a command that makes a change, and return its answer when replicas have it as they have commits."""
        return await self._answered(self._changes.call, *command)

    async def call_heartbeat(self, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """Call `beat` over a connection of its own, so that an unanswered call delays neither the next nor others."""
        return await self._directly(self._beats, "beat", keys, args)

    async def _directly(self, over: DirectConnection, function: str, keys: Sequence[str], args: Sequence[Any]) -> Any:
        return await self._answered(over.call, "FCALL", PREFIX + function, len(keys), *keys, *args)

    async def execute(self, *command: Any) -> Any:
        """Run one command and return its answer."""
        return await self._answered(self._redis.execute_command, *command)

    async def _answered(self, call: Callable[..., Awaitable[Any]], *command: Any, may_be_behind: bool = False) -> Any:
        """Return the answer to a command; reload the library when it is gone, and raise the driver's errors as ours."""
        try:
            return await call(*command)
        except (RedisError, OSError) as error:
            if not is_missing(error):
                await self._fail(command[0], error, may_be_behind)
        await self.execute("FUNCTION", "LOAD", "REPLACE", LIBRARY)  # it was removed as one that nobody used
        try:
            return await call(*command)
        except (RedisError, OSError) as error:
            await self._fail(command[0], error, may_be_behind)

    async def _fail(self, command: str, error: RedisError | OSError, may_be_behind: bool = False) -> NoReturn:
        """Raise an error of the driver as one of ours; leave a server that is no primary."""
        if isinstance(error, ReadOnlyError):
            await self.disconnect()
            error = RefusedConnection(StoreUnavailable(NOT_PRIMARY))
        if str(error).startswith("ROLLEDBACK") and not may_be_behind:
            await self._handshake.fence_after_rollback(self.execute)
        failure = translate_error(command, error, self._handshake.rolled_back, self.url)
        raise (type(failure)(f"shard {self.keys.shard}: {failure}") if self.keys.shard else failure) from error

    async def disconnect(self) -> None:
        """Close all connections, those in use included: each command connects again to where the address leads."""
        for each in (self._commits, self._beats, self._changes):
            await each.close()
        with contextlib.suppress(RedisError, OSError):  # a TimeoutError is an OSError
            async with asyncio.timeout(DISCONNECT_SECONDS):
                await self._redis.connection_pool.disconnect()

    def require_replicas(self, replicas: int) -> None:
        """Have so many replicas confirm changes from now on, beside commits."""
        self._changes.replicas = replicas

    async def execute_many(self, commands: Iterable[Sequence[Any]]) -> list[Any]:
        """Run several commands in one round trip and return their answers."""
        pipe = self._redis.pipeline(transaction=False)
        for command in commands:
            pipe.execute_command(*command)
        try:
            return await pipe.execute()
        except (RedisError, OSError) as error:
            await self._fail("pipeline", error)

    async def subscribe(self, channel: str) -> AsyncIterator[str]:
        """Yield `subscribed`, then each message published on the channel; ends with StoreUnavailable."""
        pubsub = self._redis.pubsub(ignore_subscribe_messages=True)
        try:
            await pubsub.subscribe(channel)
            yield "subscribed"
            async for message in pubsub.listen():
                yield message["data"].decode()
        except (RedisError, OSError) as error:
            await self._fail("SUBSCRIBE", error)
        finally:
            await pubsub.aclose()  # type: ignore[no-untyped-call]


class StorePart:
    """Base of the store's parts: the commands for one kind of data, over shared connections."""

    def __init__(self, client: StoreClient) -> None:
        self._client, self._keys = client, client.keys


def is_cluster(url: str) -> bool:
    """Return whether a store's URL names a cluster, whose servers share the keys."""
    return bool(StoreAddress.parse(url).cluster)


def translate_error(
    command: str, error: RedisError | OSError, rolled_back: StoreRolledBack | None, url: str
) -> BrokerError:
    """Return the driver's error as one of ours. `rolled_back`: why the session is fenced, if it is for that."""
    if isinstance(error, RefusedConnection):
        return error.error
    if isinstance(error, Unconfirmed):
        return StoreUnavailable(str(error))
    if isinstance(error, ResponseError):
        if str(error).startswith("FENCED"):
            return rolled_back or Fenced(str(error))
        return StoreUnavailable(f"{command}: {error}")
    return store_failure(error, url)


def pairs(reply: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Return the reply of HGETALL as pairs."""
    return zip(reply[::2], reply[1::2], strict=True)
