"""Durability: what a server that does not fsync before each receipt takes from the promise behind a receipt, in words.

Told by what it says of itself (see RedisStore.memory). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: What a server does with what it has taken, by its `fsync`; "always" is what a receipt promises.
_LOSSES = {
    "off": "keeps messages in memory only (appendonly no): all that was confirmed is lost when it ends",
    "no": "writes to disk when its system likes to (appendfsync no): what was confirmed lately is lost in a crash",
    "everysec": "writes to disk once a second (appendfsync everysec): what was confirmed in it is lost in a crash",
    "unknown": "does not say when it writes to disk: without appendfsync always a crash loses what was confirmed",
}
REMEDY = (
    'set appendonly yes and appendfsync always there, or persistent="false" in the file if no message is to be kept'
)


def loss(memory: Mapping[str, Any]) -> str:
    """What may happen to messages whose receipt was sent, as a sentence without its end; "" where nothing may.

    `kept` in it is False where that is meant: the broker begins each time with an empty store.
    """
    if not memory.get("kept", True):
        return ""
    said = _LOSSES.get(memory.get("fsync", "always"))
    return f"the store's server {said}" if said else ""
