"""Run the load: all ways in which messages can go, one after the other, at a real node.

Each way is a function that lets clients and operators work, and tells the ledger what the rules of docs/ make of that.
To try another way, add a function to WAYS. What is counted is computed in numbers.py, never said here.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from brokerapp.model.destination import Destination
from tests.ledger.clients import LedgerClient, now, soon, wait_until_late
from tests.ledger.jms_clients import LedgerJmsClient
from tests.ledger.jms_ways import JMS_WAYS
from tests.ledger.ledger import (
    COPIED,
    DEAD,
    DROPPED,
    EXPIRED,
    MOVED,
    PUT_OFF,
    REMOVED,
    RETURNED,
    Copy,
    Ledger,
    Message,
    Span,
)  # fmt: skip
from tests.ledger.rules import COMPOSITE, CONSUMER_QUEUES, DLQ, DURABLES, LEGS, PRICES, REASON, VIRTUAL
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

#: Of all messages; the ways that are only about many take what the others leave.
MESSAGES = 20_000
SHARES = {"ledger-one": 50, "ledger-two": 34, "ledger-three": 16}


class Load:
    """Clients at a node, and the ledger they write."""

    def __init__(self, node: RunningNode, seed: int = 16) -> None:
        self.node, self.ledger, self.chance = node, Ledger(), random.Random(seed)
        self.places: dict[str, list[str]] = {VIRTUAL: CONSUMER_QUEUES, PRICES: DURABLES}
        self.clients: list[LedgerClient] = []  #: that stay until the end
        self.ended: dict[str, int] = {}  #: when each way was done, microseconds since the epoch

    def run(self) -> None:
        """All of it."""
        for way in WAYS:
            way(self)
            self.ended[way.__name__] = now()

    def client(self, name: str, *, stays: bool = False) -> LedgerClient:
        """A client of this name, which says `ledger-` before it."""
        client = LedgerClient(self.node.port, self.ledger, f"ledger-{name}", self.places)
        if stays:
            self.clients.append(client)
        return client

    def jms(self, name: str) -> LedgerJmsClient:
        """A JMS client of this name, which says `ledger-` before it."""
        return LedgerJmsClient(self.node.ports[1], self.ledger, f"ledger-{name}", self.places)

    def jms_send(self, to: str, count: int, **fields) -> list[Message]:
        """Messages of a JMS producer that comes and goes."""
        client = self.jms("jms-shop")
        sent = client.send(to, count, **fields)
        client.leave()
        return sent

    def send(self, to: str, count: int, by: str = "shop", **options) -> list[Message]:
        """Messages of a producer that comes and goes."""
        client = self.client(by)
        sent = client.send(to, count, **options)
        client.leave()
        return sent

    def operate(self, deed: Callable) -> Span:
        """Something that an operator does."""
        before = now()
        self.node.ask(deed)
        return Span(before, now())

    def depth_is(self, place: str, depth: int) -> None:
        """Wait until the broker has dealt with what it deals with by itself."""
        destination = Destination.parse(place)
        wait_until(lambda: self.node.numbers(destination).QueueSize == depth, f"{depth} messages in {place}")

    def bury(self, copy: Copy, reason: str, when: Span, *, expired: bool = False) -> None:
        """A copy becomes a dead letter."""
        self.ledger.become(copy, DLQ, EXPIRED if expired else DEAD, when, DEAD, reason)

    def miss(
        self, message: Message, subscriber: LedgerClient, reason: str, when: Span, *, expired: bool = False
    ) -> None:
        """A message of a topic does not reach its one subscriber, and becomes a dead letter."""
        copy = self.ledger.come(message, message.to, message.to, message.when)
        copy.missed_by = subscriber.name
        self.bury(copy, reason, when, expired=expired)

    def varied(self, number: int) -> tuple[dict[str, str], bytes]:
        """Headers and bodies as users have them: text, bytes, other alphabets, nothing, some thousand bytes."""
        text, many = "Gr\u00fc\u00dfe, \u65e5\u672c \u00b5".encode(), b"x" * self.chance.randrange(2, 9_000)
        body = self.chance.choice([b"", b"ok", text, bytes(range(256)), many])
        headers = {"number": str(number), "region": self.chance.choice(["eu", "us", "apac"])}
        headers |= {"amount": str(self.chance.randrange(1_000)), "customer name": "a:b\\c\n" + "d" * (number % 7)}
        return headers, body


# -- the ways


def auto(load: Load) -> None:
    """Consumers that acknowledge by themselves: as messages come, and what waited before they did."""
    load.send("queue://plain.auto", 500, by="first")
    consumer = load.client("auto").subscribe("queue://plain.auto")
    consumer.take(500)
    producers = [load.client("first"), load.client("second")]
    for producer, count in [(producers[0], 100), (producers[1], 50)] * 10:
        producer.send("queue://plain.auto", count)
        consumer.take(count)
    for each in (*producers, consumer):
        each.leave()


def client_mode(load: Load) -> None:
    """Acknowledgements that stand for all messages before."""
    load.send("queue://plain.client", 1_000, content=load.varied)
    consumer = load.client("cumulative").subscribe("queue://plain.client", "client")
    for _ in range(20):
        consumer.ack(consumer.take(50))
    consumer.leave()


def shares(load: Load) -> None:
    """Consumers that share a queue: 50, 34 and 16 of a hundred; 74 and 26; and even ones."""
    _share(load, "queue://shared", SHARES)
    _share(load, "queue://pair", {"ledger-many": 74, "ledger-few": 26})
    _share(load, "queue://even", {"ledger-left": 50, "ledger-right": 50})


def _share(load: Load, place: str, parts: dict[str, int]) -> None:
    consumers, first, base = [], 0, len(load.ledger.messages)
    for name, part in parts.items():
        selector = f"share >= {first} AND share < {first + part}"
        consumer = load.client(name.removeprefix("ledger-"))
        consumers.append(consumer.subscribe(place, "client-individual", selector=selector))
        first += part
    load.send(place, 500, content=lambda number: ({"share": str((number - base) % 100)}, b"%d " % number))
    for consumer, part in zip(consumers, parts.values(), strict=True):
        consumer.ack(consumer.take(5 * part))
        consumer.leave()


def transactions(load: Load) -> None:
    """Sends and acknowledgements that are committed, rolled back, and of a client that is lost."""
    producer, consumer = load.client("teller"), load.client("clerk").subscribe("queue://accounts", "client-individual")
    for number in range(60):
        with producer.transaction(commits=number % 3 > 0) as transaction:
            transaction.send("queue://accounts", 10)
    taken = consumer.take(400)
    with consumer.transaction(commits=False) as transaction:
        transaction.ack(taken[:30])
    for start in range(0, 400, 50):
        with consumer.transaction() as transaction:
            transaction.ack(taken[start : start + 50])
    lost = load.client("lost")
    lost.tell("BEGIN", {"transaction": "open"})
    before = now()
    sent = lost.send("queue://accounts", 50, in_transaction="open")
    lost.break_off()
    wait_until(lambda: _gone(load, lost.name), "the broker notices that a client is lost")
    load.ledger.roll_back(sent, Span(before, now()))
    for each in (producer, consumer):
        each.leave()


def _gone(load: Load, name: str) -> bool:
    return load.node.look(lambda: all(each.client_id != name for each in load.node.node.broker.clients.values()))


def late(load: Load) -> None:
    """Messages that nobody reads in time; some of one queue, and of another, where nobody looks, at its consumer."""
    before = now()
    load.send("queue://late", 300, expires=str(soon()))
    load.send("queue://late", 20)
    load.depth_is("queue://late", 20)
    span = Span(before, now())
    for each in [each for each in load.ledger.present("queue://late") if "expires" in each.message.headers]:
        load.bury(each, "expired", span, expired=True)
    load.send("queue://late.held", 10)
    consumer = load.client("patient").subscribe("queue://late.held", "client-individual", prefetch=10)
    taken = consumer.take(10)
    before = now()
    load.send("queue://late.held", 50, expires=str(soon()))
    wait_until_late()
    consumer.ack(taken)
    load.depth_is("queue://late.held", 0)
    for each in load.ledger.present("queue://late.held"):
        load.bury(each, "expired", Span(before, now()), expired=True)
    consumer.leave()


def rejected(load: Load) -> None:
    """Messages that a consumer can't use: they become dead letters, or are dropped when they are not persistent."""
    for queue, count, persistent in (("rejected", 200, "true"), ("rejected.volatile", 40, "false")):
        place = f"queue://{queue}"
        load.send(place, count, content=load.varied, persistent=persistent)
        consumer = load.client("critic").subscribe(place, "client-individual")
        taken = consumer.take(count)
        cause, span = "rejected by ledger-critic (NACK)", consumer.reject(taken)
        for each in taken:
            if persistent == "true":
                load.bury(each.copy, cause, span)
            else:
                load.ledger.leave(each.copy, DROPPED, span, cause)
        consumer.leave()


