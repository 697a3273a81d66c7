"""Build a message with typed properties from what an operator wrote. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from brokerapp.engine.editing.message_properties import STANDARD, check_name, check_text
from brokerapp.engine.editing.operator_message import OperatorMessage
from brokerapp.engine.scheduling.delivery_schedule import HEADERS, JMS_TYPES
from brokerapp.errors import RequestRefused
from brokerapp.model.jms.form import JmsForm, JmsKind
from brokerapp.model.jms.properties import CLASH_PREFIX, PropertyType
from brokerapp.model.jms.typed_text import normal_text, type_named
from brokerapp.model.message import DEFAULT_PRIORITY

#: Wrong properties that one error names.
MAX_ERRORS = 10
#: Kinds that operators write; others keep the body that they have.
WRITTEN_KINDS = (JmsKind.TEXT, JmsKind.BYTES, JmsKind.MAP)


def typed_headers(
    rows: Iterable[tuple[str, str, str]], clashing: Collection[str] = ()
) -> tuple[dict[str, str], dict[str, PropertyType]]:
    """Return header lines for properties, and the types of those that are not strings.

    Raises RequestRefused, which names what is wrong with each property.

    `rows`: name, name of the type, and value as text. `clashing`: names of properties that are names of headers, too.
    """
    headers: dict[str, str] = {}
    types: dict[str, PropertyType] = {}
    errors: list[str] = []
    for name, type_name, text in rows:
        header = CLASH_PREFIX + name if name in clashing else name
        try:
            if header in headers:
                raise RequestRefused(f"property {name!r} is given twice")
            type, headers[header] = _typed_value(name, header, type_name, text)
        except RequestRefused as error:
            errors.append(str(error))
            continue
        if type is not None:
            types[name] = type
    if errors:
        more = f"; {len(errors) - MAX_ERRORS} more" if len(errors) > MAX_ERRORS else ""
        raise RequestRefused("; ".join(errors[:MAX_ERRORS]) + more)
    return headers, types


def _typed_value(name: str, header: str, type_name: str, text: str) -> tuple[PropertyType | None, str]:
    """Return the type of a property, None for a string, and its value. Raises RequestRefused."""
    if not name:
        raise RequestRefused(f"a property with the value {text[:40]!r} has no name")
    if name.startswith(CLASH_PREFIX):
        raise RequestRefused(f"property {name!r}: names that begin with {CLASH_PREFIX!r} are reserved for the broker")
    if header in STANDARD or header in HEADERS:
        raise RequestRefused(f"property {name!r} is a header; use its own field")
    check_name(header)
    what = f"property {name!r}"
    check_text(f"the value of {name!r}", text)
    try:
        type = type_named(type_name)
    except RequestRefused as error:
        raise RequestRefused(f"{what}: {error}") from None
    return type, normal_text(what, type, text)


def typed_message(
    destination: str,
    *,
    kind: JmsKind = JmsKind.TEXT,
    body: bytes = b"",
    properties: Mapping[str, str],
    types: Mapping[str, PropertyType],
    persistent: bool = True,
    priority: int = DEFAULT_PRIORITY,
    expires: int = 0,
    has_body: bool = True,
    is_jms: bool = False,
) -> OperatorMessage:
    """Return the message of an operator that JMS clients get as this kind, with properties of these types.

    A text or bytes message with strings only is stored as that of a STOMP client, which says as much, unless it
    `is_jms`: it replaces the message of a JMS client. Raises RequestRefused for a text that is not UTF-8.
    """
    if kind is JmsKind.TEXT:
        _check_utf8(body)
    if not (is_jms or types or kind not in (JmsKind.TEXT, JmsKind.BYTES)):
        return OperatorMessage(destination, properties, body, persistent, priority, expires, kind is JmsKind.BYTES)
    delays = {name: type for name, type in JMS_TYPES.items() if name in properties}
    form = JmsForm(kind, {**types, **delays}, has_body)
    return OperatorMessage(destination, properties, body, persistent, priority, expires, jms_form=form.header_value())


def _check_utf8(body: bytes) -> None:
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise RequestRefused(
            f"body: byte {error.start} is not valid UTF-8, which the body of a text message must be; send it as bytes"
        ) from None
