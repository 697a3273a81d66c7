"""Translate a selector to a Spark column with the result of the broker's own evaluation.

What a recorded message is decides how it is evaluated, as at the broker: headers of STOMP clients are text
(`text_selectors.py`), properties of JMS clients have types (`typed_selectors.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from pyspark.sql import Column
from pyspark.sql import functions as F

from analytics.transforms.text_selectors import NotRecorded, Properties, TextCompiler
from analytics.transforms.typed_selectors import TypedCompiler
from brokerapp.model.jms.form import JMS_HEADER, JmsForm
from brokerapp.model.jms.properties import PropertyType
from brokerapp.selectors import Selector

__all__ = ["NotRecorded", "to_column"]

#: Of no header.
_NONE: Mapping[str, Column] = MappingProxyType({})


def to_column(
    selector: Selector,
    ps: str | Properties = "ps",
    pn: str | Properties = "pn",
    known: Mapping[str, Column] = _NONE,
    forms: Iterable[str] = (),
) -> Column:
    """Return the selector as a nullable boolean over the properties `ps` and `pn`. Raises NotRecorded.

    They are the names of map columns, or mappings.
    `known` are headers that are not in the maps: the text of each. `forms` are the JMS forms of the messages
    (JMS_HEADER); messages of forms that have the same types for the properties of the selector share a column.
    """
    ps, pn = (F.col(each) if isinstance(each, str) else each for each in (ps, pn))
    alike: dict[tuple[tuple[str, PropertyType], ...], list[str]] = {}
    for form in forms:
        types = JmsForm.parse(form).types
        alike.setdefault(tuple((name, types[name]) for name in sorted(selector.properties & types.keys())), []).append(
            form
        )
    found = TextCompiler(ps, pn, known).condition(selector.tree)
    for types_of, values in alike.items():
        compiler = TypedCompiler(ps, pn, known, types=dict(types_of), convert=selector.converts)
        found = F.when(ps[JMS_HEADER].isin(values), compiler.condition(selector.written)).otherwise(found)
    return found
