"""Reads an activemq.xml to a BrokerConfig, with a report of what was imported, what was not, and why.

Whole files, a `<broker>` alone, or a fragment of one (`<destinationInterceptors>`, `<plugins>`, `<compositeQueue>`) are
read. What ActiveMQ refuses in definitions is refused here; what is not known of the broker itself is only reported.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from brokerapp.config.elements.broker_attributes import READ
from brokerapp.config.elements.cluster import read_cluster
from brokerapp.config.elements.connectors import (
    find_repeated_bridges,
    read_network_connectors,
    read_transport_connectors,
)
from brokerapp.config.elements.plugins import read_plugins
from brokerapp.config.elements.policies import read_policies
from brokerapp.config.elements.system_usage import read_system_usage
from brokerapp.config.elements.tls import read_ssl_context, resolve_store_paths
from brokerapp.config.elements.virtual_destinations import (
    ELEMENTS,
    read_destination,
    read_interceptors,
    read_virtual_destination,
)
from brokerapp.config.parsing.attributes import attribute_name, read_fields
from brokerapp.config.parsing.beans import broker_of, properties_of
from brokerapp.config.parsing.broker_config import Authentication, BrokerConfig, ImportFinding, ImportOutcome
from brokerapp.config.parsing.document import CORE, OLD_CORE, Element, read_document
from brokerapp.config.parsing.load_context import LoadContext
from brokerapp.config.parsing.unsupported import IGNORED_ATTRIBUTES, IGNORED_ELEMENTS
from brokerapp.engine.routing.cycle_detection import find_cycle
from brokerapp.errors import ConfigurationRefused
from brokerapp.model.definitions import DEFAULT_VIRTUAL_TOPIC, Definitions, MirroredQueue, VirtualDestination
from brokerapp.model.destination import Destination
from brokerapp.system.secret_variables import with_secrets

#: Attribute and element that name a class which decides who may read a message.
_MESSAGE_POLICY = "messageAuthorizationPolicy"


def read_config(path: str | Path, properties: Mapping[str, str] | None = None) -> BrokerConfig:
    """Read a configuration file and return the broker that it describes.

    Placeholders get their values from the property files it names, from `properties`, from environment variables and
    files of secrets, and those of ActiveMQ's folders from where it lies. Raises ConfigurationRefused, which names the
    line and the rule.
    """
    path = Path(path)
    try:
        text = path.read_bytes()
    except OSError as wrong:
        raise ConfigurationRefused(f"cannot read {path}: {wrong.strerror}") from wrong
    folder = path.resolve().parent
    values = {**_folders(folder), **with_secrets(os.environ), **(properties or {})}
    try:
        config = _parse(text, LoadContext(values, folder, importing=(path.resolve(),)))
        return replace(config, tls=resolve_store_paths(config.tls, folder))
    except ConfigurationRefused as wrong:
        raise ConfigurationRefused(f"{path}: {wrong}") from wrong


#: Placeholders for folders, which have a value wherever a broker starts from a file.
FOLDERS = ("activemq.conf", "activemq.base", "activemq.home", "activemq.data")


def _folders(conf: Path) -> dict[str, str]:
    """Return the folders that ActiveMQ's start script sets by default."""
    base = conf.parent if conf.name == "conf" else conf
    return {"activemq.conf": str(conf), "activemq.base": str(base), "activemq.home": str(base)}


#: Why an import does not take what a broker starts with.
_NOT_DEFINED = (
    "not imported: an import reads virtual destinations, policies and redelivery policies; "
    "a broker started with the file uses it"
)
#: Where what an import leaves aside is made beside a file.
_MADE_ELSEWHERE = {"networkConnector": "; to create one, use Topology, New connector"}


def import_definitions(
    text: str | bytes, properties: Mapping[str, str] | None = None, *, adds: bool = False
) -> tuple[Definitions, tuple[ImportFinding, ...]]:
    """Return the definitions in the text of an activemq.xml, or of a fragment of one, and the import report.

    They shall stand alone, with the virtual topic that ActiveMQ has built in where the text has no section of its own,
    or, if it `adds`, beside others: then just what the text says. Placeholders for folders have a value wherever a
    broker starts from the file: here they stay as they are.
    """
    folders = {name: f"${{{name}}}" for name in FOLDERS}
    config = _parse(text, LoadContext(folders | dict(properties or {}), adds=adds))
    return config.definitions, tuple(map(_as_imported, config.report))


