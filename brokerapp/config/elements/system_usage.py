"""Reads and writes `<systemUsage>`: limits of the whole broker."""

from __future__ import annotations

from typing import Any

from lxml import etree

from brokerapp.config.parsing.attributes import read_fields, write_fields
from brokerapp.config.parsing.broker_config import ImportOutcome, SystemUsage
from brokerapp.config.parsing.document import Element
from brokerapp.model.settings import DEFAULT_MEMORY

#: Element -> field of a SystemUsage that its limit sets.
_USAGES = {"memoryUsage": "memory", "storeUsage": "store", "tempUsage": "temp"}
_FLAGS = ("send_fail_if_no_space", "send_fail_if_no_space_after_timeout")
#: Other attributes of a usage, and why they have no effect.
_WITHOUT_EFFECT = {
    "percentOfJvmHeap": f"Java heap is not available: the limit is {DEFAULT_MEMORY} bytes unless it is set in bytes",
    "percentLimit": "limits must be given in bytes",
    "total": "limits must be given in bytes",
}


def read_system_usage(element: Element) -> SystemUsage:
    """Return the limits in `<systemUsage>`."""
    values: dict[str, Any] = {}
    element.note_rest("systemUsage")
    for usage in element.named("systemUsage"):
        values |= read_fields(usage, SystemUsage, _FLAGS)
        usage.note_rest(*_USAGES)
        for group in usage.named(*_USAGES):
            for limited in group.children:
                if (limit := limited.take_size("limit")) is not None:
                    values[_USAGES[group.tag]] = limit
                for attribute, _ in limited.rest():
                    limited.note(
                        ImportOutcome.IGNORED, _WITHOUT_EFFECT.get(attribute, "only limit is supported"), attribute
                    )
        usage.note(ImportOutcome.TAKEN, ", ".join(f"{name} {value}" for name, value in values.items()))
    return SystemUsage(**values)


def write_system_usage(usage: SystemUsage) -> etree._Element:
    """Write `<systemUsage>`."""
    element = etree.Element("systemUsage")
    inner = etree.SubElement(element, "systemUsage", write_fields(usage, _FLAGS))
    for tag, field in _USAGES.items():
        if (limit := getattr(usage, field)) is not None:
            etree.SubElement(etree.SubElement(inner, tag), tag, limit=str(limit))
    return element
