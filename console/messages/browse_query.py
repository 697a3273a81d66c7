"""Requests for a page of a queue's messages: start, order, and the pages around it. The URL holds the whole request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from brokerapp.errors import DestinationNotFound
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import END_OF_LOG, BrowsedMessage, BrowsePage, MatchCount
from console.broker.gateway import SCAN, gateway
from console.broker.mirror import mirror
from console.ui.formatting.url_query import parse_seq, query_string

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class BrowseRequest:
    """A page of matching messages after or before a message number, oldest or newest first.

    Without a number it starts at the beginning of its order.
    """

    selector: str = ""
    after: int = 0
    before: int = 0
    newest_first: bool = False

    @staticmethod
    def from_query(query: Mapping[str, str]) -> BrowseRequest:
        """Parse the request from a URL's query."""
        after = parse_seq(query.get("after"))
        before = 0 if after else parse_seq(query.get("before"))
        return BrowseRequest(query.get("selector", "").strip(), after, before, query.get("end") == "1")

    @property
    def at_start(self) -> bool:
        """Return whether it starts with the oldest message."""
        return not (self.newest_first or self.after or self.before)

    @property
    def at_end(self) -> bool:
        """Return whether it starts with the newest message."""
        return self.newest_first and not (self.after or self.before)

    @property
    def is_backwards(self) -> bool:
        """Return whether the queue is read towards its oldest message."""
        return bool(self.before) or self.at_end

    def url(self) -> str:
        """Return the query string of this request."""
        return query_string(selector=self.selector, after=self.after, before=self.before, end=int(self.newest_first))

    def read_page(self, queue: Destination) -> BrowsePage:
        """Read the page, oldest first in any order. Raises SelectorSyntaxError, DestinationNotFound."""
        broker, selector = gateway(), self.selector or None
        try:
            if self.is_backwards:
                return broker.browse_back(queue, self.before or END_OF_LOG, PAGE_SIZE, selector)
            return broker.browse(queue, self.after, PAGE_SIZE, selector)
        except DestinationNotFound:
            if queue not in mirror().current().stats:
                raise
            return BrowsePage([], 0, None)  # a composite that only forwards: it exists and stores nothing

    def ordered(self, page: BrowsePage) -> list[BrowsedMessage]:
        """Return the messages of a page in the order of this request."""
        return page.messages[::-1] if self.newest_first else page.messages

    def count_matches(self, queue: Destination, page: BrowsePage) -> MatchCount | None:
        """Count the matches in the whole queue, scanned from the same end; None where the page shows them all."""
        at_an_end = self.at_start or self.at_end
        if not self.selector or (page.next is None and at_an_end):
            return None
        stats = mirror().current().stats.get(queue)
        if not at_an_end and stats is not None and stats.QueueSize > SCAN:
            return None  # a count near an end says nothing about a page in the middle
        count = gateway().count_back if self.is_backwards else gateway().count
        tally = count(queue, self.selector, page if at_an_end else None)
        return tally if at_an_end or tally.is_whole else None

    def older(self, page: BrowsePage) -> BrowseRequest | None:
        """Return the request for the page of older messages."""
        if self.is_backwards:
            return replace(self, before=page.next) if page.next else None
        if not self.after:
            return None
        return replace(self, after=0, before=page.messages[0].seq if page.messages else self.after + 1)

    def newer(self, page: BrowsePage) -> BrowseRequest | None:
        """Return the request for the page of newer messages."""
        if not self.is_backwards:
            return replace(self, after=page.next) if page.next else None
        if not self.before:
            return None
        return replace(self, before=0, after=page.messages[-1].seq if page.messages else self.before - 1)


def newest_seq(queue: Destination) -> int:
    """Return the number of a queue's newest message, 0 for an empty queue."""
    try:
        return gateway().last(queue)
    except DestinationNotFound:
        return 0
