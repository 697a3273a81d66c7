"""Test that any input gets a protocol error or closes that connection only."""

from __future__ import annotations

import logging
import random
import re
import socket

import pytest

from tests.brokerapp.connections.test_protocol_detection import OPENWIRE
from tests.protocol.clients import RawClient

COMMANDS = (
    b"SEND",
    b"SUBSCRIBE",
    b"UNSUBSCRIBE",
    b"ACK",
    b"NACK",
    b"BEGIN",
    b"COMMIT",
    b"ABORT",
    b"SUB",
    b"DISCONNECT",
)
HEADERS = (b"destination", b"id", b"ack", b"receipt", b"transaction", b"content-length", b"message-id", b"selector",
           b"priority", b"expires", b"timestamp", b"persistent", b"reply-to", b"activemq.prefetchSize", b"x", b"",
           b"amq-msg-type", b"transformation", b"JMSXGroupSeq", b"browser", b"durable", b"no colon\\:")  # fmt: skip
VALUES = (b"/queue/garbage", b"/topic/garbage", b"/queue/a,/topic/b", b"/temp-queue/g", b"/queue/", b"garbage", b"1",
          b"-1", b"t", b"99999999999999999999", b"true", b"client", b"client-individual", b"\\c\\n\\x\\", b"\xf0\x9f",
          "\u2603".encode(), b"", b" ", b"a = 'b'", b"a LIKE", b"jms-map-json", b"bytes", b"a::b", b">",
          b"*.>")  # fmt: skip


def garbage(chance: random.Random) -> bytes:
    """Something that looks like a frame, more or less."""
    lines = [chance.choice(COMMANDS)]
    lines += [chance.choice(HEADERS) + b":" + chance.choice(VALUES) for _ in range(chance.randrange(8))]
    frame = b"\n".join(lines) + b"\n\n" + chance.randbytes(chance.randrange(10)).replace(b"\0", b"") + b"\0"
    if chance.random() < 0.1:  # a slip somewhere
        at = chance.randrange(len(frame))
        frame = frame[:at] + chance.randbytes(1) + frame[at + chance.randrange(2) :]
    return frame


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
@pytest.mark.parametrize("seed", range(4))
def test_garbage_gets_an_error_and_never_makes_the_broker_fail(node, caplog, version, seed):
    chance = random.Random(f"{version}{seed}")
    for _ in range(60):
        client = RawClient(node.port, version)
        try:
            for _ in range(5):
                client.write(garbage(chance))
            client.tell("DISCONNECT", {"receipt": "at the end"})
            client.socket.shutdown(socket.SHUT_WR)  # a frame that never ends ends here
            assert client.is_closed()
        except OSError:
            pass  # it was ended while it wrote on
        finally:
            client.close()
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
    last = RawClient(node.port, version)
    last.tell("BEGIN", {"transaction": "t", "receipt": "alive"})
    assert last.hear().headers["receipt-id"] == "alive"
    last.close()


def test_a_header_line_without_a_colon_is_told_in_the_log_once_a_connection(raw, caplog):
    client = raw()
    for number in range(2):
        client.write(b"BEGIN\nactivemq.prefetchSize=1\nreceipt:r\ntransaction:%d\n\n\0" % number)
        assert client.hear().headers["receipt-id"] == "r"
    told = [each.getMessage() for each in caplog.records if "has no colon" in each.getMessage()]
    assert [each.partition(": ")[2] for each in told] == [
        "header line 'activemq.prefetchSize=1' of BEGIN has no colon: passed over"
    ]


def test_a_client_of_openwire_is_told_of_in_the_log_in_a_sentence(raw, caplog):
    for _ in range(3):
        client = raw(version=None)
        client.write(OPENWIRE)
        assert client.is_closed()
    told = [each.getMessage() for each in caplog.records if "OpenWire" in each.getMessage()]
    assert len(told) == 1
    assert re.fullmatch(
        r"connector stomp: the client at 127\.0\.0\.1:\d+ speaks OpenWire: only STOMP is served here", told[0]
    )
