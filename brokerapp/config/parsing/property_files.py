"""Reads the Spring beans that name property files as the source of placeholders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from brokerapp.config.parsing.broker_config import ImportOutcome
from brokerapp.config.parsing.document import Element
from brokerapp.errors import ConfigurationRefused
from brokerapp.openwire.java_properties import parse_properties

#: How values begin that only a key beside the file opens.
_ENCRYPTED = "ENC("


def is_configurer(element: Element) -> bool:
    """Return whether an element next to the broker names the source of placeholders."""
    if element.tag == "property-placeholder":
        return True
    kind = element.get("class") or ""
    return element.tag == "bean" and kind.endswith(
        ("PropertyPlaceholderConfigurer", "PropertySourcesPlaceholderConfigurer")
    )


def read_configurer(element: Element) -> Mapping[str, str]:
    """Return the properties that such an element defines, and report what cannot be read."""
    found: dict[str, str] = {}
    element.take("class")
    for child in element.named("property"):
        if child.get("name") == "properties":
            found |= _inline(child)
    for location in _locations(element):
        try:
            pairs = parse_properties(element.load_context.read(location))
        except ConfigurationRefused as wrong:
            element.note(ImportOutcome.IGNORED, str(wrong))
            continue
        for name in [name for name, value in pairs.items() if value.startswith(_ENCRYPTED)]:
            del pairs[name]
            element.note(ImportOutcome.IGNORED, f"{name} is encrypted in {location} and cannot be decrypted")
        element.note(ImportOutcome.TAKEN, f"{len(pairs)} properties read from {location}")
        found |= pairs
    return found


def _inline(element: Element) -> Mapping[str, str]:
    values = {each.take("key") or "": each.text for group in element.named("props") for each in group.named("prop")}
    for each in element.named("value"):
        values |= parse_properties(each.text)
    return values


def _locations(element: Element) -> Iterator[str]:
    if listed := element.take("location"):
        yield from (each.strip() for each in listed.split(",") if each.strip())
    for child in element.named("property"):
        if child.get("name") in ("location", "locations"):
            texts = (child.take("value"), *(each.text for each in child.descendants() if each.tag == "value"))
            yield from (part.strip() for text in texts if text for part in text.split(",") if part.strip())
