"""Compare the settings that all brokers of a cluster must have alike."""

from __future__ import annotations

import json

from brokerapp.cluster.settings import ClusterSettings, differences
from brokerapp.core.ports import RoutingPort
from brokerapp.errors import ProtocolError
from brokerapp.model.settings import Settings


class ClusterAgreement:
    """Compares the settings of this broker with those that another one sends as it connects."""

    def __init__(self, *, terms: ClusterSettings, settings: Settings, routing: RoutingPort) -> None:
        self._terms, self._settings, self._routing = terms, settings, routing

    @property
    def text(self) -> str:
        """Return the settings that all brokers must have alike, as JSON."""
        settings, policies = self._settings, self._routing.table.definitions.policies
        only_operators = sorted(str(each.destination) for each in policies if each.auto_create is False)
        return json.dumps({
            "clusterBrokers": ",".join(sorted(self._terms.names)),
            "clusterMaster": self._terms.master,
            "autoDestroyAfter": str(settings.auto_destroy_after),
            "reconnectWindow": str(settings.reconnect_window),
            "autoCreate=false": ",".join(only_operators),
        })  # fmt: skip

    def check(self, text: str) -> None:
        """Raise ProtocolError when another broker, which sent this text, has other settings."""
        try:
            theirs = {str(name): str(value) for name, value in json.loads(text).items()}
        except (ValueError, AttributeError):
            raise ProtocolError("the cluster settings that it received are invalid") from None
        if different := differences(json.loads(self.text), theirs):
            raise ProtocolError(f"the brokers have different cluster settings: {'; '.join(different)}")
