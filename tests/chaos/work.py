"""Define the traffic of a run: producers, consumers and their order."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from tests.chaos.clients import Client, Consumer, Producer, Relay, Transactor
from tests.chaos.jms_clients import JmsConsumers, JmsProducers, failover_url
from tests.chaos.ledger import Ledger, Order
from tests.jms.java_programs import IS_INSTALLED

#: Average seconds between two messages of a producer, and in which a consumer processes one.
SEND_INTERVAL_SECONDS, PROCESSING_SECONDS = 0.06, 0.01
#: Share of the messages that consumers reject in a place that has dead letters.
REJECTED_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class Place:
    """A queue or durable subscription in which messages arrive, with one consumer at each broker of `consumed_at`."""

    name: str
    destination: str
    consumed_at: tuple[str, ...]
    order: Order = Order.NONE
    durable: bool = False
    relayed_to: str = ""  #: the place to which its consumers forward messages, in transactions
    dead_letters: str = ""  #: the place of the dead letters; its consumers reject some messages
    jms: str = ""  #: how its consumers acknowledge if they are JMS clients: `client`, `durable` or `transacted`


@dataclass(frozen=True, slots=True)
class Flow:
    """Messages of one kind: from a producer at each of these brokers, to one destination after the other."""

    name: str
    sent_at: tuple[str, ...]
    to: tuple[tuple[str, tuple[str, ...]], ...]  #: destinations, with the places that get what is sent there
    groups: int = 0
    transaction: int = 0  #: messages in each
    is_jms: bool = False  #: whether its producers are JMS clients


def _queue(name: str, *consumed_at: str, order: Order = Order.NONE, **more: str) -> Place:
    return Place(name, f"/queue/{name}", consumed_at, order, **more)


def _flow(name: str, *sent_at: str, **more: int | bool) -> Flow:
    """To the queue of that name."""
    return Flow(name, sent_at, ((f"/queue/{name}", (name,)),), **more)


PLACES = (
    _queue("near", "a", "a"),
    _queue("single", "b", order=Order.PRODUCER),
    _queue("far", "b", order=Order.PRODUCER),
    _queue("farther", "c", "c"),
    _queue("shared", "a", "b", "c"),
    _queue("groups", "c", "c", "c", order=Order.GROUP),
    _queue("orders", "b"),
    _queue("parcels", "b"),
    _queue("incoming", "c", "c", relayed_to="outgoing"),
    _queue("outgoing", "c"),
    _queue("checked", "b", "b", dead_letters="dead"),
    Place("dead", "/queue/ActiveMQ.DLQ", ("b",)),
    _queue("jms-near", "b", order=Order.PRODUCER, jms="client"),
    _queue("jms-far", "b", "b", jms="transacted"),
    _queue("jms-incoming", "a", "a", relayed_to="jms-outgoing", jms="transacted"),
    _queue("jms-outgoing", "a"),
    _queue("jms-from-stomp", "c", jms="transacted"),
    Place("jms-news", "/topic/jms-news", ("a",), Order.PRODUCER, durable=True, jms="durable"),
    Place("news-near", "/topic/news", ("a",), Order.PRODUCER, durable=True),
    Place("news-far", "/topic/news", ("b",), Order.PRODUCER, durable=True),
)
FLOWS = (
    _flow("near", "a", "a"),
    _flow("single", "b", "b"),
    _flow("far", "a", "a"),
    _flow("farther", "a"),
    _flow("shared", "b", "b"),
    _flow("groups", "c", "c", groups=5),
    Flow("shop", ("b",), (("/queue/orders", ("orders",)), ("/queue/parcels", ("parcels",))), transaction=4),
    _flow("incoming", "c"),
    _flow("checked", "b"),
    _flow("jms-near", "b", "b", is_jms=True),
    _flow("jms-far", "a", transaction=4, is_jms=True),
    _flow("jms-incoming", "a", is_jms=True),
    _flow("jms-from-stomp", "c"),
    Flow("jms-news", ("a",), (("/topic/jms-news", ("jms-news",)),), is_jms=True),
    Flow("news", ("a",), (("/topic/news", ("news-near", "news-far")),)),
)
_places = {place.name: place for place in PLACES}
ORDERS = {place.name: place.order for place in PLACES}
DEAD_LETTER_PLACES = {place.name: place.dead_letters for place in PLACES if place.dead_letters}


def flows(names: Collection[str]) -> list[Flow]:
    """Return the flows of these names, or all flows without names; those of JMS clients only where one is installed."""
    wanted = [flow for flow in FLOWS if not names or flow.name in names]
    return [flow for flow in wanted if IS_INSTALLED or not any(_places[each].jms for _, at in flow.to for each in at)]


def producers(wanted: Iterable[Flow], ports: Callable[[str], list[int]], ledger: Ledger, seed: int) -> Iterator[Client]:
    """Make the producers of these flows, except JMS clients."""
    for flow in wanted:
        if flow.is_jms:
            continue
        for number, broker in enumerate(flow.sent_at, 1):
            name = f"{flow.name}.p{number}"
            make = partial(Transactor, size=flow.transaction) if flow.transaction else Producer
            yield make(
                name, broker, ports(broker), ledger, random.Random(f"{seed} {name}"),
                route=lambda number, flow=flow: flow.to[number % len(flow.to)], groups=flow.groups,
                pace=SEND_INTERVAL_SECONDS,
            )  # fmt: skip


def consumers(ports: Callable[[str], list[int]], ledger: Ledger, seed: int) -> Iterator[Client]:
    """Make the consumers of all places, except JMS clients."""
    for place in PLACES:
        if place.jms:
            continue
        for number, broker in enumerate(place.consumed_at, 1):
            name = f"{place.name}.c{number}"
            make = Consumer
            if place.relayed_to:
                make = partial(Relay, to=(_places[place.relayed_to].destination, place.relayed_to))
            yield make(
                name, broker, ports(broker), ledger, random.Random(f"{seed} {name}"),
                place=place.name, destination=place.destination, durable=place.durable, thinks=PROCESSING_SECONDS,
                rejects=REJECTED_SHARE if place.dead_letters else 0.0,
            )  # fmt: skip


def jms_clients(
    wanted: Iterable[Flow], ports: Callable[[str], list[int]], ledger: Ledger
) -> tuple[JmsConsumers, JmsProducers] | None:
    """Make the JMS clients of these flows; None if there are none."""
    told, brokers = [], {}
    for flow in wanted:
        for number, broker in enumerate(flow.sent_at if flow.is_jms else (), 1):
            (destination, places), *_ = flow.to
            fields = (",".join(places), _jms_name(destination), str(flow.transaction))
            told.append(" ".join(("producer", f"{flow.name}.p{number}", failover_url(ports(broker)), *fields)))
        for place in (_places[each] for _, places in flow.to for each in places):
            for number, broker in enumerate(place.consumed_at if place.jms else (), 1):
                name = f"{place.name}.c{number}"
                brokers[name] = broker
                kind, more = "consumer", (place.jms,)
                if place.relayed_to:
                    kind, more = "relay", (place.relayed_to, _jms_name(_places[place.relayed_to].destination))
                fields = (place.name, _jms_name(place.destination), *more)
                told.append(" ".join((kind, name, failover_url(ports(broker)), *fields)))
    if not told:
        return None
    program = JmsConsumers(told, brokers, ledger)
    return program, JmsProducers(program)


def _jms_name(destination: str) -> str:
    _, kind, name = destination.split("/")
    return f"{kind}://{name}"
