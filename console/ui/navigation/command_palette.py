"""Define the commands of the palette, the go-to keys and the list of shortcuts in one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.urls import reverse

from console.access.permissions import Permission

#: Commands and destinations that the palette shows at a time: what fits without scrolling.
SHOWN = 8


@dataclass(frozen=True, slots=True)
class PaletteCommand:
    """Describe a page to go to; `keys` are typed in order, such as `g q`."""

    label: str
    page: str
    icon: str
    permission: Permission = Permission.SEE
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
    PaletteCommand("New network connector", "new-connector", "topology", Permission.BRIDGE),
    PaletteCommand("Connections", "connections", "connection", keys="g c"),
    PaletteCommand("Subscriptions", "subscribers", "subscriber", keys="g s"),
    PaletteCommand("Alerts", "alerts", "bell", keys="g l"),
    PaletteCommand("New alert rule", "new-alert", "bell", Permission.ALERT),
    PaletteCommand("Objectives", "objectives", "objective"),
    PaletteCommand("New objective", "new-objective", "objective", Permission.ALERT),
    PaletteCommand("Dead letters", "dead-letters", "dlq", Permission.BROWSE, keys="g d"),
    PaletteCommand("Jobs", "jobs", "history", Permission.BROWSE, keys="g j"),
    PaletteCommand("Scheduled messages", "scheduled", "clock", Permission.BROWSE, keys="g w"),
    PaletteCommand("Transactions", "transactions", "transaction", Permission.BROWSE),
    PaletteCommand("Send message", "send", "play", Permission.SEND, keys="g m"),
    PaletteCommand("Analyses", "analyses", "analysis", keys="g a"),
    PaletteCommand("Analysis runs", "runs", "analysis"),
    PaletteCommand("SQL", "sql", "analysis", Permission.SQL),
    PaletteCommand("Reports", "reports", "report", keys="g p"),
    PaletteCommand("New report", "new-report", "report", Permission.SCHEDULE),
    PaletteCommand("Checks", "checks", "check", Permission.CHECK),
    PaletteCommand("Audit log", "audit", "audit", Permission.AUDIT, keys="g u"),
    PaletteCommand("Backups", "backups", "download", Permission.BACKUP),
    PaletteCommand("Users", "users", "people", Permission.USERS),
    PaletteCommand("Groups", "groups", "people", Permission.USERS),
    PaletteCommand("Roles", "roles", "people", Permission.USERS),
    PaletteCommand("Masking rules", "masking", "people", Permission.USERS),
    PaletteCommand("View as", "effective", "look", Permission.USERS),
    PaletteCommand("New queue", "new-queue", "queue", Permission.CREATE),
    PaletteCommand("New topic", "new-topic", "topic", Permission.CREATE),
    PaletteCommand(
        "New virtual topic", "new-definition", "routing", Permission.DRAFT, arguments={"kind": "virtualTopic"}
    ),
    PaletteCommand(
        "New composite queue", "new-definition", "routing", Permission.DRAFT, arguments={"kind": "compositeQueue"}
    ),
    PaletteCommand(
        "New composite topic", "new-definition", "routing", Permission.DRAFT, arguments={"kind": "compositeTopic"}
    ),
    PaletteCommand(
        "New mirrored queue", "new-definition", "routing", Permission.DRAFT, arguments={"kind": "mirroredQueue"}
    ),
    PaletteCommand("Drafts and history", "routing-changes", "history"),
    PaletteCommand("Policies", "routing-policies", "routing"),
    PaletteCommand("Import definitions", "routing-import", "upload", Permission.DRAFT),
    PaletteCommand("Export definitions", "routing-export", "download"),
)


def allowed_commands(rights: Mapping[str, bool]) -> list[PaletteCommand]:
    """Return the commands that these permissions allow (`permissions_of`)."""
    return [command for command in COMMANDS if rights.get(command.permission.name.lower())]


def matches_text(text: str, label: str) -> bool:
    """Return whether every word of the text is in the label, in any order and case."""
    return all(word in label.lower() for word in text.lower().split())


def search_commands(text: str, commands: list[PaletteCommand]) -> list[PaletteCommand]:
    """Return matching commands; those that begin with the text first."""
    fitting = [command for command in commands if matches_text(text, command.label)]
    return sorted(fitting, key=lambda command: not command.label.lower().startswith(text.lower()))[:SHOWN]
