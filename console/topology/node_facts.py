"""Describe a node, its store and its trace recording for pages. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from brokerapp.model.stats_records import NodeStatus
from brokerapp.monitoring.node_metrics import watched_disk
from console.ui.formatting import number_format

#: Redis' fsync policies, and what they mean for a message.
_FSYNC = {
    "always": "before each receipt",
    "everysec": "every second (a crash may lose one second)",
    "no": "OS-controlled flush",
    "off": "never",
}


@dataclass(frozen=True, slots=True)
class NodeSummary:
    """A node's status in the words of pages."""

    status: NodeStatus

    @property
    def started(self) -> datetime:
        """Return the time of its start."""
        return datetime.fromtimestamp(self.status.started_ms / 1000, UTC)

    @property
    def drain_state(self) -> str:
        """Return the status word of a node that is drained or about to be; "" for one that serves."""
        return str(self.status.homes.get("draining", "")).capitalize()

    @property
    def details(self) -> list[tuple[str, str]]:
        """Return labels and values, without what the node does not report."""
        store, trace = self.status.store, self.status.trace
        facts = []
        if "fsync" in store:
            facts.append(("Disk sync", _FSYNC.get(store["fsync"], store["fsync"])))
        if "used" in store:
            limit = store.get("limit") or store.get("message_limit")
            facts.append(
                (
                    "Store usage",
                    number_format.format_bytes(store["used"])
                    + (f" of {number_format.format_bytes(limit)}" if limit else ""),
                )
            )
        if disk := watched_disk(self.status):
            facts.append(
                (
                    "Free disk space",
                    f"{number_format.format_bytes(disk.free)} of {number_format.format_bytes(disk.total)}",
                )
            )
        if self.status.homes:
            facts.append(
                ("Owner of", f"{number_format.format_integer(self.status.homes['logs'])} queues and subscriptions")
            )
        if refused := self._refused:
            facts.append(("Connections refused", refused))
        if "recorded" in trace:
            dropped = f", {number_format.format_integer(trace['dropped'])} dropped" if trace.get("dropped") else ""
            facts.append(
                ("Trace events since start", number_format.pluralize_count(trace["recorded"], "event") + dropped)
            )
        return facts

    @property
    def _refused(self) -> str:
        """Return the connections refused because of a limit, by transport connector."""
        by_connector = {each["connector"]: each["refused"] for each in self.status.listeners if each["refused"]}
        return ", ".join(f"{number_format.format_integer(count)} at {name}" for name, count in by_connector.items())


def shard_count(nodes: Sequence[NodeStatus]) -> int:
    """Return the number of shards that the nodes serve."""
    return max(1, len({each["number"] for node in nodes for each in node.shards}))


@dataclass(frozen=True, slots=True)
class UsageGauge:
    """The usage of a limited resource."""

    label: str
    description: str  #: what counts
    text: str
    percent: int


_MEMORY = "Messages that are not stored yet, and open transactions (memoryUsage)"
_STORE = "Data in the store, of its limit (storeUsage)"
_MACHINE = "Data in the store, of the memory of its host"
_TEMPORARY = "Non-persistent messages in the store (tempUsage)"


def gauges_of(nodes: Sequence[NodeStatus]) -> list[UsageGauge]:
    """Return the gauges of the fullest node: memory, store by its limit and by host memory, and temporary store if it
    has a limit of its own."""
    gauges = [each for node in nodes for each in _gauges(node.memory, node.store)]
    fullest = {each.label: each for each in sorted(gauges, key=lambda each: each.percent)}
    return list(fullest.values())


def _gauges(memory: Mapping[str, Any], store: Mapping[str, Any]) -> Iterator[UsageGauge]:
    used, message_limit, temp_limit = (store.get(name) or 0 for name in ("used", "message_limit", "temp_limit"))
    filled = (
        ("Memory", _MEMORY, memory.get("used", 0), memory.get("limit")),
        ("Store", _STORE, used, store.get("limit") or message_limit),
        ("Store (share of host memory)", _MACHINE, used, store.get("machine")),
        ("Temporary store", _TEMPORARY, store.get("temp_used", 0), temp_limit if temp_limit != message_limit else 0),
    )
    for label, words, held, limit in filled:
        if limit:
            text = f"{number_format.format_bytes(held)} of {number_format.format_bytes(limit)}"
            yield UsageGauge(label, words, text, min(100, round(100 * held / limit)))
