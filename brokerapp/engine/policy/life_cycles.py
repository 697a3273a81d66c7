"""Decide when a destination is deleted, by how it was created. Pure; the same for brokers and nodes.

An admin-created destination ends when an operator deletes it. A temporary one ends with the connection that made it
or, where that may reconnect, when it did not within a window. An auto-created one, which exists because a client named
it, ends when nobody used it for a while, or when its broker starts and finds nothing in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from brokerapp.errors import ProtocolError

#: Open MQ's period without use after which an auto-created destination goes, milliseconds.
AUTO_DESTROY_AFTER_MS = 120_000
#: Its window for clients that may reconnect, five of its clients' intervals of ten seconds; and the longest one that a
#: client may ask for: what it left behind takes room as long.
RECONNECT_WINDOW_MS = 50_000
MAX_RECONNECT_WINDOW_MS = 24 * 3_600_000
MAX_DIGITS = 18  #: of the number by which it asks


class DestinationOrigin(StrEnum):
    """Who created a destination: an operator, or a client."""

    ADMIN = "admin"  #: an operator, or the configuration
    AUTO = "auto"  #: a client that named it
    TEMPORARY = "temporary"  #: a client, for its connection


class ConnectionEnd(StrEnum):
    """How a connection ended, which decides about its temporary destinations."""

    LEFT = "left"  #: the client said good-bye
    LOST = "lost"  #: the connection broke
    HOME_LOST = "home lost"  #: the broker it was connected to is gone


@dataclass(frozen=True, slots=True)
class DestinationUsage:
    """Number of users and messages of a destination at one broker."""

    consumers: int = 0
    messages: int = 0  #: in it, or on their way to it
    producers: int = 0  #: connections that sent to it

    @property
    def is_unused(self) -> bool:
        """Return whether the destination has no consumers, messages or producers."""
        return not (self.consumers or self.messages or self.producers)


def should_delete_when_idle(origin: DestinationOrigin, use: DestinationUsage, idle_ms: int, limit_ms: int) -> bool:
    """Whether a destination that nobody used for so long goes; with a limit of 0 none does."""
    return origin is DestinationOrigin.AUTO and limit_ms > 0 and use.is_unused and idle_ms >= limit_ms


def should_delete_at_restart(origin: DestinationOrigin, messages: int, *, is_subscription: bool = False) -> bool:
    """Whether a broker that starts and finds so many messages removes the destination.

    A queue that gets copies of what is sent elsewhere (of a virtual topic, of an address) is what somebody subscribed
    to: it stays, as in ActiveMQ.
    """
    return origin is DestinationOrigin.AUTO and not messages and not is_subscription


def survives_restart(origin: DestinationOrigin, window_ms: int) -> bool:
    """Whether its home broker has it again after a restart: a temporary one if its client may reconnect."""
    return origin is not DestinationOrigin.TEMPORARY or window_ms > 0


def reconnect_grace_ms(ending: ConnectionEnd, window_ms: int) -> int:
    """Return for how long temporary destinations outlive a connection that ended in this way; 0: not at all."""
    return 0 if ending is ConnectionEnd.LEFT else window_ms


def reconnect_window_ms(asked: str | None, usual_ms: int) -> int:
    """Return the milliseconds in which a client may reconnect, by a header of its CONNECT; 0: not at all.

    `true` asks for the usual time, a number for so many milliseconds. Raises ProtocolError.
    """
    match asked:
        case None | "false" | "":
            return 0
        case "true":
            return usual_ms
    if not (asked.isascii() and asked.isdecimal() and len(asked) <= MAX_DIGITS):
        raise ProtocolError(f"reconnect:{asked[:40]} must be true, false or a number of milliseconds")
    return min(int(asked), MAX_RECONNECT_WINDOW_MS)
