"""Test that clients of other protocols are recognized by their first bytes."""

import pytest

from brokerapp.connections.protocol_detection import detect_protocol

#: As ActiveMQ 5.17.2 begins to speak OpenWire.
OPENWIRE = b"\x00\x00\x01R\x01ActiveMQ\x00\x00\x00\x0c\x01\x00\x00\x01@\x00\x00\x00\r\x00\x11StackTraceEnabled"


@pytest.mark.parametrize(
    ("beginning", "protocol"),
    [
        (OPENWIRE, "OpenWire"),
        (b"AMQP\x00\x01\x00\x00", "AMQP"),
        (b"AMQP\x03\x01\x00\x00", "AMQP"),
        (b"\x10\x0c\x00\x04MQTT\x04\x02\x00<\x00\x00", "MQTT"),
        (b"\x10\x80\x01\x00\x06MQIsdp\x03", "MQTT"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", "TLS"),
        (b"CONNECT\n", None),
        (b"\n\n\0STOMP\n", None),
        (b"", None),
    ],
)
def test_a_protocol_is_known_by_its_first_bytes(beginning, protocol):
    assert detect_protocol(beginning) == protocol
