"""What a node tells of itself, its store and its recording, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from brokerapp.model.stats_records import NodeStatus
from console.broker.broker_sample import watched_disk
from console.ui.formatting import number_format

#: What Redis calls it, and what that means for a message.
_FSYNC = {
    "always": "before each receipt",
    "everysec": "once a second: a crash may lose one",
    "no": "when the system likes to",
    "off": "never",
}


@dataclass(frozen=True, slots=True)
class NodeSummary:
    """One node as a page shows it."""

    status: NodeStatus

    @property
    def started(self) -> datetime:
        """When it came up."""
        return datetime.fromtimestamp(self.status.started_ms / 1000, UTC)

    @property
    def details(self) -> list[tuple[str, str]]:
        """Labels and what stands beside them; what the node does not tell is left out."""
        store, trace = self.status.store, self.status.trace
        facts = []
        if "fsync" in store:
            facts.append(("Written to disk", _FSYNC.get(store["fsync"], store["fsync"])))
        if "used" in store:
            limit = store.get("limit") or store.get("message_limit")
            facts.append(
                (
                    "Store uses",
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
                ("Home of", f"{number_format.format_integer(self.status.homes['logs'])} queues and subscriptions")
            )
        if refused := self._refused:
            facts.append(("Connections refused", refused))
        if "recorded" in trace:
            dropped = f", {number_format.format_integer(trace['dropped'])} dropped" if trace.get("dropped") else ""
            facts.append(
                ("Recorded since it started", number_format.pluralize_count(trace["recorded"], "event") + dropped)
            )
        return facts

    @property
    def _refused(self) -> str:
        """How many connections were one too many, and at which connector."""
        by_connector = {each["connector"]: each["refused"] for each in self.status.listeners if each["refused"]}
        return ", ".join(f"{number_format.format_integer(count)} at {name}" for name, count in by_connector.items())


@dataclass(frozen=True, slots=True)
class UsageGauge:
    """How full something is."""

    label: str
    description: str  #: what fills it
    text: str
    percent: int


_MEMORY = "Messages that the node has taken and not stored yet, and open transactions (memoryUsage)"
_STORE = "What the store's server holds, of what it may hold (storeUsage)"
_MACHINE = "What the store's server holds, of the memory of its machine"
_TEMPORARY = "Non-persistent messages in the store (tempUsage)"


def gauges_of(nodes: Sequence[NodeStatus]) -> list[UsageGauge]:
    """Of the fullest node: what it holds in memory; its store, by its limit for messages and by its machine's memory;
    and what of the store non-persistent messages take, where they have a limit of their own."""
    gauges = [each for node in nodes for each in _gauges(node.memory, node.store)]
    fullest = {each.label: each for each in sorted(gauges, key=lambda each: each.percent)}
    return list(fullest.values())


def _gauges(memory: Mapping[str, Any], store: Mapping[str, Any]) -> Iterator[UsageGauge]:
    used, message_limit, temp_limit = (store.get(name) or 0 for name in ("used", "message_limit", "temp_limit"))
    filled = (
        ("Memory", _MEMORY, memory.get("used", 0), memory.get("limit")),
        ("Store", _STORE, used, store.get("limit") or message_limit),
        ("Store, of the machine's memory", _MACHINE, used, store.get("machine")),
        ("Temporary store", _TEMPORARY, store.get("temp_used", 0), temp_limit if temp_limit != message_limit else 0),
    )
    for label, words, held, limit in filled:
        if limit:
            text = f"{number_format.format_bytes(held)} of {number_format.format_bytes(limit)}"
            yield UsageGauge(label, words, text, min(100, round(100 * held / limit)))
