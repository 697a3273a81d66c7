"""Reads the options of a transport connector, from its uri and its element: limits, TLS and naming conventions.

Options are supported, without effect here (with the reason), or unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from brokerapp.config.parsing.broker_config import TransportConnector
from brokerapp.engine.routing.bindings import RoutingType
from brokerapp.engine.routing.consumer_mappings import DEFAULT_CACHE_SIZE, ConsumerMappings, parse_mappings
from brokerapp.engine.routing.consumer_mappings import OPTION as CONSUMER_WILDCARDS
from brokerapp.engine.routing.naming_conventions import NamingConventions
from brokerapp.errors import ConfigurationRefused
from brokerapp.model.transport_connector import (
    OPENWIRE_VERSION,
    TRANSPORTS,
    ClientAuth,
    ConnectionLimits,
    OpenWireSettings,
    TlsOptions,
)

#: The largest number of connections a Java int can ask for: any number.
_ANY_NUMBER = 2**31 - 1
#: Longest number in a heart-beat: eleven days.
_HEART_BEAT = re.compile(r"\s*\d{1,9}\s*,\s*\d{1,9}\s*")
_PROTOCOLS = ("TLSv1.2", "TLSv1.3")


def _whole(text: str) -> int:
    if re.fullmatch(r"\d{1,18}", text.strip()) is None:
        raise ValueError("a whole number")
    return int(text)


def _number_of(text: str) -> int | None:
    number = _whole(text)
    return None if number >= _ANY_NUMBER else number


def _milliseconds(text: str) -> int:
    return 0 if text.strip() == "-1" else _whole(text)


def _factor(text: str) -> float:
    if re.fullmatch(r"\d{1,6}(\.\d{1,6})?", text.strip()) is None or float(text) == 0:
        raise ValueError("a number above 0 such as 1.5")
    return float(text)


def _flag(text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise ValueError("true or false")
    return text.strip().lower() == "true"


def _heart_beat(text: str) -> str:
    if _HEART_BEAT.fullmatch(text) is None:
        raise ValueError("two numbers of milliseconds such as 5000,0")
    return text


def _words(text: str) -> frozenset[str]:
    return frozenset(word.strip() for word in text.split(",") if word.strip())


def _version(text: str) -> int:
    if not 1 <= (version := _whole(text)) <= OPENWIRE_VERSION:
        raise ValueError(f"a version of OpenWire from 1 to {OPENWIRE_VERSION}")
    return version


def _patterns(text: str) -> str:
    for each in text.split(","):
        try:
            re.compile(each)
        except re.error:
            raise ValueError("a list of regular expressions, separated by commas") from None
    return text


#: Option -> field of ConnectionLimits, and what reads it: a value, or ValueError with what was expected.
_LIMITS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "maximumConnections": ("max_connections", _number_of),
    "maximumConsumersAllowedPerConnection": ("max_consumers", _number_of),
    "maximumProducersAllowedPerConnection": ("max_producers", _number_of),
    "wireFormat.maxFrameSize": ("max_frame", _whole),
    "transport.maxFrameSize": ("max_frame", _whole),
    "wireFormat.maxDataLength": ("max_body", _whole),
    "transport.maxDataLength": ("max_body", _whole),
    "transport.connectAttemptTimeout": ("connect_ms", _milliseconds),
    "wireFormat.connectionAttemptTimeout": ("connect_ms", _milliseconds),
    "transport.defaultHeartBeat": ("default_heart_beat", _heart_beat),
    "transport.hbGracePeriodMultiplier": ("heart_beat_grace", _factor),
    "transport.heartBeatFloor": ("heart_beat_floor_ms", _whole),
    "transport.heartBeatCeiling": ("heart_beat_ceiling_ms", _whole),
    "allowLinkStealing": ("allow_link_stealing", _flag),
    "websocket.allowedOrigins": ("origins", _words),
    "backlog": ("backlog", _whole),
}
#: Option -> field of OpenWireSettings, and what reads it.
_OPENWIRE: dict[str, tuple[str, Callable[[str], Any]]] = {
    "wireFormat.version": ("version", _version),
    "wireFormat.tightEncodingEnabled": ("tight_encoding", _flag),
    "wireFormat.cacheEnabled": ("cache", _flag),
    "wireFormat.maxInactivityDuration": ("max_inactivity_ms", _milliseconds),
    "wireFormat.maxInactivityDurationInitalDelay": ("initial_delay_ms", _milliseconds),
    "updateClusterClients": ("update_cluster_clients", _flag),
    "updateClusterClientsOnRemove": ("update_cluster_clients_on_remove", _flag),
    "rebalanceClusterClients": ("rebalance_cluster_clients", _flag),
    "updateClusterFilter": ("update_cluster_filter", _patterns),
}
#: Option -> whose certificate is asked for, where the option is true.
_CLIENT_AUTH = {
    "needClientAuth": ClientAuth.NEEDED,
    "transport.needClientAuth": ClientAuth.NEEDED,
    "wantClientAuth": ClientAuth.WANTED,
    "transport.wantClientAuth": ClientAuth.WANTED,
}
_ENABLED_PROTOCOLS = ("transport.enabledProtocols", "enabledProtocols")

#: Options that say how clients name destinations; those with prefixes hold lists.
_PREFIXES = {"anycastPrefix": RoutingType.ANYCAST, "multicastPrefix": RoutingType.MULTICAST}
_REMEMBERED = "virtualTopicConsumerLruCacheMax"
_CONVENTIONS = frozenset({*_PREFIXES, CONSUMER_WILDCARDS, _REMEMBERED})

#: Options without effect, and why.
_WITHOUT_EFFECT = {
    **dict.fromkeys(
        ("transport.closeAsync", "transport.useInactivityMonitor", "useQueueForAccept", "transport.threadName",
         "transport.ioBufferSize", "transport.useLocalHost", "daemon", "soWriteTimeout", "transport.soWriteTimeout",
         "soTimeout", "transport.soTimeout", "connectionTimeout", "transport.connectionTimeout", "minimumConnections",
         "initializeConnections"),
        "configures Java threads and sockets, which do not exist here",
    ),
    **dict.fromkeys(
        ("transport.tcpNoDelay", "tcpNoDelay", "nodelay", "tcpNoDelayEnabled", "wireFormat.tcpNoDelayEnabled"),
        "small frames are always sent immediately",
    ),
    **dict.fromkeys(
        ("socketBufferSize", "transport.socketBufferSize", "soLinger", "transport.soLinger", "keepAlive",
         "transport.keepAlive", "transport.diffServ", "transport.typeOfService"),
        "socket options are left to the operating system",
    ),
    **dict.fromkeys(
        ("trace", "transport.trace", "logWriterName", "dynamicManagement", "startLogging", "jmxPort",
         "transport.logWriterName", "transport.dynamicManagement", "transport.startLogging", "transport.jmxPort"),
        "frame logging is not supported",
    ),
    **dict.fromkeys(
        ("maxInactivityDuration", "maxInactivityDurationInitalDelay", "tightEncodingEnabled", "cacheEnabled",
         "maxFrameSize"),
        "ActiveMQ reads it with the prefix wireFormat. only",
    ),
    **dict.fromkeys(
        ("minmumWireFormatVersion", "transport.minmumWireFormatVersion"), "clients of OpenWire 1 to 12 are served"
    ),
    **dict.fromkeys(
        ("stackTraceEnabled", "wireFormat.stackTraceEnabled"), "stack traces are not sent to clients"
    ),
    "wireFormat.sizePrefixDisabled": "over sockets, frames always begin with their size",
    "wireFormat.cacheSize": "the cache has the size that the protocol allows",
    **dict.fromkeys(
        ("transport.enabledCipherSuites", "enabledCipherSuites"),
        "OpenSSL chooses the ciphers for TLS 1.2 and later",
    ),
    **dict.fromkeys(
        ("publishedAddressPolicy", "transport.publishedAddressPolicy"),
        "clients get the addresses that the broker listens on, with the host's name for 0.0.0.0",
    ),
    **dict.fromkeys(
        ("websocket.maxTextMessageSize", "websocket.maxBinaryMessageSize", "websocket.bufferSize"),
        "maxFrameSize and maxDataLength also apply to WebSockets",
    ),
    "auditNetworkProducers": "applies to networks of brokers",
    "disableAsyncDispatch": "dispatch is always asynchronous",
    "enableStatusMonitor": "slow connections are shown in the console",
    "warnOnRemoteClose": "lost connections are not logged as warnings",
    "displayStackTrace": "errors are one sentence, never a stack trace",
}  # fmt: skip


def limits_of(connector: TransportConnector) -> ConnectionLimits:
    """Return the limits of the connector's connections. Raises ConfigurationRefused."""
    values, openwire = {}, {}
    for name, text in _settings(connector):
        if name in _LIMITS:
            field, read = _LIMITS[name]
            values[field] = _read(name, text, read)
        elif name in _OPENWIRE:
            field, read = _OPENWIRE[name]
            openwire[field] = _read(name, text, read)
    return ConnectionLimits(**values, openwire=OpenWireSettings(**openwire))


