"""Translate between a bridge and the brokers at its ends: Sluice or ActiveMQ.

A Sluice broker knows the paths of messages and of demand, and gives a bridge only what may cross. An ActiveMQ knows
nothing of them over STOMP: there a path is a property of the message (`sluice_path`), what may cross is said by a
selector on it, and by that selector the consumer of a bridge is known from others. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from brokerapp.engine.scheduling.cron import parse_cron
from brokerapp.engine.scheduling.delivery_schedule import CRON, DELAY, PERIOD, REPEAT
from brokerapp.engine.scheduling.delivery_schedule import HEADERS as SCHEDULING
from brokerapp.errors import RequestRefused
from brokerapp.model.broker_path import (
    BOUND_QUEUES_HEADER,
    PATH_HEADER,
    PATH_PROPERTY,
    TO_HEADER,
    TTL_HEADER,
    UNLIMITED,
    Path,
    format_path,
    parse_path,
)
from brokerapp.model.selector_prefixes import split_prefixes
from brokerapp.network.links.remote_consumers import RemoteConsumer
from brokerapp.stomp.session import BRIDGE_HEADER

Headers = Mapping[str, str]
#: The form in which an ActiveMQ is asked for what is no text, and the one in which it then gives text.
_AS_JSON = "jms-json"
#: Headers of its messages that mean something there only.
_ACTIVEMQ_HEADERS = frozenset({PATH_PROPERTY, "redelivered", *SCHEDULING})
#: Properties that it reads as numbers, with the bits these may have.
_NUMBERS = {"JMSXGroupSeq": 32, REPEAT: 32, DELAY: 64, PERIOD: 64}
_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")
#: All headers of which it reads some values only, and the one that it cannot read at all.
_TO_CHECK = frozenset({*_NUMBERS, CRON, ""})
_ESCAPE = "!"
_NOT_OF = re.compile(rf"{PATH_PROPERTY} NOT LIKE '%,((?:[^,']|'')*),%' ESCAPE '{_ESCAPE}'")


class RemoteDialect(Protocol):
    """The differences between the brokers that a bridge may connect to."""

    @property
    def is_sluice(self) -> bool:
        """Whether it cares for whom a subscription is: who subscribes again tells it who that is now."""

    def subscribe_headers(self, to: str, message_ttl: int, path: Path, selector: str | None) -> dict[str, str]:
        """Headers of a SUBSCRIBE by which a bridge gets what may cross to broker `to`, for demand of this path."""

    def path_of(self, headers: Headers) -> Path:
        """The brokers that the message of a MESSAGE crossed."""

    def send_headers(self, headers: dict[str, str], path: Path) -> dict[str, str]:
        """Headers of the SEND that passes a message on, which has crossed this path."""

    def message_headers(self, headers: Headers) -> dict[str, str]:
        """Return the headers of a MESSAGE that belong to the message."""

    def consumer_of(self, consumer: RemoteConsumer) -> RemoteConsumer:
        """Return the consumer that an advisory is about, with the path of its demand."""


class SluiceDialect:
    """The dialect of a Sluice broker."""

    is_sluice = True

    def subscribe_headers(self, to: str, message_ttl: int, path: Path, selector: str | None) -> dict[str, str]:
        """Return the headers from which the broker decides which messages may be forwarded."""
        headers = {TO_HEADER: to, TTL_HEADER: str(message_ttl), PATH_HEADER: format_path(path)}
        return headers | {"selector": selector} if selector else headers

    def path_of(self, headers: Headers) -> Path:
        """Return the path of a message from the broker's own header."""
        return parse_path(headers.get(PATH_HEADER, ""))

    def message_headers(self, headers: Headers) -> dict[str, str]:
        """All but what is about the path, and about copies, which is said for each bridge anew."""
        return {name: value for name, value in headers.items() if name not in (PATH_HEADER, BOUND_QUEUES_HEADER)}

    def send_headers(self, headers: dict[str, str], path: Path) -> dict[str, str]:
        """It keeps the path, and the message-id."""
        return {**headers, PATH_HEADER: format_path(path)}

    def consumer_of(self, consumer: RemoteConsumer) -> RemoteConsumer:
        """It says all there is to say."""
        return consumer


