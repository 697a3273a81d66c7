"""What a user may see in the views: destinations, where properties are visible, and which of them are masked. Pure.

The console makes it of roles and masking rules when it sends a run, and a run carries it: Spark applies it within the
views (transforms/sql/views.py), below everything that a statement can say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

REMOVE, REPLACE, LAST4 = "remove", "replace", "last4"

#: Groups of patterns of destinations: of each group one must match. No groups: every destination matches.
Patterns = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class PropertyMask:
    """Masks the properties whose name matches a pattern (*, ?, [a-z], [!a-z]), whatever its case."""

    pattern: str
    action: str
    replacement: str

    @property
    def regex(self) -> str:
        """Return the pattern as a regular expression of Java and Python for whole names."""
        return f"^(?:{_glob_regex(self.pattern)})$"


@dataclass(frozen=True, slots=True)
class DataAccess:
    """Holds what the views show; `properties` None: no properties anywhere. Of the masks the first match counts."""

    destinations: Patterns = ()
    properties: Patterns | None = ()
    masks: tuple[PropertyMask, ...] = ()
    masks_reasons: bool = False  #: whether causes of dead letters are masked
    spared: tuple[str, ...] = ()  #: names of properties that no mask applies to

    @property
    def is_unrestricted(self) -> bool:
        """Return whether the views show everything."""
        return not (self.destinations or self.properties or self.properties is None or self.masks or self.masks_reasons)

    def covers(self, other: DataAccess) -> bool:
        """Return whether who has this access may read a result that was made with the other one."""
        return self.is_unrestricted or self == other

    def both(self, other: DataAccess) -> DataAccess:
        """Return what both allow."""
        properties = None
        if self.properties is not None and other.properties is not None:
            properties = _merged(self.properties, other.properties)
        return DataAccess(
            _merged(self.destinations, other.destinations),
            properties,
            _merged(self.masks, other.masks),
            self.masks_reasons or other.masks_reasons,
            tuple(each for each in self.spared if each in other.spared),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the access as values that JSON can hold."""
        return {
            "destinations": [list(each) for each in self.destinations],
            "properties": None if self.properties is None else [list(each) for each in self.properties],
            "masks": [[each.pattern, each.action, each.replacement] for each in self.masks],
            "masks_reasons": self.masks_reasons,
            "spared": list(self.spared),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> DataAccess:
        """Read what to_json returns."""
        properties = data["properties"]
        return DataAccess(
            _patterns(data["destinations"]),
            None if properties is None else _patterns(properties),
            tuple(PropertyMask(*each) for each in data["masks"]),
            bool(data["masks_reasons"]),
            tuple(data["spared"]),
        )


def _merged(first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys((*first, *second)))


def _patterns(groups: Sequence[Sequence[str]]) -> Patterns:
    return tuple(tuple(group) for group in groups)


def _glob_regex(pattern: str) -> str:
    """Convert a pattern of fnmatch; `fnmatch.translate` uses groups that Java does not know."""
    found, at = [], 0
    while at < len(pattern):
        letter, at = pattern[at], at + 1
        end = pattern.find("]", at + (2 if pattern[at : at + 1] == "!" else 1)) if letter == "[" else -1
        if letter == "*":
            found.append(".*")
        elif letter == "?":
            found.append(".")
        elif end > 0:
            inside, at = pattern[at:end], end + 1
            negated = inside[:1] == "!"
            found.append(_class_regex(inside[1:] if negated else inside, negated))
        else:
            found.append(re.escape(letter))
    return "".join(found)


def _class_regex(inside: str, negated: bool) -> str:
    """Convert what stands between [ and ]; a range from a greater to a smaller letter is empty, as in fnmatch."""
    parts, at = [], 0
    while at < len(inside):
        first, last = inside[at], inside[at + 2 : at + 3]
        if inside[at + 1 : at + 2] == "-" and last:
            parts += [f"{_hex(first)}-{_hex(last)}"] if first <= last else []
            at += 3
        else:
            parts.append(_hex(first))
            at += 1
    if not parts:
        return "." if negated else "(?!)"
    return f"[{'^' if negated else ''}{''.join(parts)}]"


def _hex(letter: str) -> str:
    return f"\\u{ord(letter):04x}" if ord(letter) < 0x10000 else letter
