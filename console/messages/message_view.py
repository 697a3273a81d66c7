"""A browsed message as pages show it: headers and properties apart, moments as such, values with types. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from brokerapp.engine.editing.message_properties import STANDARD
from brokerapp.engine.policy.broker_headers import (
    CAUSE,
    CLAIMED,
    COUNT,
    FAILED_AT,
    FIRST_FAILED_AT,
    LIVED_UNTIL,
    NAMES,
    ROUTE,
    WROTE,
    brokers_word,
)
from brokerapp.model.stats_records import BrowsedMessage
from brokerapp.selectors.values import DECIMAL_NUMBER

#: Standard headers and properties of the broker that are moments, in milliseconds since the epoch.
MOMENTS = frozenset({"timestamp", "expires", "dlqTime", "resubmittedTime", FIRST_FAILED_AT, LIVED_UNTIL})
#: Properties of a dead letter that a list says in words, or its selector asked for.
TOLD = frozenset({CAUSE, ROUTE, "dlqConsumer"})
#: What is no property of anybody: standard headers, and the one that says which of the others the broker wrote.
HEADS = STANDARD | {WROTE}
#: Properties shown in the list, and how long their values may be there.
MAX_SHOWN, MAX_VALUE = 3, 24

_NUMBER = re.compile(DECIMAL_NUMBER)


def moment(text: str) -> datetime | None:
    """Milliseconds since the epoch as a moment; None for what is none."""
    return datetime.fromtimestamp(int(text) / 1000, UTC) if text.isdecimal() and 0 < len(text) < 15 else None


def type_of(value: str) -> str:
    """What a selector takes a property's text for, beside text."""
    if _NUMBER.fullmatch(value):
        return "number"
    return "boolean" if value.lower() in ("true", "false") else "text"


@dataclass(frozen=True, slots=True)
class Pair:
    """A header or property, with what its value is."""

    name: str
    value: str
    type: str
    moment: datetime | None = None
    is_claim: bool = False  #: of a name that the broker uses, and not the broker's word: its sender wrote it


@dataclass(frozen=True, slots=True)
class Listed:
    """A message as a row of a list, or as a panel."""

    message: BrowsedMessage
    asked: frozenset[str] = frozenset()  #: names of the properties that a selector reads: they come first

    @property
    def sent(self) -> datetime | None:
        """When it was sent, by its timestamp header."""
        return moment(self.message.headers.get("timestamp", ""))

    @property
    def died(self) -> datetime | None:
        """When it became a dead letter."""
        return moment(self.word.get(FAILED_AT, ""))

    @property
    def word(self) -> dict[str, str]:
        """What the broker itself wrote of its failure, its way and who sent it (broker_headers)."""
        return brokers_word(self.message.headers)

    @property
    def expires(self) -> datetime | None:
        """When its time is over; None when it has all the time."""
        text = self.message.headers.get("expires", "0")
        return moment(text) if text != "0" else None

    @property
    def cause(self) -> str:
        """Why it failed; "" when it did not."""
        return self.word.get(CAUSE, "")

    @property
    def claim(self) -> str:
        """The cause of a failure that it came with: whoever sent it said so; "" when nobody did."""
        return "" if self.cause else self.message.headers.get(CAUSE, "")

    @property
    def resubmits(self) -> int:
        """How often operators sent it again."""
        text = self.word.get(COUNT, "")  # perhaps masked
        return int(text) if text.isdecimal() else 0

    @property
    def pairs(self) -> list[Pair]:
        """All properties: what is no standard header."""
        claimed = (NAMES | {CLAIMED}) - self.word.keys()
        return [_pair(name, value, name in claimed) for name, value in self.properties]

    @property
    def standard_pairs(self) -> list[Pair]:
        """The standard headers with their moments."""
        return [_pair(name, value) for name, value in self.standard]

    @property
    def properties(self) -> list[tuple[str, str]]:
        """All that is no standard header, by name; what was asked for first."""
        found = ((name, value) for name, value in self.message.headers.items() if name not in HEADS)
        return sorted(found, key=lambda pair: (pair[0] not in self.asked, pair[0]))

    @property
    def standard(self) -> list[tuple[str, str]]:
        """The standard headers, in the order they have on the wire."""
        return [(name, value) for name, value in self.message.headers.items() if name in STANDARD]

    @property
    def shown(self) -> list[tuple[str, str]]:
        """The first properties, shortened; the failure's own are said in words."""
        told = [(name, value) for name, value in self.properties if name not in TOLD]
        return [
            (name, value if len(value) <= MAX_VALUE else value[: MAX_VALUE - 1] + "…")
            for name, value in told[:MAX_SHOWN]
        ]


def _pair(name: str, value: str, is_claim: bool = False) -> Pair:
    when = moment(value) if name in MOMENTS and value != "0" else None
    return Pair(name, value, "moment" if when else type_of(value), when, is_claim)
