"""Define the messages that nodes of a broker send over their links.

A consumer's *key* names it at its client's node. Numbers are those of entries in logs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from enum import IntEnum, auto
from typing import Any, NamedTuple

from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.model.message import Message, decode_messages, encode_messages


class PeerMessageType(IntEnum):
    """Types of messages, each with the fields that follow it. Their order is the protocol: new ones come last."""

    # -- of the link itself
    CHALLENGE = auto()  # nonce
    HELLO = auto()  # session, proof, nonce
    WELCOME = auto()  # session, proof

    # -- of epochs
    EPOCH = auto()  # epoch in which what follows is sent
    EPOCH_DONE = auto()  # epoch: nothing is dispatched any more from logs that left, and all that is held was sent

    # -- what all nodes know
    LOGS = auto()  # id, (log, JSON of its attributes or None: it is gone) ...
    LISTENERS = auto()  # id, (kind of topic, name or pattern, whether somebody listens) ...
    CONFIRMED = auto()  # id, "" or why it is refused
    PUBLISH = auto()  # topic, stored message, original, shown, see bridge_clients.delivering_bridge
    GET_RETAINED = auto()  # id, page: send this page of retained messages (RETAINED), then CONFIRMED
    RETAINED = auto()  # (topic, stored message, original, shown, its age in milliseconds, whether it is retained) ...
    GET_CONSUMERS = auto()  # id: send what exists there of what is listened to here (CONSUMERS), then CONFIRMED
    CONSUMERS = auto()  # (topic, advisory) ..., whether they are the last; to older versions of consumers only
    SELECTORS = auto()  # id, whether these are all, (queue, selectors of its consumers there) ...
    BRIDGE_BIDS = (
        auto()
    )  # id, whether those are all, (destination, key of a bridge's consumer, what it offers or None) ...
    CLAIM = auto()  # id, ClientIdClaim, whether all have agreed
    STATS = auto()  # numbers of destinations, as the sender counted them
    # log, number of messages, highest number, AppendedBatch ... or None: to be read; up to which number the sender
    # evicted what it had cached, or None: these are not cached
    APPENDED = auto()

    # -- from a client's node to an owner
    ATTACH = auto()  # id, key, log, attributes of the consumer
    DETACH = auto()  # key, log
    CREDIT = auto()  # key, messages more that it may get
    UNACKED = auto()  # key, log, entries
    SETTLED = auto()  # log, ConsumerIdentity, or None: removed otherwise; numbers
    REQUEUED = auto()  # log, numbers, whether their consumer may have seen them
    REMOVE_SUBSCRIPTION = auto()  # id, log of a named subscription to remove unless somebody consumes it

    # -- from an owner to a client's node
    DELIVER = auto()  # key, log, entries, each whole or, where the receiver stored and cached it, its number
    WANT_ENTRIES = auto()  # log, whether what is appended is to be sent whole
    IS_CONSUMED = auto()  # id, log: does one of your clients still consume it? CONFIRMED with "" or that it does

    # -- from the owner that a log leaves to its next one
    DISPATCHED = auto()  # log, (number, deliveries) of what was sent to consumers at other nodes and is not settled

    # -- of distributed transactions
    BRANCH = auto()  # id, BranchStep, name of a branch, connection of a client; CONFIRMED as branch_parts.py has it

    # -- of epochs; who knows it knows of members that are drained, and of logs assigned to members, too
    TAKEN_OVER = auto()  # epoch: the sender dispatches from all logs that it owns in it


#: The last type that nodes of older versions understand: they close a link over which another one comes.
LAST_TYPE_OF_OLDER_VERSIONS = PeerMessageType.IS_CONSUMED


class ConsumerIdentity(NamedTuple):
    """The consumer that acknowledged, for the counters of the owner."""

    client_id: str
    bridge: str  #: the broker whose bridge it is; "": an ordinary client


class AppendedBatch(NamedTuple):
    """Messages that a node stored one after the other in a log, alike in all but heads and bodies."""

    previous_seq: int | None  #: what stood last there then, as far as the store said it
    first_seq: int  #: their first number
    payloads: int  #: 0: the log holds them itself; else what is added to a number for that of its payload, and 1
    original: str
    shown: str
    stored: list[bytes]


#: Requests that concern one client alone: nobody else at its node waits for the answers.
INDEPENDENT_QUESTIONS = frozenset(
    {
        PeerMessageType.CLAIM,
        PeerMessageType.REMOVE_SUBSCRIPTION,
        PeerMessageType.IS_CONSUMED,
        PeerMessageType.BRANCH,
    }
)
#: What is deferred until the receiver has come to the epoch.
ABOUT_LOGS = frozenset({*range(PeerMessageType.ATTACH, PeerMessageType.DELIVER), PeerMessageType.DISPATCHED})

#: An entry on its way: number, payload, size, original, shown, deliveries, first of its group, stored message.
PackedEntry = tuple[int, int, int, str, str, int, bool, bytes]


def pack(entries: Iterable[LogEntry]) -> list[PackedEntry]:
    """Pack entries of one log."""
    return list(map(_pack_entry, entries))


def pack_for_session(session: str, entries: Iterable[LogEntry], forgotten: int = 0) -> list[PackedEntry | int]:
    """Pack entries for a node, as numbers where it has them in its cache: those above `forgotten` that it stored."""
    return [
        e.seq if e.cached_at == session and e.seq > forgotten and _is_unchanged(e) else _pack_entry(e) for e in entries
    ]


def _is_unchanged(e: LogEntry) -> bool:
    return not e.first_of_group and e.redelivery_count == e.message.deliveries


def _pack_entry(e: LogEntry) -> PackedEntry:
    return (
        e.seq,
        e.payload,
        e.size,
        e.original_destination,
        e.shown_destination,
        e.redelivery_count,
        e.first_of_group,
        e.message.stored(),
    )


def unpack(log: str, packed: Iterable[Any]) -> list[LogEntry]:
    """Return the entries that `pack` packed."""
    return [unpack_entry(log, each) for each in packed]


def unpack_entry(log: str, packed: Sequence[Any]) -> LogEntry:
    """Return one packed entry."""
    seq, payload, size, original, shown, deliveries, first, stored = packed
    return LogEntry(log, seq, Message.load(stored), payload, size, original, shown, deliveries, first)


def pack_batch(entries: Sequence[LogEntry], before: int | None) -> AppendedBatch:
    """Pack messages that were appended one after the other by the same route."""
    first = entries[0]
    stored = encode_messages([each.message for each in entries])
    payloads = first.payload - first.seq + 1 if first.payload else 0
    return AppendedBatch(before, first.seq, payloads, first.original_destination, first.shown_destination, stored)


def unpack_batch(log: str, told: AppendedBatch, kept_at: str) -> list[LogEntry]:
    """Return the entries of a batch; `kept_at`: the session that has them in its cache, or ""."""
    _, first, payloads, original, shown, stored = told
    messages = decode_messages(stored)
    deliveries = messages[0].deliveries
    numbers = itertools.count(first + payloads - 1) if payloads else itertools.repeat(0)
    return [
        LogEntry(log, seq, message, payload, len(each), original, shown, deliveries, cached_at=kept_at)
        for seq, message, payload, each in zip(itertools.count(first), messages, numbers, stored)
    ]