def tls_options_of(connector: TransportConnector) -> TlsOptions:
    """Return the connector's TLS options. Raises ConfigurationRefused."""
    client_auth = ClientAuth.NONE
    protocols: tuple[str, ...] = ()
    for name, text in _settings(connector):
        if name in _CLIENT_AUTH and _read(name, text, _flag) and client_auth is not ClientAuth.NEEDED:
            client_auth = _CLIENT_AUTH[name]
        elif name in _ENABLED_PROTOCOLS:
            protocols = tuple(each for each in _PROTOCOLS if each in _words(text))
            if not protocols:
                raise ConfigurationRefused(f"{name}={text}: supported protocols are {', '.join(_PROTOCOLS)}")
    return TlsOptions(client_auth, protocols)


def conventions_of(connector: TransportConnector) -> tuple[NamingConventions, list[str]]:
    """Return the connector's naming conventions, and remarks on them. Raises ConfigurationRefused."""
    options = dict(connector.options)
    prefixes = [
        (prefix, routing)
        for name, routing in _PREFIXES.items()
        for prefix in options.get(name, "").split(",")
        if prefix
    ]
    prefixes.sort(key=lambda each: len(each[0]), reverse=True)  # of several that fit, the longest is meant
    mappings, warnings = parse_mappings(options.get(CONSUMER_WILDCARDS, ""))
    remembered = _read(_REMEMBERED, options.get(_REMEMBERED, str(DEFAULT_CACHE_SIZE)), _whole)
    return NamingConventions(tuple(prefixes), ConsumerMappings(mappings, remembered) if mappings else None), warnings


#: Where a connector announces its address to other brokers: an attribute of its element.
DISCOVERY_URI = "discoveryUri"


def unused_options(scheme: str, settings: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the options without effect on a connector of this scheme, each with the reason; "" for unknown ones."""
    transport = TRANSPORTS.get(scheme)
    for name, _ in settings:
        if name in _OPENWIRE and transport is not None and not transport.openwire:
            yield name, f"applies to OpenWire, which {scheme}:// does not serve"
        elif name != DISCOVERY_URI and not any(
            name in known for known in (_LIMITS, _OPENWIRE, _CLIENT_AUTH, _ENABLED_PROTOCOLS, _CONVENTIONS)
        ):
            yield name, _WITHOUT_EFFECT.get(name, "")


def _settings(connector: TransportConnector) -> tuple[tuple[str, str], ...]:
    return (*connector.options, *connector.attributes)


def _read(name: str, text: str, read: Callable[[str], Any]) -> Any:
    try:
        return read(text)
    except ValueError as expected:
        raise ConfigurationRefused(f"{name}={text[:40]} is not {expected}") from None
