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
    """See the comments for what follows."""

    # -- of the link itself
    CHALLENGE = auto()  # nonce
    HELLO = auto()  # session, proof, nonce
    WELCOME = auto()  # session, proof

    # -- of epochs
    EPOCH = auto()  # epoch: what follows is said in it
    EPOCH_DONE = auto()  # epoch: nothing is given out any more of logs that left, and all that is held was said

    # -- of what all nodes know
    LOGS = auto()  # id, (log, JSON of its attributes or None: it is gone) ...
    LISTENERS = auto()  # id, (kind of topic, name or pattern, whether there are some) ...
    CONFIRMED = auto()  # id, "" or why it cannot be
    PUBLISH = (
        auto()
    )  # topic, stored message, original destination, shown destination, see bridge_clients.delivering_bridge
    GET_RETAINED = auto()  # id, page: tell this page of what topics remember, see PAST, then that it is done
    RETAINED = auto()  # (topic, stored message, original, shown, its age in milliseconds, whether it is retained) ...
    GET_CONSUMERS = auto()  # id: tell of all consumers of your clients, see CONSUMERS, then that it is done
    CONSUMERS = auto()  # (topic, advisory) of some, whether they are the last
    SELECTORS = auto()  # id, whether that is all of it, (queue, selectors of its consumers there) ...
    BRIDGE_BIDS = (
        auto()
    )  # id, whether those are all, (destination, key of a bridge's consumer, what it offers or None) ...
    CLAIM = auto()  # id, Claim, whether all have agreed: a client is to have a client id, or has it
    STATS = auto()  # numbers of destinations, as the teller counted them
    # log, number of messages, highest number, Told ... or None: to be read; the highest number of what its teller kept
    # and forgot, or None: these are not kept
    APPENDED = auto()

    # -- from a client's node to a home
    ATTACH = auto()  # id, key, log, facts of the consumer (see Consumer)
    DETACH = auto()  # key, log
    CREDIT = auto()  # key, messages more that it may be given
    UNACKED = auto()  # key, log, entries
    SETTLED = auto()  # log, Consumer that acknowledged, or None: they went otherwise, counted there; numbers
    REQUEUED = auto()  # log, numbers, whether their consumer may have seen them
    REMOVE_SUBSCRIPTION = auto()  # id, log of a named subscription that is to go unless somebody consumes it

    # -- from a home to a client's node
    DELIVER = auto()  # key, log, entries, each whole or, where its receiver stored and kept it, its number
    WANT_ENTRIES = auto()  # log, whether what arrives there is to be told whole
    IS_CONSUMED = auto()  # id, log: does one of your clients consume it still? KNOWN: "" or that it is so

    # -- from the owner that a log leaves to its next one
    DISPATCHED = auto()  # log, (number, deliveries) of what was sent to consumers at other nodes and is not settled


#: The last word of nodes whose version does not say which it knows: they close a link on which they hear another one.
LAST_TYPE_OF_OLDER_VERSIONS = PeerMessageType.IS_CONSUMED


class ConsumerIdentity(NamedTuple):
    """Who acknowledged, as its home accounts for it."""

    client_id: str
    bridge: str  #: the broker whose bridge it is; "": an ordinary client


class AppendedBatch(NamedTuple):
    """Messages that a node stored one after the other in a log, alike in all but heads and bodies."""

    previous_seq: int | None  #: what stood last there then, as far as the store said it
    first_seq: int  #: their first number
    has_payloads: bool  #: whether they are kept as payloads
    original: str
    shown: str
    stored: list[bytes]


#: Questions that concern who asked them alone: nobody else at its node waits for the answers.
INDEPENDENT_QUESTIONS = frozenset(
    {PeerMessageType.CLAIM, PeerMessageType.REMOVE_SUBSCRIPTION, PeerMessageType.IS_CONSUMED}
)
#: What waits where the receiver has not come to the epoch yet.
ABOUT_LOGS = frozenset({*range(PeerMessageType.ATTACH, PeerMessageType.DELIVER), PeerMessageType.DISPATCHED})

#: An entry on its way: number, payload, size, original, shown, deliveries, first of its group, stored message.
PackedEntry = tuple[int, int, int, str, str, int, bool, bytes]


def pack(entries: Iterable[LogEntry]) -> list[PackedEntry]:
    """Entries of one log."""
    return list(map(_pack_entry, entries))


def pack_for_session(session: str, entries: Iterable[LogEntry], forgotten: int = 0) -> list[PackedEntry | int]:
    """The same for that node, which has those as they came that it kept, if their numbers are above this one."""
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
    """The inverse of pack()."""
    return [unpack_entry(log, each) for each in packed]


def unpack_entry(log: str, packed: Sequence[Any]) -> LogEntry:
    """One of them."""
    seq, payload, size, original, shown, deliveries, first, stored = packed
    return LogEntry(log, seq, Message.load(stored), payload, size, original, shown, deliveries, first)


def pack_batch(entries: Sequence[LogEntry], before: int | None) -> AppendedBatch:
    """Messages that went the same way into a log."""
    first = entries[0]
    stored = encode_messages([each.message for each in entries])
    return AppendedBatch(
        before, first.seq, first.payload > 0, first.original_destination, first.shown_destination, stored
    )


def unpack_batch(log: str, told: AppendedBatch, kept_at: str) -> list[LogEntry]:
    """The inverse of pack_told(); `kept_at`: by whom they are kept, "" if by nobody."""
    _, first, shared, original, shown, stored = told
    messages = decode_messages(stored)
    deliveries = messages[0].deliveries
    return [
        LogEntry(log, seq, message, seq if shared else 0, len(each), original, shown, deliveries, cached_at=kept_at)
        for seq, message, each in zip(itertools.count(first), messages, stored)
    ]
