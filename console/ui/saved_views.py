"""Save list filters under a name; only parameters that the list reads are stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.urls import reverse

from brokerapp.model.destination import DestinationKind
from console.access.permissions import AnyUser
from console.destinations.clients.clients import CONNECTION_TABLE, SUBSCRIPTION_TABLE
from console.destinations.lists import DestinationQuery
from console.ui.preferences.models import SavedView

#: Pages whose views can be kept, by their names: the query of each as it reads it itself.
LISTS: dict[str, Callable[[Mapping[str, str]], str]] = {
    "queues": lambda query: DestinationQuery.read(DestinationKind.QUEUE, query).url(),
    "topics": lambda query: DestinationQuery.read(DestinationKind.TOPIC, query).url(),
    "subscribers": lambda query: SUBSCRIPTION_TABLE.page((), query).url(),
    "connections": lambda query: CONNECTION_TABLE.page((), query).url(),
}


def views_menu(user: AnyUser, page: str, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the menu of a list's views, each with whether it is shown, and the current query."""
    seen = LISTS[page](query)
    views = [(view, view.query == seen) for view in SavedView.objects.filter(user=user, page=page)]
    return {"page_name": page, "views": views, "seen": seen, "max_name": SavedView.MAX_NAME}


def is_full(user: AnyUser, page: str, name: str) -> bool:
    """Return whether the user has reached the maximum of views of a list."""
    return SavedView.objects.filter(user=user, page=page).exclude(name=name).count() >= SavedView.MOST


def url_of(page: str, query: str) -> str:
    """Return the URL of a list with a query."""
    return reverse(page) + query
