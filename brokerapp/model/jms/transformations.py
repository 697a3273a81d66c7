"""Convert messages between the formats that SEND announces and subscriptions request. Pure.

ActiveMQ turns text with the header `transformation` into object and map messages for its Java clients, and back into
text for STOMP's. Here the text stays as it was sent, with the header, and is converted for a SUBSCRIBE that asks for
the other syntax by its own header `transformation`, with ActiveMQ's names. What cannot be read as announced is marked
as ActiveMQ marks it, with `transformation-error`; names that ActiveMQ does not know are no error.

JSON and XML say the same in the way of the library that ActiveMQ uses: `@class` is an attribute, a list repeats its
element, `null` is empty. Unlike there a string stays a string where it looks like a number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from brokerapp.model import JsonObject
from brokerapp.model.message import Message

#: What tells that a message can be had in other forms, and in which one it is; and that it cannot be read so.
HEADER, ERROR_HEADER = "transformation", "transformation-error"
#: Form of an advisory, and of a map of values.
ADVISORY_JSON, MAP_JSON = "jms-advisory-json", "jms-map-json"
#: What ActiveMQ knows as a name, too, though it says nothing of maps and objects: they are written as XML.
BYTES = "jms-byte"
#: Form of a body -> what it is, and the syntax in which.
_FORMS = {
    f"jms-{what}-{syntax}": (what, syntax) for what in ("map", "object", "advisory") for syntax in ("json", "xml")
}
#: What a SUBSCRIBE may ask for without saying what the body is -> the syntax.
_SYNTAXES = {"jms-json": "json", "jms-xml": "xml"}
#: In the head of all messages in one of these forms.
_MARK = f"\n{HEADER}:jms-".encode()
_LENGTH = re.compile(rb"\ncontent-length:\d+\n")
#: Longest body that is read: some tens of milliseconds of work, in which the node does nothing else.
MAX_READ_BYTES = 256 * 1024
#: Deepest element that is written: each line of XML begins with blanks for its depth.
MAX_DEPTH = 50
_INDENT = "  "
#: What a map is called, as Java's classes are.
MAPS = frozenset({"map", "linked-hash-map", "tree-map", "properties", "java.util.HashMap"})
#: What an element can be called, and what none can hold.
_NAME = re.compile(r"[^\W\d][\w.-]*").fullmatch
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]").search
#: Name of an element -> what reads its text; others hold strings.
_VALUES: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("int", "long", "short", "byte"), int),
    **dict.fromkeys(("float", "double"), float),
    "boolean": lambda text: text.strip().lower() == "true",
}

#: The name and the value that a body is about.
Document = tuple[str, Any]


def find_error(transformation: str, body: bytes) -> str | None:
    """Return what is wrong with a body for the transformation that its SEND announces, in one line, or None."""
    if transformation in _SYNTAXES:
        return f"{transformation} is what a SUBSCRIBE asks for: it does not say what the body is"
    if transformation not in _FORMS or len(body) > MAX_READ_BYTES:
        return None
    what, syntax = _FORMS[transformation]
    try:
        name, value = _READ[syntax](body)
        if what == "map":
            _check_map(name, value)
    except (ValueError, RecursionError) as wrong:
        return f"{transformation}: the body cannot be read: {wrong}".partition("\n")[0]
    return None


def as_wanted(message: Message, transformation: str) -> Message:
    """The message in the syntax that is asked for; as it was sent where it is in it, or cannot be read."""
    if _MARK not in message.head:
        return message
    form = message.headers.get(HEADER, "")
    wanted = _SYNTAXES.get(transformation) or _FORMS.get(transformation, ("", ""))[1]
    if form not in _FORMS or not wanted or ERROR_HEADER in message.headers or len(message.body) > MAX_READ_BYTES:
        return message
    what, syntax = _FORMS[form]
    if syntax == wanted:
        return message
    try:
        body = _WRITTEN[wanted](*_READ[syntax](message.body)).encode()
    except (ValueError, RecursionError):  # clients may send anything
        return message
    named = transformation if transformation in _FORMS else f"jms-{what}-{wanted}"
    head = message.head.replace(f"\n{HEADER}:{form}\n".encode(), f"\n{HEADER}:{named}\n".encode())
    head = _LENGTH.sub(b"\ncontent-length:%d\n" % len(body), head)
    return replace(message, head=head, body=body, _headers=None)


def read_document(transformation: str, body: bytes) -> Document | None:
    """Return what a body says that is announced as a map; None where it is announced as something else, or too long.

    Raises ValueError where it cannot be read as announced.
    """
    what, syntax = _FORMS.get(transformation, ("", ""))
    if what != "map" or len(body) > MAX_READ_BYTES:
        return None
    try:
        return _READ[syntax](body)
    except RecursionError:
        raise ValueError("elements are nested too deep") from None


def write_document(transformation: str, what: str, document: Document) -> tuple[str, str] | None:
    """Return the form of a document, and the document in it, for a SUBSCRIBE that asks for a transformation.

    None where the transformation is unknown. Raises ValueError where the document cannot be said in it.
    """
    if transformation not in _FORMS and transformation not in _SYNTAXES and transformation != BYTES:
        return None
    syntax = _SYNTAXES.get(transformation) or _FORMS.get(transformation, ("", "xml"))[1]
    named = f"jms-{what}-{syntax}" if transformation in _SYNTAXES else transformation
    return named, _WRITTEN[syntax](*document)


def _check_map(name: str, value: Any) -> None:
    """Raise ValueError unless this is a map from names to values."""
    if name not in MAPS:
        raise ValueError(f"{name} is not a map")
    members = value if isinstance(value, dict) else {}
    entries = members.get("entry", [])
    if name != "properties" and any(key != "entry" and not key.startswith("@") for key in members):
        raise ValueError("a map holds entries only")
    for entry in entries if isinstance(entries, list) else [entries]:
        sides = (
            [each for key, found in entry.items() for each in _listed(key, found)] if isinstance(entry, dict) else []
        )
        if len(sides) != 2 or sides[0][0] != "string":
            raise ValueError("an entry holds a name, which is a string, and a value")


def _listed(key: str, value: Any) -> list[Document]:
    return [(key, each) for each in value] if isinstance(value, list) else [(key, value)]


# -- JSON


def _from_json(body: bytes) -> Document:
    document = json.loads(body)
    if not isinstance(document, dict) or len(document) != 1:
        raise ValueError("it is not an object with one member")
    return next(iter(document.items()))


def _as_json(name: str, value: Any) -> str:
    return json.dumps({name: value}, separators=(",", ":"), ensure_ascii=False)


# -- XML


def _from_xml(body: bytes) -> Document:
    builder, parser = TreeBuilder(), expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = builder.start, builder.end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = builder.data, _refuse_document_type
    try:
        parser.Parse(body.strip(), True)
    except expat.ExpatError as wrong:
        raise ValueError(f"it is not XML: {wrong}") from None
    root = builder.close()
    return root.tag, _value(root)


def _refuse_document_type(*_declaration: Any) -> None:
    raise ValueError("a document type is declared")


def _value(element: Element) -> Any:
    attributes = {f"@{name}": text for name, text in element.attrib.items()}
    text = element.text or ""
    if not len(element):
        value = _VALUES.get(element.tag, str)(text)
        return {**attributes, "$": value} if attributes else value
    found: JsonObject = dict(attributes)
    for child in element:
        value = _value(child)
        if child.tag not in found:
            found[child.tag] = value
        elif isinstance(found[child.tag], list):
            found[child.tag].append(value)
        else:
            found[child.tag] = [found[child.tag], value]
    return found


def _as_xml(name: str, value: Any) -> str:
    text = "\n".join(_lines(name, value, ""))
    if _CONTROL(text):
        raise ValueError("XML cannot hold control characters")
    return text


def _lines(name: str, value: Any, indent: str) -> Iterator[str]:
    if not _NAME(name):
        raise ValueError(f"{name!r} is not the name of an element")
    if len(indent) > len(_INDENT) * MAX_DEPTH:
        raise ValueError(f"elements are nested at most {MAX_DEPTH} deep")
    if isinstance(value, list):
        for each in value:
            yield from _lines(name, each, indent)
    elif isinstance(value, dict):
        attributes = "".join(f" {key[1:]}={quoteattr(str(text))}" for key, text in value.items() if _is_attribute(key))
        if "$" in value:
            yield f"{indent}<{name}{attributes}>{_text(value['$'])}</{name}>"
            return
        yield f"{indent}<{name}{attributes}>"
        for key, each in value.items():
            if not _is_attribute(key):
                yield from _lines(key, each, indent + _INDENT)
        yield f"{indent}</{name}>"
    elif name == "null" or (name == "map" and value == ""):
        yield f"{indent}<{name}/>"
    else:
        yield f"{indent}<{name}>{_text(value)}</{name}>"


def _is_attribute(key: str) -> bool:
    if not key.startswith("@"):
        return False
    if not _NAME(key[1:]):
        raise ValueError(f"{key[1:]!r} is not the name of an attribute")
    return True


def _text(value: Any) -> str:
    if value is None:
        return ""
    return escape(json.dumps(value) if isinstance(value, bool) else str(value))


#: Syntax -> what reads it, and what writes it. Both raise ValueError.
_READ: dict[str, Callable[[bytes], Document]] = {"json": _from_json, "xml": _from_xml}
_WRITTEN: dict[str, Callable[[str, Any], str]] = {"json": _as_json, "xml": _as_xml}
