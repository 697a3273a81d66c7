"""Save list filters under a name; only parameters that the list reads are stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.urls import reverse

from brokerapp.model.destination import DestinationKind
from console.access.permissions import AnyUser
from console.destinations.clients.clients import CONNECTION_TABLE
from console.destinations.clients.topic_subscriptions import SUBSCRIPTION_TABLE
from console.destinations.lists import DESTINATION_TABLES
from console.ui.formatting.tables import Table
from console.ui.preferences.models import SavedView

#: Tables whose views can be saved, by the names of their pages.
LISTS: dict[str, Table] = {
    "queues": DESTINATION_TABLES[DestinationKind.QUEUE],
    "topics": DESTINATION_TABLES[DestinationKind.TOPIC],
    "subscribers": SUBSCRIPTION_TABLE,
    "connections": CONNECTION_TABLE,
}


def canonical_query(page: str, query: Mapping[str, str]) -> str:
    """Return the query string of a list with the parameters that it reads, and no others."""
    return LISTS[page].page((), query).url()


def views_menu(user: AnyUser, page: str, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the menu of a list's views, each with whether it is shown, and the current query."""
    seen = canonical_query(page, query)
    views = [(view, view.query == seen) for view in SavedView.objects.filter(user=user, page=page)]
    return {"page_name": page, "views": views, "seen": seen, "max_name": SavedView.MAX_NAME}


def is_full(user: AnyUser, page: str, name: str) -> bool:
    """Return whether the user has reached the maximum of views of a list."""
    return SavedView.objects.filter(user=user, page=page).exclude(name=name).count() >= SavedView.MOST


def url_of(page: str, query: str) -> str:
    """Return the URL of a list with a query."""
    return reverse(page) + query
