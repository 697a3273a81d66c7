"""Lists the fields of BrokerConfig that are attributes of `<broker>`, for reading and writing."""

from __future__ import annotations

from dataclasses import fields

from brokerapp.config.parsing.attributes import FIELD_TYPES
from brokerapp.config.parsing.broker_config import BrokerConfig

#: Fields that fit into an attribute and are none: the name, which is `brokerName`, and what plugins say.
_SAID_ELSEWHERE = frozenset({"name", "force_persistency", "path_separator"})
#: Attributes that say which virtual destinations are built in: the section that is always written says it in full.
SAID_BY_SECTION = frozenset({"use_virtual_topics", "use_mirrored_queues", "use_temp_mirrored_queues"})

#: Fields that are read from attributes, and those that are written: whatever a BrokerConfig holds that fits into one.
READ = tuple(
    each.name for each in fields(BrokerConfig) if each.type in FIELD_TYPES and each.name not in _SAID_ELSEWHERE
)
WRITTEN = tuple(each for each in READ if each not in SAID_BY_SECTION)
