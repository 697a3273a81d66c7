"""Check the server and its history on each new connection, before any other request.

The address of a store may lead to another server than before, or to the same one with an older state. So each
connection asks first whether the server takes writes, has the function library and a format that this version can use,
and still holds what this process knows of its history.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import (
    AskError,
    ClusterCrossSlotError,
    ClusterDownError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)

from brokerapp.errors import BrokerError, ConfigurationRefused, StoreRolledBack, StoreUnavailable
from brokerapp.store.client.continuity import FORMATS, Continuity, is_behind
from brokerapp.store.client.keys import StoreKeys
from brokerapp.store.client.library import LIBRARY, PREFIX, is_missing
from brokerapp.store.client.primary import NOT_PRIMARY
from brokerapp.system.formats import SupportedFormats
from brokerapp.system.store_address import cluster_mode_error

#: What a server of a cluster answers about keys that others of it have.
_CLUSTERED = (AskError, ClusterCrossSlotError, ClusterDownError)
#: What a primary answers that takes no writes at the moment: who knows nothing of the store may read there.
_NO_WRITES = ("MISCONF", "NOREPLICAS")

Ask = Callable[..., Awaitable[Any]]


class RefusedConnection(RedisError):
    """Takes an error of ours through the driver, which closes the connection for it."""

    def __init__(self, error: BrokerError) -> None:
        super().__init__(str(error))
        self.error = error


class Handshake:
    """Checks each new connection of one broker to the server behind a URL.

    `session`: that of the node whose connections these are, once it is a member. Others know nothing that has to be
    there still. `formats`: those of stores that may be opened.
    """

    def __init__(self, url: str, keys: StoreKeys, continuity: Continuity, formats: SupportedFormats = FORMATS) -> None:
        self._url, self._keys, self._formats = url, keys, formats
        self.continuity, self.session = continuity, ""
        self.rolled_back: StoreRolledBack | None = None  #: why the session ended, if it ended for that

    async def __call__(self, connection: AbstractConnection) -> None:
        """Perform the handshake on a new connection. Raises Refused, and the driver's errors."""

        async def ask(*command: Any) -> Any:
            await connection.send_command(*command, check_health=False)
            return await connection.read_response(disable_decoding=True)

        try:
            await self.greet(ask)
        except _CLUSTERED as error:
            raise RefusedConnection(cluster_mode_error(self._url)) from error
        except ReadOnlyError as error:
            raise RefusedConnection(StoreUnavailable(NOT_PRIMARY)) from error
        except ResponseError as error:
            if self.session or not str(error).startswith(_NO_WRITES):
                raise
        except (ConfigurationRefused, StoreRolledBack) as error:
            raise RefusedConnection(error) from error

    async def greet(self, ask: Ask) -> None:
        """Compare what the server says of the store with what is known.

        Raises ConfigurationRefused, StoreRolledBack.
        """
        known = self.continuity.latest  # before it is asked: answers over other connections may tell of more meanwhile
        answer = await self._greeted(ask, known.life)
        if answer is None:
            return
        format, life, changes, seq = answer
        if format:
            self._formats.check(int(format))
        if is_behind(known, changes, seq):
            if self.session:
                await self.fence_after_rollback(ask)
            self.continuity.reset()
        self.continuity.enter_life(life.decode())
        self.continuity.observe(changes, seq)

    async def _greeted(self, ask: Ask, life: str) -> Any:
        greeting = ("FCALL", f"{PREFIX}greet", 2, self._keys.state, self._keys.lives, life)
        try:
            return await ask(*greeting)
        except ResponseError as error:
            if not is_missing(error):
                raise
        try:
            await ask("FUNCTION", "LOAD", "REPLACE", LIBRARY)
        except OutOfMemoryError:  # who knows nothing may read what needs no function
            if self.session:
                raise
            return None
        return await ask(*greeting)

    async def fence_after_rollback(self, ask: Ask) -> None:
        """Fence all sessions of a store that was rolled back, this one included. Raises StoreRolledBack."""
        known, keys = self.continuity.latest, self._keys
        arguments = [self.session, known.changes, known.seq, keys.signals]
        await ask("FCALL", f"{PREFIX}fence_after_rollback", 2, keys.state, keys.nodes, *arguments)
        self.continuity.reset()
        self.session, self.rolled_back = "", StoreRolledBack(
            "the store was rolled back: changes that this node had made or read are missing, as a replica that lagged "
            "took over, a backup was restored or a crash cut its file; this node restarts with what the store has now"
        )  # fmt: skip
        raise self.rolled_back