def again(load: Load) -> None:
    """Messages that get another chance after a delay: some are used then, some never."""
    load.send("queue://again", 60)
    consumer = load.client("stubborn").subscribe("queue://again", "client-individual")
    taken = consumer.take(60)
    for chance in (1, 2, 3):
        span, returned = consumer.reject(taken), []
        for each in taken:
            if chance == 3:
                load.bury(each.copy, "rejected by ledger-stubborn (NACK), delivery 3", span)
            else:
                since = Span(span.after, span.before + 30_000_000)  # it comes back by itself, soon after that
                returned.append(load.ledger.become(each.copy, "queue://again", PUT_OFF, span, RETURNED))
                returned[-1].came = since
        if returned:
            taken = consumer.take(len(returned))
            for copy in returned:
                copy.came = Span(copy.came.after, now())
            useful = taken[::2]
            consumer.ack(useful)
            taken = [each for each in taken if each not in useful]
    consumer.leave()


def left_behind(load: Load) -> None:
    """What a consumer holds when it goes away: some is given to the next one, some waits for ever."""
    load.send("queue://left", 32)
    first = load.client("hasty").subscribe("queue://left", "client-individual")
    first.take(32)
    first.leave()
    second = load.client("heir").subscribe("queue://left", "client-individual", prefetch=22)
    second.ack(second.take(22))
    # Its prefetch is free again: it is given what is left, and holds that until it leaves, too.
    second.take(10)
    second.leave()


