"""Terms: what a network connector of the configuration asks for, as typed values. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl

from brokerapp.destination import Destination
from brokerapp.errors import ConfigurationRefused
from brokerapp.network.definition import NetworkConnector
from brokerapp.network.group import Group, group_of
from brokerapp.network_path import UNLIMITED

#: Where ActiveMQ listens unless told otherwise, and where it does so for STOMP.
DEFAULT_PORT, STOMP_PORT = 61616, 61613
#: `scheme:(uri,uri)?options`, the parentheses being optional around one.
_DISCOVERY = re.compile(r"(static|masterslave):(?://)?(?:\((?P<list>[^()]*)\)|(?P<one>[^()?]*))(?:\?(?P<options>.*))?")
_ADDRESS = re.compile(r"(?P<scheme>[a-z+]+)://(?P<host>\[[^\]]+\]|[^:/?]+)(?::(?P<port>[0-9]{1,5}))?(?:[/?].*)?")
#: Schemes of a remote broker at which STOMP is spoken: plain, and over TLS.
PLAIN = frozenset({"tcp", "nio", "stomp", "stomp+nio", "auto", "auto+nio"})
TLS = frozenset({"ssl", "nio+ssl", "stomp+ssl", "stomp+nio+ssl", "auto+ssl", "auto+nio+ssl"})
#: Largest of what connectors say in numbers: a day; longer than any path of brokers; messages that one bridge holds,
#: which may wait in the memory of the other broker; and what makes a delay grow too fast to mean anything.
MAX_MS, MAX_BROKERS, MAX_PREFETCH, MAX_MULTIPLIER = 24 * 3_600_000, 1_000, 1_000_000, 1_000
_PORTS = range(1, 65_536)


@dataclass(frozen=True, slots=True)
class Address:
    """Where a remote broker listens."""

    host: str
    port: int
    tls: bool = False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'ssl' if self.tls else 'tcp'}://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Reconnecting:
    """How long to wait before a bridge is built anew, in milliseconds."""

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
class Terms:
    """One network connector: where it leads, and what may cross. Names and defaults are ActiveMQ's."""

    name: str
    addresses: tuple[Address, ...]
    group: Group | None = None  #: where brokers announce themselves to which it leads; then it has no addresses
    in_turn: bool = False  #: one bridge to the first of them that answers (masterslave), else one to each
    reconnecting: Reconnecting = Reconnecting()
    dynamically_included: tuple[Destination, ...] = ()
    statically_included: tuple[Destination, ...] = ()
    excluded: tuple[Destination, ...] = ()
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


def _yes(text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise ValueError("true or false is expected")
    return text.strip().lower() == "true"


def _text(text: str) -> str:
    return text


def _number(low: int, high: int, why: str = "") -> Callable[[str], int]:
    """Reads a whole number of this range."""

    def read(text: str) -> int:
        if not low <= (number := int(text)) <= high:
            raise ValueError(f"a whole number from {low} to {high} is expected{why}")
        return number

    return read


def _multiplier(text: str) -> float:
    if not 1 <= (number := float(text)) <= MAX_MULTIPLIER:
        raise ValueError(f"a number from 1 to {MAX_MULTIPLIER} is expected")
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
}
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


def terms_of(connector: NetworkConnector) -> tuple[Terms, list[str]]:
    """A connector's terms, and the attributes and options of its uri that nobody knows.

    Raises ConfigurationRefused, which names what is wrong.
    """
    group, options = group_of(connector.uri) if connector.uri.startswith("multicast:") else (None, {})
    addresses, in_turn = (), False
    if group is None:
        addresses, in_turn, options = _where(connector)
    terms = Terms(
        connector.name, addresses, group, in_turn, _reconnecting(connector, options),
        connector.dynamically_included, connector.statically_included, connector.excluded,
    )  # fmt: skip
    given = dict(connector.options)
    if _BOTH_TTLS in given:
        both = given.pop(_BOTH_TTLS)
        given = {"messageTTL": both, "consumerTTL": both} | given
    known, unknown = {}, [name for name in options if name not in _OPTIONS]
    for name, text in given.items():
        if name in ATTRIBUTES:
            target, read = ATTRIBUTES[name]
            known[target] = _read(connector, name, text, read)
        else:
            unknown.append(name)
    return replace(terms, **known), unknown


def _where(connector: NetworkConnector) -> tuple[tuple[Address, ...], bool, dict[str, str]]:
    found = _DISCOVERY.fullmatch(connector.uri)
    if found is None:
        return (_address(connector, connector.uri),), False, {}
    listed = found["list"] if found["list"] is not None else found["one"]
    addresses = tuple(_address(connector, each.strip()) for each in listed.split(",") if each.strip())
    if not addresses:
        raise ConfigurationRefused(f"networkConnector {connector.name}: {connector.uri!r} names no broker")
    if found[1] == "masterslave" and len(addresses) < 2:
        raise ConfigurationRefused(
            f"networkConnector {connector.name}: {connector.uri!r} names one broker: masterslave is of two or more"
        )
    return addresses, found[1] == "masterslave", dict(parse_qsl(found["options"] or ""))


def _address(connector: NetworkConnector, uri: str) -> Address:
    address = address_of(uri)
    if address is None:
        raise ConfigurationRefused(
            f"networkConnector {connector.name}: {uri!r} is not where a broker can be reached; "
            f"expected static:(tcp://host:port,...), masterslave:(...) or tcp://host:port, port at most {_PORTS[-1]}"
        )
    return address


def address_of(uri: str, usual_port: int = DEFAULT_PORT) -> Address | None:
    """Where STOMP is spoken, as a uri has it; None for any other. `usual_port`: where its scheme and it say none."""
    found = _ADDRESS.fullmatch(uri)
    if found is None or found["scheme"] not in PLAIN | TLS:
        return None
    port = int(found["port"] or (STOMP_PORT if found["scheme"].startswith("stomp") else usual_port))
    if port not in _PORTS:
        return None
    return Address(found["host"].strip("[]"), port, found["scheme"] in TLS)


def _reconnecting(connector: NetworkConnector, options: Mapping[str, str]) -> Reconnecting:
    known = {
        target: _read(connector, name, options[name], read)
        for name, (target, read) in _OPTIONS.items()
        if name in options
    }
    return Reconnecting(**known)


def _read(connector: NetworkConnector, name: str, text: str, read: Callable[[str], Any]) -> Any:
    try:
        return read(text)
    except ValueError as wrong:
        raise ConfigurationRefused(f"networkConnector {connector.name}: {name}={text!r}: {wrong}") from None
