"""Definitions -> an activemq.xml that ActiveMQ Classic starts with and import_definitions reads back unchanged."""

from __future__ import annotations

from lxml import etree

from brokerapp.config.broker_config import TransportConnector
from brokerapp.config.connectors import write_transport_connectors
from brokerapp.config.document import BEANS, CORE
from brokerapp.config.policies import write_policies
from brokerapp.config.virtual_destinations import write_interceptors
from brokerapp.definitions import Definitions, MirroredQueue
from brokerapp.errors import DefinitionRefused

_XSI = "http://www.w3.org/2001/XMLSchema-instance"
_SCHEMAS = f"{BEANS} {BEANS}/spring-beans.xsd {CORE} {CORE}/activemq-core.xsd"


def export_xml(
    definitions: Definitions, broker_name: str = "localhost", connectors: tuple[TransportConnector, ...] = ()
) -> str:
    """A whole activemq.xml with these definitions. The built-in virtual topic is written like any other.

    Raises DefinitionRefused for what the format cannot say: two definitions of one name, control characters.
    """
    _refuse_repeated_names(definitions)
    try:
        broker = etree.Element("broker", xmlns=CORE, brokerName=broker_name)
        if any(isinstance(each, MirroredQueue) and not each.temporary for each in definitions.virtual_destinations):
            broker.set("useTempMirroredQueues", "false")
        broker.append(write_interceptors(definitions.virtual_destinations))
        if definitions.policies:
            broker.append(write_policies(definitions.policies))
        if connectors:
            broker.append(write_transport_connectors(connectors))
    except (ValueError, etree.XMLSyntaxError) as wrong:
        raise DefinitionRefused(f"XML cannot hold these definitions: {wrong}") from wrong
    beans = etree.Element("beans", {f"{{{_XSI}}}schemaLocation": _SCHEMAS}, nsmap={"xsi": _XSI})
    beans.set("xmlns", BEANS)
    beans.append(broker)
    etree.indent(beans, "  ")
    return etree.tostring(beans, encoding="unicode", xml_declaration=False) + "\n"


def _refuse_repeated_names(definitions: Definitions) -> None:
    """ActiveMQ's files take a definition's name for the name of the element, which is unique."""
    seen = {}
    for each in definitions.virtual_destinations:
        if isinstance(each, MirroredQueue):
            continue
        name = getattr(each, "name", None) or each.destination.name
        if name in seen:
            raise DefinitionRefused(f"an activemq.xml cannot hold both {seen[name]} and {each.id}: they have one name")
        seen[name] = each.id
