"""Reads and writes `<destinationInterceptors>`: virtual destinations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from lxml import etree

from brokerapp.config.parsing.attributes import attribute_name, read_fields, write_fields
from brokerapp.config.parsing.broker_config import ImportOutcome
from brokerapp.config.parsing.document import Element
from brokerapp.errors import InvalidDestination, SelectorSyntaxError
from brokerapp.model.definitions import (
    CompositeDestination,
    ForwardTarget,
    MirroredQueue,
    VirtualDestination,
    VirtualTopic,
)
from brokerapp.model.destination import NAMED_KINDS, Destination, DestinationKind
from brokerapp.selectors import compile_selector

_VIRTUAL_TOPIC = (
    "name", "prefix", "postfix", "selector_aware", "local", "concurrent_send", "transacted_send",
    "drop_on_resource_limit", "set_original_destination",
)  # fmt: skip
_COMPOSITE = ("forward_only", "send_when_not_matched", "concurrent_send", "copy_message", "strict")
_MIRRORED = ("prefix", "postfix", "copy_message")

#: Attributes that change nothing here, and why not.
_WITHOUT_EFFECT = {
    "concurrent_send": "no effect: all copies are always stored in one transaction",
    "transacted_send": "no effect: all copies are always stored in one transaction",
    "copy_message": "no effect: copies always share the message",
}

COMPOSITES = {"compositeQueue": DestinationKind.QUEUE, "compositeTopic": DestinationKind.TOPIC}

#: The elements that stand for one virtual destination.
ELEMENTS = ("virtualTopic", *COMPOSITES, "mirroredQueue")

_LEGS = {"queue": DestinationKind.QUEUE, "topic": DestinationKind.TOPIC}


# -- reading


def read_interceptors(element: Element) -> tuple[VirtualDestination, ...]:
    """Read the virtual destinations in `<destinationInterceptors>`."""
    found: list[VirtualDestination] = []
    for child in element.children:
        match child.tag:
            case "virtualDestinationInterceptor":
                found += _interceptor(child)
            case "mirroredQueue":
                found.append(_mirrored_queue(child))
            case _:
                child.note(
                    ImportOutcome.UNKNOWN,
                    "unknown element: only virtualDestinationInterceptor and mirroredQueue are supported",
                )
    return tuple(found)


def read_virtual_destination(element: Element) -> tuple[VirtualDestination, ...]:
    """Return the definitions that one of ELEMENTS declares, one for each name in a list of names."""
    found: tuple[VirtualDestination, ...]
    match element.tag:
        case "virtualTopic":
            found = tuple(_virtual_topics(element))
        case "mirroredQueue":
            return (_mirrored_queue(element),)
        case "compositeQueue" | "compositeTopic":
            found = tuple(_composites(element))
        case _:
            raise element.refused("unknown virtual destination")
    if len(found) > 1:
        element.note(ImportOutcome.ADAPTED, f"its list of names is imported as {len(found)} definitions")
    return found


def _interceptor(element: Element) -> list[VirtualDestination]:
    element.refuse_rest("virtualDestinations")
    return [
        definition
        for group in element.named("virtualDestinations")
        for child in group.children
        for definition in read_virtual_destination(child)
    ]


def _virtual_topics(element: Element) -> Iterator[VirtualTopic]:
    values = read_fields(element, VirtualTopic, _VIRTUAL_TOPIC)
    element.refuse_rest()
    name = values.pop("name", VirtualTopic().name)
    _taken(element, name, values)
    for topic in destinations(element, name, DestinationKind.TOPIC):
        yield VirtualTopic(name=topic.name, **values)


def _composites(element: Element) -> Iterator[CompositeDestination]:
    name, kind = element.need("name"), COMPOSITES[element.tag]
    values = read_fields(element, CompositeDestination, _COMPOSITE)
    element.refuse_rest("forwardTo")
    forward_to = element.child("forwardTo")
    if forward_to is None:
        raise element.refused(f"{name!r} has no forwardTo")
    legs = tuple(leg for child in forward_to.children for leg in _legs(child))
    _taken(element, name, values)
    for destination in destinations(element, name, kind):
        yield CompositeDestination(destination, legs, **values)


def _mirrored_queue(element: Element) -> MirroredQueue:
    values = read_fields(element, MirroredQueue, _MIRRORED)
    element.refuse_rest()
    _taken(element, "every queue", values)
    return MirroredQueue(**values)


def _legs(element: Element) -> Iterator[ForwardTarget]:
    """Yield the targets of one entry in forwardTo; several when it names a list."""
    match element.tag:
        case "queue" | "topic":
            for destination in read_destination(element):
                yield ForwardTarget(destination)
        case "filteredDestination":
            yield from _filtered(element)
        case _:
            raise element.refused("forwardTo may contain only queue, topic and filteredDestination")


def _filtered(element: Element) -> Iterator[ForwardTarget]:
    selector = element.take("selector")
    targets = [(kind, element.take(kind)) for kind in ("queue", "topic", "destination")]
    element.refuse_rest()
    named = [(kind, name) for kind, name in targets if name is not None]
    if len(named) != 1:
        raise element.refused("exactly one of queue, topic and destination is required")
    kind, name = named[0]
    if not selector or not selector.strip():
        element.note(
            ImportOutcome.IGNORED,
            f"a filteredDestination without a selector never matches: {name} receives no messages",
        )
        return
    try:
        compile_selector(selector)
    except SelectorSyntaxError as wrong:
        raise element.refused(str(wrong)) from wrong
    for destination in destinations(element, name, _LEGS.get(kind, DestinationKind.QUEUE)):
        yield ForwardTarget(destination, selector)


def _taken(element: Element, name: str, values: dict[str, Any]) -> None:
    element.note(ImportOutcome.TAKEN, name)
    for field in values.keys() & _WITHOUT_EFFECT.keys():
        element.note(ImportOutcome.IGNORED, _WITHOUT_EFFECT[field], attribute_name(field))


def read_destination(element: Element) -> tuple[Destination, ...]:
    """Return the destinations that a `<queue physicalName=".."/>` or `<topic ../>` names."""
    name = element.take("physicalName")
    found = destinations(element, name if name is not None else element.need("name"), _LEGS[element.tag])
    element.refuse_rest()
    return found


def entry_targets(element: Element) -> list[Destination]:
    """Return the destinations of a map's entry, named by its attributes or in a `<destination>` of its own."""
    targets = [each for kind, names in _named(element) for each in destinations(element, names, kind)]
    if (nested := element.child("destination")) is not None:
        targets += [each for child in nested.named("queue", "topic") for each in read_destination(child)]
    return targets


