"""Definitions as JSON: `{"kind": ..., field: value, ...}`, where a field at its default is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from functools import partial
from typing import Any

from brokerapp.errors import DefinitionRefused
from brokerapp.model import JsonObject, JsonValue
from brokerapp.model.definitions import (
    CompositeDestination,
    DeadLetterStrategy,
    Definitions,
    ForwardTarget,
    MirroredQueue,
    PolicyEntry,
    RecoveryPolicy,
    RedeliveryPolicy,
    RedeliverySettings,
    VirtualDestination,
    VirtualTopic,
)
from brokerapp.model.destination import Destination
from brokerapp.model.policy_strategies import (
    MessageEviction,
    NetworkBridgeFilter,
    PendingMessageLimit,
    SlowConsumerStrategy,
)


def to_json(definitions: Definitions) -> JsonObject:
    """The definitions as plain JSON values."""
    return {
        "version": definitions.version,
        "virtualDestinations": [{"kind": each.kind, **_fields(each)} for each in definitions.virtual_destinations],
        "policies": [_fields(each) for each in definitions.policies],
        "redelivery": _fields(definitions.redelivery),
    }


def from_json(data: Mapping[str, JsonValue]) -> Definitions:
    """The inverse of to_json; raises DefinitionRefused for a kind or field it does not know."""
    return Definitions(
        version=int(data.get("version", 0)),
        virtual_destinations=tuple(virtual_destination_from_json(each) for each in data["virtualDestinations"]),
        policies=tuple(_build(PolicyEntry, each) for each in data.get("policies", ())),
        redelivery=_build(RedeliverySettings, data.get("redelivery", {})),
    )


KINDS: dict[str, type] = {
    "virtualTopic": VirtualTopic,
    "compositeQueue": CompositeDestination,
    "compositeTopic": CompositeDestination,
    "mirroredQueue": MirroredQueue,
}


def virtual_destination_from_json(data: Mapping[str, JsonValue]) -> VirtualDestination:
    """One virtual destination from its JSON form; raises DefinitionRefused."""
    kind = data.get("kind")
    if kind not in KINDS:
        raise DefinitionRefused(f"{kind!r} is not one of {', '.join(KINDS)}")
    found: VirtualDestination = _build(KINDS[kind], {name: value for name, value in data.items() if name != "kind"})
    return found


def virtual_destination_to_json(definition: VirtualDestination) -> JsonObject:
    """One virtual destination in its JSON form."""
    return {"kind": definition.kind, **_fields(definition)}


def _fields(record: Any) -> JsonObject:
    result = {}
    for each in fields(record):
        value = getattr(record, each.name)
        if each.default is MISSING or value != each.default:
            result[each.name] = _plain(value)
    return result


def _plain(value: Any) -> Any:
    match value:
        case Destination():
            return str(value)
        case ForwardTarget() | DeadLetterStrategy() | RecoveryPolicy() | RedeliveryPolicy():
            return _fields(value)
        case PendingMessageLimit() | MessageEviction() | SlowConsumerStrategy() | NetworkBridgeFilter():
            return _fields(value)
        case tuple():
            return [_plain(each) for each in value]
    return value


def _build(cls: type[Any], data: Mapping[str, JsonValue]) -> Any:
    known = {each.name for each in fields(cls)}
    if unknown := sorted(set(data) - known):
        raise DefinitionRefused(f"unknown fields of {cls.__name__}: {', '.join(unknown)}")
    return cls(**{name: _READERS.get(name, _same)(value) for name, value in data.items()})


def _build_optional(cls: type[Any], data: Mapping[str, JsonValue] | None) -> Any:
    return None if data is None else _build(cls, data)


def _same(value: Any) -> Any:
    return value


def _pairs(value: Iterable[Iterable[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(each) for each in value)


_READERS: dict[str, Callable[[Any], Any]] = {
    "destination": Destination.parse,
    "legs": lambda value: tuple(_build(ForwardTarget, each) for each in value),
    "policies": lambda value: tuple(_build(RedeliveryPolicy, each) for each in value),
    **{
        name: partial(_build_optional, record)
        for name, record in {
            "dead_letter": DeadLetterStrategy,
            "recovery": RecoveryPolicy,
            "pending_message_limit": PendingMessageLimit,
            "message_eviction": MessageEviction,
            "slow_consumer": SlowConsumerStrategy,
            "network_bridge_filter": NetworkBridgeFilter,
        }.items()
    },
    "options": _pairs,
}
