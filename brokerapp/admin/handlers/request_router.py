"""Serving: what operators ask of the broker's nodes; each request is answered by the node that it is about.

One about a log that is at home here and is not taken home yet waits aside: what is asked meanwhile is answered.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from brokerapp.errors import StoreUnavailable
from brokerapp.nodes.membership.request_owner import log_of_request, other_node_for
from brokerapp.nodes.ownership.coordinator import OwnershipCoordinator
from brokerapp.store.requests import RequestStore

#: Seconds that the store is asked for the next request at a time.
WAIT_SECONDS = 1.0
#: Requests that wait aside at a time, with a message each at most. A console asks a few a second, and waits a minute.
MAX_DEFERRED = 200

#: What one is told of whom there is no room for.
TOO_MANY = {
    "error": "too many wait until this node gives out the messages concerned: ask again",
    "code": StoreUnavailable.code,
}

Request = dict[str, Any]


class RequestRouter:
    """That of the node of this name. `asked` is where it waits for requests: it blocks connections of that."""

    def __init__(
        self,
        ownership: OwnershipCoordinator,
        node: str,
        asked: RequestStore,
        store: RequestStore,
        answer: Callable[[Request], Awaitable[Request]],
    ) -> None:
        self._ownership, self._node, self._asked, self._store, self._answer = ownership, node, asked, store, answer
        self._deferred: deque[Request] = deque()
        self._taken = asyncio.Event()

    async def run(self) -> None:
        """Serve one request after the other, until cancelled."""
        while True:
            request = await self._asked.take(self._node, WAIT_SECONDS)
            if request is not None:
                await self._serve(request)

    async def run_deferred(self) -> None:
        """Have what waited aside served as anew, once that may be, until cancelled."""
        while True:
            await self._taken.wait()
            while self._deferred:
                await self._store.forward(self._deferred.popleft(), self._node)
            self._taken.clear()

    async def _serve(self, request: Request) -> None:
        other = other_node_for(self._ownership.members, request["verb"], request["args"])
        if other is not None:
            await self._store.forward(request, other)
        elif self._ownership.handoff_in.is_pending(log_of_request(request["args"])):
            await self._defer(request)
        else:
            await self._store.reply(request["id"], await self._answer(request))

    async def _defer(self, request: Request) -> None:
        """Keep it until all is taken home; what nobody waits for any more is kept no longer."""
        now = time.time()
        self._deferred = deque(each for each in self._deferred if each["until"] > now)
        if len(self._deferred) >= MAX_DEFERRED:
            await self._store.reply(request["id"], TOO_MANY)
            return
        if not self._deferred:
            self._ownership.handoff_in.when_taken_over(self._taken.set)
        self._deferred.append(request)
