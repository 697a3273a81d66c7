"""Converts fields of a definition to attributes of its element and back, by one rule.

An attribute is called like its field, in ActiveMQ's spelling (`forward_only` is `forwardOnly`), and has its default.
What only Sluice has is an attribute in the namespace `urn:sluice`: ActiveMQ starts with such a file all the same.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import fields
from typing import Any

from brokerapp.config.parsing.document import EXTENSION, Element

_READ = {
    "str": Element.take,
    "str | None": Element.take,
    "bool": Element.take_boolean,
    "bool | None": Element.take_boolean,
    "int": Element.take_integer,
    "int | None": Element.take_integer,
    "float": Element.take_decimal,
}

#: Fields whose attribute is spelt in another way.
_SPELT = {
    "inactive_timeout_before_gc": "inactiveTimeoutBeforeGC",
    "populate_jmsx_user_id": "populateJMSXUserID",
    "use_authenticated_principal": "useAuthenticatedPrincipalForJMSXUserID",
}
#: What ActiveMQ called attributes before, and still reads.
_FORMER = {"inactive_timeout_before_gc": ("inactiveTimoutBeforeGC",)}

#: Fields that hold bytes, which may be written with a unit.
_SIZES = frozenset({"memory_limit", "store_limit"})


#: Fields ActiveMQ knows nothing of: attributes in a namespace of their own, which it passes over.
_EXTENSIONS = frozenset({
    "strict", "advisory_for_dispatched", "auto_create", "expire_after", "force_persistency", "max_uncommitted_count",
    "store_limit", "record_one_in", "record_properties", "auto_destroy_after", "reconnect_window",
})  # fmt: skip

#: Types of fields that fit into an attribute.
FIELD_TYPES = frozenset(_READ)


def attribute_name(field: str) -> str:
    """Return ActiveMQ's name of the attribute of this field, or Sluice's where ActiveMQ has none."""
    return EXTENSION + xml_spelling(field) if field in _EXTENSIONS else xml_spelling(field)


def xml_spelling(field: str) -> str:
    """Return the attribute's name without a namespace."""
    return _SPELT.get(field) or re.sub(r"_([a-z])", lambda match: match[1].upper(), field)


def read_fields(element: Element, cls: type, names: Collection[str]) -> dict[str, Any]:
    """Return the values of fields that have an attribute in the element, with or without the namespace of Sluice."""
    values = {}
    for each in fields(cls):
        if each.name in names:
            read = Element.take_size if each.name in _SIZES else _READ[str(each.type)]
            for attribute in (xml_spelling(each.name), attribute_name(each.name), *_FORMER.get(each.name, ())):
                if (value := read(element, attribute)) is not None:
                    values[each.name] = value
    return values


def write_fields(record: Any, names: Collection[str]) -> dict[str, str]:
    """Return the attributes of a record, without those at their default."""
    return {
        attribute_name(each.name): _text(value)
        for each in fields(record)
        if each.name in names and (value := getattr(record, each.name)) != each.default
    }


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
