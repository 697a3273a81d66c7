"""Evaluate health as ActiveMQ's Health bean does. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from brokerapp.model.destination import DestinationKind
from brokerapp.store.server.durability import rollback_notice
from console.exporters.stats_cache import StatsReading

#: Percent of a limit from which on somebody should look.
FULL_PERCENT = 90


@dataclass(frozen=True, slots=True)
class HealthCondition:
    """Describe a problem with its level and resource."""

    id: str
    level: str
    message: str
    resource: str

    def __str__(self) -> str:
        return f"{self.id}: {self.level} {self.message} from {self.resource}"


def conditions(reading: StatsReading) -> list[HealthCondition]:
    """Return problems: no node, a store that is almost full, queues with producers and no consumer."""
    if reading.node is None:
        return [HealthCondition("org.apache.activemq.Broker", "WARNING", "no broker node is running", "broker")]
    found = []
    limit = reading.node.store.get("message_limit") or 0
    if limit and reading.used[0] * 100 > limit * FULL_PERCENT:
        said = f"Message Store size is within {100 - reading.used[0] * 100 // limit} % of its limit"
        found.append(HealthCondition("org.apache.activemq.StoreLimit", "WARNING", said, "store"))
    if said := rollback_notice(reading.node.store, reading.node.seen_ms):
        found.append(HealthCondition("org.apache.activemq.StoreRollback", "WARNING", said, "store"))
    for each in reading.of_kind(DestinationKind.QUEUE):
        if each.ProducerCount and not each.ConsumerCount:
            said = f"Queue {each.destination.name} has no consumers"
            found.append(HealthCondition("org.apache.activemq.noConsumer", "WARNING", said, each.destination.name))
    return found


def status(found: Iterable[HealthCondition]) -> str:
    """Return `Good`, or `Getting Worried {` with the problems."""
    texts = [f"{each} " for each in found]
    return "Getting Worried {" + ", ".join(texts) + " }" if texts else "Good"
