"""Server: Redis 7 or Valkey 7.2 and later as a broker talks to it, and where the driver's errors become ours."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Sequence
from typing import Any

import redis.asyncio as redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError

from brokerapp.errors import Fenced, StoreUnavailable
from brokerapp.store.connection import Direct, alive, packing
from brokerapp.store.keys import Keys
from brokerapp.store.library import LIBRARY, NAME, PREFIX


class Server:
    """One broker's keys on a server. Belongs to the event loop it is first used on."""

    def __init__(self, url: str, broker: str) -> None:
        self.url, self.keys = url, Keys(broker)
        # The caller decides what to do about a lost connection: the driver must not repeat a commit by itself. Nor may
        # it set a deadline: some calls wait for long, and what it does for one now and then swallows a cancellation.
        pool = redis.ConnectionPool.from_url(
            url, protocol=2, retry=Retry(NoBackoff(), 0), health_check_interval=0, socket_timeout=None, **alive(url)
        )
        pool.connection_class = packing(pool.connection_class)
        self._redis = redis.Redis.from_pool(pool)
        self._commits, self._beats = Direct(pool), Direct(pool)
        self._redis.response_callbacks.clear()  # answers as the server gives them, not as the driver reads them

    async def open(self) -> None:
        """Load the function library. A server without memory takes none: then it must be there already."""
        try:
            await self._do("FUNCTION", "LOAD", "REPLACE", LIBRARY)
        except StoreUnavailable:
            known = await self._do("FUNCTION", "LIST", "LIBRARYNAME", NAME, "WITHCODE")
            if not any(LIBRARY.encode() in each for each in known):
                raise

    async def close(self) -> None:
        """Give back the connections."""
        await self._commits.close()
        await self._beats.close()
        await self._redis.aclose()

    async def _call(self, function: str, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """What a function of the library answers."""
        return await self._do("FCALL", PREFIX + function, len(keys), *keys, *args)

    async def _commit(self, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """The same of `commit`, over a connection of its own."""
        return await self._directly(self._commits, "commit", keys, args)

    async def _beat(self, keys: Sequence[str], args: Sequence[Any]) -> None:
        """The same of `beat`: one that is not answered yet keeps neither the next nor anything else waiting."""
        await self._directly(self._beats, "beat", keys, args)

    async def _directly(self, over: Direct, function: str, keys: Sequence[str], args: Sequence[Any]) -> Any:
        return await ours("FCALL", over.call("FCALL", PREFIX + function, len(keys), *keys, *args))

    async def _do(self, *command: Any) -> Any:
        """What one command answers."""
        return await ours(command[0], self._redis.execute_command(*command))

    async def _many(self, commands: Iterable[Sequence[Any]]) -> list[Any]:
        """What several commands answer, in one round trip."""
        pipe = self._redis.pipeline(transaction=False)
        for command in commands:
            pipe.execute_command(*command)
        try:
            return await pipe.execute()
        except (RedisError, OSError) as error:
            raise StoreUnavailable(str(error) or type(error).__name__) from error

    async def _published(self, channel: str) -> AsyncIterator[str]:
        """`subscribed`, then what is published, as it comes. Ends with StoreUnavailable."""
        pubsub = self._redis.pubsub(ignore_subscribe_messages=True)
        try:
            await pubsub.subscribe(channel)
            yield "subscribed"
            async for message in pubsub.listen():
                yield message["data"].decode()
        except (RedisError, OSError) as error:
            raise StoreUnavailable(str(error)) from error
        finally:
            await pubsub.aclose()


async def ours(command: str, answer: Awaitable[Any]) -> Any:
    """What the driver answers to a command; its errors as ours."""
    try:
        return await answer
    except ResponseError as error:
        if str(error).startswith("FENCED"):
            raise Fenced(str(error)) from error
        raise StoreUnavailable(f"{command}: {error}") from error
    except (RedisError, OSError) as error:
        raise StoreUnavailable(str(error) or type(error).__name__) from error


def pairs(reply: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """HGETALL's answer as pairs."""
    return zip(reply[::2], reply[1::2], strict=True)