class ActiveMQDialect:
    """ActiveMQ Classic, at its STOMP connector."""

    is_sluice = False

    def subscribe_headers(self, to: str, message_ttl: int, path: Path, selector: str | None) -> dict[str, str]:
        """By a selector. Map and object messages are asked for as JSON: their bodies were empty otherwise."""
        crossing = crossing_selector(to, message_ttl)
        _, wanted = split_prefixes(selector or "")  # it puts its own before it, and refuses to read them
        return {"selector": f"({wanted}) AND ({crossing})" if wanted else crossing, "transformation": _AS_JSON}

    def path_of(self, headers: Headers) -> Path:
        """Return the path of a message from the property that bridges add."""
        return parse_path(headers.get(PATH_PROPERTY, ""))

    def message_headers(self, headers: Headers) -> dict[str, str]:
        """All but the path, what delayed it there, and the wish for JSON, which comes back with each text.

        Its flag is left out: it flags all that a bridge held when a link broke, and what crossed is known by its id.
        """
        own = {name: value for name, value in headers.items() if name not in _ACTIVEMQ_HEADERS}
        if own.get("transformation") == _AS_JSON:
            del own["transformation"]
        return own

    def send_headers(self, headers: dict[str, str], path: Path) -> dict[str, str]:
        """It gives a message-id of its own. At a property that it cannot read it would end the connection, and at each
        that follows, as the message comes again: such a one means nothing there, and is left out.
        """
        sent = {**headers, PATH_PROPERTY: f",{format_path(path)},"}
        for name in ("message-id", "redelivered", BOUND_QUEUES_HEADER):
            sent.pop(name, None)
        for name in _TO_CHECK & headers.keys():
            if not _is_readable(name, headers[name]):
                del sent[name]
        return sent

    def consumer_of(self, consumer: RemoteConsumer) -> RemoteConsumer:
        """That of a bridge stands for consumers of the broker it leads to, which its selector names."""
        found = _NOT_OF.search(consumer.selector or "")
        if found is None:
            return consumer
        [bridged] = parse_path(_literal(found[1]))
        return replace(consumer, selector=None, path=(*consumer.path, bridged))


def crossing_selector(to: str, message_ttl: int) -> str:
    """The condition on messages of an ActiveMQ that may go to this broker: not from there, nor from too far."""
    literal = re.sub(r"[%_!]", lambda found: _ESCAPE + found[0], format_path((to,))).replace("'", "''")
    conditions = [f"{PATH_PROPERTY} NOT LIKE '%,{literal},%' ESCAPE '{_ESCAPE}'"]
    if message_ttl != UNLIMITED:
        # a path of n brokers has n + 1 commas
        conditions.append(f"{PATH_PROPERTY} NOT LIKE '%{',%' * (message_ttl + 1)}'")
    return f"{PATH_PROPERTY} IS NULL OR ({' AND '.join(conditions)})"


def _is_readable(name: str, value: str) -> bool:
    """Whether an ActiveMQ reads this header of a SEND as what it takes it for."""
    if name == CRON:
        try:
            parse_cron(value)
        except RequestRefused:
            return False
    elif (bits := _NUMBERS.get(name)) is not None:
        return _NUMBER.fullmatch(value) is not None and -(1 << bits - 1) <= int(value) < 1 << bits - 1
    return name != ""


def _literal(pattern: str) -> str:
    """The text that a pattern without wildcards stands for."""
    return re.sub(rf"{_ESCAPE}(.)", r"\1", pattern.replace("''", "'"))


SLUICE, ACTIVEMQ = SluiceDialect(), ActiveMQDialect()


def dialect_of(connected: Headers) -> RemoteDialect | None:
    """Return the dialect of a broker by its CONNECTED frame; None for a broker that is not supported."""
    if BRIDGE_HEADER in connected:
        return SLUICE
    return ACTIVEMQ if connected.get("server", "").startswith("ActiveMQ/") else None
