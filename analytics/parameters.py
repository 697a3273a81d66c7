"""Parameters: what a question lets people say, with the rule each answer keeps. No pyspark: pages read it too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from analytics.request import DEFAULT_WINDOW, WINDOW_RULE, is_window
from brokerapp.destination import Destination
from brokerapp.errors import InvalidDestination, RequestRefused


@dataclass(frozen=True, slots=True)
class Parameter:
    """Something a request may say; `choices` are pairs of value and label. An empty default: it may be left out."""

    name: str
    label: str
    default: str
    choices: tuple[tuple[str, str], ...] = ()
    is_valid: Callable[[str], bool] = lambda _: True
    rule: str = ""  #: what is valid, in words: `expected ...`
    help: str = ""  #: beside the field

    def value(self, given: object) -> str:
        """What was given, or the default; raises RequestRefused, which names the input and the rule."""
        text = str(given if given is not None else "").strip() or self.default
        if text and not self.is_valid(text):
            raise RequestRefused(f"{self.label.lower()}: {text!r} is not valid: expected {self.rule}")
        return text

    def words(self, value: str) -> str:
        """The value as a person would say it; "" for one that says nothing."""
        return dict(self.choices).get(value) or (value and f"{self.label.lower()} {value}")


def _whole(low: int, high: int) -> Callable[[str], bool]:
    return lambda text: text.isascii() and text.isdecimal() and len(text) < 12 and low <= int(text) <= high


def _is_destination(text: str) -> bool:
    try:
        Destination.parse(text)
    except InvalidDestination:
        return False
    return True


def one_of(name: str, label: str, default: str, *choices: tuple[str, str], help: str = "") -> Parameter:
    """A choice between a few values."""
    values = [value for value, _ in choices]
    return Parameter(name, label, default, choices, values.__contains__, "one of " + ", ".join(values), help)


def number(name: str, label: str, default: int, low: int, high: int, help: str = "") -> Parameter:
    """A whole number in a range."""
    return Parameter(name, label, str(default), (), _whole(low, high), f"a whole number from {low} to {high:,}", help)


WINDOW = Parameter(
    "window",
    "Window",
    DEFAULT_WINDOW,
    (
        ("15m", "last 15 minutes"),
        ("1h", "last hour"),
        ("6h", "last 6 hours"),
        ("24h", "last 24 hours"),
        ("7d", "last 7 days"),
    ),
    is_window,
    WINDOW_RULE,
)
DESTINATION = Parameter(
    "destination",
    "Destination",
    "",
    (),
    _is_destination,
    "a name, or a pattern with * and >, such as Orders.> or topic://Prices.*",
    "all, unless you name one; * stands for a part of a name, > for all that follows",
)
DRAFT = Parameter("draft", "Draft", "")
REVISION = Parameter("revision", "Revision", "")
CONSUMER = Parameter("consumer", "Consumer", "", help="all, unless you name one by its client id")
