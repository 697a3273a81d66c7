"""Reads and writes ActiveMQ's XML configuration: `read_config`, `import_definitions`, `export_config`,
`export_xml`, `default_config`.
"""

from brokerapp.config.parsing.broker_config import (
    Authentication,
    BrokerConfig,
    ConfiguredGrant,
    ImportFinding,
    ImportOutcome,
    Plugin,
    SystemUsage,
    TransportConnector,
    User,
    default_config,
)
from brokerapp.config.reader import import_definitions, read_config
from brokerapp.config.writer import export_config, export_xml

__all__ = [
    "Authentication",
    "BrokerConfig",
    "ConfiguredGrant",
    "ImportFinding",
    "ImportOutcome",
    "Plugin",
    "SystemUsage",
    "TransportConnector",
    "User",
    "default_config",
    "export_config",
    "export_xml",
    "import_definitions",
    "read_config",
]
