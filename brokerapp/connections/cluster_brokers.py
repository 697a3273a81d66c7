"""ClusterBrokers: which nodes of the broker the OpenWire clients of a connector are told of. Pure.

A client with `failover:` adds them to the addresses that it knows. Where clients are to spread over the nodes, each one
is told another node first, as it goes to that one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from brokerapp.model.transport_connector import OpenWireSettings


class ClusterBrokers:
    """The addresses that the clients of one connector are told."""

    def __init__(self, settings: OpenWireSettings) -> None:
        self._settings = settings
        self._patterns = [
            re.compile(each.strip()) for each in settings.update_cluster_filter.split(",") if each.strip()
        ]
        self._addresses: list[str] = []
        self._told = 0

    @property
    def is_needed(self) -> bool:
        """Return whether clients are told at all."""
        return self._settings.update_cluster_clients

    @property
    def rebalances(self) -> bool:
        """Return whether clients are to spread over the nodes."""
        return self._settings.rebalance_cluster_clients

    def update(self, own: str, others: Mapping[str, str]) -> bool:
        """Take the addresses of this node and of the others, by their names; return whether clients must be told now.

        They are told of nodes that come, and of those that go where the connector says so.
        """
        admitted = [address for name, address in sorted(others.items()) if self._admits(name)]
        before, now = set(self._addresses), {own, *admitted}
        came, went = now - before, before - now
        if came or went:
            self._addresses = sorted(now)
        return bool(came or (went and self._settings.update_cluster_clients_on_remove))

    def _admits(self, name: str) -> bool:
        return not self._patterns or any(each.fullmatch(name) for each in self._patterns)

    def next_list(self) -> str:
        """Return the addresses for one client, comma separated; "" where clients are told nothing."""
        if not self.is_needed or not self._addresses:
            return ""
        first = self._told % len(self._addresses) if self.rebalances else 0
        self._told += 1
        return ",".join(self._addresses[first:] + self._addresses[:first])
