"""Parse the options of a network connector into typed values. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl

from brokerapp.errors import ConfigurationRefused
from brokerapp.model.broker_path import UNLIMITED
from brokerapp.model.destination import Destination
from brokerapp.network.options.address import (
    MAX_PORT,
    MAX_TIMEOUT_MS,
    WIRE_FORMAT_OPTIONS,
    BrokerAddress,
    address_of,
)
from brokerapp.network.options.definition import NetworkConnector
from brokerapp.network.options.multicast import DiscoveryGroup, parse_group
from brokerapp.network.options.outbound_rules import OutboundRule

#: `scheme:(uri,uri)?options`, the parentheses being optional around one.
_DISCOVERY = re.compile(r"(static|masterslave):(?://)?(?:\((?P<list>[^()]*)\)|(?P<one>[^()?]*))(?:\?(?P<options>.*))?")
#: Largest of what connectors say in numbers: a day; longer than any path of brokers; messages that one bridge holds,
#: which may wait in the memory of the other broker; and what makes a delay grow too fast to mean anything.
MAX_MS, MAX_BROKERS, MAX_PREFETCH, MAX_MULTIPLIER = 24 * 3_600_000, 1_000, 1_000_000, 1_000


@dataclass(frozen=True, slots=True)
class ReconnectBackoff:
    """Delays before a bridge reconnects, in milliseconds."""

    initial_delay: int = 1_000
    max_delay: int = 30_000
    exponential: bool = True
    multiplier: float = 2.0
    max_attempts: int = 0  #: 0: for ever
    min_connect_time: int = 5_000  #: a connection lost sooner counts as a failed attempt

    def delay_ms(self, failures: int) -> float:
        """After so many attempts in a row that failed."""
        if not self.exponential:
            return self.initial_delay
        return min(self.max_delay, self.initial_delay * self.multiplier ** max(0, min(failures, 64) - 1))


@dataclass(frozen=True, slots=True)
class ConnectorOptions:
    """One network connector: where it leads, and what may cross. Names and defaults are ActiveMQ's."""

    name: str
    addresses: tuple[BrokerAddress, ...]
    group: DiscoveryGroup | None = (
        None  #: where brokers announce themselves to which it leads; then it has no addresses
    )
    in_turn: bool = False  #: one bridge to the first of them that answers (masterslave), else one to each
    reconnecting: ReconnectBackoff = ReconnectBackoff()
    dynamically_included: tuple[Destination, ...] = ()
    statically_included: tuple[Destination, ...] = ()
    excluded: tuple[Destination, ...] = ()
    forced_durable: tuple[Destination, ...] = ()  #: of what is included: any consumer is served as a durable one
    auto_start: bool = True
    dynamic_only: bool = False
    decrease_network_consumer_priority: bool = True
    consumer_priority_base: int = -5
    message_ttl: int = 1
    consumer_ttl: int = 1
    conduit_subscriptions: bool = True
    conduit_network_queue_subscriptions: bool = False
    suppress_duplicate_queue_subscriptions: bool = False
    suppress_duplicate_topic_subscriptions: bool = True
    bridge_temp_destinations: bool = True
    static_bridge: bool = False
    use_virtual_dest_subs: bool = False
    exclude_static: bool = False  #: exclusion holds for what is included statically, too
    conduit_selectors: bool = False
    duplex: bool = False
    prefetch_size: int = 1_000
    always_sync_send: bool = False
    destination_filter: str | None = None
    user_name: str | None = None
    password: str | None = field(default=None, repr=False)
    remote_user_name: str | None = None  #: in place of the former
    remote_password: str | None = field(default=None, repr=False)
    advisory_for_failed_forward: bool = False
    use_compression: bool = False
    outbound: OutboundRule | None = None  #: for the addresses that it may connect to; None: any

    @property
    def login(self) -> tuple[str, str] | None:
        """User and password at the other broker; None: it is not told any."""
        if self.remote_user_name is not None:
            return self.remote_user_name, self.remote_password or ""
        return None if self.user_name is None else (self.user_name, self.password or "")


