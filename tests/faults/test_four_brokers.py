"""Test that confirmed messages arrive when a broker in the middle of a chain of four dies."""

import pytest

from tests.ports import free_port
from tests.protocol.clients import StompClient
from tests.runbroker import Run

pytestmark = pytest.mark.slow

#: Messages that are sent before one dies, while it is dead, and when it is back.
COUNT = 30
CONFIG = """\
<broker xmlns="http://activemq.apache.org/schema/core" brokerName="{name}">
  <transportConnectors><transportConnector name="stomp" uri="stomp://127.0.0.1:{port}"/></transportConnectors>
  {connectors}
</broker>
"""
CONNECTOR = (
    '<networkConnectors><networkConnector name="next" networkTTL="3" duplex="true" uri="static:(tcp://127.0.0.1:{port})'
    '?initialReconnectDelay=100&amp;useExponentialBackOff=false"/></networkConnectors>'
)


class Broker:
    """One that runs from construction on, with a bridge to the next one of the chain."""

    def __init__(self, folder, name, next_port):
        self.port, config = free_port(), folder / f"{name}.xml"
        connectors = CONNECTOR.format(port=next_port) if next_port else ""
        config.write_text(CONFIG.format(name=name, port=self.port, connectors=connectors))
        self._arguments, self._log = ("--config", config, "--data", folder / name), folder / f"{name}.log"
        self.start()

    def start(self):
        """Again, after it was killed: its store goes on where it was, or begins anew on its files."""
        self.run = Run(*self._arguments, log=self._log)


@pytest.fixture
def chain(tmp_path):
    brokers = []
    try:
        for name in "dcba":
            brokers.insert(0, Broker(tmp_path, name, brokers[0].port if brokers else 0))
        for each in brokers:
            each.run.ready()
        yield brokers
    finally:
        for each in brokers:
            each.run.stop()


def test_what_was_confirmed_at_one_end_arrives_at_the_other_once_or_flagged_though_one_between_them_is_killed(chain):
    first, _, third, last = chain
    producer, consumer = StompClient(first.port), StompClient(last.port)
    consumer.subscribe("/queue/far", ack="client-individual")
    got = []

    def send(kind):
        for number in range(COUNT):
            producer.send("/queue/far", f"{kind} {number}", persistent="true")

    def take_until(count):
        while len({body for body, _ in got}) < count:
            [message] = consumer.take()
            got.append((message.body, "redelivered" in message.headers))
            consumer.ack(message, wait=False)

    send("before")
    take_until(COUNT // 2)
    third.run.kill()
    send("meanwhile")
    third.start()
    third.run.ready()
    send("after")
    take_until(3 * COUNT)
    unflagged = [body for body, again in got if not again]
    assert len(unflagged) == len(set(unflagged))
    assert consumer.has_no_more()