def _as_imported(finding: ImportFinding) -> ImportFinding:
    """Return the finding as it applies where only definitions are taken."""
    counts_at_start = finding.what in (ImportOutcome.TAKEN, ImportOutcome.ADAPTED) or finding.locks_out
    if finding.defines or not counts_at_start:
        return finding
    return replace(finding, what=ImportOutcome.IGNORED, why=_NOT_DEFINED + _MADE_ELSEWHERE.get(finding.element, ""))


def parse_config(text: str | bytes, properties: Mapping[str, str], folder: Path | None = None) -> BrokerConfig:
    """Return the broker that the text describes. Files it names are read only with a folder."""
    return _parse(text, LoadContext(properties, folder))


def _parse(text: str | bytes, load_context: LoadContext) -> BrokerConfig:
    report: list[ImportFinding] = []
    brought = properties_of(read_document(text, load_context, []))
    root = read_document(text, replace(load_context, properties={**load_context.properties, **brought}), report)
    match root.tag:
        case "beans":
            config = _read_broker(broker_of(root))
        case "broker":
            config = _read_broker(root)
        case tag if tag in ELEMENTS:
            config = _with_definitions(_with_built_in(BrokerConfig(), root), root, read_virtual_destination(root))
        case tag if tag in _PARTS:
            config = _read_parts(_with_built_in(BrokerConfig(), root), [root])
        case _:
            raise root.refused("unknown root element: not part of a broker configuration")
    report += find_repeated_bridges(config, report)
    return replace(config, report=tuple(sorted(report, key=lambda finding: (finding.file, finding.line))))


def _read_broker(broker: Element) -> BrokerConfig:
    if broker.namespace == OLD_CORE:
        broker.note(ImportOutcome.ADAPTED, f"the old namespace {OLD_CORE} is read as {CORE}", "xmlns")
    values = read_fields(broker, BrokerConfig, READ)
    name = broker.take("brokerName")
    if other := broker.take("name"):
        broker.note(
            ImportOutcome.ADAPTED, "read as brokerName" if name is None else "ignored because brokerName is set", "name"
        )
        name = name or other
    for field, value in values.items():
        broker.note(ImportOutcome.TAKEN, str(value).lower(), attribute_name(field))
    values["cluster"] = read_cluster(broker, name)
    by_reference = broker.take("plugins")
    if by_reference is not None:
        broker.note_locked_out("no client can connect", f"references are not supported ({by_reference})", "plugins")
        values["authentication"] = Authentication()
    if (policy := broker.take(_MESSAGE_POLICY)) is not None:
        broker.note_locked_out("no user is authorized", f"references are not supported ({policy})", _MESSAGE_POLICY)
        values["authorization"] = ()
    for attribute, value in broker.rest():
        why = IGNORED_ATTRIBUTES.get(attribute)
        broker.note(
            ImportOutcome.IGNORED if why else ImportOutcome.UNKNOWN,
            why or f"unknown attribute (value {value:.80})",
            attribute,
        )
    config = BrokerConfig(name=name or BrokerConfig().name, **values)
    return _with_temporary_mirrors(_read_parts(_with_built_in(config, broker), broker.children))


def _with_built_in(config: BrokerConfig, root: Element) -> BrokerConfig:
    """Return the configuration with ActiveMQ's built-in virtual destinations, before its parts are read."""
    found = tuple(_built_in(config, root.load_context.adds))
    return replace(config, definitions=Definitions(virtual_destinations=found))


def _built_in(config: BrokerConfig, adds: bool) -> Iterator[VirtualDestination]:
    """Yield the definitions that ActiveMQ declares when there is no section of virtual destinations."""
    if config.use_virtual_topics and not adds:
        yield DEFAULT_VIRTUAL_TOPIC
    if config.use_mirrored_queues:
        yield MirroredQueue()


def _with_temporary_mirrors(config: BrokerConfig) -> BrokerConfig:
    """Apply the broker's attribute for mirrors of temporary queues to the definitions."""
    if config.use_temp_mirrored_queues:
        return config
    found = tuple(
        replace(each, temporary=False) if isinstance(each, MirroredQueue) else each
        for each in config.definitions.virtual_destinations
    )
    return replace(config, definitions=replace(config.definitions, virtual_destinations=found))


# -- the parts of a broker


def _read_parts(config: BrokerConfig, parts: list[Element]) -> BrokerConfig:
    _refuse_repeated_names(parts)
    seen: dict[str, int] = {}
    for part in parts:
        if part.tag in IGNORED_ELEMENTS:
            part.note(ImportOutcome.IGNORED, IGNORED_ELEMENTS[part.tag])
        elif part.tag not in _PARTS:
            part.note(ImportOutcome.UNKNOWN, "unknown element")
        elif part.tag in seen:
            raise part.refused(f"duplicate element: the first is in line {seen[part.tag]}")
        else:
            config = _PARTS[part.tag](config, part)
            seen[part.tag] = part.line
    return config


