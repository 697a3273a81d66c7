"""The proof that a what-if tells the truth: messages that were recorded are sent again, to a real node with the
draft in force, over sockets and into a store, and every target gets as many, and as many bytes, as was foretold.

So it was, too, under the definitions they were recorded with.
"""

import random
import socket
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from analytics.archive.archiver import Archiver
from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.trace_stream import TraceStream
from analytics.requests.request import TimeWindow
from brokerapp.config import default_config
from brokerapp.engine.routing.advisory_topics import is_advisory
from brokerapp.model.definitions import DEFAULT_VIRTUAL_TOPIC, CompositeDestination, ForwardTarget, VirtualTopic
from brokerapp.model.destination import Destination
from brokerapp.model.subscription_identity import SubscriptionIdentity
from brokerapp.stomp.frames import encode
from tests.protocol.clients import StompClient
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

pytestmark = pytest.mark.spark

BROKER = "replayed"


def queue(name, selector=None):
    return ForwardTarget(Destination.queue(name), selector)


def topic(name, selector=None):
    return ForwardTarget(Destination.topic(name), selector)


def composite(own, *legs, **options):
    return CompositeDestination(own.destination, legs, **options)


#: Without filters, so that equal messages go the fast way, and recording is quick.
IN_FORCE = (
    DEFAULT_VIRTUAL_TOPIC,
    composite(queue("orders"), queue("orders.eu"), forward_only=False),
    composite(topic("prices"), queue("prices.all"), forward_only=False),
)
#: 21 legs and copies, filtered and not, within each other, twice to one target, by wildcard, by what consumers want.
DRAFT = (
    DEFAULT_VIRTUAL_TOPIC,
    VirtualTopic("Aware.>", "Wanted.*.", selector_aware=True),
    composite(
        queue("orders"),
        queue("orders.eu", "region = 'eu' AND amount > 100"),
        queue("orders.large", "amount >= 900"),
        queue("orders.odd", "amount < 0 OR coupon IS NOT NULL"),
        queue("orders.named", "customer LIKE 'c%7'"),
        queue("orders.named", "customer IN ('c1', 'c7', 'c12')"),
        queue("checked", "NOT (region = 'us' OR region = 'apac')"),
        queue("urgent", "JMSPriority > 6"),
        topic("VirtualTopic.orders", "JMSType = 'new'"),
        send_when_not_matched=True,
    ),
    composite(
        queue("checked"),
        queue("checked.kept", "JMSDeliveryMode = 'PERSISTENT'"),
        queue("orders.large", "amount * 2 > 1500"),
        topic("Aware.checked"),
        forward_only=False,
    ),
    composite(
        topic("prices"),
        queue("prices.up", "change > 0"),
        queue("prices.down", "change < 0"),
        queue("prices.flat", "change BETWEEN -0.5 AND 0.5"),
        queue("prices.up", "JMSDestination = 'topic://prices' AND change > 2"),
    ),
    composite(queue("jobs.*"), queue("work"), queue("work.long", "minutes > 30"), queue("work.none", "missing = 1")),
    composite(topic("VirtualTopic.audit"), queue("audit.own", "region IN ('eu', 'us')"), queue("audit.shared")),
)
#: And how many of ten messages: those that meet the fewest selectors are the most.
SENT_TO = {
    "/queue/orders": 1,
    "/topic/prices": 2,
    "/queue/jobs.a": 2,
    "/queue/jobs.b": 2,
    "/topic/VirtualTopic.audit": 3,
}
PROPERTIES = {
    "region": ["eu", "us", "apac", "EU"], "amount": ["-1", "99", "100", "101.5", "900", "many"],
    "customer": ["c1", "c7", "c27", "d7"], "coupon": ["x"], "type": ["new", "old"],
    "change": ["-1", "0.5", "2.5", "up"], "minutes": ["5", "31"], "priority": ["4", "7"], "persistent": ["true"],
}  # fmt: skip
#: Different headers; messages with equal ones follow each other.
KINDS = 1_000
QUEUES = (
    "Consumer.A.VirtualTopic.orders",
    "Consumer.B.VirtualTopic.>",
    "Wanted.A.Aware.checked",
    "shared.1",
    "shared.2",
)


