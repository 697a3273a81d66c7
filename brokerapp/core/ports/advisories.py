"""Ports of the advisories: what the broker publishes about itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message


class AdvisoriesPort(Protocol):
    """Publishes advisories about messages."""

    watching: bool

    def delivered(self, place: Destination, messages: Iterable[Message], *, heard: bool = True) -> None: ...

    def dispatched(self, place: Destination, entries: Iterable[LogEntry]) -> None: ...

    def consumed(self, place: Destination, entries: Iterable[LogEntry]) -> None: ...

    def discarded(self, subscription: Subscription, entry: LogEntry) -> None: ...

    def expired(self, destination: Destination, message: Message) -> None: ...

    def dead_lettered(self, destination: Destination, message: Message) -> None: ...


class PressureAdvisories(Protocol):
    """Publishes advisories about blocked producers and full destinations."""

    def fast_producer(self, client: Client, destination: Destination) -> None: ...

    def full(self, destination: Destination, usage: str) -> None: ...
