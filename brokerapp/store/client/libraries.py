"""Load the function library of this version, and remove unused ones of other versions."""

from __future__ import annotations

from brokerapp.store.client.client import StorePart
from brokerapp.store.client.keys import LIBRARIES
from brokerapp.store.client.library import LIBRARY_NAME, NAME

#: Seconds without a node that uses it after which a library is removed. Who needs it again loads it again.
UNUSED_SECONDS = 7 * 24 * 3600


class FunctionLibraries(StorePart):
    """Tracks the function libraries on the server and removes unused ones."""

    async def remove_unused(self) -> None:
        """Note that this version's library is in use, and remove those unused for UNUSED_SECONDS."""
        run = self._client.execute
        noted = self._keys.libraries if self._client.is_in_cluster else LIBRARIES
        now = int((await run("TIME"))[0])
        await run("ZADD", noted, now, NAME)
        listed = await run("FUNCTION", "LIST", "LIBRARYNAME", "sluice_*")
        others = [name for each in listed if LIBRARY_NAME.fullmatch(name := each[1].decode()) and name != NAME]
        for name in others:
            await run("ZADD", noted, "NX", now, name)  # used by tools only so far, which do not note it
            if float(await run("ZSCORE", noted, name)) < now - UNUSED_SECONDS:
                await run("FUNCTION", "DELETE", name)
                await run("ZREM", noted, name)
