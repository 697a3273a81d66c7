"""The prefixes of a selector, which say how it reads what it compares. Pure.

The text of a selector travels between nodes, brokers and versions, so what it means is part of it, as in ActiveMQ.
"""

from __future__ import annotations

#: Text is read as the number or truth that it is compared with. ActiveMQ puts it before each selector of STOMP clients.
CONVERT = "convert_string_expressions:"
#: Names may hold hyphens.
HYPHENATED = "hyphenated_props:"


def converting(selector: str) -> str:
    """Return a selector with the prefix for conversion."""
    return selector if asks_for_conversion(selector) else CONVERT + selector


def asks_for_conversion(selector: str) -> bool:
    """Return whether a selector has the prefix for conversion, first or second."""
    return selector.removeprefix(HYPHENATED).startswith(CONVERT)


def split_prefixes(selector: str) -> tuple[frozenset[str], str]:
    """Return the prefixes of a selector, each of which counts once, and the condition behind them."""
    prefixes: set[str] = set()
    while found := next((each for each in (CONVERT, HYPHENATED) if selector.startswith(each)), None):
        if found in prefixes:
            break
        prefixes.add(found)
        selector = selector.removeprefix(found)
    return frozenset(prefixes), selector


def condition_of(selector: str) -> str:
    """Return a selector without the prefix for conversion that the broker puts before those of STOMP clients."""
    return selector.removeprefix(CONVERT)
