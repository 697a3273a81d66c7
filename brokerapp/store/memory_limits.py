"""Limits of message bytes, from the memory of the store's server (see ServerStatus.memory)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from brokerapp.errors import ConfigurationRefused

logger = logging.getLogger(__name__)

#: Share of the server's machine that messages may take when nobody sets a limit, and that they may take at most: the
#: rest is for what surrounds them, for other programs, and for the copy a server makes when it rewrites its file.
DEFAULT_SHARE = 0.5
LARGEST_SHARE = 0.8
#: Share of a server's own limit (maxmemory) that messages may take; the rest is for what surrounds them.
SHARE_OF_SERVER = 0.8
#: Share of its own limit at which a server counts as full, whatever fills it: no message is taken until it is less.
FULL = 0.97
#: Share of it at which each commit begins to ask what the server uses, some 30 microseconds.
WATCHED = 0.5


def check_eviction(limit: int, evicts: bool) -> None:
    """Raise ConfigurationRefused for a server that deletes messages when its memory, if limited, is full."""
    if limit and evicts:
        raise ConfigurationRefused(
            "the store's server evicts keys when its memory is full: set its maxmemory-policy to noeviction"
        )


def store_limit(wanted: int, memory: Mapping[str, Any]) -> int:
    """Return the bytes of messages the store may hold: those wanted (0: not set), within what the server can hold.

    Raises ConfigurationRefused for a server that would forget messages to make room.
    """
    check_eviction(memory["limit"], memory["evicts"])
    machine, server = memory["machine"], memory["limit"]
    bounds = (wanted or machine * DEFAULT_SHARE, machine * LARGEST_SHARE, server * SHARE_OF_SERVER)
    limit = min([int(each) for each in bounds if each], default=0)
    if wanted > limit:
        logger.warning("storeUsage: %d bytes are more than the store's server can hold: the limit is %d", wanted, limit)
    return limit


def server_limit(memory: Mapping[str, Any]) -> int:
    """Return the bytes at which the server counts as full, whatever uses them; 0 while it is far from that."""
    limit, used = memory["limit"], memory["used"]
    return int(limit * FULL) if used >= limit * WATCHED else 0
