"""A look at a page of a queue's messages: where it begins, in which order, what lies around it. Its URL says all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from brokerapp.errors import DestinationNotFound
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import END_OF_LOG, BrowsedMessage, BrowsePage, MatchCount
from console.broker.gateway import SCAN, gateway
from console.broker.mirror import mirror

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class Look:
    """The messages that match, behind a number or before one, in one of two orders: as they are consumed, or the newest
    first. Without a number it begins where its order does.
    """

    selector: str = ""
    after: int = 0
    before: int = 0
    newest_first: bool = False

    @staticmethod
    def asked(query: Mapping[str, str]) -> Look:
        """The one that a query asks for."""
        after = number(query.get("after"))
        before = 0 if after else number(query.get("before"))
        return Look(query.get("selector", "").strip(), after, before, query.get("end") == "1")

    @property
    def at_start(self) -> bool:
        """Whether it begins with the oldest."""
        return not (self.newest_first or self.after or self.before)

    @property
    def at_end(self) -> bool:
        """Whether it begins with the newest."""
        return self.newest_first and not (self.after or self.before)

    @property
    def goes_back(self) -> bool:
        """Whether the queue is read towards its oldest message."""
        return bool(self.before) or self.at_end

    def url(self) -> str:
        """The query by which it is asked for again."""
        return url(selector=self.selector, after=self.after, before=self.before, end=int(self.newest_first))

    def page(self, queue: Destination) -> BrowsePage:
        """What it finds, the oldest first whatever its order. Raises SelectorSyntaxError, DestinationNotFound."""
        door, selector = gateway(), self.selector or None
        try:
            if self.goes_back:
                return door.browse_back(queue, self.before or END_OF_LOG, PAGE_SIZE, selector)
            return door.browse(queue, self.after, PAGE_SIZE, selector)
        except DestinationNotFound:
            if queue not in mirror().current().stats:
                raise
            return BrowsePage([], 0, None)  # a composite that only forwards: it is there, and keeps nothing

    def ordered(self, page: BrowsePage) -> list[BrowsedMessage]:
        """What a page found, in its order."""
        return page.messages[::-1] if self.newest_first else page.messages

    def tally(self, queue: Destination, page: BrowsePage) -> MatchCount | None:
        """How many match in the whole queue, looked for from the same end, where the page does not show just that."""
        at_an_end = self.at_start or self.at_end
        if not self.selector or (page.next is None and at_an_end):
            return None
        stats = mirror().current().stats.get(queue)
        if not at_an_end and stats is not None and stats.QueueSize > SCAN:
            return None  # what is found near an end would say nothing of a page in the middle
        count = gateway().count_back if self.goes_back else gateway().count
        tally = count(queue, self.selector, page if at_an_end else None)
        return tally if at_an_end or tally.is_whole else None

    def older(self, page: BrowsePage) -> Look | None:
        """What lies before the page."""
        if self.goes_back:
            return replace(self, before=page.next) if page.next else None
        if not self.after:
            return None
        return replace(self, after=0, before=page.messages[0].seq if page.messages else self.after + 1)

    def newer(self, page: BrowsePage) -> Look | None:
        """What lies behind it."""
        if not self.goes_back:
            return replace(self, after=page.next) if page.next else None
        if not self.before:
            return None
        return replace(self, before=0, after=page.messages[-1].seq if page.messages else self.before - 1)


def newest(queue: Destination) -> int:
    """The number of a queue's newest message, 0 where there is none."""
    try:
        return gateway().last(queue)
    except DestinationNotFound:
        return 0


def url(**parts: str | int | None) -> str:
    """A query of those parts that say something."""
    return "?" + urlencode({name: value for name, value in parts.items() if value})


def number(text: str | None) -> int:
    """A message's number as a query has it; 0 for what is none."""
    return int(text) if text and text.isdecimal() and len(text) < 19 else 0
