"""Link the time range of a page (a chart, an alert, a group of dead letters) to analyses of it. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.urls import reverse

from analytics.requests.catalogue import ANALYSES
from analytics.requests.time_ranges import LINK_FIELDS
from brokerapp.model.destination import Destination

#: Analyses that explain what a chart shows, the most general first.
_OF_QUEUES = ("traffic", "depth", "latency", "health", "dead-letters", "repeats")
_OF_TOPICS = ("traffic", "latency", "fan-out", "dead-letters")

#: Added on both sides of what happened within moments, so that the range is not empty.
MARGIN = timedelta(minutes=1)


def analysis_link(kind: str, since: datetime, until: datetime, destination: Destination | None = None) -> str:
    """Return the form of an analysis for the time from one event to another, with a margin."""
    about = "" if destination is None else "&" + urlencode({"destination": str(destination)})
    return f"{reverse('ask-analysis', kwargs={'kind': kind})}?{range_query(since - MARGIN, until + MARGIN)}{about}"


def analysis_links(query: str, destination: Destination | None = None) -> list[tuple[str, str]]:
    """Return title and address of analyses for a time range (`from=1&to=2` or `window=1h`) and a destination."""
    kinds = _OF_TOPICS if destination is not None and not destination.is_queue else _OF_QUEUES
    about = "" if destination is None else "&" + urlencode({"destination": str(destination)})
    return [
        (ANALYSES[kind].title, f"{reverse('ask-analysis', kwargs={'kind': kind})}?{query}{about}") for kind in kinds
    ]


def range_query(since: datetime, until: datetime) -> str:
    """Return the query by which links carry a time range, in whole seconds that contain it."""
    return urlencode(dict(zip(LINK_FIELDS, (int(since.timestamp()), -int(-until.timestamp() // 1)), strict=True)))
