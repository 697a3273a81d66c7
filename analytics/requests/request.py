"""The request of a run: analysis, time range and parameters. Celery carries it as a plain dict."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from brokerapp.errors import RequestRefused

DEFAULT_WINDOW = "1h"
_SECONDS = {"m": 60, "h": 3600, "d": 86400}
_WINDOW = re.compile(r"([1-9][0-9]{0,3})([mhd])")
_OWN_FIELDS = ("kind", "window", "since_us", "until_us", "routing", "trial", "access")
WINDOW_RULE = "a number and m, h or d, such as 15m, 1h or 7d"


def is_window(text: str) -> bool:
    """Return whether a text is a length of a time range, such as 15m."""
    return _WINDOW.fullmatch(text) is not None


def seconds_of(text: str) -> int:
    """Return the seconds of a length such as 15m."""
    number, unit = _WINDOW.fullmatch(text).groups()
    return int(number) * _SECONDS[unit]


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A time range in microseconds since the epoch; the end is exclusive."""

    since_us: int
    until_us: int

    @property
    def seconds(self) -> float:
        """Return the length in seconds."""
        return (self.until_us - self.since_us) / 1e6

    def up_to(self, us: int | None) -> TimeWindow:
        """Return the part before `us`, at least one microsecond of it; the whole range for None."""
        return self if us is None else TimeWindow(self.since_us, max(self.since_us + 1, min(self.until_us, us)))


@dataclass(frozen=True, slots=True)
class AnalysisRequest:
    """Names an analysis, its time range and its parameters.

    `window` is a range that ends when the analysis starts (`15m`, `1h`, `7d`), unless both ends are given. `routing`:
    the active definitions as JSON, for analyses that need them. `trial`: a WhatIfRequest as JSON. `access`: a
    DataAccess as JSON, for SQL statements.
    """

    kind: str
    window: str = DEFAULT_WINDOW
    since_us: int | None = None
    until_us: int | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    routing: Mapping[str, Any] | None = None
    trial: Mapping[str, Any] | None = None
    access: Mapping[str, Any] | None = None

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> AnalysisRequest:
        """Read what to_dict returns; unknown fields become parameters. Raises RequestRefused."""
        if not isinstance(data.get("kind"), str):
            raise RequestRefused("kind is missing: name the analysis")
        window, since_us, until_us = data.get("window") or DEFAULT_WINDOW, data.get("since_us"), data.get("until_us")
        if not is_window(window):
            raise RequestRefused(f"{window!r} is not a time range: expected {WINDOW_RULE}")
        if (since_us is None) != (until_us is None):
            raise RequestRefused("since_us and until_us must be given together")
        if since_us is not None and not 0 <= since_us < until_us:
            raise RequestRefused(f"since_us must be less than until_us, got {since_us} and {until_us}")
        parameters = {name: value for name, value in data.items() if name not in _OWN_FIELDS}
        about = (data.get("routing"), data.get("trial"), data.get("access"))
        return AnalysisRequest(data["kind"], window, since_us, until_us, parameters, *about)

    def to_dict(self) -> dict[str, Any]:
        """Return the request as plain values."""
        ends = {} if self.since_us is None else {"since_us": self.since_us, "until_us": self.until_us}
        about = {"routing": self.routing, "trial": self.trial, "access": self.access}
        about = {name: value for name, value in about.items() if value is not None}
        return {"kind": self.kind, "window": self.window, **ends, **self.parameters, **about}

    @property
    def explicit_window(self) -> TimeWindow | None:
        """Return the time range whose ends are both given; None for one that ends when the analysis starts."""
        if self.since_us is None or self.until_us is None:
            return None
        return TimeWindow(self.since_us, self.until_us)

    def window_at(self, now_us: int) -> TimeWindow:
        """Return the time range of an analysis that starts now."""
        if (explicit := self.explicit_window) is not None:
            return explicit
        return TimeWindow(now_us - seconds_of(self.window) * 1_000_000, now_us)
