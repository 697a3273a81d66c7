"""Routes: where the messages of a scenario are sent, who consumes them, and which of them each consumer is to get."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol
from xml.sax.saxutils import quoteattr

from benchmarks.protocol.dialect import Dialect
from benchmarks.scenarios.messages import Headers, producer_of

#: Messages a consumer may hold unacknowledged.
PREFETCH = 1000
#: Property that selectors read: text, because ActiveMQ's selectors do not take a STOMP header for a number.
REGION = "region"

QUEUE = "bench"
TOPIC = "VirtualTopic.Bench"
COMPOSITE = "bench.filtered"


def _all(number: int) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class ConsumerGroup:
    """Consumers that share one queue or subscription, and get together the messages whose numbers it `takes`.

    `group_of`: the message group of a message, all of which must come to one consumer. `rejections`: how often a
    message is rejected before it is acknowledged.
    """

    subscribe: Headers
    consumers: int = 1
    takes: Callable[[int], bool] = _all
    group_of: Callable[[int], int] | None = None
    rejections: Callable[[int], int] | None = None


class Route(Protocol):
    """Where is sent and who consumes."""

    def destination(self, number: int) -> str:
        """Where message `number` is sent."""
        ...

    def groups(self, dialect: Dialect) -> list[ConsumerGroup]:
        """Who consumes."""
        ...

    def properties(self, number: int) -> Headers:
        """Headers that the route needs of message `number`."""
        ...

    def xml(self) -> str:
        """What the route needs in the configuration of ActiveMQ and Sluice."""
        ...


class _Undeclared:
    """A route that needs neither headers nor configuration."""

    __slots__ = ()

    def properties(self, number: int) -> Headers:
        return {}

    def xml(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class Unread(_Undeclared):
    """A destination that nobody consumes from."""

    name: str

    def destination(self, number: int) -> str:
        return self.name

    def groups(self, dialect: Dialect) -> list[ConsumerGroup]:
        return []


@dataclass(frozen=True, slots=True)
class Queue(_Undeclared):
    """One queue with competing consumers."""

    consumers: int = 1
    name: str = QUEUE

    def destination(self, number: int) -> str:
        return f"/queue/{self.name}"

    def groups(self, dialect: Dialect) -> list[ConsumerGroup]:
        return [ConsumerGroup(dialect.queue(self.name, PREFETCH), self.consumers)]


@dataclass(frozen=True, slots=True)
class Queues(_Undeclared):
    """Several queues that get messages in turn, so many in succession, each with one consumer."""

    count: int
    in_succession: int = 1
    name: str = QUEUE

    def destination(self, number: int) -> str:
        return f"/queue/{self.name}.{number // self.in_succession % self.count}"

    def groups(self, dialect: Dialect) -> list[ConsumerGroup]:
        return [
            ConsumerGroup(
                dialect.queue(f"{self.name}.{each}", PREFETCH), takes=_in_turn(each, self.count, self.in_succession)
            )
            for each in range(self.count)
        ]


def _in_turn(turn: int, count: int, in_succession: int = 1) -> Callable[[int], bool]:
    return lambda number: number // in_succession % count == turn


@dataclass(frozen=True, slots=True)
class SelectedQueue(_Undeclared):
    """One queue whose four consumers have selectors, of which each message fits exactly one."""

    selectors: ClassVar[Sequence[str]] = (
        f"{REGION} = 'r0'",
        f"{REGION} IN ('r1', 'r9') AND currency = 'EUR'",
        f"{REGION} LIKE '%2' AND event <> 'order.cancelled'",
        f"{REGION} NOT IN ('r0', 'r1', 'r2') AND customer IS NOT NULL",
    )

    def destination(self, number: int) -> str:
        return f"/queue/{QUEUE}"

    def groups(self, dialect: Dialect) -> list[ConsumerGroup]:
        return [
            ConsumerGroup(dialect.queue(QUEUE, PREFETCH) | {"selector": selector}, takes=_in_turn(turn, 4))
            for turn, selector in enumerate(self.selectors)
        ]

    def properties(self, number: int) -> Headers:
        return {REGION: f"r{number % 4}"}


@dataclass(frozen=True, slots=True)
class MessageGroups(_Undeclared):
    """One queue with competing consumers, whose messages belong to groups: one consumer gets all of a group."""

    consumers: int
    count: int

    def destination(self, number: int) -> str:
        return f"/queue/{QUEUE}"

    def groups(self, dialect: Dialect) -> list[ConsumerGroup]:
        return [ConsumerGroup(dialect.queue(QUEUE, PREFETCH), self.consumers, group_of=self._group)]

    def properties(self, number: int) -> Headers:
        return {"JMSXGroupID": f"customer-{self._group(number)}"}

    def _group(self, number: int) -> int:
        return number * 7 % self.count


@dataclass(frozen=True, slots=True)
class WildcardTopics(_Undeclared):
    """Topics that get messages in turn, and subscribers of all of them by a wildcard."""

    topics: int
    subscribers: int

    def destination(self, number: int) -> str:
        return f"/topic/{QUEUE}.region{number % self.topics}"

    def groups(self, dialect: Dialect) -> list[ConsumerGroup]:
        return [ConsumerGroup(dialect.topics_below(QUEUE, PREFETCH)) for _ in range(self.subscribers)]


@dataclass(frozen=True, slots=True)
class RejectedQueue:
    """One queue whose consumer rejects every tenth message twice.

    ActiveMQ and Sluice deliver it again after a second, the shortest time that ActiveMQ allows; RabbitMQ does at once.
    """

    def destination(self, number: int) -> str:
        return f"/queue/{QUEUE}"

    def groups(self, dialect: Dialect) -> list[ConsumerGroup]:
        return [ConsumerGroup(dialect.queue(QUEUE, PREFETCH), rejections=_two_of_every_tenth)]

    def properties(self, number: int) -> Headers:
        return {}

    def xml(self) -> str:
        return (
            "    <plugins>\n      <redeliveryPlugin>\n"
            "        <redeliveryPolicyMap><redeliveryPolicyMap><defaultEntry>\n"
            '          <redeliveryPolicy maximumRedeliveries="5" initialRedeliveryDelay="1000"'
            ' redeliveryDelay="1000"/>\n'
            "        </defaultEntry></redeliveryPolicyMap></redeliveryPolicyMap>\n"
            "      </redeliveryPlugin>\n    </plugins>\n"
        )


def _two_of_every_tenth(number: int) -> int:
    return 2 if number % 10 == 0 else 0


@dataclass(frozen=True, slots=True)
class VirtualTopic(_Undeclared):
    """One topic, of which each of `queues` consumer queues keeps a copy for its one consumer."""

    queues: int

    def destination(self, number: int) -> str:
        return f"/topic/{TOPIC}"

    def groups(self, dialect: Dialect) -> list[ConsumerGroup]:
        return [ConsumerGroup(dialect.consumer_queue(TOPIC, each, PREFETCH)) for each in range(self.queues)]


@dataclass(frozen=True, slots=True)
class VirtualTopics(_Undeclared):
    """Virtual topics, each with a producer of its own and as many consumer queues as the others."""

    topics: Sequence[str]
    queues: int

    def destination(self, number: int) -> str:
        return f"/topic/{self.topics[producer_of(number)]}"

    def groups(self, dialect: Dialect) -> list[ConsumerGroup]:
        return [
            ConsumerGroup(dialect.consumer_queue(topic, each, PREFETCH), takes=_sent_by(producer))
            for producer, topic in enumerate(self.topics)
            for each in range(self.queues)
        ]


def _sent_by(producer: int) -> Callable[[int], bool]:
    return lambda number: producer_of(number) == producer


@dataclass(frozen=True, slots=True)
class FilteredComposite:
    """One composite queue with `legs` filtered legs: as many regions come in turn, leg n takes those from rn on."""

    legs: int

    def destination(self, number: int) -> str:
        return f"/queue/{COMPOSITE}"

    def groups(self, dialect: Dialect) -> list[ConsumerGroup]:
        return [
            ConsumerGroup(dialect.queue(name, PREFETCH), takes=self._from(leg))
            for leg, (name, _) in enumerate(self.filtered())
        ]

    def filtered(self) -> list[tuple[str, str]]:
        """Queue and selector of each leg."""
        regions = [f"'r{each}'" for each in range(self.legs)]
        return [(f"{COMPOSITE}.{leg}", f"{REGION} IN ({', '.join(regions[leg:])})") for leg in range(self.legs)]

    def properties(self, number: int) -> Headers:
        return {REGION: f"r{number % self.legs}"}

    def xml(self) -> str:
        legs = "".join(
            f"              <filteredDestination selector={quoteattr(selector)} queue={quoteattr(queue)}/>\n"
            for queue, selector in self.filtered()
        )
        return (
            "    <destinationInterceptors>\n      <virtualDestinationInterceptor>\n        <virtualDestinations>\n"
            f"          <compositeQueue name={quoteattr(COMPOSITE)}>\n            <forwardTo>\n{legs}"
            "            </forwardTo>\n          </compositeQueue>\n"
            "        </virtualDestinations>\n      </virtualDestinationInterceptor>\n    </destinationInterceptors>\n"
        )

    def _from(self, leg: int) -> Callable[[int], bool]:
        return lambda number: number % self.legs >= leg
