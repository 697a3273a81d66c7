"""Reads and writes `<discardingDLQBrokerPlugin>`: which dead letters are dropped."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

from lxml import etree

from brokerapp.config.parsing.attributes import attribute_name, read_fields, write_fields
from brokerapp.config.parsing.broker_config import ImportOutcome
from brokerapp.config.parsing.document import Element
from brokerapp.model.settings import DiscardingSettings

DISCARDING = "discardingDLQBrokerPlugin"


def read_discarding(element: Element) -> DiscardingSettings:
    """Read which dead letters are dropped."""
    patterns = tuple((element.take("dropOnly") or "").split())
    for each in patterns:
        try:
            re.compile(each)
        except re.error as wrong:
            raise element.refused(f"dropOnly: {each!r} is not a valid regular expression: {wrong}") from wrong
    return DiscardingSettings(drop_only=patterns, **_read(element, DiscardingSettings))


def write_discarding(plugin: DiscardingSettings) -> etree._Element:
    """Write `<discardingDLQBrokerPlugin>`."""
    element = etree.Element(DISCARDING, write_fields(plugin, _plain_fields(DiscardingSettings)))
    if plugin.drop_only:
        element.set("dropOnly", " ".join(plugin.drop_only))
    return element


def _plain_fields(cls: type) -> list[str]:
    return [each.name for each in fields(cls) if each.type in ("int", "bool")]


def _read(element: Element, cls: type) -> dict[str, Any]:
    """Return the attributes of a plugin; numbers below zero become zero."""
    values = read_fields(element, cls, _plain_fields(cls))
    for name, value in values.items():
        if value < 0:
            raise element.refused(f"{attribute_name(name)} is {value}, less than 0")
    element.note_rest()
    element.note(ImportOutcome.TAKEN, ", ".join(f"{attribute_name(name)} {value}" for name, value in values.items()))
    return values
