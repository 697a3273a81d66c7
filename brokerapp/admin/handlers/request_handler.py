"""Answers operators' requests to a running node, which may hold the messages concerned in memory."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping

from brokerapp.errors import BrokerError
from brokerapp.model import JsonObject, JsonValue

logger = logging.getLogger(__name__)

#: Carries out one kind of request. Arguments and result differ from verb to verb, and are plain JSON values.
Handler = Callable[..., Awaitable[JsonValue]]


class RequestHandler:
    """Calls the handler of a request's verb."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers

    async def answer(self, request: Mapping[str, JsonValue]) -> JsonObject:
        """Return the reply to a request: {"result": ...} or {"error": sentence, "code": code}."""
        verb = request["verb"]
        handler = self._handlers.get(verb)
        if handler is None:
            return {"error": f"unknown request {verb!r}", "code": BrokerError.code}
        try:
            return {"result": await handler(**request["args"])}
        except BrokerError as error:
            return {"error": str(error), "code": error.code}
        except Exception:  # an internal error: without a reply the caller would wait until its timeout
            logger.exception("the request %s could not be carried out", verb)
            return {"error": f"internal error in {verb}: see the log of the node", "code": BrokerError.code}
