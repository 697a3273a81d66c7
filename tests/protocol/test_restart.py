"""Test that a restarted node knows what it knew before."""

import pytest

from brokerapp.config.reader import parse_config
from brokerapp.model.destination import Destination
from brokerapp.store import STORE
from tests.protocol.clients import StompClient
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

SIZE, LIMIT = 3_000, 6_000
XML = f"""\
<broker xmlns="http://activemq.apache.org/schema/core" brokerName="restarting">
  <systemUsage><systemUsage><storeUsage><storeUsage limit="{LIMIT}"/></storeUsage></systemUsage></systemUsage>
  <destinationPolicy><policyMap><policyEntries>
    <policyEntry queue=">">
      <deadLetterStrategy><individualDeadLetterStrategy queuePrefix="Dead."/></deadLetterStrategy>
    </policyEntry>
  </policyEntries></policyMap></destinationPolicy>
  <transportConnectors><transportConnector name="stomp" uri="stomp://127.0.0.1:0"/></transportConnectors>
</broker>
"""
WAITING, FAILED = Destination.queue("waiting"), Destination.queue("Dead.failing")


@pytest.fixture(scope="module")
def began(store):
    """A node that had two messages that wait, of which one need not be kept, and one that failed; how many bytes it had
    to keep, and its successor.
    """
    node = RunningNode(parse_config(XML, {}), store.url)
    client = StompClient(node.port)
    client.send("/queue/failing", "x", persistent="true")
    client.subscribe("/queue/failing", ack="client-individual")
    [message] = client.take()
    client.nack(message)
    wait_until(lambda: node.depth(FAILED.name) == 1, "it is a dead letter")
    client.send("/queue/waiting", "x" * SIZE, persistent="true")
    known = node.look(lambda: node.node.broker.commits.used)
    client.send("/queue/waiting", "not kept", persistent="false")
    client.leave()
    node.stop()
    alone = node.ask(lambda admin: admin.stats())
    again = RunningNode(parse_config(XML, {}), store.url)
    yield known, alone, again
    again.stop()


def listed(answer):
    return {each.destination for each in answer[1] if each.DLQ}


def test_a_queue_of_dead_letters_is_listed_as_one_by_whatever_name_before_the_next_failure(began):
    _, alone, node = began
    assert listed(alone) == {FAILED}, "while no node runs"
    assert node.numbers(FAILED).DLQ
    assert not node.numbers(WAITING).DLQ
    wait_until(lambda: listed(node.ask(lambda admin: admin.stats())) == {FAILED}, "operators see it, too")


def test_what_the_store_holds_counts_before_the_first_batch(began):
    known, _, node = began
    wait_until(lambda: node.look(lambda: node.node.broker.commits.temp) == 0, "what need not be kept is dropped")
    assert known == node.look(lambda: node.node.broker.commits.used) > SIZE


def test_what_is_not_persistent_does_not_outlive_its_node(began):
    _, _, node = began
    wait_until(lambda: node.depth(WAITING.name) == 1, "one is dropped")
    assert node.bodies(WAITING.name) == ["x" * SIZE]
    assert node.numbers(WAITING).DroppedCount == 1


def test_a_message_that_finds_no_room_because_of_what_was_there_before_waits(began):
    _, _, node = began
    client = StompClient(node.port)
    client.connection.send("/queue/new", "x" * SIZE, headers={"persistent": "false"})
    wait_until(lambda: node.look(lambda: STORE in node.node.broker.flow_control.places), "it waits")
    node.ask(lambda admin: admin.purge(WAITING))
    wait_until(lambda: node.depth("new") == 1, "there is room")
    client.leave()
