"""The rows of the benchmark, as a table: what is sent where, who consumes, and how many messages a run has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from benchmarks.scenarios.messages import Messages, Orders, Plain
from benchmarks.scenarios.routes import (
    FilteredComposite,
    MessageGroups,
    Queue,
    Queues,
    RejectedQueue,
    Route,
    SelectedQueue,
    VirtualTopic,
    WildcardTopics,
)

#: SEND frames in one write, unless a scenario says otherwise. Numbers of messages are multiples of it.
BLOCK = 50
ORDERS = Orders()


class Client(Enum):
    """Who sends and receives."""

    GENERATOR = auto()
    STOMP_PY = auto()  #: stomp.py, in a process for the producer and one for the consumer
    BROWSER = auto()  #: the generator, beside whose consumer somebody browses what was sent before


@dataclass(frozen=True, slots=True)
class Scenario:
    """One row of the table.

    `messages`: how many a measured run sends to each peer that takes part, sized for some seconds on two cores.
    `kind`: what is sent; the others say if it is not orders.
    `window`: messages a producer may have sent without a receipt or, without receipts, without a delivery.
    `block`: SEND frames in one write.
    `client`: who sends and receives; the generator itself unless it says otherwise.
    `transaction`: SEND frames in one transaction, whose COMMIT has the only receipt; 0: none.
    `rests`: whether the generator rests between two looks, which makes the batches larger.
    `splits`: whether writes end anywhere in a frame.
    `is_ordered`: whether each consumer must get the messages of a producer in the order they were sent in.
    `bars`: how many times a peer's rate Sluice's must be.
    """

    name: str
    title: str
    route: Route
    messages: Mapping[str, int]
    kind: Messages = ORDERS
    producers: int = 1
    window: int = 1000
    block: int = BLOCK
    client: Client = Client.GENERATOR
    transaction: int = 0
    persistent: bool = True
    rests: bool = True
    splits: bool = False
    is_ordered: bool = True
    bars: Mapping[str, float] = field(default_factory=dict)

    @property
    def ack_mode(self) -> str:
        """Persistent messages are acknowledged one by one, the others by being sent."""
        return "client-individual" if self.persistent else "auto"


QUEUE_SCENARIO = Scenario(
    "queue",
    "queue, persistent",
    Queue(),
    {"activemq": 15_000, "rabbitmq": 50_000, "sluice": 50_000},
    bars={"activemq": 9, "rabbitmq": 1.5},
)
SCENARIOS = (
    QUEUE_SCENARIO,
    Scenario(
        "one-header",
        "queue, persistent, 1 KiB, one header of its own in each message",
        Queue(),
        {"activemq": 15_000, "rabbitmq": 50_000, "sluice": 50_000},
        kind=Plain(has_own_header=True),
        bars={"activemq": 12, "rabbitmq": 2},
    ),
    Scenario(
        "identical",
        "queue, persistent, 1 KiB, identical headers in all messages",
        Queue(),
        {"activemq": 15_000, "rabbitmq": 50_000, "sluice": 80_000},
        kind=Plain(),
    ),
    Scenario(
        "queue-8x8",
        "queue, persistent, 8 producers and 8 consumers",
        Queue(consumers=8),
        {"activemq": 20_000, "rabbitmq": 50_000, "sluice": 60_000},
        producers=8,
        window=200,
        bars={"activemq": 10, "rabbitmq": 3},
    ),
    Scenario(
        "fan-out-3",
        "virtual topic to 3 queues",
        VirtualTopic(3),
        {"activemq": 5_000, "rabbitmq": 20_000, "sluice": 30_000},
        bars={"activemq": 12, "rabbitmq": 2},
    ),
    Scenario(
        "fan-out-10",
        "virtual topic to 10 queues",
        VirtualTopic(10),
        {"activemq": 1_500, "rabbitmq": 6_000, "sluice": 20_000},
        window=500,
        bars={"activemq": 18, "rabbitmq": 3.5},
    ),
    Scenario(
        "fan-out-100",
        "virtual topic to 100 queues",
        VirtualTopic(100),
        {"activemq": 150, "rabbitmq": 500, "sluice": 2_000},
        window=100,
        bars={"activemq": 33, "rabbitmq": 8},
    ),
    Scenario(
        "fan-out-1000",
        "virtual topic to 1,000 queues",
        VirtualTopic(1000),
        {"activemq": 5, "rabbitmq": 20, "sluice": 100},
        window=20,
        block=5,
    ),
    Scenario(
        "filtered-10",
        "composite queue with 10 filtered legs",
        FilteredComposite(10),
        {"activemq": 2_000, "sluice": 15_000},
        window=500,
    ),
    Scenario(
        "non-persistent",
        "queue, non-persistent, no receipts, auto ack",
        Queue(),
        {"activemq": 80_000, "rabbitmq": 80_000, "sluice": 80_000},
        window=5000,
        persistent=False,
        bars={"activemq": 2, "rabbitmq": 2},
    ),
    Scenario(
        "services",
        "10 queues, 50 producers that wait for each receipt before they send the next message",
        Queues(10),
        {"activemq": 10_000, "rabbitmq": 15_000, "sluice": 30_000},
        producers=50,
        window=1,
        block=1,
        rests=False,
        bars={"activemq": 3, "rabbitmq": 2.5},
    ),
    Scenario(
        "transactions",
        "queue, persistent, transactions of 10 messages",
        Queue(),
        {"activemq": 15_000, "rabbitmq": 30_000, "sluice": 40_000},
        transaction=10,
        bars={"activemq": 5, "rabbitmq": 2},
    ),
    Scenario(
        "selectors",
        "queue, persistent, 4 consumers with selectors",
        SelectedQueue(),
        {"activemq": 10_000, "sluice": 40_000},
        window=500,
    ),
    Scenario(
        "wildcards",
        "4 topics, non-persistent, 5 subscribers by a wildcard",
        WildcardTopics(4, 5),
        {"activemq": 20_000, "rabbitmq": 20_000, "sluice": 20_000},
        persistent=False,
        rests=False,
        bars={"activemq": 3, "rabbitmq": 3},
    ),
    Scenario(
        "large",
        "queue, persistent, bodies of 64 KiB",
        Queue(),
        {"activemq": 2_000, "rabbitmq": 6_000, "sluice": 6_000},
        kind=Plain(1 << 16, has_own_header=True),
        window=100,
        block=10,
        bars={"activemq": 6, "rabbitmq": 1},
    ),
    Scenario(
        "groups",
        "queue, persistent, 1,000 message groups, 8 consumers",
        MessageGroups(8, 1000),
        {"activemq": 15_000, "sluice": 50_000},
    ),
    Scenario(
        "reject",
        "queue, persistent, every tenth message rejected twice",
        RejectedQueue(),
        {"activemq": 10_000, "rabbitmq": 30_000, "sluice": 30_000},
        is_ordered=False,
    ),
    Scenario(
        "stomp.py",
        "queue, persistent, one producer and one consumer that use stomp.py",
        Queue(),
        {"activemq": 5_000, "rabbitmq": 5_000, "sluice": 5_000},
        client=Client.STOMP_PY,
        window=100,
    ),
    Scenario(
        "browse",
        "queue of 100,000 messages, browsed while it is consumed",
        Queue(),
        {"activemq": 100_000, "sluice": 100_000},
        client=Client.BROWSER,
    ),
)
