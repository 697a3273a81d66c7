"""Which events are asked about: those of a destination, by name or pattern, or of a consumer."""

from __future__ import annotations

import re

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from brokerapp.model.destination import ANY_ELEMENT, ANY_REST, SEPARATOR, Destination

_ELEMENT = r"[^.]*"


def of_destination(events: DataFrame, text: str, column: str = "destination") -> DataFrame:
    """Return the events whose column names a destination that matches; all of them for "".

    A name without its kind stands for queues, topics and subscriptions alike.
    """
    return events.where(_matches(text, F.col(column))) if text else events


def of_consumer(events: DataFrame, consumer: str) -> DataFrame:
    """Return the events that happened with this consumer; all of them for ""."""
    return events.where(F.col("consumer") == consumer) if consumer else events


def _matches(text: str, column: Column) -> Column:
    wanted = Destination.parse(text)
    kind = f"{wanted.kind}://" if wanted.name != text.partition("?")[0].strip() else "[a-z-]+://"
    if kind[-1] == "/" and kind[0] != "[" and not wanted.is_pattern:
        return column == str(wanted)
    return column.rlike(f"^{kind}{regex_of_name(wanted.name)}$")


def regex_of_name(name: str) -> str:
    """Return the regular expression of the names of destinations that a name or pattern matches."""
    *head, last = name.split(SEPARATOR)
    ahead = "".join(f"{_element(each)}\\." for each in head)
    if last != ANY_REST:
        return ahead + _element(last)
    return f"{ahead[:-2]}(?:\\..*)?" if head else ".*"


def _element(text: str) -> str:
    return _ELEMENT if text == ANY_ELEMENT else re.escape(text)
