"""The list of runs as a URL asks for it: filters, search, order, page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import F, Q, QuerySet

from console.access.permissions import AnyUser
from console.analyses.models import AnalysisRun
from console.analyses.questions import readable_runs
from console.ui.formatting.url_query import UrlQuery

PAGE_SIZE = 25
State = AnalysisRun.State
#: What the chips narrow the list to.
CHIPS: dict[str, tuple[str, Q]] = {
    "": ("All", Q()),
    "open": ("In progress", ~Q(state__in=AnalysisRun.FINAL)),
    "done": ("Done", Q(state=State.DONE)),
    "failed": ("Failed", Q(state=State.FAILED)),
    "pinned": ("Pinned", Q(pinned=True)),
}
#: What the list can be sorted by: label, expression, and whether the greatest come first.
SORTS: dict[str, tuple[str, Any, bool]] = {
    "title": ("Analysis", F("title"), False),
    "state": ("State", F("state"), False),
    "by": ("Requested by", F("asked_by"), False),
    "asked": ("Requested", F("created"), True),
    "took": ("Duration", F("finished") - F("created"), True),
}
USUAL = "asked"


@dataclass(frozen=True)
class RunQuery(UrlQuery):
    """Which runs, in which order; texts as they stand in the URL. What makes no sense falls back to its default."""

    show: str = ""
    kind: str = ""
    q: str = ""  #: part of the title, the sentence or who asked
    sort: str = USUAL  #: reversed where it begins with a hyphen
    page: str = "1"

    @classmethod
    def read(cls, query: Mapping[str, str]) -> RunQuery:
        """Read the parameters of a query; an unknown filter or order falls back to the default."""
        found = super().read(query)
        show, sort = found.show, found.sort
        return replace(
            found, show=show if show in CHIPS else "", sort=sort if sort.removeprefix("-") in SORTS else USUAL
        )

    @property
    def narrowed(self) -> bool:
        """Return whether a filter is set."""
        return bool(self.show or self.kind or self.q)

    def runs(self) -> QuerySet[AnalysisRun]:
        """Return all that it finds, in order."""
        found = AnalysisRun.objects.filter(CHIPS[self.show][1])
        if self.kind:
            found = found.filter(kind=self.kind)
        if self.q:
            found = found.filter(
                Q(title__icontains=self.q) | Q(sentence__icontains=self.q) | Q(asked_by__icontains=self.q)
            )
        name = self.sort.removeprefix("-")
        _, expression, is_falling = SORTS[name]
        falls = is_falling != self.sort.startswith("-")
        order = expression.desc(nulls_last=True) if falls else expression.asc(nulls_last=True)
        return found.order_by(order, "-created")

    def shown(self, user: AnyUser) -> Page:
        """Return the requested page of the runs that the user may see."""
        return Paginator(readable_runs(self.runs(), user), PAGE_SIZE).get_page(self.page)

    @property
    def heads(self) -> list[tuple[str, str, str, str]]:
        """Return the columns: name, label, link that sorts by it, aria-sort."""
        return [(name, label, self.url(sort=f"-{name}" if self.sort == name else name), self._order(name))
                for name, (label, *_) in SORTS.items()]  # fmt: skip

    def _order(self, name: str) -> str:
        if self.sort.removeprefix("-") != name:
            return "none"
        return "descending" if SORTS[name][2] != self.sort.startswith("-") else "ascending"
