"""Define the navigation of every page and find the current entry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.urls import reverse

from console.access.permissions import Verb


@dataclass(frozen=True, slots=True)
class NavigationItem:
    """Describe an entry of the navigation: page, label, icon and required permission."""

    page: str
    label: str
    icon: str
    verb: Verb = Verb.SEE

    @property
    def url(self) -> str:
        """Return the URL of the entry's page."""
        return reverse(self.page)


#: The groups from top to bottom: what a group is called, and its entries.
NAVIGATION: tuple[tuple[str, tuple[NavigationItem, ...]], ...] = (
    ("", (NavigationItem("overview", "Overview", "overview"),)),
    (
        "Broker",
        (
            NavigationItem("queues", "Queues", "queue"),
            NavigationItem("topics", "Topics", "topic"),
            NavigationItem("subscribers", "Subscriptions", "subscriber"),
            NavigationItem("connections", "Connections", "connection"),
            NavigationItem("routing", "Routing", "routing"),
            NavigationItem("topology", "Topology", "topology"),
        ),
    ),
    (
        "Messages",
        (
            NavigationItem("dead-letters", "Dead letters", "dlq", Verb.BROWSE),
            NavigationItem("jobs", "Jobs", "history", Verb.BROWSE),
            NavigationItem("scheduled", "Scheduled messages", "clock", Verb.BROWSE),
            NavigationItem("send", "Send message", "play", Verb.SEND),
        ),
    ),
    (
        "Monitoring",
        (
            NavigationItem("alerts", "Alerts", "bell"),
            NavigationItem("analyses", "Analyses", "analysis"),
            NavigationItem("reports", "Reports", "report"),
        ),
    ),
    (
        "Administration",
        (
            NavigationItem("audit", "Audit log", "audit", Verb.AUDIT),
            NavigationItem("users", "Users", "people", Verb.USERS),
        ),
    ),
)


def navigation_for(rights: Mapping[str, bool], path: str) -> list[tuple[str, list[tuple[NavigationItem, bool]]]]:
    """Return the visible groups, each entry with whether the page at this path belongs to it."""
    groups = [(label, [entry for entry in entries if rights[entry.verb.name.lower()]]) for label, entries in NAVIGATION]
    here = max(
        (entry.url for _, entries in groups for entry in entries if _is_below(path, entry.url)), key=len, default=""
    )
    return [(label, [(entry, entry.url == here) for entry in entries]) for label, entries in groups if entries]


def _is_below(path: str, url: str) -> bool:
    return path == url if url == "/" else path.startswith(url)
