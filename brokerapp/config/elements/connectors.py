"""Reads and writes `<transportConnectors>` and `<networkConnectors>`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from urllib.parse import parse_qsl, unquote_plus, urlsplit

from lxml import etree

from brokerapp.config.elements.connector_options import conventions_of, limits_of, tls_options_of, unused_options
from brokerapp.config.elements.virtual_destinations import read_destination
from brokerapp.config.parsing.broker_config import (
    BrokerConfig,
    ImportFinding,
    ImportOutcome,
    TransportConnector,
)
from brokerapp.config.parsing.document import Element
from brokerapp.engine.routing.consumer_mappings import OPTION as CONSUMER_WILDCARDS
from brokerapp.errors import ConfigurationRefused
from brokerapp.model.destination import Destination
from brokerapp.model.transport_connector import TRANSPORTS
from brokerapp.network.options.definition import NetworkConnector, write_destination
from brokerapp.network.options.destination_filter import duplicate_warnings
from brokerapp.network.options.options import options_of, unsupported_options

#: A link as Markdown writes it, `[text](address)`, both being the same: a slip of web pages that quote configurations.
_MARKDOWN_LINK = re.compile(r"\[([^\[\]]+)\]\(\1\)")

#: Element -> field of a NetworkConnector.
#: Elements for lists of destinations, in the order of the fields of NetworkConnector.
_BRIDGED = {
    "dynamicallyIncludedDestinations": "dynamically_included",
    "staticallyIncludedDestinations": "statically_included",
    "excludedDestinations": "excluded",
    "durableDestinations": "durable",
}


def read_transport_connectors(element: Element) -> Iterator[TransportConnector]:
    """Yield the connectors in `<transportConnectors>` whose uri can be read."""
    element.note_rest("transportConnector")
    for child in element.named("transportConnector"):
        uri = _uri(child)
        name = child.take("name") or uri
        attributes = child.rest()
        for attribute, why in unused_options(uri.partition("://")[0], attributes):
            child.note(*_unused(attribute, why))
        connector = _transport_connector(child, name, uri, attributes)
        if connector is not None:
            if connector.scheme in TRANSPORTS:
                child.note(ImportOutcome.TAKEN, f"{name} at {uri}")
            else:
                why = f"not served: {connector.scheme}:// is not a transport of STOMP or OpenWire"
                child.note(ImportOutcome.IGNORED, f"{name} at {uri} is {why}")
            yield connector


def _unused(option: str, why: str) -> tuple[ImportOutcome, str, str]:
    return (ImportOutcome.IGNORED, why, option) if why else (ImportOutcome.UNKNOWN, "unknown option", option)


def _transport_connector(
    element: Element, name: str, uri: str, attributes: tuple[tuple[str, str], ...]
) -> TransportConnector | None:
    if "${" in uri:
        element.note(ImportOutcome.IGNORED, f"not served: {uri} is incomplete")
        return None
    try:
        parts = urlsplit(uri)
        port = parts.port
    except ValueError as wrong:
        raise element.refused(f"{uri!r} is not a uri such as stomp://0.0.0.0:61613: {wrong}") from wrong
    if not parts.scheme or not parts.netloc:
        raise element.refused(f"{uri!r} is not a uri such as stomp://0.0.0.0:61613")
    options = tuple(_options(element, parts.query))
    connector = TransportConnector(name, parts.scheme, parts.hostname or "", port or 0, options, attributes)
    if connector.scheme in TRANSPORTS:  # who knows what others do with their options
        _check_options(element, connector)
    return connector


def _options(element: Element, query: str) -> Iterator[tuple[str, str]]:
    """The options of a uri. Where consumers' queues are mapped it is read as Artemis reads it, which knows that option:
    options may be separated by `;`, and that value is decoded twice.
    """
    mapped = CONSUMER_WILDCARDS in query
    if mapped and ">" in query:
        raise element.refused(f"{CONSUMER_WILDCARDS}: in a uri, write > as %3E, and ; within the value as %3B")
    for name, value in parse_qsl(query.replace(";", "&") if mapped else query, keep_blank_values=True):
        yield name, unquote_plus(value) if name == CONSUMER_WILDCARDS else value


def _check_options(element: Element, connector: TransportConnector) -> None:
    """Report what has no effect; refuse what cannot be understood."""
    for option, why in unused_options(connector.scheme, connector.options):
        element.note(*_unused(f"uri?{option}", why))
    try:
        limits_of(connector)
        tls_options_of(connector)
        for warning in conventions_of(connector)[1]:
            element.note(ImportOutcome.ADAPTED, warning, f"uri?{CONSUMER_WILDCARDS}")
    except ConfigurationRefused as wrong:
        raise element.refused(str(wrong)) from None


def read_network_connectors(element: Element) -> Iterator[NetworkConnector]:
    """Yield the connectors in `<networkConnectors>`, as they are written."""
    element.note_rest("networkConnector")
    for child in element.named("networkConnector"):
        uri, name = _uri(child), child.take("name") or "NC"
        included, static, excluded, durable = (tuple(_destinations(child.child(tag))) for tag in _BRIDGED)
        connector = NetworkConnector(name, uri, included, static, excluded, durable, child.rest())
        child.note_rest(*_BRIDGED)
        _report(child, connector)
        yield connector


def _report(element: Element, connector: NetworkConnector) -> None:
    try:
        _, unused = options_of(connector)
    except ConfigurationRefused as wrong:
        raise element.refused(str(wrong)) from None
    for attribute in unused:
        element.note(ImportOutcome.UNKNOWN, "unknown attribute of a network connector", attribute)
    for attribute, why in unsupported_options(connector):
        element.note(ImportOutcome.IGNORED, why, attribute)
    element.note(ImportOutcome.TAKEN, _taken(connector))


def _taken(connector: NetworkConnector) -> str:
    return f"{connector.name} to {connector.uri}"


def find_repeated_bridges(config: BrokerConfig, report: Sequence[ImportFinding]) -> list[ImportFinding]:
    """Return warnings of connectors that forward both virtual topics and their consumer queues."""
    found = {each.why: each for each in report if each.what is ImportOutcome.TAKEN}
    return [
        replace(found[_taken(connector)], what=ImportOutcome.ADAPTED, why=f"{connector.name}: {warning}")
        for connector in config.network_connectors
        if _taken(connector) in found
        for warning in duplicate_warnings(options_of(connector)[0], config.definitions.virtual_destinations)
    ]


def _uri(element: Element) -> str:
    uri = element.need("uri").strip()
    plain = _MARKDOWN_LINK.sub(r"\1", uri)
    if plain != uri:
        element.note(ImportOutcome.ADAPTED, f"the address was a Markdown link and is read as {plain}", "uri")
    return plain


def _destinations(element: Element | None) -> Iterator[Destination]:
    for child in element.children if element is not None else ():
        if child.tag in ("queue", "topic"):
            yield from read_destination(child)
        else:
            child.note(ImportOutcome.UNKNOWN, "unknown element: only queue and topic are supported")


# -- writing


def write_transport_connectors(connectors: tuple[TransportConnector, ...]) -> etree._Element:
    """Write `<transportConnectors>`."""
    element = etree.Element("transportConnectors")
    for each in connectors:
        etree.SubElement(element, "transportConnector", {"name": each.name, "uri": each.uri, **dict(each.attributes)})
    return element


def write_network_connectors(connectors: tuple[NetworkConnector, ...]) -> etree._Element:
    """Write `<networkConnectors>`."""
    element = etree.Element("networkConnectors")
    for each in connectors:
        connector = etree.SubElement(
            element, "networkConnector", {"name": each.name, "uri": each.uri, **dict(each.options)}
        )
        for tag, field in _BRIDGED.items():
            if destinations := getattr(each, field):
                group = etree.SubElement(connector, tag)
                for destination in destinations:
                    name = write_destination(destination).partition("://")[2]
                    etree.SubElement(group, destination.kind.value, physicalName=name)
    return element
