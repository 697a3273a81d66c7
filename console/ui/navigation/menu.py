"""Define the navigation of every page and find the current entry."""

from __future__ import annotations

from collections.abc import Mapping

from console.ui.navigation.command_palette import COMMANDS, PaletteCommand

#: The groups from top to bottom: their label and the names of their pages.
_GROUPS = (
    ("", ("overview",)),
    ("Broker", ("queues", "topics", "subscribers", "connections", "routing", "topology")),
    ("Messages", ("dead-letters", "jobs", "scheduled", "transactions", "send")),
    ("Monitoring", ("alerts", "objectives", "analyses", "reports")),
    ("Administration", ("checks", "audit", "backups", "users")),
)
_COMMANDS = {each.page: each for each in COMMANDS}
NAVIGATION = tuple((label, tuple(_COMMANDS[page] for page in pages)) for label, pages in _GROUPS)


def navigation_for(rights: Mapping[str, bool], path: str) -> list[tuple[str, list[tuple[PaletteCommand, bool]]]]:
    """Return the visible groups, each entry with whether the page at this path belongs to it."""
    groups = [
        (label, [entry for entry in entries if rights[entry.permission.name.lower()]]) for label, entries in NAVIGATION
    ]
    here = max(
        (entry.url for _, entries in groups for entry in entries if _is_below(path, entry.url)), key=len, default=""
    )
    return [(label, [(entry, entry.url == here) for entry in entries]) for label, entries in groups if entries]


def _is_below(path: str, url: str) -> bool:
    return path == url if url == "/" else path.startswith(url)