def slow(load: Load) -> None:
    """A consumer that holds each message for long, beside one that does not; and one that never finishes any."""
    place = "queue://desk"
    consumers = [
        load.client(name, stays=True).subscribe(place, "client-individual", prefetch=1, selector=f"desk = '{name}'")
        for name in ("slow", "quick")
    ]
    base = len(load.ledger.messages)
    load.send(place, 40, content=lambda number: (
        {"number": str(number), "desk": ("slow", "quick")[(number - base) % 2]}, b""))  # fmt: skip
    for _ in range(20):
        consumers[1].ack(consumers[1].take(1))
    for _ in range(20):
        held = consumers[0].take(1)
        time.sleep(0.03)
        consumers[0].ack(held)
    load.send("queue://unacknowledged", 60)
    load.client("stuck", stays=True).subscribe("queue://unacknowledged", "client-individual", prefetch=25).take(25)
    load.send("queue://forgotten", 150, content=load.varied)


def virtual_topic(load: Load) -> None:
    """A virtual topic with three consumer queues: one is read, one in part, one by nobody."""
    for queue in CONSUMER_QUEUES:
        load.operate(lambda admin, queue=queue: admin.create(Destination.parse(queue)))
    billing = load.client("billing").subscribe(CONSUMER_QUEUES[0])
    load.send(VIRTUAL, 400, content=load.varied)
    billing.take(400)
    shipping = load.client("shipping").subscribe(CONSUMER_QUEUES[1], "client-individual", prefetch=250)
    shipping.ack(shipping.take(250))
    shipping.take(150)
    for each in (billing, shipping):
        each.leave()


def composite(load: Load) -> None:
    """A composite queue that only forwards, by selectors of which one matches nothing."""
    producer = load.client("exporter")
    before = now()
    load.places[COMPOSITE] = []
    sent = producer.send(COMPOSITE, 400, content=load.varied)
    for each in sent:
        for place, (_, takes) in LEGS.items():
            if takes(dict(each.headers)):
                load.ledger.come(each, place, COMPOSITE, Span(before, each.when.before))
    consumer = load.client("importer").subscribe("queue://orders.eu")
    consumer.take(len(load.ledger.waiting("queue://orders.eu")))
    for each in (producer, consumer):
        each.leave()


