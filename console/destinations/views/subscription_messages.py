"""Page that browses the backlog of a named topic subscription without consuming it."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from brokerapp.errors import SelectorSyntaxError
from brokerapp.model.destination import Destination, DestinationKind
from console.access.permissions import Permission, permission_required
from console.destinations.clients.subscription_browser import browse_backlog, get_browsable
from console.messages.body_format import render_body
from console.messages.message_view import MessageView
from console.ui.formatting.url_query import parse_seq, query_string

PAGE_SIZE = 50


@require_GET
@permission_required(Permission.BROWSE)
def subscription_messages(request: HttpRequest, log: str) -> HttpResponse:
    """Show a page of a subscription's backlog.

    Query: `after` is the message number to continue from, `selector` filters, `seq` is the opened message. Requires the
    permission to browse every topic of the subscription.
    """
    where = Destination(DestinationKind.SUBSCRIPTION, log)
    subscription = get_browsable(request, where)
    selector, after = (
        request.GET.get("selector", "").strip(),
        parse_seq(request.GET.get("after")),
    )
    context = {"subscription": subscription, "log": where, "selector": selector}
    try:
        page, messages = browse_backlog(request.user, subscription, where, after, PAGE_SIZE, selector)
    except SelectorSyntaxError as wrong:
        return render(request, "destinations/subscription_messages.html", context | {"wrong": wrong})
    rows = list(map(MessageView, messages))
    wanted = parse_seq(request.GET.get("seq"))
    opened = next((each for each in rows if each.message.seq == wanted), None)
    context |= {
        "page": page,
        "is_cut": not selector and page.next is not None and len(messages) < PAGE_SIZE,  # by the time limit
        "rows": rows,
        "opened": opened,
        "renderings": render_body(opened.message.body, opened.jms) if opened and not opened.message.withheld else [],
        "here": query_string(selector=selector, after=after),
        "first": query_string(selector=selector) if after else "",
        "next": query_string(selector=selector, after=page.next) if page.next is not None else "",
    }
    return render(request, "destinations/subscription_messages.html", context)
