"""Commands about transactions, the responses, and what a journal holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from brokerapp.openwire.commands import data_types as t
from brokerapp.openwire.commands.consumers import MessageAck
from brokerapp.openwire.commands.ids import ConnectionId, MessageId, TransactionId
from brokerapp.openwire.commands.values import BaseCommand, DataStructure, OpenWireDestination, WireThrowable
from brokerapp.openwire.commands.wire_fields import (
    array,
    boolean,
    byte,
    cached,
    int32,
    int64,
    nested,
    string,
    throwable,
)


@dataclass(slots=True)
class TransactionInfo(BaseCommand):
    """A step in the life of a transaction."""

    data_type: ClassVar[int] = t.TRANSACTION_INFO
    connection_id: ConnectionId | None = cached(t.CONNECTION_ID)
    transaction_id: TransactionId | None = cached(*t.TRANSACTION_IDS)
    #: 0 begin, 1 prepare, 2 commit in one phase, 3 commit in two, 4 roll back, 5 recover, 6 forget, 7 end.
    type: int = byte()


@dataclass(slots=True)
class Response(BaseCommand):
    """The answer to the command with the number `correlation_id`: it was carried out."""

    data_type: ClassVar[int] = t.RESPONSE
    correlation_id: int = int32()


@dataclass(slots=True)
class ExceptionResponse(Response):
    """The answer to a command that could not be carried out."""

    data_type: ClassVar[int] = t.EXCEPTION_RESPONSE
    exception: WireThrowable | None = throwable()


@dataclass(slots=True)
class DataResponse(Response):
    """An answer with a command or value."""

    data_type: ClassVar[int] = t.DATA_RESPONSE
    data: DataStructure | None = nested(*t.ANY)


@dataclass(slots=True)
class DataArrayResponse(Response):
    """An answer with several, such as the prepared transactions."""

    data_type: ClassVar[int] = t.DATA_ARRAY_RESPONSE
    data: tuple[DataStructure | None, ...] | None = array(*t.ANY)


@dataclass(slots=True)
class IntegerResponse(Response):
    """An answer with a number, such as the vote of a branch that was prepared."""

    data_type: ClassVar[int] = t.INTEGER_RESPONSE
    result: int = int32()


@dataclass(slots=True)
class JournalTopicAck:
    """An acknowledgement of a durable subscription, in a journal."""

    data_type: ClassVar[int] = t.JOURNAL_TOPIC_ACK
    destination: OpenWireDestination | None = nested(*t.DESTINATIONS)
    message_id: MessageId | None = nested(t.MESSAGE_ID)
    message_sequence_id: int = int64()
    subscription_name: str | None = string()
    client_id: str | None = string()
    transaction_id: TransactionId | None = nested(*t.TRANSACTION_IDS)


@dataclass(slots=True)
class JournalQueueAck:
    """An acknowledgement of a queue, in a journal."""

    data_type: ClassVar[int] = t.JOURNAL_QUEUE_ACK
    destination: OpenWireDestination | None = nested(*t.DESTINATIONS)
    message_ack: MessageAck | None = nested(t.MESSAGE_ACK)


@dataclass(slots=True)
class JournalTrace:
    """A remark in a journal."""

    data_type: ClassVar[int] = t.JOURNAL_TRACE
    message: str | None = string()


@dataclass(slots=True)
class JournalTransaction:
    """The end of a transaction, in a journal."""

    data_type: ClassVar[int] = t.JOURNAL_TRANSACTION
    transaction_id: TransactionId | None = nested(*t.TRANSACTION_IDS)
    type: int = byte()
    was_prepared: bool = boolean()
