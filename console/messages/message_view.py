"""Browsed messages for pages: headers and properties apart, times parsed, values with types. No I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from analytics.model.failure_patterns import without_policy
from brokerapp.engine.editing.message_properties import STANDARD
from brokerapp.engine.policy.broker_headers import (
    CAUSE,
    CLAIMED_ROUTE,
    FAILED_AT,
    FIRST_FAILED_AT,
    NAMES,
    ORIGINAL_EXPIRATION,
    RESUBMIT_COUNT,
    ROUTE,
    SIGNATURE,
    broker_headers,
)
from brokerapp.model.jms.form import JmsForm, JmsKind
from brokerapp.model.stats_records import BrowsedMessage
from brokerapp.openwire.shown_messages import HIDDEN_HEADERS, jms_form, own_name, typed_property
from brokerapp.selectors.values import DECIMAL_NUMBER

#: Standard headers and properties of the broker that are times, in milliseconds since the epoch.
TIME_HEADERS = frozenset({"timestamp", "expires", "dlqTime", "resubmittedTime", FIRST_FAILED_AT, ORIGINAL_EXPIRATION})
#: Properties of a dead letter that a list shows as text of their own.
SUMMARIZED = frozenset({CAUSE, ROUTE, "dlqConsumer"})
#: Headers that are not properties: the standard ones, and the one that lists what the broker wrote.
NOT_PROPERTIES = STANDARD | HIDDEN_HEADERS | {SIGNATURE}
#: Properties shown in a list, and the length of their values there.
MAX_SHOWN, MAX_VALUE = 3, 24

_NUMBER = re.compile(DECIMAL_NUMBER)
_KIND_LABELS = {JmsKind.PLAIN: "message without a body"}


def parse_time(text: str) -> datetime | None:
    """Parse milliseconds since the epoch; None for anything invalid."""
    return datetime.fromtimestamp(int(text) / 1000, UTC) if text.isdecimal() and 0 < len(text) < 15 else None


def type_of(value: str) -> str:
    """Return the type that a selector sees in a property's value."""
    if _NUMBER.fullmatch(value):
        return "number"
    return "boolean" if value.lower() in ("true", "false") else "text"


@dataclass(frozen=True, slots=True)
class PropertyRow:
    """A header or property with the type of its value."""

    name: str
    value: str
    type: str
    time: datetime | None = None
    is_unverified: bool = False  #: a name of the broker's, but written by the sender


@dataclass(frozen=True, slots=True)
class MessageView:
    """A message as a row of a list or a panel shows it."""

    message: BrowsedMessage
    selector_properties: frozenset[str] = frozenset()  #: properties that the selector reads; they come first

    @property
    def jms(self) -> JmsForm | None:
        """Return its JMS form; None: it came from no JMS client."""
        return jms_form(self.message.headers)

    @property
    def kind_label(self) -> str:
        """Return what it is for JMS clients, in words; "" if it came from none."""
        form = self.jms
        return "" if form is None else _KIND_LABELS.get(form.kind, f"{form.kind} message")

    @property
    def sent_at(self) -> datetime | None:
        """Return when it was sent, from its timestamp header."""
        return parse_time(self.message.headers.get("timestamp", ""))

    @property
    def dead_lettered_at(self) -> datetime | None:
        """Return when it was dead-lettered."""
        return parse_time(self.broker_properties.get(FAILED_AT, ""))

    @property
    def broker_properties(self) -> dict[str, str]:
        """Return the properties that the broker itself wrote (see broker_headers)."""
        return broker_headers(self.message.headers)

    @property
    def cause(self) -> str:
        """Return the cause of its failure as a page shows it; "" if it did not fail."""
        return without_policy(self.broker_properties.get(CAUSE, ""))

    @property
    def reported_cause(self) -> str:
        """Return the cause of failure that its sender reported; "" without one."""
        return "" if self.cause else self.message.headers.get(CAUSE, "")

    @property
    def resubmit_count(self) -> int:
        """Return how often operators resubmitted it."""
        text = self.broker_properties.get(RESUBMIT_COUNT, "")  # perhaps masked
        return int(text) if text.isdecimal() else 0

    @property
    def property_rows(self) -> list[PropertyRow]:
        """Return all properties, which are the headers that are not standard."""
        claimed, form = (NAMES | {CLAIMED_ROUTE}) - self.broker_properties.keys(), self.jms
        found = [(header, value, header in claimed) for header, value in self._property_lines]
        return [_jms_row(form, *each) if form else _property_row(*each) for each in found]

    @property
    def header_rows(self) -> list[PropertyRow]:
        """Return the standard headers with their parsed times."""
        return [_property_row(name, value) for name, value in self.headers]

    @property
    def properties(self) -> list[tuple[str, str]]:
        """Return names and values of all properties, those of the selector first, then by name."""
        form = self.jms
        if form is None:
            return self._property_lines
        typed = (typed_property(form, *line) for line in self._property_lines)
        return [(each.name, each.value) for each in typed]

    @property
    def _property_lines(self) -> list[tuple[str, str]]:
        """Return the header lines of all properties in their order."""
        found = ((name, value) for name, value in self.message.headers.items() if name not in NOT_PROPERTIES)
        return sorted(found, key=lambda pair: (own_name(pair[0]) not in self.selector_properties, own_name(pair[0])))

    @property
    def headers(self) -> list[tuple[str, str]]:
        """Return the standard headers in the order of the frame."""
        return [(name, value) for name, value in self.message.headers.items() if name in STANDARD]

    @property
    def preview_properties(self) -> list[tuple[str, str]]:
        """Return the first properties with shortened values, without those shown as text of their own."""
        told = [(name, value) for name, value in self.properties if name not in SUMMARIZED]
        return [
            (name, value if len(value) <= MAX_VALUE else value[: MAX_VALUE - 1] + "…")
            for name, value in told[:MAX_SHOWN]
        ]


def _property_row(name: str, value: str, is_claim: bool = False) -> PropertyRow:
    when = parse_time(value) if name in TIME_HEADERS and value != "0" else None
    return PropertyRow(name, value, "moment" if when else type_of(value), when, is_claim)


def _jms_row(form: JmsForm, header: str, value: str, is_claim: bool) -> PropertyRow:
    told = typed_property(form, header, value)
    row = _property_row(told.name, told.value, is_claim)
    return row if row.time else replace(row, type=told.type)
