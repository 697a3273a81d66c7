"""Parse and match JMX object names, `domain:key=value,...`, and patterns of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from brokerapp.errors import RequestRefused

DOMAIN = "org.apache.activemq"

#: What ActiveMQ puts in place of characters that mean something in an object name.
_ENCODED = {":": "_", ",": "_", "'": "_", '"': "_", "?": "&qe;", "=": "&amp;", "*": "&ast;"}
_TO_ENCODE = re.compile(r"[:,'\"?=*]")
#: One `key=value` of a list; a quoted value may hold commas.
_PROPERTY = re.compile(r'([^=,]+)=("(?:\\.|[^"\\])*"|[^,]*)(?:,|$)')
ANY = "*"


class MalformedName(RequestRefused):
    """Report a text that is not an object name or pattern."""


def encoded(part: str) -> str:
    """Return a name as bean names contain it; several names may map to one, so `Name` has the original."""
    return _TO_ENCODE.sub(lambda found: _ENCODED[found[0]], part)


@dataclass(frozen=True)
class ObjectName:
    """Represent a bean's name; keys keep their order, the canonical form sorts them."""

    domain: str
    keys: Mapping[str, str]

    @cached_property
    def canonical(self) -> str:
        """Return the name with sorted keys."""
        return f"{self.domain}:{listed(self.keys, canonical=True)}"

    @cached_property
    def created(self) -> str:
        """Return the name with keys in ActiveMQ's order."""
        return f"{self.domain}:{listed(self.keys, canonical=False)}"

    def __str__(self) -> str:
        return self.created


def listed(keys: Mapping[str, str], canonical: bool) -> str:
    """Return the keys of a name as text."""
    return ",".join(f"{key}={value}" for key, value in (sorted(keys.items()) if canonical else keys.items()))


@dataclass(frozen=True)
class NamePattern:
    """Represent a bean name or a pattern with `*` and `?` in domain and values, or `,*` at the end."""

    text: str
    domain: str
    keys: Mapping[str, str]
    is_open: bool  #: further keys may follow

    @staticmethod
    def parse(text: str) -> NamePattern:
        """Parse a pattern. Raises MalformedName."""
        domain, colon, rest = text.partition(":")
        if not colon or not rest:
            raise MalformedName(f"{text!r} is not the name of a bean: expected DOMAIN:KEY=VALUE,...")
        is_open = rest == ANY or rest.endswith(",*")
        rest = "" if rest == ANY else rest.removesuffix(",*")
        keys: dict[str, str] = {}
        at = 0
        while at < len(rest):
            found = _PROPERTY.match(rest, at)
            if found is None or found[1] in keys:
                raise MalformedName(f"{text!r} is not the name of a bean: {rest[at:]!r} is not KEY=VALUE, once each")
            keys[found[1]] = found[2]
            at = found.end()
        return NamePattern(text, domain, keys, is_open)

    @property
    def is_pattern(self) -> bool:
        """Return whether the pattern can match several beans."""
        return self.is_open or _wild(self.domain) or any(map(_wild, self.keys.values()))

    def matches(self, name: ObjectName) -> bool:
        """Return whether the pattern matches the name."""
        if not _fits(self.domain, name.domain) or (not self.is_open and self.keys.keys() != name.keys.keys()):
            return False
        return all(key in name.keys and _fits(value, name.keys[key]) for key, value in self.keys.items())


def _wild(text: str) -> bool:
    return not text.startswith('"') and ("*" in text or "?" in text)


def _fits(pattern: str, text: str) -> bool:
    if not _wild(pattern):
        return pattern == text
    if pattern == ANY:
        return True
    return (
        re.fullmatch("".join({"*": ".*", "?": "."}.get(each, re.escape(each)) for each in pattern), text, re.S)
        is not None
    )
