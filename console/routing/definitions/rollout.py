"""Report which nodes have applied a version of the definitions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest

from brokerapp.model.stats_records import NodeStatus
from console.broker.gateway import gateway


@dataclass(frozen=True, slots=True)
class Rollout:
    """The running nodes that have applied a version, and those with another one (None: not reported)."""

    version: int
    current: tuple[str, ...]
    behind: tuple[tuple[str, int | None], ...]

    @staticmethod
    def of(version: int, nodes: Iterable[NodeStatus]) -> Rollout:
        """Compare the versions of the nodes with a version."""
        found = [(each.name, each.definitions) for each in nodes]
        current = tuple(name for name, routes_by in found if routes_by == version)
        return Rollout(version, current, tuple(each for each in found if each[1] != version))

    @property
    def is_complete(self) -> bool:
        """Return whether every running node has applied the version; false without nodes."""
        return bool(self.current) and not self.behind

    @property
    def sentence(self) -> str:
        """Describe the rollout for a page."""
        if not self.current and not self.behind:
            return f"Version {self.version} is saved. No node is running; nodes apply it when they start."
        if self.is_complete:
            return f"Version {self.version} is active on all nodes."
        others = ", ".join(_node_version(*each) for each in self.behind)
        whole = len(self.current) + len(self.behind)
        return f"Version {self.version} is active on {len(self.current)} of {whole} nodes. Not yet: {others}."


def _node_version(name: str, routes_by: int | None) -> str:
    return f"{name} (version {routes_by})" if routes_by is not None else f"{name} (version not reported)"


def rollout_of(version: int) -> Rollout:
    """Read from the nodes how far a version is applied."""
    return Rollout.of(version, gateway().nodes())


def report_rollout(request: HttpRequest, version: int, done: str = "") -> None:
    """Show a message to the user who applied a version: what was done and which nodes have applied it."""
    reach = rollout_of(version)
    (messages.success if reach.is_complete else messages.warning)(request, f"{done} {reach.sentence}".strip())
