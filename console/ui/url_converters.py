"""Encode names in URLs of pages and the API, so that any name is one path segment.

As in a JSON Pointer (RFC 6901), `/` is written `~1` and `~` is `~0`; in `.` and `..`, which browsers take for ways up,
a dot is `~2`. All else is percent-encoded as everywhere. A program may write `%2F` for `/`, too.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import unquote

from django.urls import Resolver404, register_converter, resolve

_ESCAPES = {"~0": "~", "~1": "/", "~2": "."}
_ESCAPED = re.compile("~[012]")
_SLASH = re.compile(b"%2f", re.IGNORECASE)
#: Parts between bare slashes of which a name is tried to consist: each try looks at all pages.
MOST_PARTS = 20
Scope = MutableMapping[str, Any]
Application = Callable[[Scope, Any, Any], Awaitable[None]]


class NameConverter:
    """Convert a name: `<name:queue>` in a page's path, `{name:queue}` in an API path."""

    regex = "[^/]+"

    def to_python(self, text: str) -> str:
        """Return the name of a path segment."""
        return _ESCAPED.sub(lambda found: _ESCAPES[found[0]], text)

    def to_url(self, name: str) -> str:
        """Return the path segment of a name."""
        if name in (".", ".."):
            return name.replace(".", "~2")
        return name.replace("~", "~0").replace("/", "~1")


register_converter(NameConverter, "name")


def escape_legacy_path(path: str) -> str | None:
    """Convert an old path with bare slashes in a name: `/queues/in/eu/messages/` is `/queues/in~1eu/messages/`.

    Returns None for other paths. The shortest name that leads to a page is used.
    """
    first, *rest = path.removeprefix("/").split("/")
    converter = NameConverter()
    for length in range(2, min(len(rest), MOST_PARTS) + 1):
        name = converter.to_python("/".join(rest[:length]))
        found = "/".join(["", first, converter.to_url(name), *rest[length:]])
        try:
            if name in resolve(found).kwargs.values():
                return found
        except Resolver404:
            continue
    return None


def keep_encoded_slashes(application: Application) -> Application:
    """Wrap the ASGI application to keep percent-encoded slashes, which servers decode."""

    async def told(scope: Scope, receive: Any, send: Any) -> None:
        raw = scope.get("raw_path") or b""
        if _SLASH.search(raw):
            scope = {**scope, "path": unquote(_SLASH.sub(b"~1", raw).decode("latin-1"))}
        await application(scope, receive, send)

    return told
