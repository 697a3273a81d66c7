"""Translate destinations between OpenWire and the broker. Pure.

A physical name may be a list: `A,topic://B`, whose elements are of the destination's own kind unless they say another.
"""

from __future__ import annotations

from functools import lru_cache

from brokerapp.errors import InvalidDestination
from brokerapp.model.destination import LIST_SEPARATOR, STOMP_PREFIX, Destination, DestinationKind
from brokerapp.openwire.commands import OpenWireDestination
from brokerapp.openwire.commands import data_types as t

_KINDS = {
    t.QUEUE: DestinationKind.QUEUE,
    t.TOPIC: DestinationKind.TOPIC,
    t.TEMP_QUEUE: DestinationKind.TEMP_QUEUE,
    t.TEMP_TOPIC: DestinationKind.TEMP_TOPIC,
}
_TYPES = {kind: type for type, kind in _KINDS.items()}
_SCHEMES = tuple(f"{kind}://" for kind in _TYPES)


def broker_text(destination: OpenWireDestination | None) -> str:
    """Return a destination, or a list of them, in the broker's text form. Raises InvalidDestination."""
    if destination is None:
        raise InvalidDestination("", "a destination is missing")
    return _broker_text(destination.kind, destination.physical_name or "")


@lru_cache(maxsize=16384)
def _broker_text(type: int, name: str) -> str:
    kind = _KINDS[type]
    if kind in (DestinationKind.TEMP_QUEUE, DestinationKind.TEMP_TOPIC):
        return STOMP_PREFIX[kind] + name
    parts = [part.strip() for part in name.split(LIST_SEPARATOR)]
    return LIST_SEPARATOR.join(part if part.startswith(_SCHEMES) else STOMP_PREFIX[kind] + part for part in parts)


def broker_destination(destination: OpenWireDestination | None) -> Destination:
    """Return one destination of the broker. Raises InvalidDestination."""
    return Destination.parse(broker_text(destination))


@lru_cache(maxsize=16384)
def openwire_destination(text: str) -> OpenWireDestination:
    """Return what a destination in the broker's text form, one or a list, is in OpenWire."""
    first, *others = text.split(LIST_SEPARATOR)
    destination = Destination.parse(first)
    name = LIST_SEPARATOR.join([destination.name, *others])
    return OpenWireDestination(_TYPES.get(destination.kind, t.QUEUE), name)
