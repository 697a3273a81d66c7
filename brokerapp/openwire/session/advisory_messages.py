"""Make of an advisory what an OpenWire consumer gets: a message without a body that holds a command. Pure.

The broker writes an advisory as ActiveMQ has it in JSON (brokerapp/core/advisories/documents.py), wherever it comes
from: this node, another one, a bridge. The command is derived from that document: a field of the command is the member
of that name, as Java writes it.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from brokerapp.errors import OpenWireError
from brokerapp.model.jms.form import JmsForm, JmsKind
from brokerapp.model.jms.properties import PropertyType
from brokerapp.model.jms.transformations import ADVISORY_JSON, ERROR_HEADER, HEADER, MAX_READ_BYTES
from brokerapp.model.message import Message
from brokerapp.openwire import commands
from brokerapp.openwire.commands import DataStructure, MessageCommand, MessageId, OpenWireDestination
from brokerapp.openwire.commands import data_types as t
from brokerapp.openwire.commands.wire_fields import METADATA_KEY, Kind, WireField
from brokerapp.openwire.encoding.table import CLASSES
from brokerapp.openwire.map_documents import map_values
from brokerapp.openwire.marshalled_values import encode_map

#: Properties of advisories that are no texts.
_TYPES = {
    "consumerCount": PropertyType.INT,
    "producerCount": PropertyType.INT,
    "discardedCount": PropertyType.INT,
    "started": PropertyType.BOOLEAN,
    "createdByDuplex": PropertyType.BOOLEAN,
}
#: What an advisory is for JMS clients.
ADVISORY_FORM = JmsForm(JmsKind.PLAIN, _TYPES, has_body=False)

_DESTINATIONS = {
    "ActiveMQQueue": t.QUEUE,
    "ActiveMQTopic": t.TOPIC,
    "ActiveMQTempQueue": t.TEMP_QUEUE,
    "ActiveMQTempTopic": t.TEMP_TOPIC,
}
_MESSAGES = {
    "ActiveMQMessage": t.MESSAGE,
    "ActiveMQTextMessage": t.TEXT_MESSAGE,
    "ActiveMQBytesMessage": t.BYTES_MESSAGE,
    "ActiveMQMapMessage": t.MAP_MESSAGE,
    "ActiveMQStreamMessage": t.STREAM_MESSAGE,
    "ActiveMQObjectMessage": t.OBJECT_MESSAGE,
    "ActiveMQBlobMessage": t.BLOB_MESSAGE,
}
#: The commands that advisories are about, beside messages.
_COMMANDS = (
    "BrokerInfo", "ConnectionInfo", "ConsumerInfo", "DestinationInfo", "ProducerInfo", "RemoveInfo",
    "RemoveSubscriptionInfo",
)  # fmt: skip
#: Fields whose members are not called as Java calls other fields of such a name.
_NAMES = {"broker_url": "brokerURL", "group_id": "groupID"}
#: Characters of a text that always fit: each takes at most three bytes of 65535.
MAX_TEXT = 0xFFFF // 3
#: Bits of whole numbers, by their kind.
_BITS = {Kind.BYTE: 8, Kind.INT: 32, Kind.LONG: 64}


#: What a document that does not have the expected form raises.
MALFORMED = (AttributeError, KeyError, IndexError, TypeError, ValueError, RecursionError)
_MARK = f"\n{HEADER}:{ADVISORY_JSON}\n".encode()


@dataclass(frozen=True, slots=True)
class Advisory:
    """What an advisory is about: a command, or nothing in particular."""

    data: DataStructure | None


def advisory_of(message: Message) -> Advisory | None:
    """Return what an advisory is about; None where the message is no advisory."""
    if _MARK not in message.head or ERROR_HEADER in message.headers or len(message.body) > MAX_READ_BYTES:
        return None
    try:
        document = json.loads(message.body)
        [(name, members)] = document.items()
        if name in _MESSAGES:
            return Advisory(_message(_MESSAGES[name], members))
        return Advisory(_command(getattr(commands, name), members) if name in _COMMANDS else None)
    except (*MALFORMED, OpenWireError):  # a client can send what says that it is an advisory
        return None


def _message(data_type: int, members: Mapping[str, Any]) -> MessageCommand:
    message: MessageCommand = _command(MessageCommand, members)
    message.data_type = data_type
    if "properties" in members:
        message.marshalled_properties = encode_map(map_values(("map", members["properties"])))
    return message


def _command(cls: type, members: Mapping[str, Any]) -> Any:
    if cls is MessageId:
        return MessageId.parse(str(members["textView"]))
    found = {field: _value(wire, members[member]) for field, member, wire in _layout(cls) if member in members}
    return cls(**found)


@cache
def _layout(cls: type) -> list[tuple[str, str, WireField]]:
    """Return of each field of a command its name, that of the member of a document, and how it is encoded."""
    described = [(each.name, each.metadata.get(METADATA_KEY)) for each in fields(cls)]
    return [(name, _NAMES.get(name) or _in_java(name), wire) for name, wire in described if wire is not None]


def _in_java(name: str) -> str:
    return re.sub("_(.)", lambda match: match[1].upper(), name)


def _value(wire: WireField, member: Any) -> Any:
    return _VALUES[wire.kind](wire, member)


def _whole(wire: WireField, member: Any) -> int:
    number, most = int(member), 1 << _BITS[wire.kind] - 1
    return max(-most, min(number, most - 1))


def _text(_wire: WireField, member: Any) -> str | None:
    text = None if member is None else str(member)
    if text is not None and len(text) > MAX_TEXT:
        raise ValueError(f"a text of {len(text)} characters")
    return text


def _nested(wire: WireField, member: Mapping[str, Any]) -> Any:
    if wire.nested_types == t.DESTINATIONS:
        return OpenWireDestination(_DESTINATIONS[member["@class"]], str(member["string"]))
    if len(wire.nested_types) == 1:
        return _command(CLASSES[wire.nested_types[0]], member)
    [cls] = [CLASSES[each] for each in wire.nested_types if CLASSES[each].__name__ == member["@class"]]
    return _command(cls, member)


def _array(wire: WireField, member: Mapping[str, Any]) -> tuple[Any, ...]:
    [listed] = member.values()
    return tuple(_nested(wire, each) for each in listed)


_VALUES: dict[Kind, Callable[[WireField, Any], Any]] = {
    Kind.BOOLEAN: lambda _wire, member: bool(member),
    **dict.fromkeys(_BITS, _whole),
    Kind.STRING: _text,
    Kind.BYTES: lambda _wire, member: base64.b64decode(member["data"][0]),
    Kind.NESTED: _nested,
    Kind.CACHED: _nested,
    Kind.ARRAY: _array,
}
