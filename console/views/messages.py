"""Messages of a queue, browsed without consuming them: a page at a time, filtered by a selector."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from brokerapp.destination import Destination
from brokerapp.errors import DestinationNotFound, SelectorSyntaxError
from brokerapp.snapshot import BrowsedMessage, BrowsePage
from console.access import Verb, needs, queue_named
from console.bodies import readings
from console.gateway import gateway
from console.live.mirror import mirror
from console.masking import check_selector, masked

PAGE_SIZE = 50
#: Headers that STOMP or the broker give a meaning; all others are properties.
STANDARD = frozenset(
    {
        "message-id", "destination", "original-destination", "timestamp", "expires", "priority", "persistent",
        "redelivered", "correlation-id", "reply-to", "type", "content-type", "content-length", "receipt",
        "transaction", "subscription", "ack",
    }
)  # fmt: skip
#: Properties shown in the list, and how long their values may be there.
MAX_SHOWN, MAX_VALUE = 3, 24


@dataclass(frozen=True, slots=True)
class Listed:
    """A message as a row of the list."""

    message: BrowsedMessage

    @property
    def sent(self) -> datetime | None:
        """When it was sent, by its timestamp header."""
        text = self.message.headers.get("timestamp", "")
        return datetime.fromtimestamp(int(text) / 1000, UTC) if text.isdecimal() and len(text) < 15 else None

    @property
    def properties(self) -> list[tuple[str, str]]:
        """All that is no standard header."""
        return sorted((name, value) for name, value in self.message.headers.items() if name not in STANDARD)

    @property
    def standard(self) -> list[tuple[str, str]]:
        """The standard headers, in the order they have on the wire."""
        return [(name, value) for name, value in self.message.headers.items() if name in STANDARD]

    @property
    def shown(self) -> list[tuple[str, str]]:
        """The first properties, shortened."""
        return [
            (name, value if len(value) <= MAX_VALUE else value[: MAX_VALUE - 1] + "…")
            for name, value in self.properties[:MAX_SHOWN]
        ]


@require_GET
@needs(Verb.BROWSE, queue_named)
def messages(request: HttpRequest, name: str) -> HttpResponse:
    """A page of the queue's messages: `after` is the seq to go on from, `selector` what they must match."""
    return render(request, "console/messages.html", _list(request, Destination.queue(name)))


@require_GET
@needs(Verb.BROWSE, queue_named)
def message(request: HttpRequest, name: str, seq: int) -> HttpResponse:
    """One message: the panel alone to htmx, else the list with the panel open."""
    destination = Destination.queue(name)
    found = gateway().message(destination, seq).messages
    if not found and not request.htmx:
        raise Http404("This message is gone: it was consumed, it expired, or somebody removed it.")
    panel = {"destination": destination, "seq": seq, "query": _query(request)}
    if found:
        shown = masked(request.user, found[0], destination)
        panel |= {"row": Listed(shown), "readings": [] if shown.withheld else readings(shown.body)}
    if request.htmx:
        return render(request, "console/parts/message.html", panel)
    return render(request, "console/messages.html", _list(request, destination) | {"selected": seq} | panel)


def _list(request: HttpRequest, destination: Destination) -> dict:
    selector = request.GET.get("selector", "").strip()
    after = _seq(request.GET.get("after"))
    context = {"destination": destination, "selector": selector, "after": after, "query": _query(request)}
    try:
        check_selector(request.user, selector, destination)
        page = _browse(destination, after, selector)
    except SelectorSyntaxError as wrong:
        return context | {"wrong": wrong, "before": selector[: wrong.position], "behind": selector[wrong.position :]}
    next_query = urlencode({name: value for name, value in (("selector", selector), ("after", page.next)) if value})
    first_query = urlencode({"selector": selector}) if selector else ""
    return context | {
        "page": page,
        "rows": [Listed(masked(request.user, each, destination)) for each in page.messages],
        "next": f"?{next_query}" if page.next is not None else "",
        "first": f"?{first_query}" if after else "",
    }


def _browse(destination: Destination, after: int, selector: str) -> BrowsePage:
    try:
        return gateway().browse(destination, after=after, limit=PAGE_SIZE, selector=selector or None)
    except DestinationNotFound:
        if destination not in mirror().current().stats:
            raise
        return BrowsePage([], 0, None)  # a composite that only forwards: it is there, and keeps nothing


def _seq(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 20 else 0


def _query(request: HttpRequest) -> str:
    return f"?{request.GET.urlencode()}" if request.GET else ""
