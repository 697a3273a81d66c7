"""Write the XML pages of ActiveMQ's web console: queues.jsp, topics.jsp, subscribers.jsp. Pure.

A page is given in pieces, so that one of ten thousand queues is on its way before it is complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from brokerapp.model.stats_records import DestinationStats
from console.exporters.jolokia.client_beans import NOT_SET, ConsumerBean
from console.exporters.jolokia.object_names import encoded

#: Items in one piece.
PIECE = 500


def queues_page(queues: Iterable[DestinationStats]) -> Iterator[str]:
    """Yield the page of these queues."""
    return _page("queues", map(_queue, queues))


def topics_page(topics: Iterable[DestinationStats], blank: bool) -> Iterator[str]:
    """Yield the page of these topics; with `blank` names end with a blank, as in ActiveMQ."""
    return _page("topics", (_topic(each, blank) for each in topics))


def subscribers_page(consumers: Iterable[ConsumerBean]) -> Iterator[str]:
    """Yield the page of the durable subscriptions, online ones first."""
    in_order = sorted((each for each in consumers if each.kept), key=lambda each: not each.is_active)
    return _page("subscribers", map(_subscriber, in_order))


def _page(root: str, items: Iterable[str]) -> Iterator[str]:
    yield f"<{root}>\n"
    items = iter(items)
    while piece := "".join(islice(items, PIECE)):
        yield piece
    yield f"</{root}>\n"


def _queue(stats: DestinationStats) -> str:
    name = stats.destination.name
    feed = f"queueBrowse/{quote(name, safe='')}?view=rss&amp;feedType="
    return (
        f"<queue name={quoteattr(name)}>\n{_counts(stats)}"
        f"<feed>\n<atom>{feed}atom_1.0</atom>\n<rss>{feed}rss_2.0</rss>\n</feed>\n</queue>\n"
    )


def _topic(stats: DestinationStats, blank: bool) -> str:
    return f"<topic name={quoteattr(stats.destination.name + ' ' * blank)}>\n{_counts(stats)}</topic>\n"


def _counts(stats: DestinationStats) -> str:
    return (
        f'<stats size="{stats.QueueSize}" consumerCount="{stats.ConsumerCount}" '
        f'enqueueCount="{stats.EnqueueCount}" dequeueCount="{stats.DequeueCount}"/>\n'
    )


def _subscriber(each: ConsumerBean) -> str:
    attributes = {
        "clientId": each.client_id,
        "subscriptionName": each.kept.subscription.name,
        "connectionId": encoded(each.peer.stats.id) if each.peer else NOT_SET,
        "destinationName": each.name,
        "selector": each.selector or "",
        "active": "yes" if each.is_active else "no",
    }
    said = " ".join(f"{name}={quoteattr(value)}" for name, value in attributes.items())
    return (
        f"<subscriber {said}>\n"
        f'<stats pendingQueueSize="{each.pending}" dispatchedQueueSize="{each.in_flight}" '
        f'dispatchedCounter="{each.dispatched}" enqueueCounter="{each.enqueued}" '
        f'dequeueCounter="{each.dequeued}"/>\n</subscriber>\n'
    )
