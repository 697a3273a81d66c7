"""Writes a configuration as an activemq.xml that ActiveMQ Classic accepts and that is read back unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lxml import etree

from brokerapp.config.elements.broker_attributes import WRITTEN
from brokerapp.config.elements.cluster import write_cluster
from brokerapp.config.elements.connectors import write_network_connectors, write_transport_connectors
from brokerapp.config.elements.plugins import write_plugins
from brokerapp.config.elements.policies import write_policies
from brokerapp.config.elements.system_usage import write_system_usage
from brokerapp.config.elements.tls import write_ssl_context
from brokerapp.config.elements.virtual_destinations import write_destinations, write_interceptors
from brokerapp.config.parsing.attributes import write_fields
from brokerapp.config.parsing.broker_config import BrokerConfig, TransportConnector
from brokerapp.config.parsing.document import BEANS, CORE
from brokerapp.errors import DefinitionRefused
from brokerapp.model.definitions import Definitions, MirroredQueue, RedeliverySettings, VirtualTopic
from brokerapp.network.options.definition import NetworkConnector

#: Field of a BrokerConfig -> what writes it as a part of `<broker>`, unless it has its default.
_PARTS: dict[str, Callable[[Any], etree._Element]] = {
    "destinations": write_destinations,
    "network_connectors": write_network_connectors,
    "tls": write_ssl_context,
    "system_usage": write_system_usage,
    "connectors": write_transport_connectors,
}
_DEFAULT = BrokerConfig()
_XSI = "http://www.w3.org/2001/XMLSchema-instance"
_SCHEMAS = f"{BEANS} {BEANS}/spring-beans.xsd {CORE} {CORE}/activemq-core.xsd"


def export_xml(
    definitions: Definitions, broker_name: str = "localhost", connectors: tuple[TransportConnector, ...] = (),
    network_connectors: tuple[NetworkConnector, ...] = (),
) -> str:  # fmt: skip
    """Write an activemq.xml with these definitions; see export_config."""
    return export_config(BrokerConfig(broker_name, connectors, definitions, network_connectors=network_connectors))


def export_config(config: BrokerConfig) -> str:
    """Write an activemq.xml for a configuration. The built-in virtual topic is written like any other.

    Raises DefinitionRefused for what the format cannot say: two definitions of one name, control characters.
    """
    _refuse_repeated_names(config.definitions)
    try:
        broker = _written(config)
    except (ValueError, etree.XMLSyntaxError) as wrong:
        raise DefinitionRefused(f"not valid in XML: {wrong}") from wrong
    beans = etree.Element("beans", {f"{{{_XSI}}}schemaLocation": _SCHEMAS}, nsmap={"xsi": _XSI})
    beans.set("xmlns", BEANS)
    beans.append(broker)
    etree.indent(beans, "  ")
    return str(etree.tostring(beans, encoding="unicode", xml_declaration=False)) + "\n"


def _written(config: BrokerConfig) -> etree._Element:
    definitions = config.definitions
    said = write_fields(config, WRITTEN)
    broker = etree.Element("broker", {"brokerName": config.name, **said}, xmlns=CORE)
    if any(isinstance(each, MirroredQueue) and not each.temporary for each in definitions.virtual_destinations):
        broker.set("useTempMirroredQueues", "false")
    if config.cluster is not None:
        write_cluster(broker, config.cluster)
    broker.append(write_interceptors(definitions.virtual_destinations))
    if definitions.policies:
        broker.append(write_policies(definitions.policies))
    if definitions.redelivery != RedeliverySettings():
        broker.set("schedulerSupport", "true")  # ActiveMQ's plugin needs it
    plugins = write_plugins(config)
    if len(plugins):
        broker.append(plugins)
    for field, write in _PARTS.items():
        if (value := getattr(config, field)) != getattr(_DEFAULT, field):
            broker.append(write(value))
    broker[:] = sorted(broker, key=lambda part: part.tag)
    return broker


def _refuse_repeated_names(definitions: Definitions) -> None:
    """Refuse definitions with the same name: in ActiveMQ's files it names the element and must be unique."""
    seen: dict[str, str] = {}
    for each in definitions.virtual_destinations:
        if isinstance(each, MirroredQueue):
            continue
        name = each.name if isinstance(each, VirtualTopic) else each.destination.name
        if name in seen:
            both = f"both the {seen[name]} and the {each.called}"
            raise DefinitionRefused(f"an activemq.xml cannot contain {both}: they have the same name")
        seen[name] = each.called
