"""Requests that nothing takes are refused before they are read."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import pytest

from console.ops.request_limits import METHODS, limit_requests

LIMIT = 1000


async def answer_of(
    method: str, parts: Iterable[bytes] = (b"",), declared: int | None = None
) -> tuple[int, dict, bytes]:
    """Send a request to an application that reads all of it; return status, headers and what the application read."""
    read = bytearray()
    sent: list[dict[str, Any]] = []
    waiting = list(parts)

    async def application(scope, receive, send) -> None:
        while True:
            message = await receive()
            read.extend(message["body"])
            if not message["more_body"]:
                break
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def receive() -> dict[str, Any]:
        body = waiting.pop(0)
        return {"type": "http.request", "body": body, "more_body": bool(waiting)}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    headers = [] if declared is None else [(b"content-length", str(declared).encode())]
    scope = {"type": "http", "method": method, "path": "/", "headers": headers, "client": ("192.0.2.7", 1)}
    await limit_requests(application, LIMIT)(scope, receive, send)
    return sent[0]["status"], dict(sent[0]["headers"]), bytes(read)


async def test_a_request_as_large_as_allowed_is_read_whole():
    assert await answer_of("POST", [b"x" * 400, b"y" * 600], 1000) == (200, {}, b"x" * 400 + b"y" * 600)


@pytest.mark.parametrize("declared", [1001, 10**12])
async def test_a_request_that_is_too_large_is_refused_before_it_is_read(declared):
    status, headers, read = await answer_of("POST", [b"x" * 500], declared)
    assert (status, headers[b"connection"], read) == (413, b"close", b"")


async def test_a_request_that_does_not_say_how_large_it_is_is_read_as_far_as_allowed():
    status, _, read = await answer_of("POST", [b"x" * 400] * 10)
    assert (status, len(read)) == (413, 800)


async def test_a_method_that_nothing_takes_is_refused_and_logged(caplog):
    with caplog.at_level(logging.WARNING):
        status, headers, _ = await answer_of("TRACE")
    assert (status, headers[b"allow"]) == (405, ", ".join(sorted(METHODS)).encode())
    assert caplog.messages == ["request from 192.0.2.7 refused: method 'TRACE'"]
    for method in METHODS:
        assert (await answer_of(method))[0] == 200


async def test_sockets_are_left_alone():
    seen = []

    async def application(scope, receive, send) -> None:
        seen.append(scope["type"])

    await limit_requests(application, LIMIT)({"type": "websocket"}, None, None)
    assert seen == ["websocket"]
