"""Represent what a prepared branch of a distributed transaction holds, and encode it for the store. Pure.

A branch is prepared when its outcome is up to the transaction manager alone: its sends and acknowledgements are stored
and survive everything, until it is committed or rolled back. What it acknowledged has left its queues: on a rollback
it comes back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from brokerapp.errors import BrokerError
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message, RoutedCopy
from brokerapp.model.stored_message import load_stored

#: Bytes that one prepared branch may hold: it is read and written as one value, while everybody else waits.
MAX_PREPARED_BYTES = 64 * 1024 * 1024
#: Prepared branches that a broker keeps. A transaction manager has some for each of its threads, for a moment.
MAX_PREPARED_BRANCHES = 10_000


@dataclass(slots=True)
class PreparedSends:
    """Messages that were sent to one destination, with the way that was found for them then."""

    destination: Destination
    queues: list[RoutedCopy]  #: copies to store
    topics: list[RoutedCopy]  #: copies for those who listen then
    messages: list[Message]
    places: list[int]  #: where each was sent among all of the transaction


@dataclass(slots=True)
class PreparedAck:
    """A message that was acknowledged, and where it was."""

    log: str
    original: str  #: what its original-destination header says, when not in the message
    shown: str  #: what its destination header says, when not the log's
    message: Message  #: with the number of its deliveries, this one included


@dataclass(slots=True)
class PreparedBranch:
    """What happens on a commit, and what comes back on a rollback."""

    sends: list[PreparedSends] = field(default_factory=list)
    jobs: list[tuple[str, bytes]] = field(default_factory=list)  #: messages to be delivered later: ids and records
    acks: list[PreparedAck] = field(default_factory=list)

    @property
    def send_count(self) -> int:
        """Return the number of messages that it sends, now or later."""
        return sum([len(each.messages) for each in self.sends]) + len(self.jobs)

    def encode(self) -> bytes:
        """Return it as one value of the store: a line of JSON that says what follows, and the messages."""
        parts = [message.stored() for each in self.sends for message in each.messages]
        parts += [record for _, record in self.jobs]
        parts += [each.message.stored() for each in self.acks]
        about = {
            "sends": [
                [str(each.destination), list(map(_texts, each.queues)), list(map(_texts, each.topics)), each.places]
                for each in self.sends
            ],
            "jobs": [id for id, _ in self.jobs],
            "acks": [[each.log, each.original, each.shown] for each in self.acks],
            "sizes": list(map(len, parts)),
        }
        return json.dumps(about).encode() + b"\n" + b"".join(parts)

    @classmethod
    def decode(cls, stored: bytes) -> PreparedBranch:
        """Return the branch of a value of the store. Raises BrokerError where storage changed it."""
        try:
            return cls._decode(stored)
        except (ValueError, KeyError, StopIteration) as error:
            raise BrokerError(f"what a prepared transaction holds is damaged: {error}") from error

    @classmethod
    def _decode(cls, stored: bytes) -> PreparedBranch:
        line, _, rest = stored.partition(b"\n")
        about = json.loads(line)
        if sum(about["sizes"]) != len(rest):
            raise ValueError(f"{len(rest)} bytes of messages, expected {sum(about['sizes'])}")
        parts = _cut(rest, about["sizes"])
        sends = [
            PreparedSends(
                Destination.parse(to), list(map(_copy, queues)), list(map(_copy, topics)),
                [load_stored(next(parts)) for _ in places], places,
            )
            for to, queues, topics, places in about["sends"]
        ]  # fmt: skip
        jobs = [(id, next(parts)) for id in about["jobs"]]
        acks = [PreparedAck(log, original, shown, load_stored(next(parts))) for log, original, shown in about["acks"]]
        return cls(sends, jobs, acks)


@dataclass(slots=True)
class PreparedSummary:
    """What operators are told of a prepared branch."""

    client_id: str
    user: str
    prepared_ms: int  #: since the epoch
    sends: int
    acks: int
    size: int  #: bytes of messages
    node: str = ""  #: session of the node that prepared it, whose clients held what it acknowledged

    def encode(self) -> bytes:
        """Return it as JSON."""
        facts = {name: getattr(self, name) for name in self.__slots__}
        return json.dumps(facts).encode()

    @classmethod
    def decode(cls, stored: bytes) -> PreparedSummary:
        """Return the summary of a value of the store."""
        return cls(**json.loads(stored))


def _texts(copy: RoutedCopy) -> list[str]:
    return [str(each) if each is not None else "" for each in (copy.destination, copy.original, copy.shown)]


def _copy(texts: Sequence[str]) -> RoutedCopy:
    destination, original, shown = (Destination.parse(each) if each else None for each in texts)
    assert destination is not None
    return RoutedCopy(destination, original, shown)


def _cut(data: bytes, sizes: Sequence[int]) -> Iterator[bytes]:
    at = 0
    for size in sizes:
        yield data[at : at + size]
        at += size
