"""Parameters: what a question lets people say, with the rule each answer keeps. No pyspark: pages read it too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from analytics.requests.request import DEFAULT_WINDOW, WINDOW_RULE, is_window, seconds_of
from brokerapp.errors import InvalidDestination, RequestRefused
from brokerapp.model.destination import Destination


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


def window(default: str, *choices: tuple[str, str], days: int = 0) -> Parameter:
    """The stretch of time that is asked about, which ends now; so many days at most."""

    def is_valid(text: str) -> bool:
        return is_window(text) and (not days or seconds_of(text) <= days * 86400)

    rule = WINDOW_RULE + (f", {days}d at most" if days else "")
    return Parameter("window", "Window", default, choices, is_valid, rule)


_HOURS = (
    ("15m", "last 15 minutes"), ("1h", "last hour"), ("6h", "last 6 hours"), ("24h", "last 24 hours"),
    ("7d", "last 7 days"),
)  # fmt: skip

WINDOW = window(DEFAULT_WINDOW, *_HOURS)
#: Longer windows would overlap the week before.
DAY = window("24h", *_HOURS, days=7)
DAYS = window("7d", ("24h", "last 24 hours"), ("7d", "last 7 days"), ("30d", "last 30 days"), ("90d", "last 90 days"))
WEEKS = number("weeks", "Weeks back", 1, 1, 8, "with more than one, their mean is what is compared with")
PERCENTILE = one_of("percentile", "Percentile", "p95", ("p50", "half"), ("p95", "95 %"), ("p99", "99 %"))
LIMIT = number(
    "limit",
    "Limit of a queue",
    100_000,
    0,
    1_000_000_000,
    "messages; 0 for none; the bytes that policies leave a queue count anyhow",
)
QUIET = number("minutes", "Minutes without work", 5, 1, 1440, "from then on a consumer counts as stuck or idle")
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
