"""Parameters of analyses: label, default, choices and the rule of each. No pyspark: pages read it, too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from analytics.requests.request import DEFAULT_WINDOW, WINDOW_RULE, is_window, seconds_of
from brokerapp.errors import InvalidDestination, RequestRefused
from brokerapp.model.destination import Destination


@dataclass(frozen=True, slots=True)
class Parameter:
    """Describes one parameter. `choices` are pairs of value and label. An empty default makes it optional."""

    name: str
    label: str
    default: str
    choices: tuple[tuple[str, str], ...] = ()
    is_valid: Callable[[str], bool] = lambda _: True
    rule: str = ""  #: completes `expected ...` in error texts
    help: str = ""  #: shown below the field
    is_described: bool = True  #: whether pages name its value where they describe a run
    longest_s: int = 0  #: of a time range, in seconds; 0: no limit

    def value(self, given: object) -> str:
        """Return the given value or the default. Raises RequestRefused, which names the input and the rule."""
        text = str(given if given is not None else "").strip() or self.default
        if text and not self.is_valid(text):
            raise RequestRefused(f"{self.label.lower()}: {text!r} is not valid: expected {self.rule}")
        return text

    def words(self, value: str) -> str:
        """Return the value as pages show it: the label of a choice, or `Label: value`; "" for an empty value."""
        if not self.is_described:
            return ""
        return dict(self.choices).get(value) or (value and f"{self.label}: {value}")


def _whole(low: int, high: int) -> Callable[[str], bool]:
    return lambda text: text.isascii() and text.isdecimal() and len(text) < 12 and low <= int(text) <= high


def _is_destination(text: str) -> bool:
    try:
        Destination.parse(text)
    except InvalidDestination:
        return False
    return True


def one_of(name: str, label: str, default: str, *choices: tuple[str, str], help: str = "") -> Parameter:
    """Make a parameter with a few allowed values."""
    values = [value for value, _ in choices]
    return Parameter(name, label, default, choices, values.__contains__, "one of " + ", ".join(values), help)


def number(name: str, label: str, default: int, low: int, high: int, help: str = "") -> Parameter:
    """Make a parameter for a whole number in a range."""
    return Parameter(name, label, str(default), (), _whole(low, high), f"a whole number from {low} to {high:,}", help)


def window(default: str, *choices: tuple[str, str], days: int = 0) -> Parameter:
    """Make the parameter for a time range, of `days` at most; its values end now."""

    def is_valid(text: str) -> bool:
        return is_window(text) and (not days or seconds_of(text) <= days * 86400)

    rule = WINDOW_RULE + (f", at most {days}d" if days else "")
    return Parameter("window", "Time range", default, choices, is_valid, rule, longest_s=days * 86400)


_HOURS = (
    ("15m", "Last 15 minutes"), ("1h", "Last hour"), ("6h", "Last 6 hours"), ("24h", "Last 24 hours"),
    ("7d", "Last 7 days"),
)  # fmt: skip

WINDOW = window(DEFAULT_WINDOW, *_HOURS)
#: Longer time ranges would overlap the previous week.
DAY = window("24h", *_HOURS, days=7)
DAYS = window("7d", ("24h", "Last 24 hours"), ("7d", "Last 7 days"), ("30d", "Last 30 days"), ("90d", "Last 90 days"))
#: Of forecasts, which use eight weeks at most and check the last one with those before it.
HISTORY = window(
    "28d", ("7d", "Last 7 days"), ("14d", "Last 14 days"), ("28d", "Last 28 days"), ("62d", "Last 62 days"), days=366
)
MEASURE = one_of("measure", "Forecast of", "traffic", ("traffic", "Traffic"), ("depth", "Depth"))
HORIZON = one_of(
    "horizon", "Forecast for", "24h", ("1h", "Next hour"), ("6h", "Next 6 hours"), ("24h", "Next 24 hours"),
    ("3d", "Next 3 days"), ("7d", "Next 7 days"), help="hours after the end of the time range",
)  # fmt: skip
WEEKS = number("weeks", "Weeks back", 1, 1, 8, "with more than one, the comparison uses their mean")
PERCENTILE = one_of("percentile", "Percentile", "p95", ("p50", "p50"), ("p95", "p95"), ("p99", "p99"))
LIMIT = number(
    "limit",
    "Queue limit",
    100_000,
    0,
    1_000_000_000,
    "messages; 0 = no limit; byte limits of policies always apply",
)
QUIET = number(
    "minutes", "Idle after (minutes)", 5, 1, 1440, "a consumer without activity for this long counts as stuck or idle"
)
DESTINATION = Parameter(
    "destination",
    "Destination",
    "",
    (),
    _is_destination,
    "a name, or a pattern with * and >, such as Orders.> or topic://Prices.*",
    "empty: all; * matches one part of a name, > all parts that follow",
)
DRAFT = Parameter("draft", "Draft", "")
REVISION = Parameter("revision", "Revision", "")
#: The longest range is MAX_DAYS of jobs/sql_query.py.
SQL_WINDOW = window("24h", *_HOURS, ("31d", "Last 31 days"), days=31)
STATEMENT = Parameter("statement", "Statement", "", is_described=False)
CHART = tuple(Parameter(name, label, "", is_described=False) for name, label in
              (("chart", "Chart"), ("x", "x"), ("y", "y"), ("series", "Series")))  # fmt: skip
CONSUMER = Parameter("consumer", "Consumer", "", help="client ID; empty: all")