def _yes(text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return text.strip().lower() == "true"


def _text(text: str) -> str:
    return text


def _number(low: int, high: int, why: str = "") -> Callable[[str], int]:
    """Reads a whole number of this range."""

    def read(text: str) -> int:
        if not low <= (number := int(text)) <= high:
            raise ValueError(f"must be a whole number from {low} to {high}{why}")
        return number

    return read


def _multiplier(text: str) -> float:
    if not 1 <= (number := float(text)) <= MAX_MULTIPLIER:
        raise ValueError(f"must be a number from 1 to {MAX_MULTIPLIER}")
    return number


_milliseconds = _number(0, MAX_MS)
_delay = _number(1, MAX_MS)
_brokers = _number(UNLIMITED, MAX_BROKERS)


#: Attribute -> field and how its text is read.
ATTRIBUTES: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "autoStart": ("auto_start", _yes),
    "dynamicOnly": ("dynamic_only", _yes),
    "decreaseNetworkConsumerPriority": ("decrease_network_consumer_priority", _yes),
    "consumerPriorityBase": ("consumer_priority_base", _number(-128, 127)),
    "messageTTL": ("message_ttl", _brokers),
    "consumerTTL": ("consumer_ttl", _brokers),
    "conduitSubscriptions": ("conduit_subscriptions", _yes),
    "conduitNetworkQueueSubscriptions": ("conduit_network_queue_subscriptions", _yes),
    "suppressDuplicateQueueSubscriptions": ("suppress_duplicate_queue_subscriptions", _yes),
    "suppressDuplicateTopicSubscriptions": ("suppress_duplicate_topic_subscriptions", _yes),
    "bridgeTempDestinations": ("bridge_temp_destinations", _yes),
    "staticBridge": ("static_bridge", _yes),
    "useVirtualDestSubs": ("use_virtual_dest_subs", _yes),
    "excludeStatic": ("exclude_static", _yes),
    "conduitSelectors": ("conduit_selectors", _yes),
    "duplex": ("duplex", _yes),
    "prefetchSize": ("prefetch_size", _number(1, MAX_PREFETCH, ": consumers of a bridge do not poll")),
    "alwaysSyncSend": ("always_sync_send", _yes),
    "destinationFilter": ("destination_filter", _text),
    "userName": ("user_name", _text),
    "password": ("password", _text),
    "remoteUserName": ("remote_user_name", _text),
    "remotePassword": ("remote_password", _text),
    "advisoryForFailedForward": ("advisory_for_failed_forward", _yes),
    "useCompression": ("use_compression", _yes),
}
#: Attributes that change nothing here, and why.
WITHOUT_EFFECT: Mapping[str, str] = {
    "syncDurableSubs": "durable subscriptions are always synchronized when a bridge starts",
    "checkDuplicateMessagesOnDuplex": "duplicates are always detected in both directions",
    **dict.fromkeys(("advisoryPrefetchSize", "advisoryAckPercentage"), "bridges never acknowledge advisories"),
    "dispatchAsync": "bridges never block producers",
    **dict.fromkeys(("gcDestinationViews", "gcSweepTime"), "JMX is not supported"),
    **dict.fromkeys(("useBrokerNamesAsIdSeed", "clientIdToken"), "client-ids of bridges cannot be configured"),
}
#: ... and what is said in elements: lists of destinations.
_WITHOUT_EFFECT_LISTED = {
    "durableDestinations": "durable subscriptions are forwarded with their topics (dynamicallyIncludedDestinations)"
}
#: What may be said behind the name of an included topic: whoever consumes it is served as a durable subscriber.
FORCE_DURABLE = "forceDurable"
#: Attributes that set two.
_BOTH_TTLS = "networkTTL"
_OPTIONS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "initialReconnectDelay": ("initial_delay", _delay),
    "maxReconnectDelay": ("max_delay", _delay),
    "useExponentialBackOff": ("exponential", _yes),
    "backOffMultiplier": ("multiplier", _multiplier),
    "maxReconnectAttempts": ("max_attempts", _number(-1, MAX_MS)),
    "minConnectTime": ("min_connect_time", _milliseconds),
}


