"""Show messages of JMS clients to STOMP clients, by ActiveMQ's rules. Pure.

What only JMS clients see is left out, and properties get their own names back. A text is a text, and bytes have a
content-length; maps, streams and objects have an empty body, unless the client asks for maps in JSON or XML.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from brokerapp.errors import OpenWireError
from brokerapp.model.jms.form import JMS_HEADER, TRANSACTION_HEADER, JmsForm, JmsKind, jms_form_of
from brokerapp.model.jms.properties import CLASH_PREFIX, PropertyType, property_name, property_value
from brokerapp.model.jms.transformations import HEADER, MAP_JSON, write_document
from brokerapp.model.message import Message, escape, unescape
from brokerapp.openwire.map_documents import map_document
from brokerapp.openwire.marshalled_values import decode_map

#: Lines of a head that only JMS clients see: their messages have groups as fields, not as properties.
_HIDDEN = frozenset(
    name.encode() for name in (JMS_HEADER, TRANSACTION_HEADER, "JMSXGroupID", "JMSXGroupSeq", "content-length")
)
#: Properties of these names would be taken for what a frame says of itself.
_OF_FRAMES = frozenset(
    {"content-length", "message-id", "destination", "subscription", "ack", "receipt", "redelivered", JMS_HEADER}
)
_PREFIX = CLASH_PREFIX.encode()
_LENGTH = b"content-length:%d\n"
#: Types of properties whose stored text is not what Java writes.
_RENDERED = frozenset({PropertyType.OTHER})


def stomp_view(message: Message, transformation: str | None) -> Message:
    """Return a message of a JMS client as a STOMP client gets it that asks for this transformation, if for any."""
    form = jms_form_of(message)
    if form is None:
        return message
    lines = [line for line in message.head.split(b"\n") if line.partition(b":")[0] not in _HIDDEN]
    if message.head.find(_PREFIX) >= 0:
        lines = _with_own_names(lines)
    if not _RENDERED.isdisjoint(form.types.values()):
        lines = [_rendered(line, form) for line in lines]
    head, body = b"\n".join(lines), b""  # the last line is empty
    if form.kind is JmsKind.BYTES:
        return replace(message, head=head + _LENGTH % len(message.body), _headers=None)
    if form.kind is JmsKind.TEXT:
        body = message.body
    if transformation is not None:
        named, text = _transformed(message, form, transformation)
        head += f"{HEADER}:{escape(named)}\n".encode()
        body = body or text
    if body.find(b"\0") >= 0:  # it would end the frame
        head += _LENGTH % len(body)
    return replace(message, head=head, body=body, _headers=None)


def counted(message: Message) -> Message:
    """Return a message of a JMS client as a bridge gets it: as it is stored, with the length of its body."""
    if message.head.find(b"\ncontent-length:") >= 0:
        return message
    return replace(message, head=message.head + _LENGTH % len(message.body), _headers=None)


def plain_form(headers: Mapping[str, str], body: bytes) -> tuple[dict[str, str], bytes]:
    """Return headers and body of a message for a broker that does not know the form of JMS messages.

    A map is sent as JSON, which an ActiveMQ reads. Groups are the broker's to keep.
    """
    if JMS_HEADER not in headers:
        return dict(headers), body
    names = [*(name for name in headers if name != JMS_HEADER), JMS_HEADER]
    head = "".join(f"{escape(name)}:{escape(headers[name])}\n" for name in names)
    is_map = JmsForm.parse(headers[JMS_HEADER]).kind is JmsKind.MAP
    shown = stomp_view(Message("", f"\n{head}".encode(), body), MAP_JSON if is_map else None)
    groups = {name: headers[name] for name in ("JMSXGroupID", "JMSXGroupSeq") if name in headers}
    return {**shown.headers, **groups}, shown.body


def _transformed(message: Message, form: JmsForm, transformation: str) -> tuple[str, bytes]:
    """Return the transformation that a frame names, and the body of a map in it.

    An object is not read: its body stays empty.
    """
    if form.kind is JmsKind.OBJECT:
        syntax = transformation.removeprefix("jms-")
        return (f"jms-object-{syntax}" if syntax in ("json", "xml") else transformation), b""
    if form.kind is not JmsKind.MAP:
        return transformation, b""
    try:
        written = write_document(transformation, "map", map_document(decode_map(message.body) if message.body else {}))
    except (ValueError, OpenWireError):  # a name that XML cannot hold, or a body that its client made wrong
        written = None
    return (written[0], written[1].encode()) if written is not None else (transformation, b"")


def _with_own_names(lines: list[bytes]) -> list[bytes]:
    """Give properties their own names back, where no header has it."""
    names = {line.partition(b":")[0] for line in lines}
    shown = []
    for line in lines:
        if line.startswith(_PREFIX):
            own = line[len(_PREFIX) :]
            name = own.partition(b":")[0]
            if name in names or name.decode() in _OF_FRAMES:
                continue
            line = own
        shown.append(line)
    return shown


def _rendered(line: bytes, form: JmsForm) -> bytes:
    """Return the header line of a property that is a map or list with what Java writes for it."""
    header, _, text = line.decode().partition(":")
    name = property_name(unescape(header))
    if name is None or form.types.get(name) not in _RENDERED:
        return line
    stored = property_value(PropertyType.OTHER, unescape(text))
    try:
        values = decode_map(stored) if isinstance(stored, bytes) else {"": text}
    except OpenWireError:
        return line
    return f"{header}:{escape(''.join(map(_java_text, values.values())))}".encode()


def _java_text(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}={_java_text(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_java_text, value))}]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)
