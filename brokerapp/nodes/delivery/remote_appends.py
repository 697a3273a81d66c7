"""Takes notice of what other nodes appended to logs that this node owns.

Who stored it tells of it, perhaps before we have heard that the log exists, from the node that made it, or after it was
removed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.entries.read_horizon import UNKNOWN_SEQ
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.nodes.links.protocol import AppendedBatch, PeerMessageType, unpack_batch
from brokerapp.store import DISCARDED

if TYPE_CHECKING:
    from brokerapp.nodes.ports import LocalBroker


class RemoteAppends:
    """Adds other nodes' appends to the logs that this node owns."""

    def __init__(self, broker: LocalBroker) -> None:
        self._broker = broker
        self._evicted_up_to: dict[str, int] = {}  # session -> the highest number that it kept and forgot

    def evicted_up_to(self, session: str) -> int:
        """Up to which number a node has forgotten what it kept: that is given to it whole."""
        return self._evicted_up_to.get(session, 0)

    def forget(self, session: str) -> None:
        """It is no member any more."""
        self._evicted_up_to.pop(session, None)

    def on_appended(
        self, session: str, name: str, count: int, upto: int, runs: list | None, forgotten: int | None
    ) -> None:  # fmt: skip
        """Another node stored messages in a log, and counted them: see Word.ARRIVED."""
        if forgotten is not None:
            self._evicted_up_to[session] = forgotten
        log, destination = self._broker.queues.get(name), Destination.parse(name)
        if log is not None:
            self._append(log, count, upto, runs, session if forgotten is not None else "")
            if log.has_active_consumers != (runs is not None) and not log.is_remote:
                self._broker.placement.send(session, PeerMessageType.WANT_ENTRIES, name, log.has_active_consumers)
        elif destination.kind is DestinationKind.SUBSCRIPTION or destination.is_temporary:
            self._check_store(destination, count)  # read back
        else:  # it was deleted as this came: it is there again
            self._broker.queues.ensure(destination)
            self._note_appended(self._broker.queues[name], count)

    def _append(self, log: MessageLog, count: int, upto: int, runs: list | None, kept_at: str) -> None:
        if runs is None or log.is_remote or not log.has_active_consumers:
            self._note_appended(log, count, upto)
            return
        for told in map(AppendedBatch._make, runs):
            log.append_remote(unpack_batch(log.name, told, kept_at), told.previous_seq)
        self._mark_changed(log)

    def _note_appended(self, log: MessageLog, count: int, upto: int = UNKNOWN_SEQ) -> None:
        log.note_appended(count, upto)
        self._mark_changed(log)

    def _mark_changed(self, log: MessageLog) -> None:
        self._broker.counters.mark_changed(log.counts)
        self._broker.dispatcher.touch(log)

    def _check_store(self, destination: Destination, count: int) -> None:
        """It was removed as this came, or is new and its maker is yet to reach us: the store knows which."""
        name, queues = str(destination), self._broker.queues

        def found(answer: list[dict[str, Any]]) -> None:
            [attributes] = answer
            is_there = attributes and attributes.get("kind") != DISCARDED
            if queues.get(name) is None and is_there:
                self._broker.store_recovery.learn(name, json.dumps(attributes))
            elif queues.get(name) is None:  # nobody is to get what came
                part = (
                    self._broker.durables if destination.kind is DestinationKind.SUBSCRIPTION else self._broker.commits
                )
                part.discard_log(name)
            log = queues.get(name)
            if log is not None and not log.is_remote:  # else its home finds them in the store
                self._note_appended(log, count)

        self._broker.commits.read_with(lambda store: store.logs.attributes_of([name]), found)