def options_of(connector: NetworkConnector) -> tuple[ConnectorOptions, list[str]]:
    """A connector's terms, and the attributes and options of its uri and destinations that nobody knows.

    Raises ConfigurationRefused, which names what is wrong.
    """
    group, options = parse_group(connector.uri) if connector.uri.startswith("multicast:") else (None, {})
    addresses: tuple[BrokerAddress, ...] = ()
    in_turn = False
    if group is None:
        addresses, in_turn, options = _addresses_of(connector)
    terms = ConnectorOptions(
        connector.name, addresses, group, in_turn, _reconnecting(connector, options),
        connector.dynamically_included, connector.statically_included, connector.excluded, _forced(connector),
        outbound=OutboundRule.read(connector.outbound) if connector.outbound is not None else None,
    )  # fmt: skip
    given = dict(connector.options)
    if _BOTH_TTLS in given:
        both = given.pop(_BOTH_TTLS)
        given = {"messageTTL": both, "consumerTTL": both} | given
    known, unknown = {}, [name for name in options if name not in _OPTIONS]
    listed = (*connector.dynamically_included, *connector.statically_included, *connector.excluded)
    unknown += [f"{each}?{name}" for each in listed for name in each.options if name != FORCE_DURABLE]
    for name, text in given.items():
        if name in ATTRIBUTES:
            target, read = ATTRIBUTES[name]
            known[target] = _read(connector, name, text, read)
        elif name not in WITHOUT_EFFECT:
            unknown.append(name)
    return replace(terms, **known), unknown


def unsupported_options(connector: NetworkConnector) -> list[tuple[str, str]]:
    """Return the options of a connector that have no effect, with the reasons."""
    named = [*WITHOUT_EFFECT.items(), *_WITHOUT_EFFECT_LISTED.items()]
    said = {name for name, _ in connector.options} | ({"durableDestinations"} if connector.durable else set())
    return [(name, f"has no effect: {why}") for name, why in named if name in said]


def _forced(connector: NetworkConnector) -> tuple[Destination, ...]:
    included = (*connector.dynamically_included, *connector.statically_included)
    return tuple(
        each
        for each in included
        if FORCE_DURABLE in each.options and _read(connector, FORCE_DURABLE, each.options[FORCE_DURABLE], _yes)
    )


def _addresses_of(connector: NetworkConnector) -> tuple[tuple[BrokerAddress, ...], bool, dict[str, str]]:
    found = _DISCOVERY.fullmatch(connector.uri)
    if found is None:
        return (_address(connector, connector.uri),), False, {}
    listed = found["list"] if found["list"] is not None else found["one"]
    addresses = tuple(_address(connector, each.strip()) for each in listed.split(",") if each.strip())
    if not addresses:
        raise ConfigurationRefused(f"networkConnector {connector.name}: {connector.uri!r} contains no broker address")
    if found[1] == "masterslave" and len(addresses) < 2:
        raise ConfigurationRefused(
            f"networkConnector {connector.name}: {connector.uri!r} has one address: masterslave requires at least two"
        )
    return addresses, found[1] == "masterslave", dict(parse_qsl(found["options"] or ""))


def _address(connector: NetworkConnector, uri: str) -> BrokerAddress:
    address = address_of(uri)
    if address is None:
        raise ConfigurationRefused(
            f"networkConnector {connector.name}: {uri!r} is not a broker address; "
            f"expected static:(tcp://host:port,...), masterslave:(...) or tcp://host:port, port at most {MAX_PORT}; "
            "ssl:// is with TLS, ws:// and wss:// pass where http does; behind each may be "
            f"?connectionTimeout=MILLISECONDS, at most {MAX_TIMEOUT_MS}, and {', '.join(WIRE_FORMAT_OPTIONS)}"
        )
    return address


def _reconnecting(connector: NetworkConnector, options: Mapping[str, str]) -> ReconnectBackoff:
    known = {
        target: _read(connector, name, options[name], read)
        for name, (target, read) in _OPTIONS.items()
        if name in options
    }
    return ReconnectBackoff(**known)


def _read(connector: NetworkConnector, name: str, text: str, read: Callable[[str], Any]) -> Any:
    try:
        return read(text)
    except ValueError as wrong:
        raise ConfigurationRefused(f"networkConnector {connector.name}: {name}={text!r}: {wrong}") from None
