"""Records as trace events that a client began to consume from a destination, and that it stopped.

A client counts once per destination, however many subscriptions it has there. Each event contains the number of clients
that this node serves at the destination from then on, so that no earlier event is needed to know it.
"""

from __future__ import annotations

import time
from collections import Counter

from brokerapp.tracing.depths import DepthEvent
from brokerapp.tracing.recorder import TraceRecorder
from brokerapp.tracing.schema import START, SUBSCRIBE, UNSUBSCRIBE

#: Stands for all destinations in the note that a broker began: whoever consumed before consumes no longer.
EVERYWHERE = "queue://>"


class ConsumerRecorder:
    """Records the consumers of one node's logs and topics."""

    def __init__(self, recorder: TraceRecorder) -> None:
        self._recorder = recorder
        self._subscriptions: Counter[tuple[str, str]] = Counter()  # by destination and client
        self._clients: Counter[str] = Counter()  # by destination

    def on_subscribed(self, destination: str, client: str) -> None:
        """Count a subscription of this client; its first at the destination is recorded."""
        self._subscriptions[destination, client] += 1
        if self._subscriptions[destination, client] == 1:
            self._clients[destination] += 1
            self._note(SUBSCRIBE, destination, client, None)

    def on_unsubscribed(self, destination: str, client: str) -> None:
        """Count a subscription less; the client's last at the destination is recorded."""
        if (destination, client) not in self._subscriptions:
            return
        self._subscriptions[destination, client] -= 1
        if not self._subscriptions[destination, client]:
            del self._subscriptions[destination, client]
            self._clients[destination] -= 1
            self._note(UNSUBSCRIBE, destination, client, None)
            if not self._clients[destination]:
                del self._clients[destination]

    def forget(self, destination: str) -> None:
        """Forget the consumers of a destination: another node serves and records them."""
        if self._clients.pop(destination, 0):
            for key in [each for each in self._subscriptions if each[0] == destination]:
                del self._subscriptions[key]

    def on_broker_started(self) -> None:
        """Record that no node of the broker ran, so nobody consumes."""
        self._note(UNSUBSCRIBE, EVERYWHERE, None, START)

    def _note(self, kind: int, destination: str, client: str | None, reason: str | None) -> None:
        now_us = time.time_ns() // 1000
        count = DepthEvent(self._clients[destination], now_us)
        self._recorder.record(kind, now_us, (count,), (destination,), destination, client, reason)
