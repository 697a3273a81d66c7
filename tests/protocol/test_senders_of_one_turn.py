"""Test what several clients send in one turn of the event loop: each is confirmed, refused and limited by itself."""

import itertools
import random
import time

import pytest

from brokerapp.stomp.frames import encode
from tests.protocol.running_node import node_of

LIMIT = 4096
BODY = b"x" * 1024
XML = f"""\
<broker xmlns="http://activemq.apache.org/schema/core" xmlns:sluice="urn:sluice" brokerName="turns">
  <destinationPolicy><policyMap><policyEntries>
    <policyEntry queue="fails.>" sluice:storeLimit="{LIMIT}" sendFailIfNoSpace="true"/>
    <policyEntry queue="held.>" sluice:storeLimit="{LIMIT}"/>
  </policyEntries></policyMap></destinationPolicy>
  <destinationInterceptors><virtualDestinationInterceptor><virtualDestinations>
    <virtualTopic name="VirtualTopic.>" prefix="Consumer.*."/>
  </virtualDestinations></virtualDestinationInterceptor></destinationInterceptors>
  <transportConnectors><transportConnector name="stomp" uri="stomp://127.0.0.1:0"/></transportConnectors>
</broker>
"""

#: Seconds that the node's event loop stands still, in which all clients send.
PAUSE = 0.3


@pytest.fixture(scope="module")
def node(store):
    with node_of(XML, store) as running:
        yield running


def in_one_turn(node, *sends, pause=PAUSE):
    """Let these bytes of clients arrive while the node does something else, so that it reads them together."""
    node._loop.call_soon_threadsafe(time.sleep, pause)
    time.sleep(pause / 3)
    for client, data in sends:
        client.write(data)


def send_frame(destination, receipt, **headers):
    """A SEND that wants a receipt."""
    return encode("SEND", {"destination": destination, "receipt": receipt, **headers}, receipt.encode())


def large_frame(destination, receipt):
    """A SEND of which four fill a limited queue."""
    return encode("SEND", {"destination": destination, "receipt": receipt, "persistent": "true"}, BODY)


@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_each_gets_its_own_receipts_where_only_some_messages_are_stored(kind, node, connect, raw, name):
    listener = connect()
    listener.subscribe(f"/{kind}/{name}.other")
    first, second, third = raw(), raw(), raw()
    in_one_turn(
        node,
        (first, send_frame(f"/queue/{name}", "one", persistent="true")),
        (second, send_frame(f"/{kind}/{name}.other", "two")),
        (third, send_frame(f"/queue/{name}", "three", persistent="true")),
    )
    for client, receipt in ((first, "one"), (second, "two"), (third, "three")):
        assert client.hear().headers["receipt-id"] == receipt
    assert listener.bodies(1) == ["two"]


def test_one_finds_its_queue_full_and_another_waits_while_the_others_are_confirmed(node, connect, raw, name):
    fails, held = f"/queue/fails.{name}", f"/queue/held.{name}"
    filler = connect()
    for _ in range(3):
        filler.send(fails, BODY, persistent="true")
        filler.send(held, BODY, persistent="true")
    clients = first, refused, waiting, last = raw(), raw(), raw(), raw()
    places = f"/queue/{name}", fails, held, f"/queue/{name}"
    frames = [large_frame(place, str(number)) for number, place in enumerate(places)]
    in_one_turn(node, *zip(clients, frames, strict=True), (last, large_frame(f"/queue/{name}", "4")))
    assert first.hear().headers["receipt-id"] == "0"
    error = refused.hear()
    assert (error.command, error.headers["receipt-id"]) == ("ERROR", "1")
    assert [last.hear().headers["receipt-id"] for _ in "34"] == ["3", "4"]
    consumer = connect()
    consumer.subscribe(held)
    assert waiting.hear().headers["receipt-id"] == "2"
    assert len(consumer.bodies(4)) == 4


def test_messages_of_a_client_that_goes_away_in_the_same_turn_are_kept_with_those_of_others(node, raw, name):
    clients = first, gone, last = raw(), raw(), raw()
    in_one_turn(
        node, *[(each, send_frame(f"/queue/{name}", str(n), persistent="true")) for n, each in enumerate(clients)]
    )
    gone.close()
    assert first.hear().headers["receipt-id"] == "0"
    assert last.hear().headers["receipt-id"] == "2"
    assert node.bodies(name) == ["0", "1", "2"]


def test_a_transaction_of_one_takes_nothing_of_others_with_it(node, raw, name):
    first, second, third = raw(), raw(), raw()
    queue = f"/queue/{name}"
    begun = encode("BEGIN", {"transaction": "t"}) + send_frame(queue, "kept", transaction="t", persistent="true")
    in_one_turn(
        node,
        (first, send_frame(queue, "one", persistent="true")),
        (second, begun),
        (third, send_frame(queue, "three", persistent="true")),
    )
    for client, receipt in ((first, "one"), (second, "kept"), (third, "three")):
        assert client.hear().headers["receipt-id"] == receipt
    assert node.bodies(name) == ["one", "three"]
    second.tell("COMMIT", {"transaction": "t", "receipt": "c"})
    assert second.hear().headers["receipt-id"] == "c"
    assert node.bodies(name) == ["one", "three", "kept"]


@pytest.mark.parametrize("seed", range(2))
def test_any_mixture_of_messages_is_confirmed_to_its_senders_and_kept_in_their_order(seed, node, connect, raw, name):
    chosen, numbers, sent = random.Random(seed), itertools.count(), {}
    queue, taken, topic = f"/queue/{name}", f"/queue/{name}.taken", f"/topic/VirtualTopic.{name}"
    listener = connect()
    for id, each in enumerate((taken, topic)):
        listener.subscribe(each, id=str(id))
    clients = [raw() for _ in range(6)]
    for _ in range(10):
        frames = {}
        for client in clients:
            frames[client] = []
            for number in itertools.islice(numbers, chosen.randint(1, 4)):
                to, persistent = (
                    chosen.choice((queue, queue, taken, topic, f"{queue},{topic}")),
                    chosen.choice((True, False)),
                )
                frames[client].append(send_frame(to, str(number), persistent=str(persistent).lower()))
                sent.setdefault(client, []).append((number, to))
        in_one_turn(node, *((client, b"".join(data)) for client, data in frames.items()), pause=0.05)
        for client, data in frames.items():
            receipts = {int(client.hear().headers["receipt-id"]) for _ in data}
            assert receipts == {number for number, _ in sent[client][-len(data) :]}
    kept = list(map(int, node.bodies(name)))
    for sends in sent.values():
        mine = [number for number, to in sends if to.split(",")[0] == queue]
        assert [number for number in kept if number in mine] == mine
