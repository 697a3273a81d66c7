"""Takes operators' requests from the store, and has each answered by the node that it concerns.

A request about a log that is being handed to this node is deferred; other requests are answered meanwhile.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque

from brokerapp.admin.handlers.request_handler import RequestHandler
from brokerapp.errors import StoreUnavailable
from brokerapp.model import JsonObject
from brokerapp.nodes.membership.request_owner import log_of_request, other_node_for
from brokerapp.nodes.placement import NodePlacement
from brokerapp.store.requests import RequestStore

#: Seconds that one call waits for the next request.
WAIT_SECONDS = 1.0
#: Requests deferred at a time, each with at most one message. A console sends a few a second, and waits a minute.
MAX_DEFERRED = 200

#: Reply to a request that cannot be deferred.
TOO_MANY = {
    "error": "too many requests wait until this node owns their queues: try again",
    "code": StoreUnavailable.code,
}

Request = JsonObject


class RequestRouter:
    """Serves the requests of one node.

    `asked` is where requests arrive: it blocks connections of its own. Replies go to `store`.
    """

    def __init__(
        self,
        placement: NodePlacement,
        node: str,
        asked: RequestStore,
        store: RequestStore,
        handler: RequestHandler,
    ) -> None:
        self._placement, self._node, self._asked, self._store, self._handler = placement, node, asked, store, handler
        self._deferred: deque[Request] = deque()
        self._taken_over = asyncio.Event()

    async def run(self) -> None:
        """Serve one request after the other until cancelled."""
        while True:
            request = await self._asked.take(self._node, WAIT_SECONDS)
            if request is not None:
                await self._serve(request)

    async def run_deferred(self) -> None:
        """Queue deferred requests again when this node owns their logs, until cancelled."""
        while True:
            await self._taken_over.wait()
            while self._deferred:
                await self._store.forward(self._deferred.popleft(), self._node)
            self._taken_over.clear()

    async def _serve(self, request: Request) -> None:
        other = other_node_for(self._placement.peers.members, request["verb"], request["args"])
        if other is not None:
            await self._store.forward(request, other)
        elif self._placement.handoff_in.is_pending(log_of_request(request["args"])):
            await self._defer(request)
        else:
            await self._store.reply(request["id"], await self._handler.answer(request))

    async def _defer(self, request: Request) -> None:
        """Keep a request until the handoff is done; drop deferred requests whose callers have timed out."""
        now = time.time()
        self._deferred = deque(each for each in self._deferred if each["until"] > now)
        if len(self._deferred) >= MAX_DEFERRED:
            await self._store.reply(request["id"], TOO_MANY)
            return
        if not self._deferred:
            self._placement.handoff_in.when_taken_over(self._taken_over.set)
        self._deferred.append(request)
