"""RequestStore: requests of operators to nodes, and the replies."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from typing import Any

from brokerapp.errors import StoreUnavailable
from brokerapp.model import JsonObject
from brokerapp.store.client.client import StorePart

#: Answers nobody fetches are forgotten after this.
REPLY_SECONDS = 60
#: Seconds after which a request that no node has read is offered to the nodes again. The store hands each to the node
#: that has waited longest; one that is frozen, or dies, never reads it.
OFFER_SECONDS = 1.0


class RequestStore(StorePart):
    """Carries operators' requests to nodes and their replies back; the Lua side is requests.lua."""

    async def send(self, verb: str, args: Mapping[str, Any], timeout: float, node: str = "") -> Any:
        """Send a request to this node, or any, and return its reply; StoreUnavailable after `timeout` seconds."""
        id = uuid.uuid4().hex
        asked = json.dumps({"id": id, "verb": verb, "args": dict(args), "until": time.time() + timeout})
        await self._ask_node(id, asked, timeout, node)
        deadline = time.monotonic() + timeout
        while (left := deadline - time.monotonic()) > 0:
            wait = left if node else min(left, OFFER_SECONDS)
            if (answer := await self._client.execute("BLPOP", self._keys.reply(id), wait)) is not None:
                return json.loads(answer[1])
            if not node:
                await self._offer_again(id)
        await self._client.execute("LREM", self._keys.requests_of(node) if node else self._keys.requests, 0, id)
        raise StoreUnavailable(f"the broker node did not answer {verb} within {timeout:g} seconds")

    async def _offer_again(self, id: str) -> None:
        """Offer a request again that a node was given and has not read; one that is offered twice is read once."""
        is_unread = await self._client.execute("EXISTS", self._keys.request(id))
        if is_unread and await self._client.execute("LPOS", self._keys.requests, id) is None:
            await self._client.execute("RPUSH", self._keys.requests, id)

    async def _ask_node(self, id: str, asked: str, timeout: float, node: str) -> None:
        keys = self._keys
        requests = keys.requests_of(node) if node else keys.requests
        await self._client.call("ask", [keys.request(id), requests], [id, asked, int(timeout * 1000)])

    async def forward(self, request: Mapping[str, Any], node: str) -> None:
        """Forward a request to another node."""
        left = request["until"] - time.time()
        if left > 0:
            await self._ask_node(request["id"], json.dumps(dict(request)), left, node)

    async def take(self, node: str, wait: float) -> JsonObject | None:
        """Take the next request for this node, or any, waiting up to `wait` seconds.

        What nobody waits for any more is skipped.
        """
        found = await self._client.execute("BLPOP", self._keys.requests_of(node), self._keys.requests, wait)
        asked = await self._client.execute("GETDEL", self._keys.request(found[1].decode())) if found else None
        return json.loads(asked) if asked else None

    async def reply(self, id: str, answer: Any) -> None:
        """Send the reply to a request."""
        await self._client.call("answer", [self._keys.reply(id)], [json.dumps(answer), REPLY_SECONDS])
