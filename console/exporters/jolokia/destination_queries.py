"""Answer queryQueues and queryTopics: destination lists of ActiveMQ's web console. Pure"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from brokerapp.engine.routing.advisory_topics import is_advisory
from brokerapp.errors import RequestRefused
from brokerapp.model.destination import DestinationKind
from brokerapp.model.stats_records import DestinationStats
from console.exporters.jolokia.attributes import KINDS
from console.exporters.jolokia.beans import Beans
from console.exporters.jolokia.object_names import ObjectName
from console.exporters.jolokia.values import ValueFormat, plain_value

MAX_PAGE = 1_000
#: Attributes of a row; all of them would be a page of a megabyte.
SHOWN = (
    "Name", "QueueSize", "EnqueueCount", "DequeueCount", "DispatchCount", "InFlightCount", "ExpiredCount",
    "ConsumerCount", "ProducerCount", "MemoryPercentUsage", "Paused", "DLQ",
)  # fmt: skip

_FILTERS: dict[str, Callable[[DestinationStats], bool]] = {
    "": lambda stats: True,
    "empty": lambda stats: stats.QueueSize == 0,
    "nonEmpty": lambda stats: stats.QueueSize > 0,
    "noConsumer": lambda stats: stats.ConsumerCount == 0,
    "nonAdvisory": lambda stats: not is_advisory(stats.destination),
}


def query(beans: Beans, kind: DestinationKind, text: str, page: int, size: int) -> dict[str, Any]:
    """Return the page (from 1) that the JSON object `text` selects: name, filter, sortColumn, sortOrder."""
    asked = _parsed(text)
    chosen, part = asked.get("filter") or "", str(asked.get("name") or "")
    if chosen not in _FILTERS:
        raise RequestRefused(f"filter {chosen!r}: expected one of {', '.join(name for name in _FILTERS if name)}")
    found = [each for each in beans.reading.of_kind(kind) if part in each.destination.name and _FILTERS[chosen](each)]
    column = str(asked.get("sortColumn") or "name")
    found.sort(key=_sort_key(column), reverse=asked.get("sortOrder") == "desc")
    first, size = max(0, page - 1) * min(size, MAX_PAGE), min(size, MAX_PAGE)
    attributes = KINDS[str(kind)].attributes
    rows = {}
    for each in found[first : first + size]:
        name: ObjectName = beans.name_of(each.destination)
        row = {shown: attributes[shown].value(each, beans) for shown in SHOWN if shown in attributes}
        rows[name.canonical] = plain_value(row, ValueFormat())
    return {"data": rows, "count": len(found)}


def _parsed(text: str) -> dict[str, Any]:
    try:
        asked = json.loads(text or "{}")
    except ValueError as error:
        raise RequestRefused(f"the filter {text!r} is not valid JSON: {error}") from error
    if not isinstance(asked, dict):
        raise RequestRefused(f"the filter {text!r} must be an object")
    return asked


def _sort_key(column: str) -> Callable[[DestinationStats], Any]:
    """Return the sort key of a column of ActiveMQ's console: `queueSize`."""
    field = column[:1].upper() + column[1:]
    if field == "Name" or field not in DestinationStats.__dataclass_fields__:
        return lambda stats: stats.destination.name
    return lambda stats: getattr(stats, field)
