"""A configuration -> an activemq.xml that ActiveMQ Classic starts with, and that is read back unchanged."""

from __future__ import annotations

from lxml import etree

from brokerapp.config.attributes import written_fields
from brokerapp.config.broker_config import BrokerConfig, NetworkConnector, SystemUsage, TransportConnector
from brokerapp.config.cluster import write_cluster
from brokerapp.config.connectors import write_network_connectors, write_transport_connectors
from brokerapp.config.document import BEANS, CORE
from brokerapp.config.plugins import write_plugins
from brokerapp.config.policies import write_policies
from brokerapp.config.system_usage import write_system_usage
from brokerapp.config.virtual_destinations import write_destinations, write_interceptors
from brokerapp.definitions import Definitions, MirroredQueue, Redelivery
from brokerapp.errors import DefinitionRefused

#: Attributes of the broker that are written; those about virtual topics and mirrored queues say what the section says.
WRITTEN_FLAGS = (
    "persistent", "scheduler_support", "advisory_support", "use_virtual_dest_subs", "use_virtual_dest_subs_on_creation",
    "network_connector_start_async", "reject_durable_consumers", "keep_durable_subs_active",
    "delete_all_messages_on_startup",
)  # fmt: skip
#: And those that are numbers.
WRITTEN_NUMBERS = (
    "max_scheduler_repeat_allowed",
    "schedule_period_for_destination_purge", "max_uncommitted_count", "max_purged_destinations_per_sweep",
    "offline_durable_subscriber_timeout", "offline_durable_subscriber_task_schedule",
    "auto_destroy_after", "reconnect_window",
)  # fmt: skip

_XSI = "http://www.w3.org/2001/XMLSchema-instance"
_SCHEMAS = f"{BEANS} {BEANS}/spring-beans.xsd {CORE} {CORE}/activemq-core.xsd"


def export_xml(
    definitions: Definitions, broker_name: str = "localhost", connectors: tuple[TransportConnector, ...] = (),
    network_connectors: tuple[NetworkConnector, ...] = (),
) -> str:  # fmt: skip
    """A whole activemq.xml with these definitions; see export_config."""
    return export_config(BrokerConfig(broker_name, connectors, definitions, network_connectors=network_connectors))


def export_config(config: BrokerConfig) -> str:
    """A whole activemq.xml that says the same. The built-in virtual topic is written like any other.

    Raises DefinitionRefused for what the format cannot say: two definitions of one name, control characters.
    """
    _refuse_repeated_names(config.definitions)
    try:
        broker = _written(config)
    except (ValueError, etree.XMLSyntaxError) as wrong:
        raise DefinitionRefused(f"XML cannot hold this: {wrong}") from wrong
    beans = etree.Element("beans", {f"{{{_XSI}}}schemaLocation": _SCHEMAS}, nsmap={"xsi": _XSI})
    beans.set("xmlns", BEANS)
    beans.append(broker)
    etree.indent(beans, "  ")
    return etree.tostring(beans, encoding="unicode", xml_declaration=False) + "\n"


def _written(config: BrokerConfig) -> etree._Element:
    definitions = config.definitions
    said = written_fields(config, (*WRITTEN_FLAGS, *WRITTEN_NUMBERS))
    broker = etree.Element("broker", {"brokerName": config.name, **said}, xmlns=CORE)
    if any(isinstance(each, MirroredQueue) and not each.temporary for each in definitions.virtual_destinations):
        broker.set("useTempMirroredQueues", "false")
    if config.cluster is not None:
        write_cluster(broker, config.cluster)
    broker.append(write_interceptors(definitions.virtual_destinations))
    if definitions.policies:
        broker.append(write_policies(definitions.policies))
    if config.destinations:
        broker.append(write_destinations(config.destinations))
    if config.network_connectors:
        broker.append(write_network_connectors(config.network_connectors))
    plugins = write_plugins(config)
    if len(plugins):
        broker.append(plugins)
    if definitions.redelivery != Redelivery():
        broker.set("schedulerSupport", "true")  # ActiveMQ's plugin needs it
    if config.system_usage != SystemUsage():
        broker.append(write_system_usage(config.system_usage))
    if config.connectors:
        broker.append(write_transport_connectors(config.connectors))
    return broker


def _refuse_repeated_names(definitions: Definitions) -> None:
    """ActiveMQ's files take a definition's name for the name of the element, which is unique."""
    seen = {}
    for each in definitions.virtual_destinations:
        if isinstance(each, MirroredQueue):
            continue
        name = getattr(each, "name", None) or each.destination.name
        if name in seen:
            both = f"both the {seen[name]} and the {each.called}"
            raise DefinitionRefused(f"an activemq.xml cannot hold {both}: they have one name")
        seen[name] = each.called
