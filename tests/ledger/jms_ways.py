"""Ways of messages between JMS clients, and between them and STOMP clients."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tests.ledger.clients import now
from tests.ledger.ledger import Span
from tests.ledger.rules import COMPOSITE, CONSUMER_QUEUES, LEGS, VIRTUAL

if TYPE_CHECKING:
    from tests.ledger.load import Load

#: What a JMS client says of a message that it gave up.
CAUSE = "order cannot be parsed"
#: Milliseconds for which messages live that a client has, and then finds expired.
LIFETIME = 1_500


def jms_sessions(load: Load) -> None:
    """Acknowledgements that stand for several messages, and transacted sessions that commit and roll back."""
    place = "queue://jms.sessions"
    producer, consumer = load.jms("jms-shop"), load.jms("jms-desk").subscribe(place)
    producer.send(place, 60)
    for _ in range(6):
        consumer.ack(consumer.take(10))
    for number in range(6):
        with producer.transaction(commits=number % 3 > 0):
            producer.send(place, 10)
    taken = consumer.take(40)
    with consumer.transaction(commits=False):
        consumer.ack(taken[:15])
    with consumer.transaction():
        consumer.ack(taken[:15])
        consumer.send("queue://jms.replies", 15)
    consumer.ack(taken[15:])
    for each in (producer, consumer):
        each.leave()


def jms_failures(load: Load) -> None:
    """Messages that a JMS client gives up, finds expired, or holds when it leaves."""
    place = "queue://jms.failures"
    load.jms_send(place, 30)
    consumer = load.jms("jms-critic").subscribe(place, prefetch=30)
    taken = consumer.take(30)
    span = consumer.give_up(taken[:12], CAUSE)
    for each in taken[:12]:
        load.bury(each.copy, f"java.lang.Throwable: {CAUSE}", span)
    consumer.ack(taken[12:20])
    consumer.leave()
    heir = load.jms("jms-heir").subscribe(place, prefetch=10)
    heir.ack(heir.take(10))
    heir.leave()
    place = "queue://late.held"  # nobody but consumers looks there for what has expired
    consumer = load.jms("jms-patient").subscribe(place, prefetch=10)
    expiration = now() // 1000 + LIFETIME
    load.jms_send(place, 10, expiration=expiration)
    taken = consumer.take(10)
    time.sleep(max(0, expiration / 1000 + 0.01 - now() / 1e6))
    span = consumer.find_expired(taken)
    for each in taken:
        load.bury(each.copy, "expired", span, expired=True)
    consumer.leave()


def jms_and_stomp(load: Load) -> None:
    """Messages that JMS clients send and STOMP clients take, and the other way around, also through virtual topics."""
    load.jms_send("queue://jms.to.stomp", 40)
    consumer = load.client("stomp-reader").subscribe("queue://jms.to.stomp", "client-individual")
    consumer.ack(consumer.take(40))
    consumer.leave()
    load.send("queue://stomp.to.jms", 40)
    reader = load.jms("jms-reader").subscribe("queue://stomp.to.jms")
    reader.ack(reader.take(40))
    reader.leave()
    load.jms_send(VIRTUAL, 20)
    billing = load.jms("jms-billing").subscribe(CONSUMER_QUEUES[0])
    billing.ack(billing.take(20))
    billing.leave()
    producer = load.jms("jms-exporter")
    for region, amount in (("eu", 700), ("us", 30), ("eu", 40), ("us", 900)):
        before = now()
        for each in producer.send(COMPOSITE, 10, {"region": region, "amount": amount}):
            for place, (_, takes) in LEGS.items():
                if takes(dict(each.headers)):
                    load.ledger.come(each, place, COMPOSITE, Span(before, each.when.before))
    producer.leave()


def jms_branches(load: Load) -> None:
    """Acknowledgements in distributed transactions that are prepared, and then committed or rolled back by another."""
    for commits in (True, False):
        place = f"queue://jms.branches.{'committed' if commits else 'rolled-back'}"
        load.jms_send(place, 12)
        worker = load.jms("jms-worker").subscribe(place, prefetch=12)
        taken = worker.take(12)
        id = worker.prepare(taken)
        worker.leave()
        manager = load.jms("jms-manager")
        manager.end_prepared(id, taken, commits=commits)
        manager.leave()
    heir = load.jms("jms-heir").subscribe("queue://jms.branches.rolled-back", prefetch=12)
    heir.ack(heir.take(12))
    heir.leave()


JMS_WAYS = (jms_sessions, jms_failures, jms_and_stomp, jms_branches)
