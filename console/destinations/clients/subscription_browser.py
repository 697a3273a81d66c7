"""What a durable or shared subscription keeps: who may browse all of its topics may browse it, and reads what they read
there.
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
from console.access.roles import Verb
from console.broker.gateway import gateway


def browsable(request: HttpRequest, log: Destination) -> SubscriptionIdentity:
    """The subscription of this log. Raises Http404, PermissionDenied."""
    found = gateway().run(gateway().admin.peers.named([log]))
    if log not in found:
        raise Http404(f"There is no subscription {log.name}.")
    for topic in found[log].topics:
        require(request, Verb.BROWSE, topic)
    return found[log]


def browse(
    user: AnyUser, subscription: SubscriptionIdentity, log: Destination, after: int, limit: int, selector: str
) -> tuple[BrowsePage, list[MaskedMessage]]:
    """A page of what it keeps, and its messages as the user reads them. Raises SelectorSyntaxError, RequestRefused."""
    topics = subscription.topics
    # Of several topics the one whose bodies the user may not read decides.
    topic = next((each for each in topics if not has_permission(user, Verb.READ, each)), topics[0])
    if selector:
        check_selector(user, compile_selector(selector), topic)
    page = gateway().browse(log, after, limit, selector or None)
    sent_to = LIST_SEPARATOR.join(each.stomp for each in topics)  # what is masked in one of them is masked here
    return page, [mask_message(user, replace(each, destination=sent_to), topic) for each in page.messages]
