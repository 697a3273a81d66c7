"""Refuse HTTP requests that no page or operation takes before anything reads them: their method, or their size.

Django keeps a whole request in a temporary file before its own limits apply, so that anybody who reaches the console
could fill the disk.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any

logger = logging.getLogger(__name__)

#: Methods of pages and of the API.
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
#: Characters of a method that the log gets: a request may claim any.
MAX_METHOD = 20

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class _TooLarge(Exception):
    """Report that more bytes came than a request may have."""


def limit_requests(application: Application, max_bytes: int) -> Application:
    """Wrap an ASGI application to answer 405 for other methods, and 413 for a body of more than `max_bytes`."""

    async def limited(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await application(scope, receive, send)
            return
        if scope["method"] not in METHODS:
            await _refuse(scope, send, HTTPStatus.METHOD_NOT_ALLOWED, f"method {ascii(scope['method'])[:MAX_METHOD]}")
            return
        if (declared := _declared_length(scope)) > max_bytes:
            await _refuse(scope, send, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"{declared} bytes")
            return
        received = 0

        async def counted() -> dict[str, Any]:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > max_bytes:
                raise _TooLarge
            return message

        try:
            await application(scope, counted, send)
        except _TooLarge:
            await _refuse(scope, send, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {max_bytes} bytes")

    return limited


def _declared_length(scope: Scope) -> int:
    declared = dict(scope["headers"]).get(b"content-length", b"0")
    return int(declared) if declared.isdigit() else 0


async def _refuse(scope: Scope, send: Send, status: HTTPStatus, reason: str) -> None:
    """Answer with a sentence, and close the connection: what follows on it is the rest of the request."""
    address = (scope.get("client") or ("unknown",))[0]
    logger.warning("request from %s refused: %s", address, reason)
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"connection", b"close"),
        (b"cache-control", b"no-store"),
    ]
    headers += [(b"allow", ", ".join(sorted(METHODS)).encode())] if status == HTTPStatus.METHOD_NOT_ALLOWED else []
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{status.phrase}.\n".encode()})
