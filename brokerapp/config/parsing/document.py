"""Parses a configuration file to elements that know their line and track which attributes were read.

Nothing but the text is read: no network, no DTD, no entities. Namespaces are dropped: those of ActiveMQ, current and
old, and of Spring, and no namespace mean the same here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from lxml import etree

from brokerapp.config.parsing.broker_config import ImportFinding, ImportOutcome, line_label
from brokerapp.config.parsing.load_context import LoadContext
from brokerapp.config.parsing.placeholders import resolve, variable_of
from brokerapp.errors import ConfigurationRefused

if TYPE_CHECKING:
    from lxml.etree import _Element

#: Characters a configuration file may have.
MAX_LENGTH = 4_000_000

BEANS = "http://www.springframework.org/schema/beans"
CORE = "http://activemq.apache.org/schema/core"
OLD_CORE = "http://activemq.org/config/1.0"
#: How lxml names an attribute that only Sluice has.
EXTENSION = "{urn:sluice}"
etree.register_namespace("sluice", EXTENSION.strip("{}"))
_INCLUSION = "http://www.w3.org/2001/XInclude"
_SCHEMA_INSTANCE = "{http://www.w3.org/2001/XMLSchema-instance}"

_DOCTYPE = re.compile(rb"<!DOCTYPE[^>\[]*>")

_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
_UNITS = {"": 1, "b": 1, "kb": 1 << 10, "k": 1 << 10, "mb": 1 << 20, "m": 1 << 20, "gb": 1 << 30, "g": 1 << 30}
_SIZE = re.compile(r"\s*(\d{1,18})\s*([a-zA-Z]*)\s*")

#: Elements in which definitions stand, within a broker or alone, and those that give placeholders their values.
_DEFINING = frozenset({
    "bean",
    "destinationInterceptors", "destinationPolicy", "redeliveryPlugin",
    "virtualTopic", "compositeQueue", "compositeTopic", "mirroredQueue",
})  # fmt: skip


class Element:
    """An XML element: attributes are taken once, what remains is reported or refused by whoever read the element."""

    def __init__(
        self, node: _Element, load_context: LoadContext, report: list[ImportFinding], defines: bool = False
    ) -> None:
        name, properties = etree.QName(node), load_context.properties
        self.tag, self.namespace, self.line, self.report = name.localname, name.namespace, node.sourceline, report
        self.load_context = load_context
        self.defines = defines or self.tag in _DEFINING
        if self.namespace == _INCLUSION:
            raise self.refused("XInclude is not supported")
        self._attributes: dict[str, str] = {}
        for attribute, text in node.attrib.items():
            if not attribute.startswith("{") or attribute.startswith(EXTENSION):
                self._attributes[attribute] = self._resolved(text, attribute, properties)
            elif not attribute.startswith(_SCHEMA_INSTANCE):
                self.note(ImportOutcome.UNKNOWN, "attribute of an unknown namespace", attribute)
        self._attributes.pop("id", None)
        self.text = self._resolved((node.text or "").strip(), "", properties)
        self.children = [Element(child, load_context, report, self.defines) for child in node]

    def _resolved(self, text: str, attribute: str, properties: Mapping[str, str]) -> str:
        value, missing = resolve(text, properties) if "${" in text else (text, ())
        for name in missing:
            why = (
                f"placeholder ${{{name}}} has no value, so that the text itself is used (ActiveMQ does not start): set "
                f"the environment variable {variable_of(name)}, name a property file, or write ${{{name}:DEFAULT}}"
            )
            self.note(ImportOutcome.UNKNOWN, why, attribute)
        return value

    # -- reading

    def get(self, attribute: str) -> str | None:
        """Return the value of an attribute that was not taken yet."""
        return self._attributes.get(attribute)

    def take(self, attribute: str) -> str | None:
        """Take and return the value of an attribute; None when it is not there."""
        return self._attributes.pop(attribute, None)

    def need(self, attribute: str) -> str:
        """Take and return the value of a required attribute; refused when it is missing or empty."""
        value = self.take(attribute)
        if not value or not value.strip():
            raise self.refused(f"{attribute} is missing")
        return value

    def take_boolean(self, attribute: str) -> bool | None:
        """Like take, for what is true or false."""
        text = self.take(attribute)
        if text is None:
            return None
        if (word := text.strip().lower()) not in _TRUE + _FALSE:
            raise self.refused(f"{attribute}={text!r} must be true or false")
        return word in _TRUE

    def take_integer(self, attribute: str) -> int | None:
        """Like take, for a whole number."""
        text = self.take(attribute)
        if text is None:
            return None
        if re.fullmatch(r"\s*[+-]?[0-9]{1,18}\s*", text) is None:
            raise self.refused(f"{attribute}={text!r} is not a whole number")
        return int(text)

    def take_decimal(self, attribute: str) -> float | None:
        """Like take, for a number such as 5 or 1.5."""
        text = self.take(attribute)
        if text is None:
            return None
        if re.fullmatch(r"\s*[+-]?[0-9]{1,15}(\.[0-9]{1,15})?\s*", text) is None:
            raise self.refused(f"{attribute}={text!r} must be a number such as 5 or 1.5")
        return float(text)

    def take_size(self, attribute: str) -> int | None:
        """Like take, for a size such as 65536, `20kb` or `20 mb`; in bytes."""
        text = self.take(attribute)
        if text is None:
            return None
        match = _SIZE.fullmatch(text)
        if match is None or match[2].lower() not in _UNITS:
            raise self.refused(f"{attribute}={text!r} must be a size such as 65536, 20kb or 20 mb")
        return int(match[1]) * _UNITS[match[2].lower()]

    @property
    def untaken(self) -> tuple[tuple[str, str], ...]:
        """Return the attributes that were not taken yet."""
        return tuple(self._attributes.items())

    def rest(self) -> tuple[tuple[str, str], ...]:
        """Take and return all remaining attributes."""
        rest = tuple(self._attributes.items())
        self._attributes = {}
        return rest

    def named(self, *tags: str) -> Iterator[Element]:
        """Return the children with one of these tags."""
        return (child for child in self.children if child.tag in tags)

    def child(self, tag: str) -> Element | None:
        """Return the child with this tag, or None; refused when there are several."""
        found = list(self.named(tag))
        if len(found) > 1:
            raise found[1].refused(f"duplicate <{tag}>: the first is in line {found[0].line}")
        return found[0] if found else None

    def descendants(self) -> Iterator[Element]:
        """Yield this element and all below it, in the order of the text."""
        yield self
        for child in self.children:
            yield from child.descendants()

    def source(self) -> str:
        """Return the element as XML without namespaces, placeholders replaced."""
        return str(etree.tostring(self._copy(), encoding="unicode"))

    def _copy(self) -> _Element:
        copy = etree.Element(self.tag, self._attributes)
        copy.text = self.text or None
        copy.extend(child._copy() for child in self.children)
        return copy

    # -- saying what became of it

    def note(self, what: ImportOutcome, why: str, attribute: str = "", *, locks_out: bool = False) -> None:
        """Report the outcome for this element, or one of its attributes."""
        element = f"{self.tag}@{attribute}" if attribute else self.tag
        self.report.append(
            ImportFinding(self.line, element, what, why, self.load_context.file, self.defines, locks_out=locks_out)
        )

    def note_locked_out(self, whom: str, why: str, attribute: str = "") -> None:
        """Report an access rule that cannot be read: which access is denied because of that, and why."""
        self.note(ImportOutcome.UNKNOWN, f"{whom}: {why}", attribute, locks_out=True)

    def refused(self, rule: str) -> ConfigurationRefused:
        """Return the error to raise when this element cannot be used."""
        return ConfigurationRefused(f"{self.place}: {self.tag}: {rule}")

    @property
    def place(self) -> str:
        """Return how messages refer to its line."""
        return line_label(self.load_context.file, self.line)

    def refuse_rest(self, *tags: str) -> None:
        """Refuse attributes nobody took and children other than these, as ActiveMQ does."""
        for attribute, _ in self.rest():
            raise self.refused(f"unknown attribute {attribute!r}")
        for child in self.children:
            if child.tag not in tags:
                raise child.refused(f"not allowed in {self.tag}")

    def note_rest(self, *tags: str) -> None:
        """Report attributes nobody took and children other than these as unknown."""
        for attribute, _ in self.rest():
            self.note(ImportOutcome.UNKNOWN, "unknown attribute", attribute)
        for child in self.children:
            if child.tag not in tags:
                child.note(ImportOutcome.UNKNOWN, f"unknown element in {self.tag}")


def read_document(text: str | bytes, load_context: LoadContext, report: list[ImportFinding]) -> Element:
    """Return the root element. Raises ConfigurationRefused for malformed or too large XML, or with entities."""
    if len(text) > MAX_LENGTH:
        raise ConfigurationRefused(f"the configuration file exceeds {MAX_LENGTH} characters")
    encoding = "utf-8" if isinstance(text, str) else None
    data = text.encode() if isinstance(text, str) else text
    root = _parsed(data, encoding, load_context.file)
    declared = root.getroottree().docinfo.internalDTD
    if declared is not None:
        if any(declared.iterentities()):
            raise ConfigurationRefused("XML entities are not supported")
        # Entities of a DTD elsewhere would vanish: without the declaration they are errors.
        root = _parsed(_DOCTYPE.sub(lambda found: b"\n" * found[0].count(b"\n"), data), encoding, load_context.file)
    return Element(root, load_context, report)


def _parsed(data: bytes, encoding: str | None, file: str) -> _Element:
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True,
        encoding=encoding,
    )  # fmt: skip
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as wrong:
        raise ConfigurationRefused(f"{line_label(file, wrong.lineno)}: invalid XML: {wrong.msg}") from wrong
