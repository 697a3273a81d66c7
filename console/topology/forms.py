"""The form of a network connector: where it leads, what may cross, and every property with its default. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from brokerapp.errors import InvalidDestination, RequestRefused
from brokerapp.model.destination import Destination
from brokerapp.network.options.definition import SECRETS, write_destination
from brokerapp.network.options.options import ATTRIBUTES, ConnectorOptions

#: The lists of destinations: field, ActiveMQ's name, what it does.
LISTS = (
    ("dynamically_included", "dynamicallyIncludedDestinations", "only these cross, where there is demand; none: all"),
    ("statically_included", "staticallyIncludedDestinations", "these cross whoever consumes"),
    ("excluded", "excludedDestinations", "these never cross"),
)  # fmt: skip
#: What each property does, in the order of the form; `userName` and `password` are fields of their own.
PROPERTY_HELP = {
    "duplex": "messages come back over the same connection, for consumers here",
    "messageTTL": "brokers a message may cross; -1: as many as there are",
    "consumerTTL": "brokers away consumers may be to count as demand; -1: any number",
    "autoStart": "has its bridges when the broker starts",
    "dynamicOnly": "durable subscriptions count only while somebody consumes them",
    "conduitSubscriptions": "consumers there that want the same are one subscription here",
    "conduitNetworkQueueSubscriptions": "the same of consumers of queues behind other brokers",
    "conduitSelectors": "their selectors are joined by OR, where they are one",
    "decreaseNetworkConsumerPriority": "consumers here come first",
    "consumerPriorityBase": "the priority with which a bridge consumes, then",
    "prefetchSize": "messages on their way at a time",
    "suppressDuplicateQueueSubscriptions": "of several ways to a consumer of a queue one is used",
    "suppressDuplicateTopicSubscriptions": "the same of topics",
    "bridgeTempDestinations": "replies to temporary destinations cross",
    "useVirtualDestSubs": "consumers of virtual destinations' queues there count as demand",
    "staticBridge": "only what is included statically crosses",
    "excludeStatic": "exclusion holds for what is included statically, too",
    "alwaysSyncSend": "non-persistent messages are confirmed, too",
    "useCompression": "bodies are compressed on their way, where they get shorter",
    "advisoryForFailedForward": "listeners are told of messages that the other broker refuses",
    "destinationFilter": "advisories that are heard, instead of those of all consumers",
}
_ACCOUNT = ("userName", "password")
#: Another account for the other broker, which a file may give: the form leaves it as it is.
_NOT_EDITABLE = ("remoteUserName", "remotePassword")


@dataclass(frozen=True, slots=True)
class ConnectorProperty:
    """One property as the form shows it."""

    name: str
    explanation: str
    value: str  #: "": its default
    default: str
    is_switch: bool


@dataclass(slots=True)
class ConnectorForm:
    """What the form holds, as text."""

    name: str = ""
    uri: str = ""
    lists: dict[str, str] = None  #: by field: a destination a line
    options: dict[str, str] = None  #: by ActiveMQ's name
    user: str = ""
    password: str = ""  #: "": as it is
    has_password: bool = False

    def __post_init__(self) -> None:
        self.lists, self.options = self.lists or {}, self.options or {}

    @staticmethod
    def of(definition: Mapping[str, Any]) -> ConnectorForm:
        """That of a connector there is."""
        options = dict(definition.get("options", {}))
        user, has_password = options.pop("userName", ""), "password" in options
        for name in SECRETS:
            options.pop(name, None)
        lists = {field: "\n".join(definition.get(field, ())) for field, _, _ in LISTS}
        return ConnectorForm(definition["name"], definition["uri"], lists, options, user or "", "", has_password)

    @staticmethod
    def read(data: Mapping[str, str], former: Mapping[str, Any] | None = None) -> ConnectorForm:
        """What was posted; the name of one there is stays."""
        options = {
            name: data.get(f"option-{name}", "").strip() for name in ATTRIBUTES if name not in _ACCOUNT + _NOT_EDITABLE
        }
        made = ConnectorForm(
            former["name"] if former else data.get("name", "").strip(), data.get("uri", "").strip(),
            {field: data.get(field, "").replace("\r\n", "\n") for field, _, _ in LISTS},
            {name: value for name, value in options.items() if value},
            data.get("user", "").strip(), data.get("password", ""),
        )  # fmt: skip
        made.has_password = former is not None and "password" in former.get("options", {})
        return made

    def definition(self, former: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """As NetworkConnector.to_json has it; what the form does not show stays. Raises RequestRefused."""
        kept = dict(former.get("options", {})) if former else {}
        kept = {name: value for name, value in kept.items() if name not in ATTRIBUTES or name in _NOT_EDITABLE}
        options = kept | self.options
        if self.user:
            options["userName"] = self.user
        if self.password or (self.has_password and self.user):
            options["password"] = self.password or None
        lists = {field: list(_destinations(field, text)) for field, text in self.lists.items()}
        lists |= {"durable": former["durable"]} if former and former.get("durable") else {}
        return {
            "name": self.name,
            "uri": self.uri,
            **{f: each for f, each in lists.items() if each},
            "options": options,
        }

    @property
    def shown_lists(self) -> list[tuple[str, str, str, str]]:
        """The lists: field, name, explanation, text."""
        return [(field, name, text, self.lists.get(field, "")) for field, name, text in LISTS]

    @property
    def properties(self) -> list[ConnectorProperty]:
        """Every property with what is set."""
        defaults = {each.name: each.default for each in fields(ConnectorOptions)}
        found = []
        others = {name: "" for name in ATTRIBUTES if name not in (*PROPERTY_HELP, *_ACCOUNT, *_NOT_EDITABLE)}
        for name, explanation in (PROPERTY_HELP | others).items():
            default = defaults[ATTRIBUTES[name][0]]
            text = "" if default is None else str(default).lower() if isinstance(default, bool) else str(default)
            found.append(
                ConnectorProperty(name, explanation, self.options.get(name, ""), text, isinstance(default, bool))
            )
        return found

    @property
    def changed(self) -> int:
        """How many properties are not at their default."""
        return len(self.options)


def _destinations(field: str, text: str) -> Iterator[str]:
    for line in filter(None, map(str.strip, text.splitlines())):
        try:
            yield write_destination(Destination.parse(line))
        except InvalidDestination as wrong:
            raise RequestRefused(f"{field.replace('_', ' ')}: {wrong}") from wrong
