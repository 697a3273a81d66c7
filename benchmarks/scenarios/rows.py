"""The scenarios, as a table, and what each means for a broker: where is sent, who consumes, how much must arrive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from benchmarks.protocol.dialect import Dialect, Headers

BODY = b"x" * 1024
#: Messages a consumer may hold unacknowledged.
PREFETCH = 1000
#: SEND frames in one write, unless a scenario says otherwise. Numbers of messages are multiples of it.
BLOCK = 50
#: Property the filtered composite's selectors read: text, for ActiveMQ's filters take a STOMP header for no number.
REGION = "region"

QUEUE = "bench"
TOPIC = "VirtualTopic.Bench"
COMPOSITE = "bench.filtered"


@dataclass(frozen=True, slots=True)
class ConsumerGroup:
    """Consumers that share one queue: it gets `share` of all messages sent."""

    subscribe: Headers
    consumers: int = 1
    share: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True)
class Queue:
    """One queue with competing consumers, or with none."""

    consumers: int = 1
    destination = f"/queue/{QUEUE}"

    def groups(self, dialect: Dialect) -> list[ConsumerGroup]:
        return [ConsumerGroup(dialect.queue(QUEUE, PREFETCH), self.consumers)] if self.consumers else []

    def properties(self, number: int) -> Headers:
        return {}


@dataclass(frozen=True, slots=True)
class VirtualTopic:
    """One topic, of which each of `queues` consumer queues keeps a copy for its one consumer."""

    queues: int
    destination = f"/topic/{TOPIC}"

    def groups(self, dialect: Dialect) -> list[ConsumerGroup]:
        return [ConsumerGroup(dialect.consumer_queue(TOPIC, each, PREFETCH)) for each in range(self.queues)]

    def properties(self, number: int) -> Headers:
        return {}


@dataclass(frozen=True, slots=True)
class FilteredComposite:
    """One composite queue with `legs` filtered legs: as many regions come in turn, leg n takes those from rn on."""

    legs: int
    name = COMPOSITE
    destination = f"/queue/{COMPOSITE}"

    def groups(self, dialect: Dialect) -> list[ConsumerGroup]:
        return [
            ConsumerGroup(dialect.queue(name, PREFETCH), share=Fraction(self.legs - leg, self.legs))
            for leg, (name, _) in enumerate(self.filtered())
        ]

    def filtered(self) -> list[tuple[str, str]]:
        """Queue and selector of each leg."""
        regions = [f"'r{each}'" for each in range(self.legs)]
        return [(f"{COMPOSITE}.{leg}", f"{REGION} IN ({', '.join(regions[leg:])})") for leg in range(self.legs)]

    def properties(self, number: int) -> Headers:
        return {REGION: f"r{number % self.legs}"}


Route = Queue | VirtualTopic | FilteredComposite


@dataclass(frozen=True, slots=True)
class Scenario:
    """One row of the table.

    `messages`: how many a measured run sends to each peer that takes part, sized for some seconds on two cores.
    `window`: messages a producer may have sent without a receipt or, without receipts, without a delivery.
    `block`: SEND frames in one write.
    `bars`: how many times a peer's rate Sluice's must be; `goals`: how many times it is to become.
    """

    name: str
    title: str
    route: Route
    messages: Mapping[str, int]
    producers: int = 1
    window: int = 1000
    block: int = BLOCK
    persistent: bool = True
    body: bytes = BODY
    bars: Mapping[str, float] = field(default_factory=dict)
    goals: Mapping[str, float] = field(default_factory=dict)

    @property
    def ack_mode(self) -> str:
        """Persistent messages are acknowledged one by one, the others by being sent."""
        return "client-individual" if self.persistent else "auto"


QUEUE_SCENARIO = Scenario(
    "queue",
    "queue, persistent",
    Queue(),
    {"activemq": 15_000, "rabbitmq": 50_000, "sluice": 80_000},
    bars={"activemq": 5, "rabbitmq": 1.1},
    goals={"activemq": 8, "rabbitmq": 1.5},
)
SCENARIOS = (
    QUEUE_SCENARIO,
    Scenario(
        "queue-8x8",
        "queue, persistent, 8 producers and 8 consumers",
        Queue(consumers=8),
        {"activemq": 20_000, "rabbitmq": 50_000, "sluice": 80_000},
        producers=8,
        window=200,
        goals={"activemq": 6, "rabbitmq": 1.8},
    ),
    Scenario(
        "fan-out-10",
        "virtual topic to 10 queues",
        VirtualTopic(10),
        {"activemq": 1_500, "rabbitmq": 6_000, "sluice": 20_000},
        window=500,
        goals={"activemq": 9, "rabbitmq": 1.8},
    ),
    Scenario(
        "fan-out-100",
        "virtual topic to 100 queues",
        VirtualTopic(100),
        {"activemq": 150, "rabbitmq": 500, "sluice": 2_000},
        window=100,
        bars={"activemq": 7, "rabbitmq": 2.2},
        goals={"activemq": 10, "rabbitmq": 3},
    ),
    Scenario(
        "fan-out-1000",
        "virtual topic to 1,000 queues",
        VirtualTopic(1000),
        {"activemq": 5, "rabbitmq": 20, "sluice": 100},
        window=20,
        block=5,
        goals={"activemq": 10},
    ),
    Scenario(
        "filtered-10",
        "composite queue with 10 filtered legs",
        FilteredComposite(10),
        {"activemq": 2_000, "sluice": 15_000},
        window=500,
        goals={"activemq": 8},
    ),
    Scenario(
        "non-persistent",
        "queue, non-persistent, no receipts, auto ack",
        Queue(),
        {"activemq": 80_000, "rabbitmq": 80_000, "sluice": 80_000},
        window=5000,
        persistent=False,
        goals={"activemq": 1.2},
    ),
)
