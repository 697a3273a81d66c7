"""Build a snapshot of a broker's figures without a broker."""

from __future__ import annotations

from brokerapp.model.definitions import Definitions
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.stats_records import DestinationStats, NodeStatus, SubscriptionStats
from brokerapp.model.subscription_identity import SubscriptionIdentity
from console.exporters.jolokia.beans import Beans
from console.exporters.options import MonitorOptions
from console.exporters.stats_cache import StatsReading

AT = 1_700_000_100.0
Q, T = Destination.queue, Destination.topic


def node(**more) -> NodeStatus:
    """A node that started 100 s before."""
    listener = {"connector": "stomp", "address": "stomp://127.0.0.1:61613", "connections": 3, "refused": 1}
    values = {
        "listeners": [{**listener, "accepted": 9}],
        "store": {
            "message_limit": 10_000,
            "used": 500,
            "limit": 0,
            "machine": 1_000,
            "temp_limit": 400,
            "temp_used": 100,
        },
        "memory": {"used": 60, "limit": 200},
        "trace": {"recorded": 5, "dropped": 0},
    }
    return NodeStatus("n1", "sluice", 1_700_000_000_000, 1_700_000_100_000, **{**values, **more})


def durable(client: str, name: str, topic: str, active: bool) -> SubscriptionStats:
    """A durable subscription that holds two messages."""
    subscription = SubscriptionIdentity(client, name, (T(topic),), selector="price > 1")
    numbers = DestinationStats(
        Destination(DestinationKind.SUBSCRIPTION, f"{client}:{name}"), 2, 7, 5, 6, 1, ConsumerCount=active
    )
    return SubscriptionStats(subscription, numbers)


ORDERS = DestinationStats(
    Q("Orders.In"), 42, 1000, 958, 960, 2, ConsumerCount=2, ProducerCount=1, EnqueueBytes=20_000, MinMessageSize=10,
    MaxMessageSize=90, EnqueueTimeUs=1_440_000, MinEnqueueTime=0, MaxEnqueueTime=12,
)  # fmt: skip
PRICES = DestinationStats(T("Prices"), 0, 7, 7, 7, ConsumerCount=1)
ADVISORY = DestinationStats(T("ActiveMQ.Advisory.Connection"), 0, 3)
AWKWARD = DestinationStats(Q('a/b!c:d,e=f*g?h"é'), 1, 1)


def reading(*destinations: DestinationStats, **more) -> StatsReading:
    """These destinations, or a few."""
    found = sorted(destinations or (ORDERS, PRICES, ADVISORY), key=lambda each: each.destination.name)
    values = {
        "node": node(),
        "used": (2_500, {"queue://Orders.In": 2_000}),
        "subscriptions": [durable("c2", "s2", "Prices", False), durable("c1", "s1", "Prices", True)],
        "definitions": Definitions(),
        "peers": [],
    }
    values |= more
    made = StatsReading(found, values.pop("node"), AT, None, values.pop("others", ()))
    vars(made).update(values)  # in place of what it would ask the broker for
    return made


def beans(*destinations: DestinationStats, options: MonitorOptions = MonitorOptions(), **more) -> Beans:  # noqa: B008
    """Their beans, and all others."""
    return Beans(reading(*destinations, **more), options, "sluice")
