"""The form of a network connector: remote URI, allowed destinations, and all properties with defaults. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from brokerapp.errors import InvalidDestination, RequestRefused
from brokerapp.model.destination import Destination
from brokerapp.network.options.definition import SECRETS, write_destination
from brokerapp.network.options.options import ATTRIBUTES, ConnectorOptions

#: The lists of destinations: field, ActiveMQ's name, explanation.
LISTS = (
    ("dynamically_included", "dynamicallyIncludedDestinations", "Forwarded on demand. Empty: all destinations."),
    ("statically_included", "staticallyIncludedDestinations", "Always forwarded, independent of consumers."),
    ("excluded", "excludedDestinations", "Never forwarded."),
)  # fmt: skip
#: Explanation of each property, in the order of the form; `userName` and `password` have fields of their own.
PROPERTY_HELP = {
    "duplex": "Also forwards remote messages to consumers of this broker, over the same connection.",
    "messageTTL": "Maximum number of bridges that a message may cross. -1: unlimited.",
    "consumerTTL": "Maximum distance of consumers that count as demand, in bridges. -1: unlimited.",
    "autoStart": "Opens its bridges when the broker starts.",
    "dynamicOnly": "Durable subscriptions count as demand only while online.",
    "conduitSubscriptions": "Combines remote consumers of a destination into one subscription.",
    "conduitNetworkQueueSubscriptions": "Also combines queue consumers behind other brokers.",
    "conduitSelectors": "Combines the selectors of combined consumers with OR.",
    "decreaseNetworkConsumerPriority": "Prefers consumers of this broker. ActiveMQ before 5.18: false.",
    "consumerPriorityBase": "Priority of the bridge, if local consumers are preferred.",
    "prefetchSize": "Maximum number of in-flight messages.",
    "suppressDuplicateQueueSubscriptions": "Uses one of several paths to a queue consumer.",
    "suppressDuplicateTopicSubscriptions": "Uses one of several paths to a topic subscriber.",
    "bridgeTempDestinations": "Forwards messages to temporary destinations, such as replies.",
    "useVirtualDestSubs": "Remote consumers of virtual destinations count as demand.",
    "staticBridge": "Forwards only the statically included destinations.",
    "excludeStatic": "Applies exclusions to statically included destinations, too.",
    "alwaysSyncSend": "Confirms non-persistent messages, too. ActiveMQ: true.",
    "useCompression": "Compresses bodies if that makes them smaller.",
    "advisoryForFailedForward": "Sends an advisory for messages that the remote broker refuses.",
    "destinationFilter": "Consumer advisories to subscribe to. Empty: those of all consumers.",
}
#: Shown apart from the other properties, because it decides what a connector is for.
DIRECTION = "duplex"
_ACCOUNT = ("userName", "password")
#: Another account for the remote broker from a configuration file: not editable.
_NOT_EDITABLE = ("remoteUserName", "remotePassword")


@dataclass(frozen=True, slots=True)
class ConnectorProperty:
    """A property of a connector as the form shows it."""

    name: str
    explanation: str
    value: str  #: "": the default
    default: str
    is_switch: bool

    @property
    def opposite(self) -> str:
        """Return the value of a switch that is not its default."""
        return "false" if self.default == "true" else "true"


@dataclass(slots=True)
class ConnectorForm:
    """The values of the form, as text."""

    name: str = ""
    uri: str = ""
    lists: dict[str, str] = None  #: by field: one destination per line
    options: dict[str, str] = None  #: by ActiveMQ's name
    user: str = ""
    password: str = ""  #: "": unchanged
    has_password: bool = False

    def __post_init__(self) -> None:
        self.lists, self.options = self.lists or {}, self.options or {}

    @staticmethod
    def of(definition: Mapping[str, Any]) -> ConnectorForm:
        """Fill the form from an existing connector."""
        options = dict(definition.get("options", {}))
        user, has_password = options.pop("userName", ""), "password" in options
        for name in SECRETS:
            options.pop(name, None)
        lists = {field: "\n".join(definition.get(field, ())) for field, _, _ in LISTS}
        return ConnectorForm(definition["name"], definition["uri"], lists, options, user or "", "", has_password)

    @staticmethod
    def read(data: Mapping[str, str], former: Mapping[str, Any] | None = None) -> ConnectorForm:
        """Read submitted values; the name of an existing connector cannot change."""
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
        """Return the definition as NetworkConnector.to_json; hidden settings are unchanged. Raises RequestRefused."""
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
        """Return the lists of destinations: field, name, explanation, text."""
        return [(field, name, text, self.lists.get(field, "")) for field, name, text in LISTS]

    @property
    def duplex(self) -> ConnectorProperty:
        """Return the direction of the bridges: the property that the form shows first."""
        return next(each for each in self._all_properties() if each.name == DIRECTION)

    @property
    def properties(self) -> list[ConnectorProperty]:
        """Return all other properties with their values."""
        return [each for each in self._all_properties() if each.name != DIRECTION]

    def _all_properties(self) -> list[ConnectorProperty]:
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
        """Return how many of the other properties are set."""
        return len(self.options.keys() - {DIRECTION})


def _destinations(field: str, text: str) -> Iterator[str]:
    for line in filter(None, map(str.strip, text.splitlines())):
        try:
            yield write_destination(Destination.parse(line))
        except InvalidDestination as wrong:
            raise RequestRefused(f"{field.replace('_', ' ')}: {wrong}") from wrong
