"""The ids of connections and what they open, of messages, transactions and brokers, with their text forms.

All are values: equal when their fields are. Their text is the one that Java clients show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from brokerapp.errors import OpenWireError
from brokerapp.openwire.commands import data_types as t
from brokerapp.openwire.commands.wire_fields import blob, cached, int32, int64, string
from brokerapp.system.text_cache import cached_if_short

#: The numbers that a Java long holds.
_MIN_LONG, _MAX_LONG = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class BrokerId:
    """A broker."""

    data_type: ClassVar[int] = t.BROKER_ID
    value: str | None = string()

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class ConnectionId:
    """A connection: the text that its client made up."""

    data_type: ClassVar[int] = t.CONNECTION_ID
    value: str | None = string()

    def __str__(self) -> str:
        return str(self.value)

    @classmethod
    def parse(cls, text: str) -> ConnectionId:
        """Return the id with this text."""
        return cls(text)


@dataclass(frozen=True, slots=True)
class SessionId:
    """A session of a connection."""

    data_type: ClassVar[int] = t.SESSION_ID
    connection_id: str | None = string()
    value: int = int64()

    def __str__(self) -> str:
        return f"{self.connection_id}:{self.value}"


@dataclass(frozen=True, slots=True)
class ConsumerId:
    """A consumer of a session."""

    data_type: ClassVar[int] = t.CONSUMER_ID
    connection_id: str | None = string()
    session_id: int = int64()
    value: int = int64()

    def __str__(self) -> str:
        return f"{self.connection_id}:{self.session_id}:{self.value}"

    @classmethod
    def parse(cls, text: str) -> ConsumerId:
        """Return the id with this text, CONNECTION:SESSION:CONSUMER. Raises OpenWireError."""
        connection_id, session_id, value = _split(text, "consumer")
        return cls(connection_id, session_id, value)


@dataclass(frozen=True, slots=True)
class ProducerId:
    """A producer of a session."""

    data_type: ClassVar[int] = t.PRODUCER_ID
    connection_id: str | None = string()
    value: int = int64()
    session_id: int = int64()

    def __str__(self) -> str:
        return f"{self.connection_id}:{self.session_id}:{self.value}"

    @classmethod
    def parse(cls, text: str) -> ProducerId:
        """Return the id with this text, CONNECTION:SESSION:PRODUCER. Raises OpenWireError."""
        connection_id, session_id, value = _split(text, "producer")
        return cls(connection_id, value, session_id)


@dataclass(eq=False, slots=True)
class MessageId:
    """A message: the n-th of its producer. The number that the broker gives it is another one for each consumer.

    Two are equal when they are the same message of the same producer, as for Java clients: those of versions before
    10 know no `text_view`, and only the broker knows its own number of the message.
    """

    data_type: ClassVar[int] = t.MESSAGE_ID
    text_view: str | None = string(since=10)
    producer_id: ProducerId | None = cached(t.PRODUCER_ID)
    producer_sequence_id: int = int64()
    broker_sequence_id: int = int64()

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, MessageId)
            and self.producer_sequence_id == other.producer_sequence_id
            and (self.producer_id is other.producer_id or self.producer_id == other.producer_id)
        )

    def __hash__(self) -> int:
        return hash((self.producer_id, self.producer_sequence_id))

    def __str__(self) -> str:
        if self.text_view is None:
            producer = self.producer_id
            if producer is not None:  # its text, without a call: each message has one
                return f"{producer.connection_id}:{producer.session_id}:{producer.value}:{self.producer_sequence_id}"
            return f"{producer}:{self.producer_sequence_id}"
        return self.text_view if self.text_view.startswith("ID:") else f"ID:{self.text_view}"

    @classmethod
    def parse(cls, text: str) -> MessageId:
        """Return the id with this text, PRODUCER:NUMBER; any other text is shown as it is.

        Such a text is kept as `text_view`. What is before its last colon stands for the producer, so that two
        messages differ also for clients that compare producer and number only.
        """
        producer, _, number = text.rpartition(":")
        sequence = _long(number)
        if sequence is None or not producer:
            return cls(text, ProducerId(text))
        id = _producer_id(producer)
        return cls(text, ProducerId(producer), sequence) if id is None else cls(None, id, sequence)


@dataclass(frozen=True, slots=True)
class LocalTransactionId:
    """A transaction of one connection."""

    data_type: ClassVar[int] = t.LOCAL_TRANSACTION_ID
    value: int = int64()
    connection_id: ConnectionId | None = cached(t.CONNECTION_ID)

    def __str__(self) -> str:
        return f"TX:{self.connection_id}:{self.value}"


@dataclass(frozen=True, slots=True)
class XATransactionId:
    """A branch of a transaction that a transaction manager coordinates."""

    data_type: ClassVar[int] = t.XA_TRANSACTION_ID
    format_id: int = int32()
    global_transaction_id: bytes | None = blob()
    branch_qualifier: bytes | None = blob()

    def __str__(self) -> str:
        ids = _hexadecimal(self.global_transaction_id), _hexadecimal(self.branch_qualifier)
        return f"XID:[{self.format_id},globalId={ids[0]},branchId={ids[1]}]"


TransactionId = LocalTransactionId | XATransactionId
#: What a client closes by RemoveInfo.
RemovableId = ConnectionId | SessionId | ConsumerId | ProducerId


@cached_if_short(4096)
def _producer_id(text: str) -> ProducerId | None:
    """Return the producer with this text; None where it is none of a Java client."""
    try:
        return ProducerId.parse(text)
    except OpenWireError:
        return None


def _split(text: str, what: str) -> tuple[str, int, int]:
    """Return the text before the last two numbers, and these."""
    parts = text.rsplit(":", 2)
    numbers = [_long(each) for each in parts[1:]]
    if len(parts) < 3 or not parts[0] or numbers[0] is None or numbers[1] is None:
        raise OpenWireError(f"{text[:80]!r} is not the id of a {what}: expected CONNECTION:NUMBER:NUMBER")
    return parts[0], numbers[0], numbers[1]


def _long(text: str) -> int | None:
    """Return the number, as its text form would be written; None when it is none."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        return None
    number = int(text)
    return number if _MIN_LONG <= number <= _MAX_LONG and str(number) == text else None


def _hexadecimal(data: bytes | None) -> str:
    """Return the text that Java gives: a signed byte at a time, without leading zeros."""
    return "".join(f"{byte if byte < 128 else byte | 0xFFFFFF00:x}" for byte in data or b"")
