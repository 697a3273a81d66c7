"""What a named subscription of topics keeps, browsed as a queue is, without consuming."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from brokerapp.errors import SelectorSyntaxError
from brokerapp.model.destination import Destination, DestinationKind
from console.access.permissions import Verb, permission_required
from console.destinations.clients.subscription_browser import browsable, browse
from console.messages.body_format import readings
from console.messages.message_view import Listed

PAGE_SIZE = 50


@require_GET
@permission_required(Verb.BROWSE)
def kept(request: HttpRequest, log: str) -> HttpResponse:
    """A page of its messages: `after` is the number to go on from, `selector` what they must match, `seq` the one
    that is opened. Who may browse all of its topics may browse it, and reads what they read there.
    """
    where = Destination(DestinationKind.SUBSCRIPTION, log)
    subscription = browsable(request, where)
    selector, after = request.GET.get("selector", "").strip(), _number(request, "after")
    context = {"subscription": subscription, "log": where, "selector": selector}
    try:
        page, messages = browse(request.user, subscription, where, after, PAGE_SIZE, selector)
    except SelectorSyntaxError as wrong:
        return render(request, "destinations/subscription_messages.html", context | {"wrong": wrong})
    rows = list(map(Listed, messages))
    opened = next((each for each in rows if each.message.seq == _number(request, "seq")), None)
    context |= {
        "page": page,
        "rows": rows,
        "opened": opened,
        "readings": readings(opened.message.body) if opened and not opened.message.withheld else [],
        "here": _url(selector=selector, after=after),
        "first": _url(selector=selector) if after else "",
        "next": _url(selector=selector, after=page.next) if page.next is not None else "",
    }
    return render(request, "destinations/subscription_messages.html", context)


def _number(request: HttpRequest, name: str) -> int:
    text = request.GET.get(name, "")
    return int(text) if text.isdecimal() and len(text) < 19 else 0


def _url(**parts: str | int | None) -> str:
    return "?" + urlencode({name: value for name, value in parts.items() if value})
