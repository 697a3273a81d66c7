"""The menu beside every page. An entry is where one is when the page's address begins with the entry's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.urls import reverse

from console.access.permissions import Verb


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: the name of its page, and the right that shows it."""

    page: str
    label: str
    icon: str
    verb: Verb = Verb.SEE

    @property
    def url(self) -> str:
        """The page's address."""
        return reverse(self.page)


#: The groups from top to bottom: what a group is called, and its entries.
RAIL: tuple[tuple[str, tuple[Entry, ...]], ...] = (
    ("", (Entry("overview", "Overview", "overview"),)),
    (
        "Broker",
        (
            Entry("queues", "Queues", "queue"),
            Entry("topics", "Topics", "topic"),
            Entry("subscribers", "Subscribers", "subscriber"),
            Entry("connections", "Connections", "connection"),
            Entry("routing", "Routing", "routing"),
            Entry("topology", "Topology", "topology"),
        ),
    ),
    (
        "Messages",
        (
            Entry("dlq", "Dead letters", "dlq", Verb.BROWSE),
            Entry("jobs", "Jobs", "history", Verb.BROWSE),
            Entry("scheduled", "Scheduled", "clock", Verb.BROWSE),
            Entry("send", "Send", "play", Verb.SEND),
        ),
    ),
    (
        "Insight",
        (
            Entry("alerts", "Alerts", "bell"),
            Entry("analyses", "Analyses", "analysis"),
            Entry("reports", "Reports", "report"),
        ),
    ),
    (
        "Control",
        (
            Entry("audit", "Audit", "audit", Verb.AUDIT),
            Entry("users", "People", "people", Verb.USERS),
        ),
    ),
)


def rail_of(rights: Mapping[str, bool], path: str) -> list[tuple[str, list[tuple[Entry, bool]]]]:
    """The groups that somebody with these rights sees, each entry with whether the page at this path belongs to it."""
    groups = [(label, [entry for entry in entries if rights[entry.verb.name.lower()]]) for label, entries in RAIL]
    here = max(
        (entry.url for _, entries in groups for entry in entries if _is_below(path, entry.url)), key=len, default=""
    )
    return [(label, [(entry, entry.url == here) for entry in entries]) for label, entries in groups if entries]


def _is_below(path: str, url: str) -> bool:
    return path == url if url == "/" else path.startswith(url)
