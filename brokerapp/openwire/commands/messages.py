"""The messages, of all types of bodies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from brokerapp.openwire.commands import data_types as t
from brokerapp.openwire.commands.ids import BrokerId, ConsumerId, MessageId, ProducerId, TransactionId
from brokerapp.openwire.commands.values import BaseCommand, DataStructure, OpenWireDestination
from brokerapp.openwire.commands.wire_fields import array, blob, boolean, byte, cached, int32, int64, nested, string


@dataclass(slots=True)
class MessageCommand(BaseCommand):
    """A message; `data_type` says what its body is, MESSAGE to BLOB_MESSAGE.

    `content` and `marshalled_properties` are the bytes of the client: message_content and marshalled_values decode
    them. Times are milliseconds since 1970.
    """

    DATA_TYPES: ClassVar[tuple[int, ...]] = t.MESSAGES
    producer_id: ProducerId | None = cached(t.PRODUCER_ID)
    destination: OpenWireDestination | None = cached(*t.DESTINATIONS)
    transaction_id: TransactionId | None = cached(*t.TRANSACTION_IDS)
    original_destination: OpenWireDestination | None = cached(*t.DESTINATIONS)
    message_id: MessageId | None = nested(t.MESSAGE_ID)
    original_transaction_id: TransactionId | None = cached(*t.TRANSACTION_IDS)
    group_id: str | None = string()
    group_sequence: int = int32()
    correlation_id: str | None = string()
    persistent: bool = boolean()
    expiration: int = int64()
    priority: int = byte()
    reply_to: OpenWireDestination | None = nested(*t.DESTINATIONS)
    timestamp: int = int64()
    type: str | None = string()
    content: bytes | None = blob()
    marshalled_properties: bytes | None = blob()
    #: What an advisory is about.
    data_structure: DataStructure | None = nested(*t.ANY)
    target_consumer_id: ConsumerId | None = cached(t.CONSUMER_ID)
    compressed: bool = boolean()
    redelivery_counter: int = int32()
    broker_path: tuple[BrokerId | None, ...] | None = array(t.BROKER_ID)
    arrival: int = int64()
    user_id: str | None = string()
    received_by_df_bridge: bool = boolean()
    droppable: bool = boolean(since=2)
    cluster: tuple[BrokerId | None, ...] | None = array(t.BROKER_ID, since=3)
    broker_in_time: int = int64(since=3)
    broker_out_time: int = int64(since=3)
    jmsx_group_first_for_consumer: bool = boolean(since=10)
    remote_blob_url: str | None = string(only_in=t.BLOB_MESSAGE)
    mime_type: str | None = string(only_in=t.BLOB_MESSAGE)
    deleted_by_broker: bool = boolean(only_in=t.BLOB_MESSAGE)
    data_type: int = t.MESSAGE
