"""The brokers of a network that a message, or the demand for it, has crossed: a path of their names."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote, unquote

#: Names of brokers, the first that was crossed first.
Path = tuple[str, ...]
#: The header by which brokers tell each other a path; no client sees it.
PATH_HEADER = "sluice-path"
#: ... and which queues, bound to a topic, hold a copy of a message already: the broker that it comes to makes none.
BOUND_QUEUES_HEADER = "sluice-held"
#: What a bridge says of itself when it subscribes: where it leads, and how many bridges a message may cross.
TO_HEADER, TTL_HEADER = "sluice-to", "sluice-message-ttl"
#: ... which consumers it is for, and whether it stands aside while another bridge is there for one of them.
CONSUMERS_HEADER, SUPPRESS_HEADER = "sluice-consumers", "sluice-suppress"
#: ... and names and patterns of what it leaves alone although the pattern that it subscribes to takes them in.
EXCEPT_HEADER = "sluice-except"
#: ... and why it rejects a message (NACK) that can never cross.
REASON_HEADER = "sluice-reason"
#: The property that holds a message's path at an ActiveMQ to which it came over STOMP: `,first,second,`. An identifier,
#: for the sake of selectors.
PATH_PROPERTY = "sluice_path"
#: How queues of ActiveMQ begin in which bridges record what they passed on.
RECORD_QUEUE_PREFIX = "Sluice.Bridge."
#: How the names of durable subscriptions begin that bridges have; and what a bridge says when it needs no others of
#: them any more: those that it does.
BRIDGE_DURABLE_PREFIX, KEEP_HEADER = "NC-DS_", "sluice-keep"
#: As many crossings as there are brokers.
UNLIMITED = -1


def format_path(path: Iterable[str]) -> str:
    """A path as text without spaces, line ends or colons."""
    return ",".join([quote(name, safe="") for name in path])


def parse_path(text: str) -> Path:
    """The inverse of write_path."""
    return tuple([unquote(name) for name in text.split(",") if name])
