"""Restoring: the logs that the store keeps, as parts of the broker: when it starts, and as other nodes declare them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from brokerapp.destination import Destination, Kind
from brokerapp.leftovers import Leftovers
from brokerapp.named_subscription import SUBSCRIPTION
from brokerapp.nodes.members import owner_of
from brokerapp.reconnecting import BELONGS
from brokerapp.statistics import Statistics
from brokerapp.store import DISCARDED, LogState

if TYPE_CHECKING:
    from brokerapp.broker import Broker


class Restoring:
    """Gives each log to the part that knows it. A part of the broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def recover(self, states: Iterable[LogState], last: int) -> None:
        """The logs as the last node left them, or as they are among several; `last` is the last message's number."""
        self._broker.committer.last = last
        for state in states:
            self._recover(state, last)
        if not self._broker.homes.others:
            Leftovers(self._broker, self._broker.inactivity.recovered).clear(last)
        if self._broker.settings.statistics:
            Statistics(self._broker)

    def _recover(self, state: LogState, last: int) -> None:
        kind = state.attributes.get("kind")
        if BELONGS in state.attributes:
            self._recover_temporary(state, last)
        elif kind == Kind.TOPIC:
            self._broker.creation.recover(Destination.parse(state.name))
        else:
            (self._broker.durables if kind in (SUBSCRIPTION, DISCARDED) else self._broker.queues).recover(state, last)
            if (destination := Destination.parse(state.name)).is_temporary and destination in self._broker.queues:
                self._broker.temporaries.learn(destination)

    def _recover_temporary(self, state: LogState, last: int) -> None:
        """A temporary destination whose client may reconnect."""
        destination = Destination.parse(state.name)
        if destination.is_queue:
            self._broker.queues.kept[destination] = {BELONGS: state.attributes[BELONGS]}
            self._broker.queues.recover(state, last)
        if self._broker.homes.lives_elsewhere(owner_of(state.name)):
            self._broker.temporaries.learn(destination)
        else:
            self._broker.reconnecting.recover(destination, state.attributes)

    def learn(self, name: str, attributes: str | None) -> None:
        """Another node declared a log, or described it anew; or it is gone (None)."""
        described = json.loads(attributes) if attributes else {"kind": DISCARDED}
        kind, log = described.get("kind"), self._broker.queues.get(name)
        if kind == DISCARDED:
            self._unlearn(name)
        elif kind == Kind.TOPIC or log is None:
            self._recover(LogState(name, described, 0, ""), 0)
        elif kind != SUBSCRIPTION:
            self._broker.queues.described(log, described)

    def _unlearn(self, name: str) -> None:
        """Another node removed a log, or a topic that was declared."""
        destination, log = Destination.parse(name), self._broker.queues.get(name)
        if log is None:
            self._broker.creation.unlearn(destination)
        elif not log.away and self._broker.committer.brings_to(name):
            self._broker.queues.declare_again(log)  # it gets messages of ours as this comes
        else:
            self._broker.homes.abroad.lost(name)
            (self._broker.durables if destination.kind is Kind.SUBSCRIPTION else self._broker.queues).unlearn(log)
            if destination.is_temporary:
                self._broker.temporaries.unlearn(destination)