def _named(element: Element) -> Iterator[tuple[DestinationKind, str]]:
    for kind in NAMED_KINDS:
        if names := element.take(kind):
            yield kind, names


def destinations(element: Element, names: str, kind: DestinationKind) -> tuple[Destination, ...]:
    """Return the destinations in a comma-separated list. Refused when a name is empty."""
    try:
        return tuple(Destination.parse(name.strip(), kind) for name in names.split(","))
    except InvalidDestination as wrong:
        raise element.refused(f"{names!r} is not a list of destinations") from wrong


# -- writing


def write_destinations(found: Iterable[Destination]) -> etree._Element:
    """Write `<destinations>`, which exist from the start."""
    element = etree.Element("destinations")
    for each in found:
        etree.SubElement(element, each.kind.value, physicalName=each.name)
    return element


def write_interceptors(definitions: tuple[VirtualDestination, ...]) -> etree._Element:
    """Write `<destinationInterceptors>` in order; an empty one without definitions."""
    element = etree.Element("destinationInterceptors")
    for mirrored, run in groupby(definitions, lambda each: isinstance(each, MirroredQueue)):
        if mirrored:
            for each in run:
                etree.SubElement(element, "mirroredQueue", write_fields(each, _MIRRORED))
        else:
            _write_group(element, (each for each in run if not isinstance(each, MirroredQueue)))
    if not definitions:
        _write_group(element, ())
    return element


def _write_group(interceptors: etree._Element, definitions: Iterable[VirtualTopic | CompositeDestination]) -> None:
    group = etree.SubElement(etree.SubElement(interceptors, "virtualDestinationInterceptor"), "virtualDestinations")
    for each in definitions:
        if isinstance(each, VirtualTopic):
            etree.SubElement(group, "virtualTopic", {"name": each.name, **write_fields(each, _VIRTUAL_TOPIC)})
        else:
            _write_composite(group, each)


def _write_composite(group: etree._Element, composite: CompositeDestination) -> None:
    attributes = {"name": composite.destination.name, **write_fields(composite, _COMPOSITE)}
    forward_to = etree.SubElement(etree.SubElement(group, composite.kind, attributes), "forwardTo")
    for leg in composite.legs:
        kind, name = leg.destination.kind.value, leg.destination.name
        if leg.selector is None:
            etree.SubElement(forward_to, kind, physicalName=name)
        else:
            etree.SubElement(forward_to, "filteredDestination", {"selector": leg.selector, kind: name})
