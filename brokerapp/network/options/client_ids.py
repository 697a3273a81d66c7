"""Build the client ids of a connector's connections and the names of its durable subscriptions. Pure.

They say which connector of which broker they belong to, so that a bridge finds again what one before it left. Whoever
renames a broker or a connector leaves them behind.
"""

from __future__ import annotations

from collections.abc import Iterable

from brokerapp.model.broker_path import BRIDGE_DURABLE_PREFIX


def outbound_client_id(connector: str, broker: str) -> str:
    """The client id with which the connector of this broker comes to another one."""
    return f"{connector}_{broker}_outbound"


def inbound_client_id(connector: str, remote: str, broker: str) -> str:
    """The one with which it consumes from its own broker, for the other one."""
    return f"{connector}_{remote}_inbound_{broker}"


def durable_name(here: str, topic: str) -> str:
    """The durable subscription in which broker `here` keeps a topic's messages for a bridge."""
    return f"{BRIDGE_DURABLE_PREFIX}{here}_{topic}"


def is_of_removed_connector(client_id: str, connector: str, broker: str, others: Iterable[str]) -> bool:
    """Whether a client of this id was the connector, leading to whatever broker, and none of the other connectors."""

    def could_be(name: str) -> bool:
        return client_id.startswith(f"{name}_") and client_id.endswith(f"_inbound_{broker}")

    return could_be(connector) and not any(map(could_be, others))
