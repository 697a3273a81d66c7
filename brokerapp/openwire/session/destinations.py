"""Translate destinations between OpenWire and the broker. Pure.

A physical name may be a list: `A,topic://B`, whose elements are of the destination's own kind unless they say another.
Elements without a name are passed over, as in ActiveMQ.
"""

from __future__ import annotations

from brokerapp.errors import InvalidDestination
from brokerapp.model.destination import LIST_SEPARATOR, STOMP_PREFIX, Destination, DestinationKind
from brokerapp.openwire.commands import OpenWireDestination
from brokerapp.openwire.commands import data_types as t
from brokerapp.system.text_cache import cached_if_short

#: Destinations kept in each form: clients use few.
CACHED_DESTINATIONS = 16384
_KINDS = {
    t.QUEUE: DestinationKind.QUEUE,
    t.TOPIC: DestinationKind.TOPIC,
    t.TEMP_QUEUE: DestinationKind.TEMP_QUEUE,
    t.TEMP_TOPIC: DestinationKind.TEMP_TOPIC,
}
_TYPES = {kind: type for type, kind in _KINDS.items()}
_SCHEMES = tuple(f"{kind}://" for kind in _TYPES)
_STOMP_PREFIXES = tuple(STOMP_PREFIX[kind] for kind in _TYPES)


def broker_text(destination: OpenWireDestination | None) -> str:
    """Return a destination, or a list of them, in the broker's text form. Raises InvalidDestination."""
    if destination is None:
        raise InvalidDestination("", "a destination is missing")
    return _broker_text(destination.physical_name or "", destination.kind)


@cached_if_short(CACHED_DESTINATIONS)
def _broker_text(name: str, type: int) -> str:
    prefix = STOMP_PREFIX[_KINDS[type]]
    if LIST_SEPARATOR not in name:  # one that looks as if it named its kind is a name, as in ActiveMQ
        return prefix + name
    parts = [part.strip() for part in name.split(LIST_SEPARATOR) if part.strip()]
    return LIST_SEPARATOR.join(part if part.startswith(_SCHEMES) else prefix + part for part in parts)


def text_of_whole(destination: OpenWireDestination) -> str:
    """Return a destination, or a list of them, as it is told to consumers: a list as its client wrote it."""
    return STOMP_PREFIX[_KINDS[destination.kind]] + (destination.physical_name or "")


def list_of(destination: OpenWireDestination | None) -> Destination | None:
    """Return a list of destinations as the one that a message was sent to; None for one destination."""
    name = (destination and destination.physical_name) or ""
    return Destination(_KINDS[destination.kind], name) if destination and LIST_SEPARATOR in name else None


def broker_destination(destination: OpenWireDestination | None) -> Destination:
    """Return one destination of the broker. Raises InvalidDestination."""
    return Destination.parse(broker_text(destination))


@cached_if_short(CACHED_DESTINATIONS)
def openwire_destination(text: str) -> OpenWireDestination:
    """Return what a destination in the broker's text form, one or a list, is in OpenWire. Raises InvalidDestination."""
    first, *others = text.split(LIST_SEPARATOR)
    destination = Destination.parse(first)
    others = [str(Destination.parse(each)) if each.startswith(_STOMP_PREFIXES) else each for each in others]
    return OpenWireDestination(_TYPES.get(destination.kind, t.QUEUE), LIST_SEPARATOR.join([destination.name, *others]))


@cached_if_short(CACHED_DESTINATIONS)
def destination_of_log(log: str) -> OpenWireDestination:
    """Return what the destination of a log is in OpenWire."""
    return openwire_destination(Destination.parse(log).stomp)


def named_destination(text: str | None) -> OpenWireDestination | None:
    """Return the destination that a header names; None for a text that names none, which STOMP clients may send."""
    try:
        return openwire_destination(text) if text and text.startswith((*_STOMP_PREFIXES, *_SCHEMES)) else None
    except InvalidDestination:
        return None
