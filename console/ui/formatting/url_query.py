"""Read and write the query strings of pages. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, ClassVar, Self
from urllib.parse import urlencode


def parse_integer(text: str | None, default: int = 0, digits: int = 6) -> int:
    """Parse a non-negative integer of at most so many digits; return the default for anything else."""
    return int(text) if text and text.isdecimal() and len(text) <= digits else default


def parse_seq(text: str | None) -> int:
    """Parse a message number; return 0 for anything else."""
    return parse_integer(text, digits=18)


def query_string(**parts: object) -> str:
    """Return the query string of the parts that are set, `?q=orders&page=2`; `?` without any."""
    return "?" + urlencode({name: value for name, value in parts.items() if value})


class UrlQuery:
    """The texts of a query string as a dataclass: each field is a parameter and has a default, which URLs omit."""

    #: The fields that select a page: changes of others start at the first one.
    PAGING: ClassVar[tuple[str, ...]] = ("page",)

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Self:
        """Read the parameters of a query."""
        return cls(**{each.name: query.get(each.name, "").strip() or each.default for each in fields(cls)})

    def url(self, **changes: Any) -> str:
        """Return the query string with these changes; it starts at the first page unless they name another."""
        defaults = {each.name: each.default for each in fields(self)}
        changed = replace(self, **{**{name: defaults[name] for name in self.PAGING}, **changes})
        values = {name: getattr(changed, name) for name in defaults}
        return query_string(**{name: value for name, value in values.items() if value != defaults[name]})
