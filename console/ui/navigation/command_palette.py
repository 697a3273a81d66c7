"""Define the commands of the palette, the go-to keys and the list of shortcuts in one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.urls import reverse

from console.access.permissions import Verb

#: Commands and destinations that the palette shows at a time: what fits without scrolling.
SHOWN = 8


@dataclass(frozen=True, slots=True)
class PaletteCommand:
    """Describe a page to go to; `keys` are typed in order, such as `g q`."""

    label: str
    page: str
    icon: str
    verb: Verb = Verb.SEE
    keys: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Return the URL of the command's page."""
        return reverse(self.page, kwargs=dict(self.arguments))


COMMANDS = (
    PaletteCommand("Overview", "overview", "overview", keys="g o"),
    PaletteCommand("Queues", "queues", "queue", keys="g q"),
    PaletteCommand("Historical depths", "depths", "history"),
    PaletteCommand("Topics", "topics", "topic", keys="g t"),
    PaletteCommand("Routing", "routing", "routing", keys="g r"),
    PaletteCommand("Topology", "topology", "topology"),
    PaletteCommand("New network connector", "new-connector", "topology", Verb.BRIDGE),
    PaletteCommand("Connections", "connections", "connection", keys="g c"),
    PaletteCommand("Subscriptions", "subscribers", "subscriber", keys="g s"),
    PaletteCommand("Alerts", "alerts", "bell", keys="g l"),
    PaletteCommand("New alert rule", "new-alert", "bell", Verb.ALERT),
    PaletteCommand("Dead letters", "dead-letters", "dlq", Verb.BROWSE, keys="g d"),
    PaletteCommand("Jobs", "jobs", "history", Verb.BROWSE, keys="g j"),
    PaletteCommand("Scheduled messages", "scheduled", "clock", Verb.BROWSE, keys="g w"),
    PaletteCommand("Send message", "send", "play", Verb.SEND, keys="g m"),
    PaletteCommand("Analyses", "analyses", "analysis", keys="g a"),
    PaletteCommand("Analysis runs", "runs", "analysis"),
    PaletteCommand("Reports", "reports", "report", keys="g p"),
    PaletteCommand("New report", "new-report", "report", Verb.SCHEDULE),
    PaletteCommand("Audit log", "audit", "audit", Verb.AUDIT, keys="g u"),
    PaletteCommand("Users", "users", "people", Verb.USERS),
    PaletteCommand("Groups", "groups", "people", Verb.USERS),
    PaletteCommand("Roles", "roles", "people", Verb.USERS),
    PaletteCommand("Masking rules", "masking", "people", Verb.USERS),
    PaletteCommand("View as", "effective", "look", Verb.USERS),
    PaletteCommand("New queue", "new-queue", "queue", Verb.CREATE),
    PaletteCommand("New topic", "new-topic", "topic", Verb.CREATE),
    PaletteCommand("New virtual topic", "new-definition", "routing", Verb.DRAFT, arguments={"kind": "virtualTopic"}),
    PaletteCommand(
        "New composite queue", "new-definition", "routing", Verb.DRAFT, arguments={"kind": "compositeQueue"}
    ),
    PaletteCommand(
        "New composite topic", "new-definition", "routing", Verb.DRAFT, arguments={"kind": "compositeTopic"}
    ),
    PaletteCommand("New mirrored queue", "new-definition", "routing", Verb.DRAFT, arguments={"kind": "mirroredQueue"}),
    PaletteCommand("Drafts and history", "routing-changes", "history"),
    PaletteCommand("Policies", "routing-policies", "routing"),
    PaletteCommand("Import definitions", "routing-import", "upload", Verb.DRAFT),
    PaletteCommand("Export definitions", "routing-export", "download"),
)


def allowed_commands(rights: Mapping[str, bool]) -> list[PaletteCommand]:
    """Return the commands that these permissions allow (`permissions_of`)."""
    return [command for command in COMMANDS if rights.get(command.verb.name.lower())]


def matches_text(text: str, label: str) -> bool:
    """Return whether every word of the text is in the label, in any order and case."""
    return all(word in label.lower() for word in text.lower().split())


def search_commands(text: str, commands: list[PaletteCommand]) -> list[PaletteCommand]:
    """Return matching commands; those that begin with the text first."""
    fitting = [command for command in commands if matches_text(text, command.label)]
    return sorted(fitting, key=lambda command: not command.label.lower().startswith(text.lower()))[:SHOWN]
