"""Read the options of the monitoring endpoints from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

#: Destinations that /metrics lists one by one unless told otherwise. A series costs Prometheus some 3 KB of memory,
#: and each destination has some thirty.
MAX_LISTED = 2_000


class OriginRule(StrEnum):
    """Name how strictly the Origin header of a request is checked."""

    OFF = "off"  #: nothing
    LENIENT = "lenient"  #: who says one, must say an allowed one
    STRICT = "strict"  #: it must say an allowed one, as in ActiveMQ


class InvalidOption(ValueError):
    """Report a variable with an invalid value."""


@dataclass(frozen=True, slots=True)
class MonitorOptions:
    """Hold the options of an installation."""

    broker: str = (
        "localhost"  #: the broker's name in the names of beans: checks have ActiveMQ's default written in them
    )
    origin: OriginRule = OriginRule.OFF
    origins: tuple[str, ...] = ()  #: allowed besides the endpoint's own; `*`: any
    topic_blank: bool = True  #: end the names of topics with a blank, as ActiveMQ's page does and dashboards expect
    listed: int = MAX_LISTED
    exec_all: bool = False  #: operations that change something may be executed, by who has the right to it

    @staticmethod
    def read(variables: Mapping[str, str] = os.environ) -> MonitorOptions:
        """Return the options of these variables. Raises InvalidOption."""
        origins = tuple(each.strip() for each in variables.get("SLUICE_MONITOR_ORIGINS", "").split(",") if each.strip())
        return MonitorOptions(
            broker=variables.get("SLUICE_MONITOR_BROKER") or "localhost",
            origin=OriginRule(_one_of(variables, "SLUICE_MONITOR_ORIGIN", "off", [*OriginRule])),
            origins=origins,
            topic_blank=_one_of(variables, "SLUICE_MONITOR_TOPIC_BLANK", "on", ["on", "off"]) == "on",
            listed=_number(variables, "SLUICE_MONITOR_LISTED", MAX_LISTED),
            exec_all=_one_of(variables, "SLUICE_MONITOR_EXEC", "read", ["read", "all"]) == "all",
        )


def _one_of(variables: Mapping[str, str], name: str, default: str, allowed: list[str]) -> str:
    value = variables.get(name) or default
    if value not in allowed:
        raise InvalidOption(f"{name}={value}: expected one of {', '.join(allowed)}")
    return value


def _number(variables: Mapping[str, str], name: str, default: int) -> int:
    text = variables.get(name) or str(default)
    if not text.isdecimal():
        raise InvalidOption(f"{name}={text}: expected a whole number")
    return int(text)
