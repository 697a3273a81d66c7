"""What a node tells of itself, its store and its recording, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from brokerapp.snapshot import NodeStatus
from console import figures

#: What Redis calls it, and what that means for a message.
_FSYNC = {
    "always": "before each receipt",
    "everysec": "once a second: a crash may lose one",
    "no": "when the system likes to",
    "off": "never",
}


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """One node as a page shows it."""

    status: NodeStatus

    @property
    def started(self) -> datetime:
        """When it came up."""
        return datetime.fromtimestamp(self.status.started_ms / 1000, UTC)

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Labels and what stands beside them; what the node does not tell is left out."""
        store, trace = self.status.store, self.status.trace
        facts = []
        if "fsync" in store:
            facts.append(("Written to disk", _FSYNC.get(store["fsync"], store["fsync"])))
        if "used" in store:
            limit = store.get("limit") or store.get("message_limit")
            facts.append(("Store uses", figures.size(store["used"]) + (f" of {figures.size(limit)}" if limit else "")))
        if self.status.homes:
            facts.append(("Home of", f"{figures.whole(self.status.homes['logs'])} queues and subscriptions"))
        if refused := self._refused:
            facts.append(("Connections refused", refused))
        if "recorded" in trace:
            dropped = f", {figures.whole(trace['dropped'])} dropped" if trace.get("dropped") else ""
            facts.append(("Recorded", figures.counted(trace["recorded"], "event") + dropped))
        return facts

    @property
    def _refused(self) -> str:
        """How many connections were one too many, and at which connector."""
        by_connector = {each["connector"]: each["refused"] for each in self.status.listeners if each["refused"]}
        return ", ".join(f"{figures.whole(count)} at {name}" for name, count in by_connector.items())


@dataclass(frozen=True, slots=True)
class Gauge:
    """How full something is."""

    label: str
    text: str
    percent: int


def gauges_of(nodes: Sequence[NodeStatus]) -> list[Gauge]:
    """The store of the fullest node, by its limit for messages, and by the memory of its machine."""
    gauges = [each for node in nodes for each in _gauges(node.store)]
    fullest = {each.label: each for each in sorted(gauges, key=lambda each: each.percent)}
    return list(fullest.values())


def _gauges(store: Mapping[str, Any]) -> Iterator[Gauge]:
    used = store.get("used", 0)
    limits = (
        ("Store", store.get("limit") or store.get("message_limit")),
        ("Store, of the machine's memory", store.get("machine")),
    )
    for label, limit in limits:
        if limit:
            text = f"{figures.size(used)} of {figures.size(limit)}"
            yield Gauge(label, text, min(100, round(100 * used / limit)))
