"""Translate paths of brokers between the ids that OpenWire has and the names that they have here. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from brokerapp.engine.clients.broker_ids import BrokerIds
from brokerapp.model.broker_path import Path
from brokerapp.openwire.commands import BrokerId


def path_of(ids: Iterable[BrokerId | None] | None, known: BrokerIds) -> Path:
    """Return the names of these brokers."""
    return known.names_of([each.value or "" for each in ids or () if each is not None])


def broker_ids_of(path: Iterable[str], known: BrokerIds) -> tuple[BrokerId, ...]:
    """Return the ids of the brokers with these names."""
    return tuple(map(BrokerId, known.ids_of(path)))
