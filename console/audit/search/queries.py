"""Search the audit log: filters from a query string, keyset pages, and export formats."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from django.db.models import Q, QuerySet

from brokerapp.model.destination import ANY_ELEMENT, ANY_REST, SEPARATOR, is_pattern
from console.audit.models import AuditEntry
from console.ui.formatting.url_query import UrlQuery
from console.ui.preferences import timezones

PAGE_SIZE = 50
#: Entries read from the database at a time for a file.
CHUNK = 1000
COLUMNS = ("id", "time", "who", "address", "agent", "via", "action", "object", "outcome", "detail", "before", "after")


@dataclass(frozen=True)
class AuditQuery(UrlQuery):
    """Hold the filters of a search as texts; invalid ones are listed in `wrong`."""

    q: str = ""  #: part of who, action or object
    who: str = ""
    action: str = ""
    object: str = ""  #: part of it, or a pattern of destinations: queue://orders.>
    outcome: str = ""
    since: str = ""
    until: str = ""
    before: str = ""  #: entries older than this id
    after: str = ""  #: entries newer than this id
    zone: str = ""  #: by whose clock the times are; UTC without one

    PAGING = ("before", "after")

    @property
    def filters(self) -> dict[str, str]:
        """Return the filters that are set."""
        names = (each.name for each in fields(self) if each.name not in ("before", "after", "zone"))
        return {name: value for name in names if (value := getattr(self, name))}

    @property
    def wrong(self) -> dict[str, str]:
        """Return errors by field."""
        problems = {
            name: f"Invalid date or time {value!r}. Use 2026-11-21 or 2026-11-21T14:30."
            for name in ("since", "until")
            if (value := getattr(self, name)) and timezones.parse_moment(value, self.zone) is None
        }
        if self.outcome and self.outcome not in AuditEntry.Outcome.values:
            problems["outcome"] = f"{self.outcome!r} is not one of {', '.join(AuditEntry.Outcome.values)}"
        return problems

    def entries(self) -> QuerySet[AuditEntry]:
        """Return all matching entries, newest first; none when a filter is invalid."""
        if self.wrong:
            return AuditEntry.objects.none()
        found = AuditEntry.objects.all()
        for name in ("who", "action", "outcome"):
            if value := getattr(self, name):
                found = found.filter(**{name: value})
        if self.q:
            found = found.filter(Q(who__icontains=self.q) | Q(action__icontains=self.q) | Q(object__icontains=self.q))
        if self.object:
            found = found.filter(_about(self.object))
        if since := timezones.parse_moment(self.since, self.zone):
            found = found.filter(time__gte=since)
        if until := timezones.parse_moment(self.until, self.zone):
            found = found.filter(time__lt=until)
        return found

    def page(self) -> AuditPage:
        """Return the page at the key, at the same cost for every page."""
        found = self.entries()
        if self.after.isdecimal():
            newer = list(found.filter(id__gt=int(self.after)).order_by("id")[: PAGE_SIZE + 1])
            rows = newer[:PAGE_SIZE][::-1]
            return AuditPage(rows, has_newer=len(newer) > PAGE_SIZE, has_older=True)
        is_later = self.before.isdecimal()
        older = list((found.filter(id__lt=int(self.before)) if is_later else found)[: PAGE_SIZE + 1])
        return AuditPage(older[:PAGE_SIZE], has_newer=is_later, has_older=len(older) > PAGE_SIZE)


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Hold a page of entries, newest first."""

    entries: list[AuditEntry]
    has_newer: bool
    has_older: bool


def _about(text: str) -> Q:
    """Return a filter for objects that contain the text or match the destination pattern."""
    kind, separator, name = text.rpartition("://")
    if not is_pattern(name):
        return Q(object__icontains=text)
    *elements, last = name.split(SEPARATOR)
    rest = "" if last == ANY_REST else _element(last, bool(elements))
    body = "".join(_element(each, at > 0) for at, each in enumerate(elements)) + rest
    tail = r"(\..*)?" if last == ANY_REST and elements else ".*" if last == ANY_REST else ""
    scheme = re.escape(kind + separator) if kind else "(queue://|topic://)"
    literal = f"{kind}{separator}{SEPARATOR.join(elements[: _first_wildcard(elements)])}" if kind else ""
    return Q(object__startswith=literal) & Q(object__regex=f"^{scheme}{body}{tail}$")


def _element(element: str, is_later: bool) -> str:
    return (r"\." if is_later else "") + (r"[^.]+" if element == ANY_ELEMENT else re.escape(element))


def _first_wildcard(elements: list[str]) -> int:
    return elements.index(ANY_ELEMENT) if ANY_ELEMENT in elements else len(elements)


# -- files


def iterate_rows(entries: QuerySet[AuditEntry]) -> Iterator[dict[str, Any]]:
    """Yield matching entries as rows, newest first, read in chunks."""
    batch = list(entries[:CHUNK])
    while batch:
        for entry in batch:
            yield {name: getattr(entry, name) for name in COLUMNS} | {"time": entry.time.isoformat()}
        batch = list(entries.filter(id__lt=batch[-1].id)[:CHUNK])


def as_json_lines(entries: QuerySet[AuditEntry]) -> Iterator[str]:
    """Yield entries as JSON Lines."""
    for row in iterate_rows(entries):
        yield json.dumps(row, ensure_ascii=False) + "\n"


class _Echo:
    """Return what csv.writer writes, in place of a file."""

    @staticmethod
    def write(text: str) -> str:
        return text


def as_csv(entries: QuerySet[AuditEntry]) -> Iterator[str]:
    """Yield a header line and a line for each entry; before and after as JSON."""
    writer = csv.writer(_Echo())
    yield writer.writerow(COLUMNS)
    for row in iterate_rows(entries):
        yield writer.writerow(_cell(row[name]) for name in COLUMNS)


def _cell(value: Any) -> Any:
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value
    # What begins like a formula would be run by spreadsheets.
    return f"'{text}" if isinstance(text, str) and text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


#: Formats of files: what makes the lines, and their media type.
FORMATS = {"csv": (as_csv, "text/csv"), "jsonl": (as_json_lines, "application/jsonl")}