def frames(count):
    """SENDs like those of a business."""
    choose = random.Random(5)
    made = []
    for _ in range(KINDS):
        headers = {"destination": choose.choices(list(SENT_TO), SENT_TO.values())[0]}
        for name, values in PROPERTIES.items():
            if choose.random() < 0.6:
                headers[name] = choose.choice(values)
        bodies = [b"x" * choose.randrange(1, 9) for _ in range(count // KINDS)]
        made += [encode("SEND", headers, body) for body in bodies]
    return made


def send(port, every):
    """Send all, and wait until the broker has done all of it."""
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(encode("CONNECT", {"accept-version": "1.2", "host": "x"}))
        assert client.recv(4096).startswith(b"CONNECTED")
        client.settimeout(60)
        for start in range(0, len(every), 2000):
            client.sendall(b"".join(every[start : start + 2000]))
        client.sendall(encode("DISCONNECT", {"receipt": "all"}))
        assert b"receipt-id:all" in client.recv(4096)


@pytest.fixture(scope="module")
def node(store_url):
    running = RunningNode(default_config(BROKER, 0), store_url)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def reader(node):
    """A consumer that wants some: it makes the broker choose for it what it copies."""
    client = StompClient(node.port)
    client.subscribe("/queue/Wanted.A.Aware.checked", selector="amount > 100", ack="client", prefetch=1)
    client.subscribe("/topic/>", id="topics", selector="1 = 2")  # no topic is without a subscriber
    yield client
    client.connection.disconnect()


def arrived(node):
    """Messages that came to every destination so far, and their bytes."""

    def read():
        stats = node.node.broker.counters
        found = {str(each): stats.of(each) for each in stats.destinations() if not is_advisory(each)}
        return {name: np.array((each.EnqueueCount, each.EnqueueBytes)) for name, each in found.items()}

    return node.look(read)


@pytest.mark.long
@pytest.mark.parametrize("count", [3_000, 100_000])
def test_what_is_foretold_of_many_messages_and_21_rules_is_what_a_broker_does(
    node, reader, spark, store_url, tmp_path, count
):
    from analytics.jobs import whatif
    from analytics.requests.question import RunQuestion
    from analytics.requests.whatif_request import WhatIfRequest
    from analytics.spark.event_frames import read_events

    for name in QUEUES:
        node.ask(lambda admin, name=name: admin.create(Destination.queue(name)))
    kept = SubscriptionIdentity("desk", "large", (Destination.topic("VirtualTopic.audit"),), "amount > 100")
    node.ask(lambda admin: admin.create_subscription(kept))
    node.define(*IN_FORCE)
    every = frames(count)
    since_us = time.time_ns() // 1000
    before = arrived(node)
    send(node.port, every)
    recorded = arrived(node)
    archive = BrokerArchive(tmp_path, BROKER)
    stream = TraceStream(store_url, BROKER)
    archiver = Archiver(stream, archive, lambda _: None)
    every_event = node.look(lambda: node.node.broker.tracer.recorded)
    wait_until(lambda: archiver.flush() and archive.commit.events >= every_event, "all is archived")
    stream.close()
    window = TimeWindow(since_us, time.time_ns() // 1000)
    current = node.ask(lambda admin: admin.definitions())
    proposed = replace(current, virtual_destinations=DRAFT)
    context = node.ask(lambda admin: admin.routing_context(proposed))
    question = RunQuestion(
        window, partial(read_events, spark, tmp_path), trial=WhatIfRequest(current, proposed, context)
    )
    findings = whatif.run(question, lambda _, frame: frame.toArrow())
    node.define(*DRAFT)
    send(node.port, every)
    replayed = arrived(node)
    tables = {each.name: each.rows.to_pylist() for each in findings.tables}
    targets, totals = tables["targets"], {row["what"]: row for row in tables["totals"]}
    assert came(before, recorded) == foretold(targets, "in_force")
    assert came(recorded, replayed) == foretold(targets, "draft")
    assert totals["Messages sent"]["draft"] == count
    assert growth(recorded, replayed) == (totals["Copies stored"]["draft"], totals["Bytes of these copies"]["draft"])


def came(before, after):
    """What came between, by destination that got anything."""
    found = {name: numbers - before.get(name, 0) for name, numbers in after.items()}
    return {name: tuple(map(int, numbers)) for name, numbers in found.items() if numbers[0]}


def growth(before, after):
    """Copies that were stored between, and their bytes: at topics nothing is."""
    stored = [numbers for name, numbers in came(before, after).items() if not name.startswith("topic://")]
    return tuple(map(sum, zip(*stored, strict=True)))


def foretold(targets, which):
    return {row["target"]: (row[which], row[f"{which}_bytes"]) for row in targets if row[which]}
