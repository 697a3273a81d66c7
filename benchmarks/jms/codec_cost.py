"""What the codec of OpenWire costs for one message: its commands, encoded and decoded again and again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from brokerapp.openwire.codec import Codec
from brokerapp.openwire.commands import (
    ConnectionId,
    ConsumerId,
    MessageAck,
    MessageCommand,
    MessageDispatch,
    MessageId,
    OpenWireDestination,
    ProducerId,
    Response,
)
from brokerapp.openwire.commands.data_types import TEXT_MESSAGE
from brokerapp.openwire.marshalled_values import encode_map
from brokerapp.openwire.message_content import encode_text_content

_REPEATS = 5_000
_BODY = '{"customer": "Ada Lovelace", "lines": [%s]}' % ('{"article": 4711, "count": 2}, ' * 25)


def codec_cost() -> Mapping[str, float]:
    """Return microseconds of CPU for each command of a message that is sent, answered, delivered and acknowledged."""
    codec = Codec()
    connection = ConnectionId("ID:host-41234-1700000000000-1:1").value
    queue, producer = OpenWireDestination(physical_name="orders"), ProducerId(connection, 1, 1)
    consumer, id = ConsumerId(connection, 1, 1), MessageId(None, producer, 1)
    message = MessageCommand(
        producer_id=producer, destination=queue, message_id=id, persistent=True, priority=4, timestamp=1,
        content=encode_text_content(_BODY), command_id=5, response_required=True, data_type=TEXT_MESSAGE,
        marshalled_properties=encode_map({"number": 5, "region": "north", "total": 2.5}),
    )  # fmt: skip
    ack = MessageAck(destination=queue, consumer_id=consumer, ack_type=2, first_message_id=id, last_message_id=id,
                     message_count=1)  # fmt: skip
    response = Response(correlation_id=5)
    dispatch = MessageDispatch(consumer_id=consumer, destination=queue, message=message)
    received, acknowledged = codec.encode(message)[4:], codec.encode(ack)[4:]
    return {
        "message in": _microseconds(lambda: codec.decode(received)),
        "answer out": _microseconds(lambda: codec.encode(response)),
        "message out": _microseconds(lambda: codec.encode(dispatch)),
        "acknowledgement in": _microseconds(lambda: codec.decode(acknowledged)),
    }


def _microseconds(work: Callable[[], object]) -> float:
    for _ in range(_REPEATS // 10):
        work()
    began = time.process_time()
    for _ in range(_REPEATS):
        work()
    return (time.process_time() - began) / _REPEATS * 1e6