def _refuse_repeated_names(parts: list[Element]) -> None:
    """Refuse repeated names of definitions and connectors, as ActiveMQ does."""
    lines: dict[str, int] = {}
    for element in (each for part in parts for each in part.descendants() if each.tag in _NAMED):
        if (name := element.get("name")) is not None:
            if name in lines:
                raise element.refused(f"duplicate name {name!r}: the first is in line {lines[name]}")
            lines[name] = element.line


def _interceptors(config: BrokerConfig, element: Element) -> BrokerConfig:
    return _with_definitions(config, element, read_interceptors(element))


def _with_definitions(config: BrokerConfig, element: Element, found: tuple[VirtualDestination, ...]) -> BrokerConfig:
    """Return the configuration with these virtual destinations in place of the built-in ones."""
    definitions = replace(config.definitions, virtual_destinations=found)
    times = Counter(each.id for each in found)
    if repeated := next((each for each in found if times[each.id] > 1), None):
        raise element.refused(f"the {repeated.called} is defined twice")
    if loop := find_cycle(definitions):
        raise element.refused(f"definitions form a loop: {' -> '.join(map(str, loop))}")
    for each in config.definitions.virtual_destinations:
        if each not in found:
            why = f"replaces the built-in {each.called}"
            element.note(ImportOutcome.ADAPTED, why)
    return replace(config, definitions=definitions)


def _policies(config: BrokerConfig, element: Element) -> BrokerConfig:
    return replace(config, definitions=replace(config.definitions, policies=read_policies(element)))


def _destinations(config: BrokerConfig, element: Element) -> BrokerConfig:
    found: list[Destination] = []
    for child in element.children:
        if child.tag in ("queue", "topic"):
            found += read_destination(child)
            child.note(ImportOutcome.TAKEN, str(found[-1]))
        else:
            child.note(ImportOutcome.UNKNOWN, "unknown element: only queue and topic are supported")
    return replace(config, destinations=tuple(found))


def _transport_connectors(config: BrokerConfig, element: Element) -> BrokerConfig:
    return replace(config, connectors=tuple(read_transport_connectors(element)))


def _network_connectors(config: BrokerConfig, element: Element) -> BrokerConfig:
    return replace(config, network_connectors=tuple(read_network_connectors(element)))


def _ssl_context(config: BrokerConfig, element: Element) -> BrokerConfig:
    return replace(config, tls=read_ssl_context(element))


def _message_policy(config: BrokerConfig, element: Element) -> BrokerConfig:
    """Deny all access where a class decides who may read which message: such a class cannot be used here."""
    element.note_locked_out("no user is authorized", "Java classes are not supported")
    return replace(config, authorization=())


def _plugins(config: BrokerConfig, element: Element) -> BrokerConfig:
    found = read_plugins(element)
    return replace(
        config,
        authentication=found.authentication or config.authentication,
        authorization=found.authorization if config.authorization is None else config.authorization,
        plugins=tuple(found.others),
        definitions=replace(config.definitions, redelivery=found.redelivery),
        discarding=found.discarding,
        selector_cache=found.selector_cache,
        time_stamping=found.time_stamping,
        force_persistency=found.force_persistency,
        path_separator=found.path_separator,
    )


def _persistence(config: BrokerConfig, element: Element) -> BrokerConfig:
    """Read where ActiveMQ stores messages; only memoryPersistenceAdapter has an effect."""
    if next(element.named("memoryPersistenceAdapter"), None) is None:
        element.note(ImportOutcome.IGNORED, "messages are always kept in the broker's store")
        return config
    element.note(ImportOutcome.ADAPTED, 'read as persistent="false"')
    return replace(config, persistent=False)


def _system_usage(config: BrokerConfig, element: Element) -> BrokerConfig:
    return replace(config, system_usage=read_system_usage(element))


#: Elements whose names are unique in a file.
_NAMED = frozenset({*ELEMENTS, "transportConnector", "networkConnector"})

#: Part of a broker -> what puts it into the configuration.
_PARTS: dict[str, Callable[[BrokerConfig, Element], BrokerConfig]] = {
    "destinationInterceptors": _interceptors,
    "destinationPolicy": _policies,
    "destinations": _destinations,
    "transportConnectors": _transport_connectors,
    "networkConnectors": _network_connectors,
    "plugins": _plugins,
    _MESSAGE_POLICY: _message_policy,
    "sslContext": _ssl_context,
    "systemUsage": _system_usage,
    "persistenceAdapter": _persistence,
}
