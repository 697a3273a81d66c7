"""What can be done from the keyboard: one table for the command palette, the go-to keys and the help sheet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.urls import reverse

from console.access.permissions import Verb

#: Commands and destinations that the palette shows at a time: what fits without scrolling.
SHOWN = 8


@dataclass(frozen=True, slots=True)
class Command:
    """A place to go to. `keys` are typed one after the other, e.g. `g q`; none where the palette is enough."""

    label: str
    page: str
    icon: str
    verb: Verb = Verb.SEE
    keys: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """The page's address."""
        return reverse(self.page, kwargs=dict(self.arguments))


COMMANDS = (
    Command("Overview", "overview", "overview", keys="g o"),
    Command("Queues", "queues", "queue", keys="g q"),
    Command("Depths at a past moment", "depths", "history"),
    Command("Topics", "topics", "topic", keys="g t"),
    Command("Routing", "routing", "routing", keys="g r"),
    Command("Topology: nodes, bridges, cluster", "topology", "topology"),
    Command("New network connector", "new-connector", "topology", Verb.BRIDGE),
    Command("Connections", "connections", "connection", keys="g c"),
    Command("Subscribers", "subscribers", "subscriber", keys="g s"),
    Command("Alerts", "alerts", "bell", keys="g l"),
    Command("New alert rule", "new-alert", "bell", Verb.ALERT),
    Command("Dead letters", "dlq", "dlq", Verb.BROWSE, keys="g d"),
    Command("Jobs on messages", "jobs", "history", Verb.BROWSE, keys="g j"),
    Command("Scheduled messages", "scheduled", "clock", Verb.BROWSE, keys="g w"),
    Command("Send a test message", "send", "play", Verb.SEND, keys="g m"),
    Command("Analyses", "analyses", "analysis", keys="g a"),
    Command("Runs of analyses", "runs", "analysis"),
    Command("Reports", "reports", "report", keys="g p"),
    Command("New report", "new-report", "report", Verb.SCHEDULE),
    Command("Audit trail", "audit", "audit", Verb.AUDIT, keys="g u"),
    Command("Users, roles and masking", "users", "people", Verb.USERS),
    Command("View as: what somebody may do", "effective", "look", Verb.USERS),
    Command("New queue", "new-queue", "queue", Verb.CREATE),
    Command("New topic", "new-topic", "topic", Verb.CREATE),
    Command("New virtual topic", "new-definition", "routing", Verb.DRAFT, arguments={"kind": "virtualTopic"}),
    Command("New composite queue", "new-definition", "routing", Verb.DRAFT, arguments={"kind": "compositeQueue"}),
    Command("New composite topic", "new-definition", "routing", Verb.DRAFT, arguments={"kind": "compositeTopic"}),
    Command("New mirrored queue", "new-definition", "routing", Verb.DRAFT, arguments={"kind": "mirroredQueue"}),
    Command("Changes of the routing: drafts and history", "routing-changes", "history"),
    Command("Policies of destinations", "routing-policies", "routing"),
    Command("Import definitions", "routing-import", "upload", Verb.DRAFT),
    Command("Export definitions", "routing-export", "download"),
)


def allowed(rights: Mapping[str, bool]) -> list[Command]:
    """The commands of somebody with these rights (`access.rights_of`)."""
    return [command for command in COMMANDS if rights.get(command.verb.name.lower())]


def fits(text: str, label: str) -> bool:
    """Whether every word of the text is in the label, in any order and case."""
    return all(word in label.lower() for word in text.lower().split())


def found(text: str, commands: list[Command]) -> list[Command]:
    """The commands that fit a text; those that begin with it first, else in the table's order."""
    fitting = [command for command in commands if fits(text, command.label)]
    return sorted(fitting, key=lambda command: not command.label.lower().startswith(text.lower()))[:SHOWN]
