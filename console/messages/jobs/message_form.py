"""A message as somebody writes it in a form: typed properties, delay and the rest, read and checked. Pure."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from brokerapp.admin.handlers.operator_send import MAX_COUNT, OperatorMessage
from brokerapp.engine.editing.message_edit import MessageEdit, body_of
from brokerapp.engine.editing.message_properties import NOT_SET, STANDARD, check, type_of, typed
from brokerapp.engine.editing.operator_message import check_size
from brokerapp.engine.editing.resubmit_target import home_of
from brokerapp.engine.scheduling.delivery_schedule import CRON, DELAY, HEADERS, PERIOD, REPEAT
from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import BrowsedMessage
from console.messages.body_format import as_typed

#: Standard headers that a form has as fields of their own and that go with the message.
FIELDS = ("correlation-id", "reply-to", "type", "content-type", "JMSXGroupID")
MAX_PROPERTIES = 64


@dataclass(frozen=True, slots=True)
class Draft:
    """What the form holds, as text."""

    destination: str = ""
    body: str = ""
    encoding: str = "text"  #: of `body`: text, or base64
    properties: tuple[tuple[str, str, str], ...] = ()  #: name, type, value
    fields: Mapping[str, str] = field(default_factory=dict)
    persistent: bool = True
    priority: str = "4"
    expires: str = ""  #: seconds from now
    delay: str = ""  #: seconds
    period: str = ""
    repeat: str = ""
    cron: str = ""
    count: str = "1"

    @staticmethod
    def read(form: Any) -> Draft:
        """What was posted."""
        names, types, values = (form.getlist(f"property-{part}") for part in ("name", "type", "value"))
        rows = zip(names, types, values, strict=False)
        return Draft(
            form.get("destination", "").strip(), form.get("body", "").replace("\r\n", "\n"),
            form.get("encoding", "text"),
            tuple((name.strip(), kind, value) for name, kind, value in rows if name.strip() or value),
            {name: form.get(f"field-{name}", "").strip() for name in FIELDS},
            form.get("persistent", "") == "true",
            **{name: form.get(name, "").strip() for name in _NUMBERS}, cron=form.get("cron", "").strip(),
        )  # fmt: skip

    @staticmethod
    def of(message: BrowsedMessage, queue: Destination) -> Draft:
        """A message of this queue, to be edited: sent to where it failed, or to where it is."""
        home = home_of(message.headers, message.came_from, queue)
        copy = MessageEdit().applied(message.headers, message.body, home.stomp, _now_ms())
        text = as_typed(copy.body)
        own = [each for each in sorted(copy.properties.items()) if each[0] not in FIELDS and each[0] not in NOT_SET]
        rows = [(name, type_of(value), value) for name, value in own]
        if len(rows) > MAX_PROPERTIES:
            raise RequestRefused(f"it has {len(rows)} properties, and {MAX_PROPERTIES} can be edited here")
        left = -((_now_ms() - copy.expires) // 1000)
        return Draft(
            copy.destination,
            text if text is not None else base64.b64encode(copy.body).decode(),
            "text" if text is not None else "base64",
            tuple(rows),
            {name: copy.properties.get(name, "") for name in FIELDS},
            copy.persistent,
            str(copy.priority),
            str(left) if copy.expires and left > 0 else "",
        )

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Draft:
        """A template, as it was kept; what this version does not know is left out."""
        known = {name: value for name, value in data.items() if name in Draft.__dataclass_fields__}
        rows = tuple(tuple(map(str, row)) for row in known.get("properties", ()) if len(row) == 3)
        return Draft(**{**known, "properties": rows})

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__} | {"fields": dict(self.fields)}

    @property
    def how_many(self) -> int:
        """How many to send."""
        return _number("count", self.count or "1", 1, MAX_COUNT)

    def message(self) -> OperatorMessage:
        """The message it describes. Raises RequestRefused that names the field and the rule."""
        if not self.destination:
            raise RequestRefused(
                "destination: say where it goes, for example orders, /topic/prices or orders::orders.eu"
            )
        Destination.parse_list(self.destination)
        properties = {name: value for name, value in self.fields.items() if value}
        for name, kind, value in self.properties:
            properties[self._checked(name, kind, value, properties)] = value
        check(properties)
        if len(properties) > MAX_PROPERTIES:
            raise RequestRefused(f"{len(properties)} properties: {MAX_PROPERTIES} can be given here")
        body = check_size(body_of(self.body, self.encoding))
        expires = _number("expires", self.expires, 1, 10**9) * 1000 + _now_ms() if self.expires else 0
        return OperatorMessage(
            self.destination, properties | self._schedule(), body, self.persistent,
            _number("priority", self.priority or "4", 0, 9), expires, self.encoding == "base64",
        )  # fmt: skip

    def _checked(self, name: str, kind: str, value: str, others: Mapping[str, str]) -> str:
        if not name:
            raise RequestRefused(f"a property with the value {value[:40]!r} has no name")
        if name in STANDARD or name in HEADERS:
            raise RequestRefused(f"property {name!r}: it is a header that has a field of its own here")
        if name in others:
            raise RequestRefused(f"property {name!r} is given twice")
        typed(name, kind, value)
        return name

    def _schedule(self) -> dict[str, str]:
        asked = {}
        for header, name in ((DELAY, "delay"), (PERIOD, "period")):
            if text := getattr(self, name):
                asked[header] = str(_number(name, text, 1, 10**9) * 1000)
        if self.repeat:
            asked[REPEAT] = str(_number("repeat", self.repeat, -1, 10**9))
        if self.cron:
            asked[CRON] = self.cron
        if REPEAT in asked and not asked.keys() & {PERIOD, CRON}:
            raise RequestRefused("repeat: it needs a period, or a cron")
        return asked

    def with_room(self) -> Draft:
        """The same with two empty rows for further properties."""
        return replace(self, properties=(*self.properties, *([("", "text", "")] * 2)))


_NUMBERS = ("priority", "expires", "delay", "period", "repeat", "count")


def _number(name: str, text: str, least: int, most: int) -> int:
    if not re.fullmatch(r"-?\d{1,10}", text) or not least <= int(text) <= most:
        raise RequestRefused(f"{name}: {text[:40]!r} is no whole number from {least} to {most:,}")
    return int(text)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
