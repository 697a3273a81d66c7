"""AnalysisRequest: which question is asked, about which stretch of time. Travels as a plain dict through Celery."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from brokerapp.errors import RequestRefused

DEFAULT_WINDOW = "1h"
_SECONDS = {"m": 60, "h": 3600, "d": 86400}
_WINDOW = re.compile(r"([1-9][0-9]{0,3})([mhd])")
_OWN_FIELDS = ("kind", "window", "since_us", "until_us", "routing", "trial")
WINDOW_RULE = "a number and m, h or d, such as 15m, 1h or 7d"


def is_window(text: str) -> bool:
    """Whether this says how long a window is."""
    return _WINDOW.fullmatch(text) is not None


def seconds_of(text: str) -> int:
    """How long such a window is."""
    number, unit = _WINDOW.fullmatch(text).groups()
    return int(number) * _SECONDS[unit]


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A stretch of time in microseconds since the epoch; the end is not part of it."""

    since_us: int
    until_us: int

    @property
    def seconds(self) -> float:
        """How long it is."""
        return (self.until_us - self.since_us) / 1e6

    def up_to(self, us: int | None) -> TimeWindow:
        """The part before a moment; the first microsecond where that is none. All of it where nobody knows a moment."""
        return self if us is None else TimeWindow(self.since_us, max(self.since_us + 1, min(self.until_us, us)))


@dataclass(frozen=True, slots=True)
class AnalysisRequest:
    """`window` is the stretch that ends when the analysis starts (`15m`, `1h`, `7d`), unless both ends are given.

    `routing`: the definitions in force as JSON, for questions about them. `trial`: proposed ones (whatif/trial.py).
    """

    kind: str
    window: str = DEFAULT_WINDOW
    since_us: int | None = None
    until_us: int | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    routing: Mapping[str, Any] | None = None
    trial: Mapping[str, Any] | None = None

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> AnalysisRequest:
        """The inverse of to_dict; raises RequestRefused. What is not a field of the request is a parameter."""
        if not isinstance(data.get("kind"), str):
            raise RequestRefused("a request names the analysis: kind is missing")
        window, since_us, until_us = data.get("window") or DEFAULT_WINDOW, data.get("since_us"), data.get("until_us")
        if not is_window(window):
            raise RequestRefused(f"{window!r} is not a window: expected {WINDOW_RULE}")
        if (since_us is None) != (until_us is None):
            raise RequestRefused("since_us and until_us are given together or not at all")
        if since_us is not None and not 0 <= since_us < until_us:
            raise RequestRefused(f"a window begins before it ends: {since_us} to {until_us}")
        parameters = {name: value for name, value in data.items() if name not in _OWN_FIELDS}
        about = (data.get("routing"), data.get("trial"))
        return AnalysisRequest(data["kind"], window, since_us, until_us, parameters, *about)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        ends = {} if self.since_us is None else {"since_us": self.since_us, "until_us": self.until_us}
        about = {"routing": self.routing, "trial": self.trial}
        about = {name: value for name, value in about.items() if value is not None}
        return {"kind": self.kind, "window": self.window, **ends, **self.parameters, **about}

    def window_at(self, now_us: int) -> TimeWindow:
        """The stretch of time that is meant when the analysis starts now."""
        if self.since_us is not None and self.until_us is not None:
            return TimeWindow(self.since_us, self.until_us)
        return TimeWindow(now_us - seconds_of(self.window) * 1_000_000, now_us)
