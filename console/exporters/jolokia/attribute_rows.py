"""Define rows of attribute tables: name, Java type and value."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from console.exporters.jolokia.beans import Attribute, Beans

LONG, INT, DOUBLE, FLOAT, BOOLEAN, TEXT = "long", "int", "double", "float", "boolean", "java.lang.String"
NAME, NAMES, MAP = "javax.management.ObjectName", "[Ljavax.management.ObjectName;", "java.util.Map"

#: Name, type, and the value from the subject of a bean and all beans.
Row = tuple[str, str, Callable[[Any, Beans], Any]]


def fixed(name: str, type: str, value: Any) -> Row:
    """Return a row with a constant, for what does not exist here, as ActiveMQ would report it."""
    return name, type, lambda subject, beans: value


def table(rows: Iterable[Row]) -> dict[str, Attribute]:
    """Return the rows by attribute name."""
    return {name: Attribute(name, type, value) for name, type, value in rows}