def topics(load: Load) -> None:
    """Subscribers of a topic, durable and not, one of them absent; and a topic that nobody subscribes to."""
    durable = {"activemq.subscriptionName": "prices"}
    for name in ("desk", "absent"):
        client = load.client(name).subscribe(PRICES, "client-individual", **durable)
        client.leave()
    desk = load.client("desk").subscribe(PRICES, "client-individual", **durable)
    desk.place = DURABLES[0]
    everything = load.client("ticker").subscribe(PRICES)
    some = load.client("watcher").subscribe(PRICES, "client-individual", selector="amount > 500")
    sent = load.send(PRICES, 200, by="exchange", content=load.varied)
    everything.take(200)
    some.ack(some.take(sum(int(each.headers["amount"]) > 500 for each in sent)))
    desk.ack(desk.take(200))
    load.send("topic://nobody", 100)
    for each in (desk, everything, some):
        each.leave()


def slow_subscriber(load: Load) -> None:
    """Subscribers of topics that don't keep up: what they miss is dropped, or expires before their turn."""
    subscriber = load.client("overwhelmed").subscribe("topic://firehose", "client-individual", prefetch=5)
    sent = load.send("topic://firehose", 65)
    taken = subscriber.take(5)
    before = now()
    subscriber.ack(taken)
    subscriber.ack(subscriber.take(5))
    subscriber.ack(subscriber.take(5))
    subscriber.leave()
    got = {each.message.number for each in load.ledger.copies if each.place == "topic://firehose"}
    for each in sent:
        if each.number not in got:
            load.miss(each, subscriber, "discarded for a slow subscriber", Span(each.when.after, before))
    subscriber = load.client("sleepy").subscribe("topic://news", "client-individual", prefetch=1)
    load.send("topic://news", 1)
    taken = subscriber.take(1)
    before = now()
    sent = load.send("topic://news", 29, expires=str(soon()))
    wait_until_late()
    subscriber.ack(taken)
    for each in sent:
        load.miss(each, subscriber, "expired", Span(before, now()), expired=True)
    subscriber.leave()


def operators(load: Load) -> None:
    """What operators do: move, copy, remove, purge, delete, send dead letters back."""
    ledger, queue = load.ledger, Destination.queue
    load.send("queue://ops.first", 100, content=load.varied)
    span = load.operate(lambda admin: admin.move(queue("ops.first"), queue("ops.second"), limit=70))
    for each in ledger.present("queue://ops.first")[:70]:
        ledger.become(each, "queue://ops.second", MOVED, span, MOVED)
    span = load.operate(lambda admin: admin.copy(queue("ops.second"), queue("ops.third"), limit=40))
    for each in ledger.present("queue://ops.second")[:40]:
        ledger.come(each.message, "queue://ops.third", "queue://ops.third", span, COPIED)
    span = load.operate(lambda admin: admin.remove(queue("ops.second"), limit=15))
    for each in ledger.present("queue://ops.second")[:15]:
        ledger.leave(each, REMOVED, span, REASON)
    load.send("queue://ops.purged", 80)
    span = load.operate(lambda admin: admin.purge(queue("ops.purged")))
    for each in ledger.present("queue://ops.purged"):
        ledger.leave(each, REMOVED, span, REASON)
    consumer = load.client("operated").subscribe("queue://ops.third")
    consumer.take(40)
    consumer.leave()
    back = [each for each in ledger.present(DLQ) if each.message.to == "queue://rejected"][:25]
    ids = [each.message.id for each in back]
    span = load.operate(lambda admin: admin.resubmit(Destination.parse(DLQ), ids=ids))
    for each in back:
        ledger.become(each, "queue://rejected", MOVED, span, MOVED)
    consumer = load.client("reformed").subscribe("queue://rejected", "client-individual")
    consumer.ack(consumer.take(25))
    consumer.leave()


def many(load: Load) -> None:
    """What is left of MESSAGES: half through a queue with two consumers, half in transactions."""
    load.send("queue://forgotten", 50 + len(load.ledger.messages) % 2)
    left, place = MESSAGES - len(load.ledger.messages), "queue://many"
    consumers = [load.client(f"worker-{number}").subscribe(place, "client-individual") for number in (1, 2)]
    producer = load.client("factory")
    for start in range(0, left, 200):
        count = min(200, left - start)
        if start % 400:
            with producer.transaction() as transaction:
                transaction.send(place, count)
        else:
            producer.send(place, count)
        for consumer in consumers:
            consumer.ack(consumer.take(count // 2))
    for each in (producer, *consumers):
        each.leave()


WAYS: tuple[Callable[[Load], None], ...] = (
    auto, client_mode, shares, transactions, late, rejected, again, left_behind, slow, virtual_topic, composite, topics,
    slow_subscriber, operators, *JMS_WAYS, many,
)  # fmt: skip
