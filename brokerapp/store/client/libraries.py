"""Libraries: the function libraries of several versions on one server, and the removal of those that none uses."""

from __future__ import annotations

from brokerapp.store.client.client import StoreClient
from brokerapp.store.client.keys import LIBRARIES
from brokerapp.store.client.library import NAME, OURS

#: Seconds without a node that uses it after which a library is removed. Who needs it again loads it again.
UNUSED_SECONDS = 7 * 24 * 3600


class FunctionLibraries(StoreClient):
    """See brokerapp.store.client.library."""

    async def tidy_libraries(self) -> None:
        """Note that this version's library is used, and remove those that no node used for long."""
        now = int((await self._do("TIME"))[0])
        await self._do("ZADD", LIBRARIES, now, NAME)
        listed = await self._do("FUNCTION", "LIST", "LIBRARYNAME", "sluice_*")
        others = [name for each in listed if OURS.fullmatch(name := each[1].decode()) and name != NAME]
        for name in others:
            await self._do("ZADD", LIBRARIES, "NX", now, name)  # used by tools only so far, which do not note it
            if float(await self._do("ZSCORE", LIBRARIES, name)) < now - UNUSED_SECONDS:
                await self._do("FUNCTION", "DELETE", name)
                await self._do("ZREM", LIBRARIES, name)
