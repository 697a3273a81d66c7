"""Browses the backlog of a durable or shared subscription.

Requires the permission to browse every topic of the subscription; bodies are masked as they are in these topics.
"""

from __future__ import annotations

from dataclasses import replace

from django.http import Http404, HttpRequest

from brokerapp.model.destination import LIST_SEPARATOR, Destination
from brokerapp.model.stats_records import BrowsePage
from brokerapp.model.subscription_identity import SubscriptionIdentity
from brokerapp.selectors import compile_selector
from console.access.masking import MaskedMessage, check_selector, mask_message
from console.access.permissions import AnyUser, has_permission, require
from console.access.roles import Permission
from console.broker.gateway import gateway


def get_browsable(request: HttpRequest, log: Destination) -> SubscriptionIdentity:
    """Return the subscription of a log. Raises Http404, PermissionDenied."""
    found = gateway().run(gateway().admin.peers.named([log]))
    if log not in found:
        raise Http404(f"Subscription {log.name} not found. It may have been deleted.")
    for topic in found[log].topics:
        require(request, Permission.BROWSE, topic)
    return found[log]


def browse_backlog(
    user: AnyUser, subscription: SubscriptionIdentity, log: Destination, after: int, limit: int, selector: str
) -> tuple[BrowsePage, list[MaskedMessage]]:
    """Return a page of the backlog and its messages, masked for the user.

    Raises SelectorSyntaxError, RequestRefused.
    """
    topics = subscription.topics
    # Of several topics, one whose bodies the user may not read decides.
    topic = next((each for each in topics if not has_permission(user, Permission.READ, each)), topics[0])
    if selector:
        check_selector(user, compile_selector(selector), topic)
    page = gateway().browse(log, after, limit, selector or None)
    sent_to = LIST_SEPARATOR.join(each.stomp for each in topics)  # a masking rule of any topic applies
    return page, [mask_message(user, replace(each, destination=sent_to), topic) for each in page.messages]
