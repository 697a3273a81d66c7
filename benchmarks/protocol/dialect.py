"""Dialect: how a broker is addressed over STOMP. There are ActiveMQ's, which Sluice speaks, and RabbitMQ's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from benchmarks.protocol.transports import plain

Headers = dict[str, object]


class Dialect(Protocol):
    """The headers of CONNECT and SUBSCRIBE that differ between brokers."""

    connect: Headers
    transport: Callable[[tuple[str, int]], Any]  #: a connection, blocking, to host and port

    def queue(self, name: str, prefetch: int) -> Headers:
        """SUBSCRIBE headers of a consumer of this queue."""
        ...

    def consumer_queue(self, topic: str, number: int, prefetch: int) -> Headers:
        """SUBSCRIBE headers of a consumer of the queue that keeps application `number`'s copy of what `topic` gets."""
        ...

    def topics_below(self, name: str, prefetch: int) -> Headers:
        """SUBSCRIBE headers of a subscriber, not durable, of all topics whose names begin with `name` and a dot."""
        ...


@dataclass(frozen=True, slots=True)
class ActiveMQDialect:
    """Virtual topics: an application consumes from its own queue, named after the topic."""

    connect: Headers = field(default_factory=lambda: {"host": "localhost", "accept-version": "1.2"})
    transport: Callable[[tuple[str, int]], Any] = plain

    def queue(self, name: str, prefetch: int) -> Headers:
        return {"destination": f"/queue/{name}", "activemq.prefetchSize": prefetch}

    def consumer_queue(self, topic: str, number: int, prefetch: int) -> Headers:
        return self.queue(f"Consumer.App{number}.{topic}", prefetch)

    def topics_below(self, name: str, prefetch: int) -> Headers:
        return {"destination": f"/topic/{name}.>", "activemq.prefetchSize": prefetch}


@dataclass(frozen=True, slots=True)
class RabbitMQDialect:
    """Topics are routing keys of the exchange amq.topic, to which each application binds a durable queue."""

    connect: Headers = field(
        default_factory=lambda: {"host": "/", "accept-version": "1.2", "login": "guest", "passcode": "guest"}
    )
    transport: Callable[[tuple[str, int]], Any] = plain

    def queue(self, name: str, prefetch: int) -> Headers:
        return {"destination": f"/queue/{name}", "prefetch-count": prefetch}

    def consumer_queue(self, topic: str, number: int, prefetch: int) -> Headers:
        return {
            "destination": f"/topic/{topic}",
            "x-queue-name": f"App{number}.{topic}",
            "durable": "true",
            "auto-delete": "false",
            "prefetch-count": prefetch,
        }

    def topics_below(self, name: str, prefetch: int) -> Headers:
        return {"destination": f"/topic/{name}.#", "prefetch-count": prefetch}
