"""Adds what other nodes appended to the logs that this node owns.

The notice may come before this node has heard of a new log from the node that created it, or after a log was removed.
"""

from __future__ import annotations

import json
from typing import Any

from brokerapp.core.ports import BrokerContext, DispatcherPort, QueueLifecycle
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.entries.read_horizon import UNKNOWN_SEQ
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.nodes.delivery.remote_unacked import RemoteUnacked
from brokerapp.nodes.links.peers import Peers
from brokerapp.nodes.links.protocol import AppendedBatch, PeerMessageType, unpack_batch
from brokerapp.nodes.ports import LogDiscovery, OwnedDurables
from brokerapp.store import DISCARDED


class RemoteAppends:
    """Takes notices of other nodes that they stored messages in a log."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        peers: Peers,
        queues: QueueLifecycle,
        durables: OwnedDurables,
        dispatcher: DispatcherPort,
        store_recovery: LogDiscovery,
        unacked: RemoteUnacked,
    ) -> None:
        self._commits, self._counters = context.commits, context.counters
        self._peers, self._queues, self._durables = peers, queues, durables
        self._dispatcher, self._store_recovery, self._unacked = dispatcher, store_recovery, unacked

    def on_appended(
        self, session: str, name: str, count: int, upto: int, batches: list[Any] | None, evicted: int | None
    ) -> None:
        """Add messages that another node stored and counted, see PeerMessageType.APPENDED."""
        if evicted is not None:
            self._unacked.on_evicted(session, evicted)
        log, destination = self._queues.get(name), Destination.parse(name)
        if log is not None:
            self._append(log, count, upto, batches, session if evicted is not None else "")
            if log.has_active_consumers != (batches is not None) and not log.is_remote:
                self._peers.send(session, PeerMessageType.WANT_ENTRIES, name, log.has_active_consumers)
        elif destination.kind is DestinationKind.SUBSCRIPTION or destination.is_temporary:
            self._check_store(destination, count)
        else:  # it was deleted meanwhile: it exists again
            self._queues.ensure(destination)
            self._note_appended(self._queues[name], count)

    def _append(self, log: MessageLog, count: int, upto: int, batches: list[Any] | None, cached_at: str) -> None:
        if batches is None or log.is_remote or not log.has_active_consumers:
            self._note_appended(log, count, upto)
            return
        for batch in map(AppendedBatch._make, batches):
            log.append_late(unpack_batch(log.name, batch, cached_at), batch.previous_seq)
        self._mark_changed(log)

    def _note_appended(self, log: MessageLog, count: int, upto: int = UNKNOWN_SEQ) -> None:
        log.note_appended(count, upto)
        self._mark_changed(log)

    def _mark_changed(self, log: MessageLog) -> None:
        self._counters.mark_changed(log.counts)
        self._dispatcher.touch(log)

    def _check_store(self, destination: Destination, count: int) -> None:
        """Find out from the store whether an unknown log was removed, or is new."""
        name = str(destination)

        def on_read(answer: list[dict[str, Any]]) -> None:
            [attributes] = answer
            exists = attributes and attributes.get("kind") != DISCARDED
            if self._queues.get(name) is None:
                if exists:
                    self._store_recovery.learn(name, json.dumps(attributes))
                else:
                    self._discard(destination)
            log = self._queues.get(name)
            if log is not None and not log.is_remote:  # else its owner finds the messages in the store
                self._note_appended(log, count)

        self._commits.read_with(lambda store: store.logs.attributes_of([name]), on_read, name)

    def _discard(self, destination: Destination) -> None:
        """Discard messages that nobody is to get."""
        if destination.kind is DestinationKind.SUBSCRIPTION:
            self._durables.discard(str(destination))
        else:
            self._commits.discard_log(str(destination))
