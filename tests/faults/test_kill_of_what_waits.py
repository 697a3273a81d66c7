"""Test kill -9 while messages are scheduled or expire: none is lost or doubled."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.faults.processes import BrokerProcess
from tests.protocol.clients import StompClient
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

ENOUGH = 60.0
ABOUT_TIME = """\
<destinationPolicy><policyMap><policyEntries>
  <policyEntry queue=">" expireMessagesPeriod="200"/>
</policyEntries></policyMap></destinationPolicy>
<plugins><redeliveryPlugin><redeliveryPolicyMap><redeliveryPolicyMap><redeliveryPolicyEntries>
  <redeliveryPolicy queue="again" maximumRedeliveries="3" initialRedeliveryDelay="1500" redeliveryDelay="1500"/>
</redeliveryPolicyEntries></redeliveryPolicyMap></redeliveryPolicyMap></redeliveryPlugin></plugins>"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory) -> Iterator[BrokerProcess]:
    """A process with a scheduler, which runs whenever a test begins."""
    process = BrokerProcess(tmp_path_factory.mktemp("broker"), ABOUT_TIME)
    text = process.config.read_text()
    process.config.write_text(text.replace('brokerName="faults"', 'brokerName="faults" schedulerSupport="true"'))
    try:
        process.start()
        yield process
    finally:
        process.end()


def depth(broker: BrokerProcess, queue: str) -> int:
    return broker.depths(queue).get(queue, 0)


def drained(broker: BrokerProcess, queue: str) -> Counter[str]:
    """What is in a queue, body by body, and how often."""
    count, client = depth(broker, queue), StompClient(broker.port)
    client.subscribe(f"/queue/{queue}")
    bodies = Counter(client.bodies(count))
    assert client.has_no_more()
    client.leave()
    return bodies


@pytest.mark.scenario("SH-01")
def test_delayed_messages_come_once_each_however_often_the_node_is_killed(broker):
    count, client = 400, StompClient(broker.port)
    for number in range(count):
        delay = str(300 + 10 * number)
        client.send("/queue/later", str(number), wait=False, persistent="true", AMQ_SCHEDULED_DELAY=delay)
    client.round_trip()  # all are confirmed
    for _ in range(3):
        time.sleep(0.6)
        broker.kill()
        broker.start()
    wait_until(lambda: depth(broker, "later") >= count, "all are delivered", ENOUGH)
    assert drained(broker, "later") == Counter(map(str, range(count)))


@pytest.mark.scenario("DL-05")
def test_a_rejected_message_that_waits_comes_back_once_and_its_count_goes_on(broker):
    client = StompClient(broker.port)
    client.send("/queue/again", "poison", persistent="true")
    client.subscribe("/queue/again", ack="client-individual")
    client.nack(client.take()[0])
    broker.kill()
    broker.start()
    wait_until(lambda: depth(broker, "again") == 1, "it is back", ENOUGH)
    other = StompClient(broker.port)
    other.subscribe("/queue/again", ack="client-individual")
    [message] = other.take()
    assert (message.headers["redelivered"], message.headers["JMSXDeliveryCount"]) == ("true", "2")
    other.ack(message)
    other.leave()


@pytest.mark.scenario("DL-06")
def test_what_expires_while_nodes_are_killed_is_one_dead_letter_each(broker):
    count, client = 600, StompClient(broker.port)
    expires = int(time.time() * 1000) + 1500
    for number in range(count):
        moment = str(expires + number)
        client.send("/queue/short.lived", str(number), wait=False, persistent="true", expires=moment)
    client.round_trip()
    wait_until(lambda: depth(broker, "short.lived") < count, "some are expired", ENOUGH)
    broker.kill()
    broker.start()
    wait_until(lambda: depth(broker, "short.lived") == 0, "all are expired", ENOUGH)
    assert drained(broker, "ActiveMQ.DLQ") == Counter(map(str, range(count)))


@pytest.mark.scenario("VT-28")
def test_a_transaction_with_virtual_topics_acks_and_delayed_messages_is_all_or_nothing(broker):
    client, size = StompClient(broker.port), 30
    fed = [f"Consumer.{each}.VirtualTopic.tx" for each in "ABC"]
    for queue in (*fed, "tx.in"):
        client.subscribe(f"/queue/{queue}", id=queue, ack="client-individual", prefetch=1 if queue == "tx.in" else 0)
    for number in range(20):
        client.send("/queue/tx.in", str(number), persistent="true")
    for number in range(20):
        name = f"t{number}"
        [message] = client.take()
        client.frame("BEGIN", wait=False, transaction=name)
        for _ in range(size):
            client.send("/topic/VirtualTopic.tx", name, wait=False, transaction=name, persistent="true")
        client.send(
            "/queue/tx.later", name, wait=False, transaction=name, persistent="true", AMQ_SCHEDULED_DELAY="2000"
        )
        client.ack(message, wait=False, transaction=name)
        client.frame("COMMIT", wait=number < 19, transaction=name)
    broker.kill()  # the last COMMIT may have been heard or not
    broker.start()
    done = 20 - depth(broker, "tx.in")
    assert done in (19, 20)
    for queue in fed:
        assert drained(broker, queue) == Counter({f"t{number}": size for number in range(done)})
    wait_until(lambda: depth(broker, "tx.later") >= done, "the delayed ones are delivered", ENOUGH)
    assert drained(broker, "tx.later") == Counter(f"t{number}" for number in range(done))
