"""Format numbers, durations, shares and names for the sentences of results."""

from __future__ import annotations

import re
from collections.abc import Sequence


def format_duration(us: float) -> str:
    """Format microseconds: 412 µs, 3.2 ms, 14 s, 2.5 min, 3.1 h, 4 d."""
    units = (
        (86_400_000_000, "d"),
        (3_600_000_000, "h"),
        (60_000_000, "min"),
        (1_000_000, "s"),
        (1000, "ms"),
        (1, "µs"),
    )
    for size, unit in units:
        if us >= size:
            return f"{us / size:.3g} {unit}" if us < 999.5 * size else f"{us / size:,.0f} {unit}"
    return "0 µs"


def format_percent(value: float) -> str:
    """Format a share: 12%, 0.4%. A share below all never reads 100%, one above none never 0%."""
    percent = value * 100
    if 0 < percent < 0.1:
        return "<0.1%"
    if 99.5 <= percent < 100:
        return f"{min(percent, 99.9):.1f}%"
    return f"{percent:.0f}%" if percent >= 10 or percent == int(percent) else f"{percent:.1f}%"


def pluralize(count: float, noun: str, plural: str = "") -> str:
    """Format a count with its noun: 1 message, 1,204 messages, 2 copies."""
    return f"{count:,.0f} " + verb_form(count, noun, plural or f"{noun}s")


#: The sign of negative numbers.
MINUS = "\N{MINUS SIGN}"


def format_signed(count: float) -> str:
    """Format a difference with its sign: +1,204, −3, 0."""
    return f"{count:+,.0f}".replace("-", MINUS) if count else "0"


def verb_form(count: float, one: str, many: str) -> str:
    """Return the form of a verb for a count."""
    return one if count == 1 else many


def format_bytes(count: float) -> str:
    """Format bytes: 512 B, 1.4 MiB."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024 or unit == "TiB":
            break
        count /= 1024
    return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"


def short_name(destination: str | None) -> str:
    """Return a destination without the prefix of a queue: `Orders`, `topic://Prices`."""
    return (destination or "").removeprefix("queue://")


def join_names(names: Sequence[str], most: int = 3) -> str:
    """Join names: A, B and C; A, B, C and 4 more."""
    shown = list(names[:most])
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most} more"
    return " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))


#: An id, or a name with digits or punctuation, at the start of a text: it is not capitalized.
_ID = re.compile(r"\S*[^\sA-Za-z,;:]")
#: The id that the broker gives a client without one.
_GIVEN = re.compile(r"[0-9a-f]{8}-[0-9]+")


def client_name(name: str) -> str:
    """Return a client's name for a sentence; says so when the client gave no id."""
    return f"an unnamed client ({name})" if _GIVEN.fullmatch(name) else name


def client_label(name: str) -> str:
    """Return a client's name for a table or a chart."""
    return f"unnamed ({name})" if _GIVEN.fullmatch(name) else name


def sentence(*parts: str) -> str:
    """Join the clauses that are not empty to sentences; an id at the beginning keeps its case."""
    return " ".join(_capitalized(each) + "." for each in parts if each)


def _capitalized(clause: str) -> str:
    return clause if _ID.match(clause) else clause[:1].upper() + clause[1:]
