"""What a named subscription of topics keeps, browsed as a queue is, without consuming."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from brokerapp.destination import LIST_SEPARATOR, Destination, Kind
from brokerapp.errors import SelectorSyntaxError
from brokerapp.named_subscription import NamedSubscription
from brokerapp.selectors import compile_selector
from console.access import Verb, may, needs, require
from console.bodies import readings
from console.gateway import SCAN, gateway
from console.listed import Listed
from console.masking import check_selector, masked

PAGE_SIZE = 50


@require_GET
@needs(Verb.BROWSE)
def kept(request: HttpRequest, log: str) -> HttpResponse:
    """A page of its messages: `after` is the number to go on from, `selector` what they must match, `seq` the one
    that is opened. Who may browse all of its topics may browse it, and reads what they read there.
    """
    where = Destination(Kind.SUBSCRIPTION, log)
    subscription = _named(where)
    for topic in subscription.topics:
        require(request, Verb.BROWSE, topic)
    topics, selector, after = subscription.topics, request.GET.get("selector", "").strip(), _number(request, "after")
    # Of several topics the one whose bodies the user may not read decides.
    topic = next((each for each in topics if not may(request.user, Verb.READ, each)), topics[0])
    context = {"subscription": subscription, "log": where, "selector": selector, "most": SCAN}
    try:
        if selector:
            check_selector(request.user, compile_selector(selector), topic)
        page = gateway().browse(where, after, PAGE_SIZE, selector or None)
    except SelectorSyntaxError as wrong:
        return render(request, "console/kept.html", context | {"wrong": wrong})
    sent_to = LIST_SEPARATOR.join(each.stomp for each in topics)  # what is masked in one of them is masked here
    messages = [replace(each, destination=sent_to) for each in page.messages]
    rows = [Listed(masked(request.user, each, topic)) for each in messages]
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
    return render(request, "console/kept.html", context)


def _named(log: Destination) -> NamedSubscription:
    found = gateway().run(gateway().admin.peers.named([log]))
    if log not in found:
        raise Http404(f"There is no subscription {log.name}.")
    return found[log]


def _number(request: HttpRequest, name: str) -> int:
    text = request.GET.get(name, "")
    return int(text) if text.isdecimal() and len(text) < 19 else 0


def _url(**parts: str | int | None) -> str:
    return "?" + urlencode({name: value for name, value in parts.items() if value})
