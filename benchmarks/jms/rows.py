"""The rows that are measured with the Java client, and their bars."""

from __future__ import annotations

from dataclasses import dataclass

#: Windows: each send waits for its answer; none asks for one.
SYNC, UNANSWERED = 0, -1


@dataclass(frozen=True, slots=True)
class JmsRow:
    """What is sent, by how many, and how many times ActiveMQ's rate ours is to be."""

    name: str
    title: str
    messages: int  #: of one run
    bar: float
    is_topic: bool = False  #: with durable subscribers
    is_persistent: bool = True
    producers: int = 4
    consumers: int = 4
    window: int = 500  #: sends of a producer that may wait for their answers

    @property
    def arguments(self) -> list[str]:
        """What the Java program is told, after the URL."""
        kind = "topic" if self.is_topic else "queue"
        mode = "persistent" if self.is_persistent else "non-persistent"
        return [kind, mode, str(self.producers), str(self.consumers), str(self.window)]


ROWS = (
    JmsRow("windows", "persistent, to a queue, sends answered later", 20_000, 3),
    JmsRow("sync", "persistent, to a queue, one producer that waits for each answer", 2_000, 1,
           producers=1, consumers=1, window=SYNC),
    JmsRow("durable", "persistent, to a topic with 10 durable subscribers", 4_000, 3,
           is_topic=True, producers=2, consumers=10),
    JmsRow("non-persistent", "non-persistent, to a queue, sends without answers", 40_000, 1,
           is_persistent=False, producers=2, consumers=2, window=UNANSWERED),
)  # fmt: skip
