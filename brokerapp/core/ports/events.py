"""Define the events of a broker: what happens to its clients, consumers and destinations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, ParamSpec

from brokerapp.engine.clients.client import Client
from brokerapp.engine.clients.temporary_owner import TemporaryOwner
from brokerapp.engine.dispatch.durable_subscription import DurableSubscription
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.model.destination import Destination

P = ParamSpec("P")


class Event(Generic[P]):
    """Something that happens: calling it calls all handlers, in the order in which they were added."""

    def __init__(self) -> None:
        self._handlers: list[Callable[P, object]] = []

    def add(self, *handlers: Callable[P, object]) -> None:
        """Call these handlers from now on, after those that are there."""
        self._handlers += handlers

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        for handler in self._handlers:
            handler(*args, **kwargs)


class BrokerEvents:
    """The events of one broker. Advisories and the cluster follow them; the assembly adds their handlers."""

    def __init__(self) -> None:
        self.client_returned: Event[[Client]] = Event()  #: one that may reconnect is connecting
        self.client_connected: Event[[Client]] = Event()
        self.client_disconnected: Event[[Client]] = Event()
        self.consumer_started: Event[[Subscription]] = Event()  #: a subscription is served from now on
        self.consumer_stopped: Event[[Subscription]] = Event()
        self.consumer_moved: Event[[Subscription]] = Event()  #: a bridge's is for other consumers now
        self.consumer_is_slow: Event[[Subscription, Destination]] = Event()
        self.topic_subscribers_changed: Event[[]] = Event()
        self.durable_removed: Event[[str, str, Destination]] = Event()  #: of this client id, name and topic
        self.retroactive_durable_created: Event[[DurableSubscription]] = Event()  #: one that wants retained messages
        self.logs_recovered: Event[[Mapping[str, int]]] = Event()  #: from the store; by log: the last message there was
        #: Of a client, at a destination, and its id; "": all that the client sends there is of one producer.
        self.producer_started: Event[[Client, Destination, str]] = Event()
        self.producer_stopped: Event[[Client, Destination, str]] = Event()
        self.bridge_started: Event[[str, str, str]] = Event()  #: to here: its key, its broker and its address
        self.bridge_stopped: Event[[str]] = Event()  #: by its key
        self.destination_added: Event[[Destination]] = Event()
        self.destination_removed: Event[[Destination]] = Event()
        self.queue_added: Event[[MessageLog]] = Event()  #: on demand, by an operator, or found in the store
        self.temporary_added: Event[[Destination, TemporaryOwner]] = Event()  #: a client of this broker owns it
        self.temporary_removed: Event[[Destination]] = Event()
        self._suspensions: list[Callable[[], bool]] = []

    def suspend_while(self, condition: Callable[[], bool]) -> None:
        """Accept no clients while this is so."""
        self._suspensions.append(condition)

    @property
    def is_suspended(self) -> bool:
        """Return whether no clients are accepted for now."""
        return any(condition() for condition in self._suspensions)
